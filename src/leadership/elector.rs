//! Feeds `states::lease::step` with what really happens and carries out what it says: the only code that writes the
//! Lease. It decides nothing about the protocol.
//!
//! It runs on the leadership thread, which does nothing else that takes time, so no controller can delay a renewal.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use states::lease::{
    Action, Answer, Identity, Lease, Loss, Now, Observation, Operation, Request, RequestId, State, Timings, step,
};
use tokio::sync::mpsc;

use super::lease::{KnownObjects, create};
use super::narrator::Narrator;
use super::observer::Observer;
use super::permit::Permit;
use super::requests::{LeaseRequests, RequestError, Verb};
use super::watch::{LeaseWatch, News};
use crate::clock::{Clock, Moment};

/// What the driver asks of the elector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leadership) enum Command {
    /// Stop renewing and acquiring: the process is about to end.
    Resign,
    /// The leader's work is done: let go of the Lease.
    Release,
}

/// What the elector reports to the driver. The permit of a term is revoked before its loss is reported.
#[derive(Debug)]
pub(in crate::leadership) enum Event {
    /// This replica leads.
    Acquired(Permit),
    /// It no longer does.
    Lost(Loss),
    /// The answer to [`Command::Release`]: whether the Lease has no holder now, or never was held.
    ReleaseEnded {
        /// False if it was left to expire, or is another's.
        released: bool,
    },
}

/// What an elector needs.
pub(in crate::leadership) struct Setup {
    pub(in crate::leadership) identity: Identity,
    pub(in crate::leadership) requests: LeaseRequests,
    pub(in crate::leadership) clock: Clock,
    pub(in crate::leadership) timings: Timings,
    pub(in crate::leadership) observer: Arc<dyn Observer>,
    /// Seed of all jitter.
    pub(in crate::leadership) seed: u64,
}

/// The elector of one replica. It campaigns from the start, and again after each loss, until it is told to resign.
pub(in crate::leadership) struct Elector {
    setup: Setup,
    narrator: Narrator,
    state: State,
    random: StdRng,
    known: KnownObjects,
    permit: Option<Permit>,
    /// The one request under way.
    under_way: Option<UnderWay>,
    wake: Option<Moment>,
    watch: Option<LeaseWatch>,
    resigned: bool,
    events: mpsc::UnboundedSender<Event>,
    commands: mpsc::UnboundedReceiver<Command>,
}

struct UnderWay {
    id: RequestId,
    verb: Verb,
    sent: Moment,
    answer: BoxFuture<'static, Result<Value, RequestError>>,
}

/// What woke the elector.
enum Woken {
    Command(Command),
    Answered(Result<Value, RequestError>),
    Elapsed,
    News(News),
}

// === impl Elector ===

impl Elector {
    pub(in crate::leadership) fn new(
        setup: Setup,
        events: mpsc::UnboundedSender<Event>,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        Elector {
            narrator: Narrator::new(
                setup.requests.namespace().to_owned(),
                setup.clock.clone(),
                setup.observer.clone(),
            ),
            state: State::new(setup.identity.clone(), setup.timings),
            random: StdRng::seed_from_u64(setup.seed),
            known: KnownObjects::default(),
            permit: None,
            under_way: None,
            wake: None,
            watch: None,
            resigned: false,
            setup,
            events,
            commands,
        }
    }

    /// Campaigns and leads until the driver has gone.
    pub(in crate::leadership) async fn run(mut self) {
        self.observe(Observation::Started);
        loop {
            self.watch_as_candidate();
            let clock = &self.setup.clock;
            let woken = tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => Woken::Command(command),
                    None => return,
                },
                answer = answered(&mut self.under_way) => Woken::Answered(answer),
                () = elapsed(clock, self.wake) => Woken::Elapsed,
                news = next_news(&mut self.watch) => Woken::News(news),
            };
            match woken {
                Woken::Command(Command::Resign) => {
                    self.resigned = true;
                    self.observe(Observation::Resign);
                }
                Woken::Command(Command::Release) => {
                    self.resigned = true;
                    self.observe(Observation::Release);
                }
                Woken::Answered(answer) => self.take_answer(answer),
                Woken::Elapsed => {
                    self.wake = None;
                    self.observe(Observation::Elapsed);
                }
                Woken::News(news) => self.take_news(news),
            }
        }
    }

    /// A candidate watches; a leader does not, it hears of everything by its renewals.
    fn watch_as_candidate(&mut self) {
        if self.permit.is_some() || self.resigned {
            self.watch = None;
        } else if self.watch.is_none() {
            let seed = self.random.random();
            self.watch = Some(LeaseWatch::start(
                self.setup.requests.clone(),
                self.setup.clock.clone(),
                seed,
            ));
        }
    }

    fn take_news(&mut self, news: News) {
        match news {
            News::Listed(lease) => {
                self.observe(Observation::Watchable(true));
                self.seen(lease, true);
            }
            News::Changed(lease) => self.seen(Some(lease), false),
            News::Deleted => self.observe(Observation::Missing),
            News::Failed(verb, error) => {
                self.narrator.failed(verb, &error);
                if matches!(error, RequestError::Forbidden(_)) {
                    self.observe(Observation::Watchable(false));
                }
            }
        }
    }

    fn seen(&mut self, lease: Option<Value>, after_gap: bool) {
        let writing = self.under_way.as_ref().is_some_and(|under_way| under_way.verb.writes());
        match lease {
            None => self.observe(Observation::Missing),
            Some(object) => match self.remember(object, writing) {
                Some(lease) => self.observe(Observation::Seen { lease, after_gap }),
                None => self.narrator.failed(Verb::Watch, &without_version()),
            },
        }
    }

    fn take_answer(&mut self, answer: Result<Value, RequestError>) {
        let Some(UnderWay { id, verb, sent, .. }) = self.under_way.take() else {
            return;
        };
        let lease = answer.and_then(|object| self.remember(object, verb.writes()).ok_or_else(without_version));
        let answer = match lease {
            Ok(lease) => {
                if verb == Verb::Update && self.permit.is_some() {
                    self.setup
                        .observer
                        .renewal(self.setup.clock.now().saturating_since(sent));
                }
                self.narrator.succeeded();
                Answer::Lease(lease)
            }
            Err(error) => {
                // A lost race shows that the watch is behind: a new one begins with a list.
                if matches!(error, RequestError::Conflict) {
                    self.watch = None;
                }
                self.narrator.failed(verb, &error);
                to_answer(&error)
            }
        };
        self.observe(Observation::Answer { to: id, answer });
    }

    /// `written`: the object is, or may be, the outcome of a write of this replica.
    fn remember(&mut self, object: Value, written: bool) -> Option<Lease> {
        let lease = self.known.remember(object)?;
        let expected = written || self.permit.is_some();
        self.narrator
            .holder(lease.spec.held_by(), &self.setup.identity, expected);
        Some(lease)
    }

    fn observe(&mut self, observation: Observation) {
        let now = Now {
            at: self.setup.clock.now().into(),
            wall_micros: self.setup.clock.timestamp().as_microsecond(),
            jitter: self.random.random(),
        };
        // The state is small; a copy each two seconds costs less than a hole in this struct.
        let (state, actions) = step(self.state.clone(), observation, now);
        self.state = state;
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Revoked(loss) => {
                if let Some(permit) = self.permit.take() {
                    permit.revoke();
                }
                self.setup.observer.renewed_at(None);
                self.narrator.lost(&loss);
                self.report(Event::Lost(loss));
            }
            Action::Granted { until, term } => {
                let permit = Permit::mint(term, until.into(), self.setup.clock.clone());
                self.permit = Some(permit.clone());
                self.renewed(until.into());
                self.report(Event::Acquired(permit));
            }
            Action::Extended { until } => {
                if let Some(permit) = &self.permit {
                    permit.extend(until.into());
                }
                self.renewed(until.into());
            }
            Action::WaitUntil(moment) => self.wake = Some(moment.into()),
            Action::Send(request) => self.send(request),
            Action::Released => self.report(Event::ReleaseEnded { released: true }),
            Action::NotReleased(why) => {
                self.narrator.not_released(why);
                self.report(Event::ReleaseEnded { released: false });
            }
        }
    }

    fn send(
        &mut self,
        Request {
            id,
            deadline,
            operation,
        }: Request,
    ) {
        let requests = self.setup.requests.clone();
        let sent = self.setup.clock.now();
        let bound = Moment::from(deadline).saturating_since(sent);
        let namespace = requests.namespace();
        let (verb, answer) = match operation {
            Operation::Read => (Verb::Get, async move { requests.get(bound).await }.boxed()),
            Operation::Create(spec) => {
                let body = create(namespace, &spec);
                (Verb::Create, async move { requests.create(&body, bound).await }.boxed())
            }
            Operation::Replace { uid, version, spec } => {
                let body = self.known.update(namespace, &uid, version, &spec);
                (Verb::Update, async move { requests.update(&body, bound).await }.boxed())
            }
        };
        self.under_way = Some(UnderWay { id, verb, sent, answer });
    }

    fn renewed(&self, until: Moment) {
        self.setup
            .observer
            .renewed_at(Some(until - self.setup.timings.renew_deadline()));
    }

    fn report(&self, event: Event) {
        // Without a driver nobody needs to know.
        let _ = self.events.send(event);
    }
}

/// An elector that has gone, for example by a panic, takes its permit along.
impl Drop for Elector {
    fn drop(&mut self) {
        if let Some(permit) = &self.permit {
            permit.revoke();
        }
    }
}

async fn answered(under_way: &mut Option<UnderWay>) -> Result<Value, RequestError> {
    match under_way {
        Some(under_way) => (&mut under_way.answer).await,
        None => std::future::pending().await,
    }
}

async fn elapsed(clock: &Clock, wake: Option<Moment>) {
    match wake {
        Some(moment) => clock.sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn next_news(watch: &mut Option<LeaseWatch>) -> News {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

fn without_version() -> RequestError {
    RequestError::unknown("the Lease has no uid or no integer resourceVersion")
}

fn to_answer(error: &RequestError) -> Answer {
    match error {
        RequestError::Absent => Answer::Absent,
        RequestError::Conflict => Answer::Conflict,
        RequestError::Forbidden(_) | RequestError::Gone => Answer::Refused { retry_after: None },
        RequestError::Refused { retry_after, .. } => Answer::Refused {
            retry_after: *retry_after,
        },
        RequestError::Unknown { retry_after, .. } => Answer::Unknown {
            retry_after: *retry_after,
        },
    }
}

#[cfg(test)]
mod tests;
