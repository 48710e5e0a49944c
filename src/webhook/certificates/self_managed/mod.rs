//! The certificate that the operator issues itself, into a Secret that all replicas share (decision W5).
//!
//! Any replica may write it. Each hands what it finds there to its [`Keeper`](super::Keeper), which serves it in the
//! order of a rotation like any other pair.

mod decision;
mod issue;

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_objects};
use kube::{Api, Client};
use tokio::sync::watch;

use self::decision::{Action, Contents, Why, decide};
use super::pair::Material;
use crate::api::labels::FIELD_MANAGER;
use crate::clock::{Clock, Moment};

/// Time-out of the watch, seconds; below the time that the client waits for something to read.
const WATCH: u32 = 110;
/// Pause after a failed request.
const PAUSE: Duration = Duration::from_secs(5);
/// Least time between two log lines about a Secret that is somebody else's.
const SAY_EVERY: Duration = Duration::from_mins(1);
/// Longest time between two looks at what the watch saw last.
const LONGEST: Duration = Duration::from_hours(24);

/// What the Secret has, or why there is nothing; none before the first look.
pub type Found = Option<Result<Material, String>>;

/// Keeps the certificate in its Secret.
pub struct SelfManaged {
    client: Client,
    clock: Clock,
    namespace: String,
    secret: String,
    /// The DNS name of the webhook's Service.
    name: String,
    found: watch::Sender<Found>,
    memory: Option<Contents>,
    refused_at: Option<Moment>,
}

// === impl SelfManaged ===

impl SelfManaged {
    /// Cares for the Secret `secret` in `namespace`, for a Service with the DNS name `name`.
    pub fn new(
        client: Client,
        clock: Clock,
        namespace: String,
        secret: String,
        name: String,
        found: watch::Sender<Found>,
    ) -> Self {
        Self {
            client,
            clock,
            namespace,
            secret,
            name,
            found,
            memory: None,
            refused_at: None,
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let config = watcher::Config::default()
            .fields(&format!("metadata.name={}", self.secret))
            .timeout(WATCH);
        // Each event is a reason to read, no more.
        let mut changes = watch_objects(api.clone(), config)
            .default_backoff()
            .try_filter(|event| std::future::ready(!matches!(event, Event::Init | Event::InitApply(_))))
            .boxed();
        loop {
            let pause = self.look(&api).await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // The watch never ends; its interruptions pause by themselves.
                event = changes.next() => if let Some(Err(error)) = event {
                    tracing::debug!(%error, "the watch of the certificate's Secret was interrupted");
                }
            }
        }
    }

    /// Reads the Secret, and writes it if that is necessary. Says when to look again.
    async fn look(&mut self, api: &Api<Secret>) -> Duration {
        match self.bring_up_to_date(api).await {
            Ok(pause) => pause.min(LONGEST),
            Err(text) => {
                let text = format!("Secret {}/{}: {text}", self.namespace, self.secret);
                tracing::debug!(error = text, "no self-managed certificate yet");
                // What was good stays; the keeper says what is missing, once a minute.
                self.found.send_if_modified(|found| {
                    let replace = !matches!(found, Some(Ok(_)));
                    if replace {
                        *found = Some(Err(text));
                    }
                    replace
                });
                PAUSE
            }
        }
    }

    async fn bring_up_to_date(&mut self, api: &Api<Secret>) -> Result<Duration, String> {
        let live = api.get_opt(&self.secret).await.map_err(|error| error.to_string())?;
        let now = self.clock.timestamp();
        let action = decide(live.as_ref(), self.memory.as_ref(), &self.name, now)
            .map_err(|error| format!("can't issue a certificate: {error}"))?;
        match action {
            Action::Refuse => {
                let moment = self.clock.now();
                if self
                    .refused_at
                    .is_none_or(|at| moment.saturating_since(at) >= SAY_EVERY)
                {
                    self.refused_at = Some(moment);
                    tracing::error!(
                        namespace = self.namespace,
                        secret = self.secret,
                        "this Secret was not made by the operator and is left alone: delete it, or give another name"
                    );
                }
                Err("it was not made by the operator: delete it, or give another name".to_owned())
            }
            Action::Keep { contents, until } => {
                self.publish(contents);
                Ok(Duration::try_from(until.duration_since(now)).unwrap_or_default())
            }
            Action::Write { contents, why } => {
                let secret = contents.secret(live.as_ref(), &self.namespace, &self.secret);
                let params = PostParams {
                    field_manager: Some(FIELD_MANAGER.to_owned()),
                    ..PostParams::default()
                };
                let written = match &live {
                    None => api.create(&params, &secret).await,
                    Some(_) => api.replace(&self.secret, &params, &secret).await,
                };
                match written {
                    Ok(_) => self.report(why),
                    // Another replica was faster: read what it wrote.
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    Err(error) => return Err(error.to_string()),
                }
                // Whoever wrote it, the next look finds it.
                Ok(Duration::ZERO)
            }
        }
    }

    fn report(&self, why: Why) {
        let (namespace, secret) = (&self.namespace, &self.secret);
        match why {
            Why::Missing | Why::LeafDue | Why::AuthorityDue => {
                tracing::info!(namespace, secret, ?why, "wrote the webhook's self-managed certificate");
            }
            Why::LeafUnfit | Why::AuthorityUnfit => tracing::error!(
                namespace,
                secret,
                ?why,
                "the webhook's self-managed certificate was damaged, or for another Service, and was issued again"
            ),
        }
    }

    fn publish(&mut self, contents: Contents) {
        let material = contents.material();
        self.memory = Some(contents);
        self.found.send_if_modified(|found| {
            let changed = !matches!(found, Some(Ok(known)) if *known == material);
            if changed {
                *found = Some(Ok(material));
            }
            changed
        });
    }
}
