//! Watches the CRDs by name, restores them, and tells the certificates what the CRD names (decisions W4, W6 and W9).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_objects};
use kube::{Api, Client};
use tokio::sync::watch;

use super::conflict::{Restorations, last_writer};
use super::{
    Options, Outcome, Registered, RegistrationError, bundle, decide, is_urgent, log, register, register_crds, render,
};
use crate::clock::{Clock, Moment};
use crate::webhook::certificates::Authorities;
use crate::webhook::sightings::{Sighting, Sightings};

/// Time-out of the watches, seconds; below the time that the client waits for something to read.
const WATCH: u32 = 110;
/// Pause after a failed write; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause after failed writes.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often a CRD that another release serves is looked at.
const RIVAL_AGAIN: Duration = Duration::from_secs(30);
/// Least time between two log lines of the same cause.
const SAY_EVERY: Duration = Duration::from_mins(1);

/// Keeps the CRDs as they should be.
pub struct Guard {
    client: Client,
    options: Options,
    clock: Clock,
    links: Links,
    crds: BTreeMap<&'static str, Care>,
}

/// What connects the guard to the rest of the replica.
pub struct Links {
    /// The authorities that the CRD must name for this replica; none without a webhook.
    pub own: Option<watch::Receiver<Option<Authorities>>>,
    /// Told what the CRD names.
    pub sightings: watch::Sender<Sightings>,
    /// Told whether another release's webhook serves the CRD, so that nothing is reconciled.
    pub blocked: watch::Sender<bool>,
    /// Whether this replica is on its way out: then it writes no CRD.
    pub draining: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// What is known of one CRD.
#[derive(Debug, Default)]
struct Care {
    /// When to look at it and write it, if that is necessary.
    due: Option<Moment>,
    /// Whether that is because somebody changed it.
    restoring: bool,
    restorations: Restorations,
    failures: u32,
    /// Whether another operator's definition stands.
    yielded: bool,
    said: Option<Moment>,
}

type Watches = SelectAll<BoxStream<'static, Result<(&'static str, Seen), watcher::Error>>>;

/// A CRD as the watch saw it.
#[derive(Debug)]
enum Seen {
    There(Box<CustomResourceDefinition>),
    Gone,
}

// === impl Guard ===

impl Guard {
    /// A guard that has not looked at anything yet.
    pub fn new(client: Client, options: Options, clock: Clock, links: Links) -> Self {
        Self {
            client,
            options,
            clock,
            links,
            crds: render::NAMES.map(|name| (name, Care::default())).into(),
        }
    }

    /// Registers all CRDs once.
    ///
    /// # Errors
    /// As [`register_crds`].
    pub async fn register(&mut self) -> Result<(), RegistrationError> {
        let own = self.own();
        let registered = register_crds(&self.client, &self.options, &own, self.clock.timestamp()).await?;
        for registered in registered {
            self.registered(&registered);
        }
        Ok(())
    }

    /// Watches and restores until it is dropped.
    pub async fn run(mut self) {
        let mut watches = self.watches();
        loop {
            let due = self.crds.values().filter_map(|care| care.due).min();
            tokio::select! {
                Some(event) = watches.next() => match event {
                    Ok((name, seen)) => self.saw(name, &seen),
                    // The stream pauses by itself. The log of requests says the rest.
                    Err(error) => tracing::debug!(%error, "a watch of a CRD was interrupted"),
                },
                () = changed(&mut self.links.own) => self.own_changed(),
                () = sleep_until(&self.clock, due) => self.catch_up().await,
            }
        }
    }

    fn own(&self) -> Authorities {
        let own = self.links.own.as_ref().and_then(|own| own.borrow().clone());
        own.unwrap_or_default()
    }

    fn watches(&self) -> Watches {
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        let watches = render::NAMES.map(|name| {
            let config = watcher::Config::default()
                .fields(&format!("metadata.name={name}"))
                .timeout(WATCH);
            let mut listed = false;
            watch_objects(api.clone(), config)
                .default_backoff()
                .try_filter_map(move |event| {
                    let seen = match event {
                        Event::Init => {
                            listed = false;
                            None
                        }
                        Event::InitApply(crd) => {
                            listed = true;
                            Some(Seen::There(Box::new(crd)))
                        }
                        Event::InitDone => (!listed).then_some(Seen::Gone),
                        Event::Apply(crd) => Some(Seen::There(Box::new(crd))),
                        Event::Delete(_) => Some(Seen::Gone),
                    };
                    std::future::ready(Ok(seen.map(|seen| (name, seen))))
                })
                .boxed()
        });
        watches.into_iter().collect()
    }

    /// Judges what the watch saw; what is not as it should be gets a time at which it is restored.
    fn saw(&mut self, name: &'static str, seen: &Seen) {
        let (now, timestamp, own) = (self.clock.now(), self.clock.timestamp(), self.own());
        let live = match seen {
            Seen::There(crd) => Some(crd.as_ref()),
            Seen::Gone => None,
        };
        if let Some(live) = live {
            self.sight(name, live);
        }
        let decision = decide(live, name, &self.options, &own, timestamp);
        let Some(care) = self.crds.get_mut(name) else {
            return;
        };
        let yielded = matches!(decision.outcome, Outcome::Yielded(_));
        if yielded && !std::mem::replace(&mut care.yielded, yielded) {
            log(name, &decision);
        }
        care.yielded = yielded;
        if decision.write.is_none() {
            care.restoring = false;
            care.due = decision.look_again.map(|at| moment_of(at, timestamp, now));
            return;
        }
        let urgent = live.is_none_or(|live| is_urgent(live, &self.options, &own));
        care.restoring = true;
        care.due = Some(care.restorations.next(urgent, now));
        let fight = care.restorations.is_fight(now);
        if fight && care.is_due_to_say(now) {
            let by = live.map_or_else(|| "unknown: it was deleted".to_owned(), last_writer);
            tracing::error!(
                crd = name,
                changed_by = by,
                urgent,
                "somebody changes this CRD again and again; it is restored, but not at once unless it is urgent"
            );
        }
    }

    fn own_changed(&mut self) {
        let now = self.clock.now();
        if let Some(care) = self.crds.get_mut(render::MATERIALIZES) {
            care.due = Some(now);
        }
    }

    /// Looks at what is due.
    async fn catch_up(&mut self) {
        let now = self.clock.now();
        let names: Vec<_> = self
            .crds
            .iter()
            .filter(|(_, care)| care.due.is_some_and(|due| due <= now))
            .map(|(name, _)| *name)
            .collect();
        for name in names {
            if (self.links.draining)() {
                if let Some(care) = self.crds.get_mut(name) {
                    care.due = None;
                }
                continue;
            }
            let own = self.own();
            match register(&self.client, name, &self.options, &own, self.clock.timestamp()).await {
                Ok(registered) => self.registered(&registered),
                Err(error) => self.failed(name, &error),
            }
        }
    }

    /// Notes a CRD that was looked at, and written if that was necessary.
    fn registered(&mut self, registered: &Registered) {
        let (now, timestamp) = (self.clock.now(), self.clock.timestamp());
        if let Some(before) = &registered.before {
            self.sight(&registered.name, before);
        }
        self.sight(&registered.name, &registered.after);
        let blocked = matches!(registered.outcome, Outcome::Blocked(_));
        if registered.name == render::MATERIALIZES {
            self.links
                .blocked
                .send_if_modified(|was| std::mem::replace(was, blocked) != blocked);
        }
        let Some(care) = self.crds.get_mut(registered.name.as_str()) else {
            return;
        };
        care.failures = 0;
        care.yielded = matches!(registered.outcome, Outcome::Yielded(_));
        if std::mem::take(&mut care.restoring) && registered.outcome == Outcome::Written {
            care.restorations.note(now);
            let by = registered.before.as_ref().map(last_writer);
            tracing::warn!(
                crd = registered.name,
                changed_by = by,
                "restored a CRD that somebody had changed"
            );
        }
        care.due = if blocked {
            Some(now + RIVAL_AGAIN)
        } else {
            registered.look_again.map(|at| moment_of(at, timestamp, now))
        };
    }

    fn failed(&mut self, name: &'static str, error: &RegistrationError) {
        let now = self.clock.now();
        let Some(care) = self.crds.get_mut(name) else {
            return;
        };
        care.failures += 1;
        let pause = FIRST_PAUSE.saturating_mul(1 << care.failures.min(5).saturating_sub(1));
        care.due = Some(now + pause.min(LONGEST_PAUSE));
        if care.is_due_to_say(now) {
            let error = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
            let error = error.map(ToString::to_string).collect::<Vec<_>>().join(": ");
            tracing::warn!(crd = name, error, "can't restore a CRD yet; trying again");
        }
    }

    /// Tells what the CRD names.
    fn sight(&self, name: &str, live: &CustomResourceDefinition) {
        if name != render::MATERIALIZES {
            return;
        }
        let (now, timestamp) = (self.clock.now(), self.clock.timestamp());
        let ledger = bundle::Ledger::of(live);
        let authorities = bundle::live(live);
        let sightings = authorities.iter().map(|(fingerprint, _)| Sighting {
            fingerprint: fingerprint.clone(),
            age: ledger
                .added(fingerprint)
                .and_then(|added| Duration::try_from(timestamp.duration_since(added)).ok()),
        });
        // Without a webhook in the CRD nobody asks for one. If it should be there, it is restored before that is
        // looked at.
        let without_webhook = !render::has_webhook(live)
            && decide(Some(live), name, &self.options, &self.own(), timestamp)
                .write
                .is_none();
        let sightings: Vec<_> = sightings.collect();
        self.links.sightings.send_if_modified(|known| {
            let after = known.after(sightings, without_webhook, now);
            std::mem::replace(known, after.clone()) != after
        });
    }
}

// === impl Care ===

impl Care {
    fn is_due_to_say(&mut self, now: Moment) -> bool {
        let due = self.said.is_none_or(|said| now.saturating_since(said) >= SAY_EVERY);
        if due {
            self.said = Some(now);
        }
        due
    }
}

fn moment_of(at: Timestamp, timestamp: Timestamp, now: Moment) -> Moment {
    now + Duration::try_from(at.duration_since(timestamp)).unwrap_or_default()
}

/// Ends when the own authorities have changed; never if they can't any more.
async fn changed(own: &mut Option<watch::Receiver<Option<Authorities>>>) {
    if let Some(receiver) = own
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

async fn sleep_until(clock: &Clock, due: Option<Moment>) {
    match due {
        Some(due) => tokio::time::sleep(due.saturating_since(clock.now())).await,
        None => std::future::pending().await,
    }
}
