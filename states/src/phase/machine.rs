//! The state machine itself.

#![expect(clippy::unused_async, reason = "handlers of an async machine are all async")]

use statig::Outcome::{self, Handled, Super, Transition};
use statig::awaitable::IntoStateMachineExt as _;
use statig::state_machine;

use super::effects::Effects;
use super::values::{Bounds, Cause, Event, Phase, Transition as Record};
use crate::lease::Moment;

/// Exit code of a replica whose controllers ended by themselves, or whose start-up failed.
const FAILURE: i32 = 1;

/// The phases of one replica, from Starting to Exited.
pub struct Phases<E>
where
    E: Effects + 'static,
{
    machine: statig::awaitable::StateMachine<Machine<E>>,
}

/// What all phases share.
struct Machine<E> {
    effects: E,
    bounds: Bounds,
    /// Whether there is a webhook to linger for.
    webhook: bool,
    /// When the present phase began.
    since: Moment,
    /// Why the transition under way happens.
    cause: Cause,
    /// The exit code of a drain.
    code: i32,
    /// Whether a termination signal has arrived.
    signalled: bool,
    /// Whether tasks or requests of a lost term may still be running.
    unsettled: bool,
    /// A term that was acquired before the old one had settled.
    pending: Option<i32>,
}

// === impl Phases ===

impl<E> Phases<E>
where
    E: Effects + 'static,
{
    /// A replica in Starting. Without `webhook` Lingering and Closing are skipped.
    pub fn new(effects: E, webhook: bool, bounds: Bounds) -> Phases<E> {
        let since = effects.now();
        let machine = Machine {
            effects,
            bounds,
            webhook,
            since,
            cause: Cause::Ready,
            code: 0,
            signalled: false,
            unsettled: false,
            pending: None,
        };
        Phases {
            machine: machine.state_machine(),
        }
    }

    /// Takes in an event; returns when all effects of it have been started.
    pub async fn handle(&mut self, event: &Event) {
        self.machine.handle(event).await;
    }

    /// The present phase.
    pub fn phase(&self) -> Phase {
        self.machine.state().phase()
    }

    /// The exit code, once the replica has come to its end.
    pub fn exit_code(&self) -> Option<i32> {
        match self.phase() {
            Phase::Exited(code) => Some(code),
            _ => None,
        }
    }

    /// The effects, to look at them.
    pub fn effects(&self) -> &E {
        &self.machine.inner().effects
    }
}

// === impl State ===

impl State {
    fn phase(&self) -> Phase {
        match self {
            State::Starting {} => Phase::Starting,
            State::Candidate {} => Phase::Candidate,
            State::Leader { .. } => Phase::Leader,
            State::Releasing {} => Phase::Releasing,
            State::Lingering {} => Phase::Lingering,
            State::Closing {} => Phase::Closing,
            State::Exited { code } => Phase::Exited(*code),
        }
    }

    fn term(&self) -> Option<i32> {
        match self {
            State::Leader { term } => Some(*term),
            _ => None,
        }
    }
}

// === impl Machine ===

impl<E> Machine<E>
where
    E: Effects + 'static,
{
    fn go(&mut self, cause: Cause, to: State) -> Outcome<State> {
        self.cause = cause;
        Transition(to)
    }

    /// Begins a drain with nothing to release.
    fn drain(&mut self, cause: Cause) -> Outcome<State> {
        self.note_end(&cause);
        let first = self.after_release();
        self.go(cause, first)
    }

    /// Begins a drain with a release.
    fn drain_and_release(&mut self, cause: Cause) -> Outcome<State> {
        self.note_end(&cause);
        self.go(cause, State::releasing())
    }

    fn note_end(&mut self, cause: &Cause) {
        match cause {
            Cause::Signal(_) => self.signalled = true,
            _ => self.code = FAILURE,
        }
    }

    /// Where a drain goes on once the Lease is dealt with.
    fn after_release(&self) -> State {
        if self.webhook {
            State::lingering()
        } else {
            State::exited(self.code)
        }
    }

    async fn refuse(&mut self, phase: Phase, event: &Event) -> Outcome<State> {
        self.effects.refused(phase, event).await;
        Handled
    }
}

#[state_machine(
    initial = "State::starting()",
    state(derive(Clone, Debug, PartialEq, Eq)),
    visibility = "pub(self)",
    after_transition = "Self::after_transition"
)]
impl<E> Machine<E>
where
    E: Effects + 'static,
{
    #[state]
    async fn starting(&mut self, event: &Event) -> Outcome<State> {
        match event {
            Event::Ready => self.go(Cause::Ready, State::candidate()),
            Event::StartupFailed => self.go(Cause::StartupFailed, State::exited(FAILURE)),
            Event::Terminate(signal) => self.drain(Cause::Signal(*signal)),
            Event::TaskEnded(task) => self.drain(Cause::TaskEnded(task)),
            other => self.refuse(Phase::Starting, other).await,
        }
    }

    #[state(entry_action = "enter_candidate", exit_action = "leave_candidate")]
    async fn candidate(&mut self, event: &Event) -> Outcome<State> {
        match event {
            Event::Acquired { term } if self.unsettled => {
                self.pending = Some(*term);
                Handled
            }
            Event::Acquired { term } => self.go(Cause::Acquired, State::leader(*term)),
            Event::Settled if self.unsettled => {
                self.unsettled = false;
                match self.pending {
                    Some(term) => self.go(Cause::Acquired, State::leader(term)),
                    None => Handled,
                }
            }
            Event::Lost(_) if self.pending.is_some() => {
                self.pending = None;
                Handled
            }
            Event::Terminate(signal) => self.drain_and_release(Cause::Signal(*signal)),
            Event::TaskEnded(task) => self.drain_and_release(Cause::TaskEnded(task)),
            other => self.refuse(Phase::Candidate, other).await,
        }
    }

    #[state(entry_action = "enter_leader", exit_action = "leave_leader")]
    async fn leader(&mut self, term: &i32, event: &Event) -> Outcome<State> {
        let _ = term; // named here, used on entry
        match event {
            Event::Lost(loss) => self.go(Cause::Lost(loss.clone()), State::candidate()),
            Event::Terminate(signal) => self.drain_and_release(Cause::Signal(*signal)),
            Event::TaskEnded(task) => self.drain_and_release(Cause::TaskEnded(task)),
            other => self.refuse(Phase::Leader, other).await,
        }
    }

    #[state(superstate = "draining", entry_action = "enter_releasing")]
    async fn releasing(&mut self, event: &Event) -> Outcome<State> {
        match event {
            Event::Released => {
                let next = self.after_release();
                self.go(Cause::Released, next)
            }
            _ => Super,
        }
    }

    #[state(superstate = "draining", entry_action = "enter_lingering")]
    async fn lingering(&mut self, event: &Event) -> Outcome<State> {
        match event {
            Event::LingerOver => self.go(Cause::LingerOver, State::closing()),
            _ => Super,
        }
    }

    #[state(superstate = "draining", entry_action = "enter_closing")]
    async fn closing(&mut self, event: &Event) -> Outcome<State> {
        match event {
            Event::Closed => {
                let code = self.code;
                self.go(Cause::Closed, State::exited(code))
            }
            _ => Super,
        }
    }

    /// Draining: a second signal ends it at once; what was still on its way when it began no longer matters.
    #[superstate]
    async fn draining(&mut self, event: &Event) -> Outcome<State> {
        match event {
            Event::Terminate(signal) if self.signalled => self.go(
                Cause::SecondSignal(*signal),
                State::exited(128_i32.saturating_add(*signal)),
            ),
            Event::Terminate(_) => {
                self.signalled = true;
                Handled
            }
            _ => Handled,
        }
    }

    #[state]
    async fn exited(code: &i32) -> Outcome<State> {
        let _ = code; // named here, read by `State::phase`
        Handled
    }

    #[action]
    async fn enter_candidate(&mut self) {
        if self.unsettled {
            self.effects.settle(&self.bounds).await;
        } else {
            self.effects.campaign().await;
        }
    }

    #[action]
    async fn leave_candidate(&mut self) {
        self.pending = None;
    }

    #[action]
    async fn enter_leader(&mut self, term: &i32) {
        self.effects.mint_permit(*term).await;
        self.effects.set_leader_gauge().await;
        self.effects.spawn_tasks(*term).await;
    }

    #[action]
    async fn leave_leader(&mut self) {
        self.effects.revoke_permit().await;
        self.effects.reset_gauges().await;
        self.effects.abort_tasks().await;
        self.unsettled = true;
    }

    #[action]
    async fn enter_releasing(&mut self) {
        self.effects.release(&self.bounds).await;
    }

    #[action]
    async fn enter_lingering(&mut self) {
        self.effects.linger(&self.bounds).await;
    }

    #[action]
    async fn enter_closing(&mut self) {
        self.effects.close(&self.bounds).await;
    }
}

// === impl Machine ===

impl<E> Machine<E>
where
    E: Effects + 'static,
{
    async fn after_transition(&mut self, source: &State, target: &State) {
        let now = self.effects.now();
        let record = Record {
            from: source.phase(),
            to: target.phase(),
            cause: self.cause.clone(),
            term: target.term().or(source.term()),
            held_for: now.saturating_sub(self.since),
        };
        self.since = now;
        self.effects.transitioned(&record).await;
    }
}
