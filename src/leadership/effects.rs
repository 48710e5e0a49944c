//! The effects of entering and leaving phases, done with tokio. What takes time is started here and reports its end
//! as an event, so that a signal is heard at any time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{self, BoxFuture};
use states::lease::PRODUCTION;
use states::phase::{Bounds, Effects, Event, Phase, Transition};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Span, error, info, info_span, warn};

use super::driver::Notice;
use super::elector::{Command, Elector, Setup};
use super::observer;
use super::permit::Permit;
use super::requests::LeaseRequests;
use super::term::Term;
use super::{Candidacy, Leadership};

/// What the driver and the effects share.
#[derive(Default)]
pub(in crate::leadership) struct Shared {
    /// What start-up brought.
    pub(in crate::leadership) candidacy: Mutex<Option<Candidacy>>,
    /// The permit that the elector was granted last.
    pub(in crate::leadership) granted: Mutex<Option<Permit>>,
    /// The elector has ended its release.
    pub(in crate::leadership) release_ended: tokio::sync::Notify,
}

/// The effects with everything they act upon.
pub(in crate::leadership) struct RealEffects {
    leadership: Leadership,
    shared: Arc<Shared>,
    notices: mpsc::UnboundedSender<Notice>,
    candidacy: Option<Arc<Candidacy>>,
    commands: Option<mpsc::UnboundedSender<Command>>,
    elector: Option<AbortOnDropHandle<()>>,
    permit: Option<Permit>,
    term: Option<Term>,
    /// Becomes true or false when the term that was lost last has settled: whether all its writes were answered.
    settling: Option<Settling>,
    phase: Span,
}

type Settling = future::Shared<BoxFuture<'static, bool>>;

// === impl Shared ===

impl Shared {
    /// Puts a value where the effects will look for it.
    pub(in crate::leadership) fn put<T>(place: &Mutex<Option<T>>, value: T) {
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
        place.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

// === impl RealEffects ===

impl RealEffects {
    pub(in crate::leadership) fn new(
        leadership: Leadership,
        shared: Arc<Shared>,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> Self {
        RealEffects {
            leadership,
            shared,
            notices,
            candidacy: None,
            commands: None,
            elector: None,
            permit: None,
            term: None,
            settling: None,
            phase: phase_span(Phase::Starting),
        }
    }

    /// Runs `work`, then reports `event`.
    fn later(&self, event: Event, work: impl Future<Output = ()> + Send + 'static) {
        let notices = self.notices.clone();
        tokio::spawn(async move {
            work.await;
            // Without a driver nobody needs to know.
            let _ = notices.send(Notice::Event(event));
        });
    }

    /// The end of the present term, or of the one before while that has not settled.
    fn settling(&mut self, bounds: Bounds) -> Settling {
        if let Some(term) = self.term.take() {
            let observer = self.leadership.observer.clone();
            self.settling = Some(async move { term.settle(bounds, observer).await }.boxed().shared());
        }
        self.settling
            .clone()
            .unwrap_or_else(|| future::ready(true).boxed().shared())
    }

    fn start_elector(&mut self, candidacy: &Candidacy) -> anyhow::Result<()> {
        let client = (candidacy.lease_client)()?;
        let setup = Setup {
            identity: candidacy.identity.as_str().into(),
            requests: LeaseRequests::new(client, candidacy.namespace.clone()),
            clock: self.leadership.clock.clone(),
            timings: PRODUCTION,
            observer: self.leadership.observer.clone(),
            seed: self.leadership.seed,
        };
        info!(
            lease = super::LEASE_NAME,
            namespace = candidacy.namespace,
            identity = candidacy.identity,
            "campaigning for the Lease"
        );
        let (events, mut reports) = mpsc::unbounded_channel();
        let (commands, receiver) = mpsc::unbounded_channel();
        let elector = Elector::new(setup, events, receiver);
        let notices = self.notices.clone();
        let running = AbortOnDropHandle::new(tokio::spawn(elector.run()));
        self.elector = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            // Ends with the elector, which holds the other end of the channel.
            while let Some(report) = reports.recv().await {
                let _ = notices.send(Notice::Elector(report));
            }
            if running.await.is_err_and(|error| error.is_panic()) {
                let _ = notices.send(Notice::Event(Event::TaskEnded("election")));
            }
        })));
        self.commands = Some(commands);
        Ok(())
    }
}

impl Effects for RealEffects {
    fn now(&self) -> Duration {
        self.leadership.clock.now().into()
    }

    async fn transitioned(&mut self, transition: &Transition) {
        let Transition {
            from,
            to,
            cause,
            term,
            held_for,
        } = transition;
        self.phase = phase_span(*to);
        let _in_phase = self.phase.enter();
        info!(%from, %to, %cause, term, held_for = format!("{held_for:.1?}"), "phase changed");
        self.leadership.observer.transition(&observer::Transition {
            from: from.name(),
            to: to.name(),
            cause: cause.name(),
            term: *term,
            held_for: *held_for,
        });
    }

    async fn refused(&mut self, phase: Phase, event: &Event) {
        warn!(%phase, ?event, "an event that has no meaning in this phase");
    }

    async fn campaign(&mut self) {
        let Some(candidacy) = Shared::take(&self.shared.candidacy) else {
            return;
        };
        if let Err(error) = self.start_elector(&candidacy) {
            error!(error = format!("{error:#}"), "can't build the client of the Lease");
            self.later(Event::TaskEnded("election"), async {});
        }
        self.candidacy = Some(Arc::new(candidacy));
    }

    async fn mint_permit(&mut self, _term: i32) {
        // The elector made it together with the grant, so that its deadline was running from the first moment on.
        self.permit = Shared::take(&self.shared.granted);
    }

    async fn set_leader_gauge(&mut self) {
        self.leadership.observer.is_leader(true);
    }

    async fn spawn_tasks(&mut self, _term: i32) {
        if let (Some(permit), Some(candidacy)) = (self.permit.take(), &self.candidacy) {
            let workers = self.leadership.workers.clone();
            self.settling = None;
            self.term = Some(Term::start(permit, candidacy.clone(), workers, self.notices.clone()));
        }
    }

    async fn revoke_permit(&mut self) {
        if let Some(term) = &self.term {
            term.revoke();
        }
    }

    async fn reset_gauges(&mut self) {
        self.leadership.observer.is_leader(false);
        self.leadership.observer.reset_leader_gauges();
    }

    async fn abort_tasks(&mut self) {
        if let Some(term) = &self.term {
            term.abort();
        }
    }

    async fn settle(&mut self, bounds: &Bounds) {
        let settling = self.settling(*bounds);
        self.later(Event::Settled, settling.map(|_| ()));
    }

    async fn release(&mut self, bounds: &Bounds) {
        let (commands, shared, bound) = (self.commands.clone(), self.shared.clone(), bounds.release);
        if let Some(commands) = &commands {
            // An elector that has ended holds nothing.
            let _ = commands.send(Command::Resign);
        }
        let settling = self.settling(*bounds);
        let work = async move {
            if !settling.await {
                warn!("the Lease is not released, it expires: a write of this replica may still be on its way");
                return;
            }
            if commands.is_some_and(|commands| commands.send(Command::Release).is_ok()) {
                shared.release_ended.notified().await;
            }
        };
        self.later(Event::Released, async move {
            if tokio::time::timeout(bound, work).await.is_err() {
                warn!(
                    ?bound,
                    "the release was not confirmed in time: if this replica held the Lease, it expires"
                );
            }
        });
    }

    async fn linger(&mut self, bounds: &Bounds) {
        if let Some(webhook) = &self.leadership.webhook {
            webhook.linger();
        }
        self.later(Event::LingerOver, tokio::time::sleep(bounds.linger));
    }

    async fn close(&mut self, bounds: &Bounds) {
        let (webhook, bound) = (self.leadership.webhook.clone(), bounds.close);
        self.later(Event::Closed, async move {
            if let Some(webhook) = webhook
                && tokio::time::timeout(bound, webhook.close()).await.is_err()
            {
                warn!(
                    ?bound,
                    "requests to the webhook were still open at the end of the shutdown"
                );
            }
        });
    }
}

fn phase_span(phase: Phase) -> Span {
    info_span!(parent: None, "phase", phase = phase.name())
}
