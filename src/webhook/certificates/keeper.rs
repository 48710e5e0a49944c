//! Looks at the source, exchanges the served pair, and says what is missing: the I/O around `serving`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::authority::Authorities;
use super::pair::{Digest, Pair};
use super::resolver::Resolver;
use super::serving::{Alarm, Candidate, Step, alarm, look_every, settled_at, step};
use super::source::Source;
use crate::clock::{Clock, Moment};
use crate::telemetry::Metrics;
use crate::webhook::sightings::Sightings;
use crate::webhook::state::StickyReadiness;

/// Least time between two log lines about the same unusable pair, or about a pair that will expire.
const SAY_EVERY: Duration = Duration::from_mins(1);
/// Least time between two log lines about a served pair that will expire.
const ALARM_EVERY: Duration = Duration::from_hours(1);
/// Pause after which files that have just changed are read again before anything is said about them.
const SETTLING: Duration = Duration::from_millis(500);

/// Keeps the served pair up to date.
pub struct Keeper {
    /// Where the pair comes from.
    pub source: Source,
    /// The name that it must have.
    pub name: String,
    /// How often the files are read even if nothing has changed.
    pub interval: Duration,
    /// Where the served pair goes.
    pub resolver: Arc<Resolver>,
    /// The authorities that the CRD must name for this replica; none before the first look.
    pub own: watch::Sender<Option<Authorities>>,
    /// The authorities that the CRD names.
    pub sightings: watch::Receiver<Sightings>,
    /// Ready once a usable pair is served and the CRD names its authority.
    pub readiness: StickyReadiness,
    /// Where the end of the served pair is shown.
    pub metrics: Metrics,
    /// The clock.
    pub clock: Clock,
}

/// What the keeper knows between two looks.
#[derive(Default)]
struct State {
    served: Option<Pair>,
    /// A usable pair that waits to be served.
    next: Option<Pair>,
    /// The material that was judged last.
    judged: Option<Digest>,
    said: Option<(String, Moment)>,
    alarmed: Option<(Alarm, Moment)>,
}

// === impl Keeper ===

impl Keeper {
    /// Runs until it is dropped.
    pub async fn run(mut self) {
        let mut state = State::default();
        loop {
            self.look(&mut state).await;
            let next_look = self.clock.now() + look_every(self.interval);
            loop {
                let due = self.advance(&mut state).min(next_look);
                self.publish(&state);
                tokio::select! {
                    () = tokio::time::sleep(due.saturating_since(self.clock.now())) => {}
                    changed = self.sightings.changed() => if changed.is_err() {
                        // Nobody reads the CRD any more: the process ends.
                        return;
                    },
                    () = self.source.changed() => break,
                }
                if self.clock.now() >= next_look {
                    break;
                }
            }
        }
    }

    /// Reads and judges what the source has.
    async fn look(&mut self, state: &mut State) {
        let mut again = true;
        loop {
            let text = match self.source.read().await {
                Ok(material) => {
                    let digest = material.digest();
                    let served = state.served.as_ref().is_some_and(|served| served.digest == digest);
                    let waits = state.next.as_ref().is_some_and(|next| next.digest == digest);
                    if served || waits {
                        if served {
                            state.next = None;
                        }
                        state.said = None;
                        return;
                    }
                    let changed = state.judged.replace(digest) != Some(digest);
                    match Pair::read(&material, &self.name, self.clock.timestamp()) {
                        Ok(pair) => {
                            state.next = Some(pair);
                            state.said = None;
                            return;
                        }
                        Err(_) if changed && std::mem::take(&mut again) => {
                            tokio::time::sleep(SETTLING).await;
                            continue;
                        }
                        Err(unusable) => format!("{}: {unusable}", self.source.describe(unusable.part)),
                    }
                }
                Err(text) => text,
            };
            // Files that are half exchanged, or damaged, take nothing away: a usable pair goes on waiting.
            self.complain(state, &text);
            return;
        }
    }

    fn complain(&self, state: &mut State, text: &str) {
        let now = self.clock.now();
        let due = match &state.said {
            Some((said, at)) => said != text || now.saturating_since(*at) >= SAY_EVERY,
            None => true,
        };
        if due {
            if state.served.is_some() {
                tracing::error!(
                    cause = text,
                    "the webhook's new certificate is not usable; the old one stays"
                );
            } else {
                tracing::error!(
                    cause = text,
                    "the webhook has no usable certificate; version v1 is not served by this replica until it has"
                );
            }
            state.said = Some((text.to_owned(), now));
        }
        if state.served.is_none() {
            self.readiness.waits_for(format!("no usable certificate: {text}"));
        }
    }

    /// Exchanges the served pair if that is due. Says until when there is nothing to do.
    fn advance(&mut self, state: &mut State) -> Moment {
        let (moment, now) = (self.clock.now(), self.clock.timestamp());
        let sightings = self.sightings.borrow_and_update().clone();
        let mut due = moment + self.interval;
        if let Some(next) = &state.next {
            match step(
                state.served.as_ref().map(candidate),
                candidate(next),
                &sightings,
                moment,
                now,
            ) {
                Step::Serve => {
                    let previous = state.served.take();
                    state.served = state.next.take();
                    if let Some(served) = &state.served {
                        self.serve(served, previous.is_some());
                    }
                }
                Step::Keep => state.next = None,
                Step::Wait(until) => due = due.min(until),
                Step::Register(until) => {
                    let wait = until.duration_since(now);
                    due = due.min(moment + Duration::try_from(wait).unwrap_or_default());
                }
            }
        }
        if let Some(served) = &state.served {
            due = due.min(self.judge_readiness(served, &sightings, moment));
            self.alarm(served, &mut state.alarmed);
        }
        due
    }

    fn serve(&self, pair: &Pair, replaced: bool) {
        self.resolver.serve(pair.key.clone());
        self.metrics
            .set_certificate_not_after(pair.validity.not_after.as_second());
        tracing::info!(
            not_before = %pair.validity.not_before,
            not_after = %pair.validity.not_after,
            replaced,
            "the webhook serves a certificate"
        );
    }

    /// Ready once every API server goes by the served pair's authority.
    fn judge_readiness(&self, served: &Pair, sightings: &Sightings, moment: Moment) -> Moment {
        let never = moment + self.interval;
        if sightings.without_webhook() {
            self.readiness.ready();
            return never;
        }
        match settled_at(&served.authorities, sightings) {
            Some(at) if at <= moment => {
                self.readiness.ready();
                never
            }
            Some(at) => {
                self.readiness.waits_for(
                    "the certificate authority was added to the CRD; API servers take some seconds to see it",
                );
                at
            }
            None => {
                self.readiness
                    .waits_for("the CRD materializes.materialize.cloud does not name the certificate's authority yet");
                never
            }
        }
    }

    fn alarm(&self, served: &Pair, alarmed: &mut Option<(Alarm, Moment)>) {
        let Some(level) = alarm(served.validity, self.clock.timestamp()) else {
            *alarmed = None;
            return;
        };
        let now = self.clock.now();
        let due = alarmed.is_none_or(|(said, at)| said != level || now.saturating_since(at) >= ALARM_EVERY);
        if !due {
            return;
        }
        *alarmed = Some((level, now));
        let not_after = served.validity.not_after;
        match level {
            Alarm::Warning => tracing::warn!(%not_after, "the webhook's certificate expires soon"),
            Alarm::Error => tracing::error!(%not_after, "the webhook's certificate expires very soon, or has expired"),
        }
    }

    /// Tells which authorities the CRD must name: those of the served pair and of the one that waits.
    fn publish(&self, state: &State) {
        let mut own = Authorities::default();
        for pair in [&state.served, &state.next].into_iter().flatten() {
            own.extend(&pair.authorities);
        }
        self.own.send_if_modified(|published| {
            let changed = published.as_ref() != Some(&own);
            if changed {
                *published = Some(own);
            }
            changed
        });
    }
}

fn candidate(pair: &Pair) -> Candidate<'_> {
    Candidate {
        digest: pair.digest,
        authorities: &pair.authorities,
        validity: pair.validity,
    }
}

#[cfg(test)]
mod tests;
