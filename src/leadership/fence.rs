//! The fence: the innermost layer of the leader's Kubernetes client, directly before the connection.
//!
//! Every request but reads needs a valid [`Permit`] at the moment it is handed to the connection (decision L9). A
//! mutating request that has passed runs to its end on a task of its own, so that aborting its caller does not leave
//! it half-sent with nobody to know when it ends (decision L9b). No call site can forget the check, because
//! controllers get no other client than a [`FencedClient`].

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Future, FutureExt};
use http::{Method, Request};
use kube::client::Body;
use tokio::sync::oneshot;
use tower::{BoxError, Layer, Service};

use super::permit::{OpenWrite, Permit};

/// How long a mutating request may still run once its permit was revoked or its caller has gone (decision L9b).
const LAST_WRITE: Duration = Duration::from_secs(4);

/// A Kubernetes client that refuses every write without a valid [`Permit`]. Cheap to clone.
///
/// It belongs to one term and dies with it: the next term gets a new one.
#[derive(Clone)]
pub struct FencedClient {
    client: kube::Client,
}

/// Builds the leader's client around the fence: it must put the layer innermost, after authentication and directly
/// before the connection.
pub type ClientFactory = Arc<dyn Fn(FenceLayer) -> anyhow::Result<kube::Client> + Send + Sync>;

/// A layer that makes a [`Fence`] for one term.
#[derive(Clone, Debug)]
pub struct FenceLayer {
    permit: Permit,
}

/// The service that the layer makes.
#[derive(Clone, Debug)]
pub struct Fence<S> {
    inner: S,
    permit: Permit,
}

/// Why the fence ended a request.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// There is no valid permit: nothing was sent.
    #[error("{method} {path} was not sent: this replica does not lead (any more)")]
    Refused {
        /// The request's method.
        method: Method,
        /// The path it was meant for.
        path: String,
    },
    /// The permit ended before the request was answered: the API server may have acted on it, or still may.
    #[error("{method} {path} was given up: this replica stopped leading before it was answered")]
    Ended {
        /// The request's method.
        method: Method,
        /// The path it was meant for.
        path: String,
    },
    /// The request took longer than what was left of the permit when it was sent, or than 4 s after its
    /// caller had gone. The permit was renewed meanwhile.
    #[error("{method} {path} was given up: no answer within the time that was left of the permit when it was sent")]
    TimedOut {
        /// The request's method.
        method: Method,
        /// The path it was meant for.
        path: String,
    },
}

/// Whether `error` only says that this replica does not lead: such an error is no failure of the object it happened
/// to, publishes no event and is not counted (decision O1).
pub fn is_refused(error: &kube::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(fence) = error.downcast_ref::<FenceError>() {
            return !matches!(fence, FenceError::TimedOut { .. });
        }
        source = error.source();
    }
    false
}

// === impl FencedClient ===

impl FencedClient {
    /// The client of the term of `permit`.
    ///
    /// # Errors
    /// Whatever the factory fails with.
    pub(in crate::leadership) fn build(factory: &ClientFactory, permit: Permit) -> anyhow::Result<Self> {
        let client = factory(FenceLayer { permit })?;
        Ok(FencedClient { client })
    }

    /// The client itself, for `kube::Api` and the controllers' runtime. It is as fenced as this one.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }
}

impl Deref for FencedClient {
    type Target = kube::Client;

    fn deref(&self) -> &kube::Client {
        &self.client
    }
}

// === impl FenceLayer ===

impl<S> Layer<S> for FenceLayer {
    type Service = Fence<S>;

    fn layer(&self, inner: S) -> Fence<S> {
        Fence {
            inner,
            permit: self.permit.clone(),
        }
    }
}

// === impl Fence ===

impl<S> Service<Request<Body>> for Fence<S>
where
    S: Service<Request<Body>>,
    S::Response: Send + 'static,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if is_read(request.method()) {
            return self
                .inner
                .call(request)
                .map(|answer| answer.map_err(Into::into))
                .boxed();
        }
        let target = Target {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
        };
        let Some(write) = self.permit.begin_write() else {
            let error: BoxError = target.refused().into();
            return futures::future::err(error).boxed();
        };
        let call = self.inner.call(request);
        let (answer, caller) = oneshot::channel();
        tokio::spawn(run_to_its_end(call, write, target, answer));
        // The task always answers; it can only vanish with the whole runtime.
        caller
            .map(|answer| answer.unwrap_or_else(|gone| Err(gone.into())))
            .boxed()
    }
}

/// Whether a request can change nothing. Every other method is a write, reviews such as `SelfSubjectAccessReview`
/// included.
fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Drives one mutating request until it is answered, its time is over, or its permit was revoked or its caller went
/// away more than [`LAST_WRITE`] ago.
async fn run_to_its_end<F, T, E>(
    call: F,
    write: OpenWrite,
    target: Target,
    mut answer: oneshot::Sender<Result<T, BoxError>>,
) where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    let mut call = pin!(call);
    // A process that was stopped or suspended wakes with its connection ready and its timers not yet fired: each poll
    // looks at the clock before the request can move on.
    let in_time = poll_fn(|context| {
        if write.in_time() {
            call.as_mut().poll(context).map(Some)
        } else {
            Poll::Ready(None)
        }
    });
    let outcome = tokio::select! {
        biased;
        outcome = in_time => outcome,
        () = write.limit() => None,
        () = last_moment(write.permit(), &mut answer) => None,
    };
    let outcome = if let Some(outcome) = outcome {
        drop(write);
        outcome.map_err(Into::into)
    } else {
        let error = if write.permit().is_valid() {
            target.timed_out()
        } else {
            target.ended()
        };
        write.abandon();
        Err(error.into())
    };
    // Nobody may be listening any more.
    let _ = answer.send(outcome);
}

/// Ends [`LAST_WRITE`] after the permit was revoked or the caller went away.
async fn last_moment<T>(permit: &Permit, caller: &mut oneshot::Sender<T>) {
    tokio::select! {
        () = permit.revoked() => {}
        () = caller.closed() => {}
    }
    tokio::time::sleep(LAST_WRITE).await;
}

/// What a request was meant for, for its error.
struct Target {
    method: Method,
    path: String,
}

// === impl Target ===

impl Target {
    fn refused(self) -> FenceError {
        FenceError::Refused {
            method: self.method,
            path: self.path,
        }
    }

    fn ended(self) -> FenceError {
        FenceError::Ended {
            method: self.method,
            path: self.path,
        }
    }

    fn timed_out(self) -> FenceError {
        FenceError::TimedOut {
            method: self.method,
            path: self.path,
        }
    }
}

#[cfg(test)]
mod tests;
