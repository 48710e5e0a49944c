#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
//! The fence before a stand-in for the connection that counts what reaches it and answers when told to.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use tokio::sync::Semaphore;
use tower::service_fn;

use super::*;
use crate::clock::{Clock, Moment};

/// What the connection has seen.
#[derive(Clone)]
struct Connection {
    seen: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
    /// One permit lets one request be answered.
    answers: Arc<Semaphore>,
}

impl Connection {
    fn new(answers: usize) -> Self {
        Connection {
            seen: Arc::default(),
            answered: Arc::default(),
            answers: Arc::new(Semaphore::new(answers)),
        }
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    fn client(&self, permit: &Permit) -> Api<ConfigMap> {
        let connection = self.clone();
        let service = service_fn(move |_request: Request<Body>| {
            let connection = connection.clone();
            async move {
                connection.seen.fetch_add(1, Ordering::SeqCst);
                connection.answers.acquire().await.unwrap().forget();
                connection.answered.fetch_add(1, Ordering::SeqCst);
                let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
                Ok::<_, BoxError>(Response::new(Body::from(body.as_bytes().to_vec())))
            }
        });
        let layer = FenceLayer { permit: permit.clone() };
        Api::namespaced(kube::Client::new(layer.layer(service), "ns"), "ns")
    }
}

fn permit(seconds: u64) -> Permit {
    Permit::mint(1, Moment::from(Duration::from_secs(seconds)), Clock::tokio())
}

/// Lets every task run that can.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_permit_everything_passes() {
    let connection = Connection::new(2);
    let api = connection.client(&permit(10));
    api.get("a").await.unwrap();
    api.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
    assert_eq!(connection.seen(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_permit_no_write_reaches_the_connection() {
    let connection = Connection::new(10);
    let permit = permit(10);
    let api = connection.client(&permit);
    permit.revoke();
    let object = ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some("a".into()),
            ..Default::default()
        },
        ..Default::default()
    };
    let refused = [
        api.create(&PostParams::default(), &object).await.err(),
        api.replace("a", &PostParams::default(), &object).await.err(),
        api.patch("a", &PatchParams::default(), &Patch::Merge(&object))
            .await
            .err(),
        api.patch_status("a", &PatchParams::default(), &Patch::Merge(&object))
            .await
            .err(),
        api.delete("a", &DeleteParams::default()).await.err(),
        api.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default())
            .await
            .err(),
    ];
    for error in refused {
        let error = error.expect("the write should have been refused");
        assert!(is_refused(&error), "{error:?}");
    }
    assert_eq!(connection.seen(), 0);
    api.get("a").await.unwrap();
    assert_eq!(connection.seen(), 1, "a read needs no permit");
}

#[tokio::test(start_paused = true)]
async fn other_errors_are_not_refusals() {
    let client = kube::Client::new(
        service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>(BoxError::from("down")) }),
        "ns",
    );
    let error = Api::<ConfigMap>::namespaced(client, "ns").get("a").await.unwrap_err();
    assert!(!is_refused(&error));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_caller_is_aborted_runs_to_its_end() {
    let connection = Connection::new(0);
    let permit = permit(10);
    let api = connection.client(&permit);
    let caller = tokio::spawn(async move { api.create(&PostParams::default(), &ConfigMap::default()).await });
    settle().await;
    assert_eq!((connection.seen(), permit.writes().open), (1, 1));
    permit.revoke();
    caller.abort();
    settle().await;
    assert_eq!(permit.writes().open, 1, "the request is still on its way");
    connection.answers.add_permits(1);
    assert_eq!(permit.writes_settled().await, 0);
    assert_eq!(connection.answered(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_answered_is_given_up_four_seconds_after_the_revocation() {
    let connection = Connection::new(0);
    let clock = Clock::tokio();
    let permit = Permit::mint(1, Moment::from(Duration::from_secs(10)), clock.clone());
    let api = connection.client(&permit);
    let caller = tokio::spawn(async move { api.delete("a", &DeleteParams::default()).await });
    settle().await;
    permit.revoke();
    assert_eq!(permit.writes_settled().await, 1, "its outcome is unknown");
    assert_eq!(clock.now(), Moment::from(Duration::from_secs(4)));
    assert!(is_refused(&caller.await.unwrap().unwrap_err()));
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_caller_has_gone_is_given_up_after_four_seconds() {
    let connection = Connection::new(0);
    let clock = Clock::tokio();
    let permit = Permit::mint(1, Moment::from(Duration::from_secs(10)), clock.clone());
    let api = connection.client(&permit);
    let caller = tokio::spawn(async move { api.delete("a", &DeleteParams::default()).await });
    settle().await;
    caller.abort();
    assert_eq!(
        permit.writes_settled().await,
        0,
        "the permit still holds, so this says nothing about a release"
    );
    assert_eq!(clock.now(), Moment::from(Duration::from_secs(4)));
}

#[tokio::test(start_paused = true)]
async fn a_write_has_no_more_time_than_was_left_of_the_permit() {
    let connection = Connection::new(0);
    let clock = Clock::tokio();
    let permit = Permit::mint(1, Moment::from(Duration::from_secs(10)), clock.clone());
    let api = connection.client(&permit);
    tokio::time::advance(Duration::from_secs(3)).await;
    let renewals = tokio::spawn({
        let permit = permit.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            permit.extend(Moment::from(Duration::from_secs(15)));
        }
    });
    let error = api
        .create(&PostParams::default(), &ConfigMap::default())
        .await
        .unwrap_err();
    renewals.await.unwrap();
    assert_eq!(clock.now(), Moment::from(Duration::from_secs(10)));
    assert!(
        !is_refused(&error),
        "a slow API server is a failure like any other: {error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_does_not_send_what_had_passed_before() {
    // The connection is made only after the process went on: the request had passed the fence before it was stopped.
    let clock = Clock::tokio();
    let permit = Permit::mint(1, Moment::from(Duration::from_secs(10)), clock.clone());
    let connected = Arc::new(Semaphore::new(0));
    let sent = Arc::new(AtomicUsize::new(0));
    let service = service_fn({
        let (connected, sent) = (connected.clone(), sent.clone());
        move |_: Request<Body>| {
            let (connected, sent) = (connected.clone(), sent.clone());
            async move {
                connected.acquire().await.unwrap().forget();
                sent.fetch_add(1, Ordering::SeqCst);
                Ok::<_, BoxError>(Response::new(Body::empty()))
            }
        }
    });
    let layer = FenceLayer { permit };
    let api = Api::<ConfigMap>::namespaced(kube::Client::new(layer.layer(service), "ns"), "ns");
    let caller = tokio::spawn(async move { api.create(&PostParams::default(), &ConfigMap::default()).await });
    settle().await;
    clock.suspend(Duration::from_secs(25));
    connected.add_permits(1);
    assert!(is_refused(&caller.await.unwrap().unwrap_err()));
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}
