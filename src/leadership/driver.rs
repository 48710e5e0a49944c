//! Drives the phases: hands signals, the end of start-up and everything that the effects started to the machine, until
//! it has an exit code.

use std::sync::Arc;

use states::phase::{Bounds, Event, Phase, Phases};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info};

use super::effects::{RealEffects, Shared};
use super::elector;
use super::signals::{Signals, Termination};
use super::{Candidacy, Leadership};

/// Something that reaches the driver from elsewhere than a signal handler.
#[derive(Debug)]
pub(in crate::leadership) enum Notice {
    /// An event for the machine.
    Event(Event),
    /// A report of the elector.
    Elector(elector::Event),
}

impl Leadership {
    /// Runs a replica from Starting to its end and returns the exit code of the process: 0 after a drain, 1 when
    /// start-up failed or a task of the leader ended by itself, 128 + the number of a second signal.
    ///
    /// `startup` runs on the workers. A termination signal cuts it.
    ///
    /// Must run on a runtime of its own, on a thread that does nothing else: nothing may delay a renewal.
    pub async fn run<S>(self, mut signals: Signals, startup: S) -> u8
    where
        S: Future<Output = anyhow::Result<Candidacy>> + Send + 'static,
    {
        let webhook = self.webhook.is_some();
        let shared = Arc::new(Shared::default());
        let (notices, mut incoming) = mpsc::unbounded_channel();
        let mut startup = Some(AbortOnDropHandle::new(self.workers.spawn(startup)));
        let mut phases = Phases::new(
            RealEffects::new(self, shared.clone(), notices),
            webhook,
            Bounds::PRODUCTION,
        );
        loop {
            if let Some(code) = phases.exit_code() {
                info!(code, "the replica ends");
                return u8::try_from(code).unwrap_or(u8::MAX);
            }
            let event = tokio::select! {
                biased;
                signal = signals.next() => {
                    info!(%signal, "received a termination signal");
                    Event::Terminate(number(signal))
                }
                notice = incoming.recv() => match notice {
                    Some(notice) => match translate(notice, &shared) {
                        Some(event) => event,
                        None => continue,
                    },
                    // The effects hold the other end.
                    None => continue,
                },
                outcome = started(&mut startup) => {
                    startup = None;
                    begin(outcome, &shared)
                }
            };
            phases.handle(&event).await;
            if phases.phase() != Phase::Starting {
                startup = None;
            }
        }
    }
}

/// The event that a notice amounts to, if any.
fn translate(notice: Notice, shared: &Shared) -> Option<Event> {
    match notice {
        Notice::Event(event) => Some(event),
        Notice::Elector(elector::Event::Acquired(permit)) => {
            let term = permit.term();
            Shared::put(&shared.granted, permit);
            Some(Event::Acquired { term })
        }
        Notice::Elector(elector::Event::Lost(loss)) => Some(Event::Lost(loss)),
        Notice::Elector(elector::Event::ReleaseEnded { released }) => {
            if released {
                info!("the Lease is released, or was not held");
            }
            shared.release_ended.notify_one();
            None
        }
    }
}

/// The event at the end of start-up.
fn begin(outcome: anyhow::Result<Candidacy>, shared: &Shared) -> Event {
    match outcome {
        Ok(candidacy) if candidacy.identity.is_empty() => {
            error!(
                "the identity of this replica is empty, which means \"nobody\": give it one with --leader-election-identity"
            );
            Event::StartupFailed
        }
        Ok(candidacy) => {
            Shared::put(&shared.candidacy, candidacy);
            Event::Ready
        }
        Err(error) => {
            error!(error = format!("{error:#}"), "start-up failed");
            Event::StartupFailed
        }
    }
}

async fn started(startup: &mut Option<AbortOnDropHandle<anyhow::Result<Candidacy>>>) -> anyhow::Result<Candidacy> {
    match startup {
        Some(startup) => startup
            .await
            .unwrap_or_else(|error| Err(anyhow::Error::new(error).context("start-up panicked"))),
        None => std::future::pending().await,
    }
}

fn number(signal: Termination) -> i32 {
    i32::from(signal.forced_exit_code()) - 128
}

#[cfg(test)]
mod tests;
