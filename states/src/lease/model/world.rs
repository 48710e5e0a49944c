//! The world: one API server, three replicas, and what may happen next.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use stateright::{Model, Property};

use super::outsider::Edit;
use crate::lease::messages::{Action as Do, Answer, Observation, Operation};
use crate::lease::rules::Rules;
use crate::lease::step::step_under;
use crate::lease::{Lease, Moment, Now, Spec, State, Timings};

/// The moment "now" on every replica's clock, after renumbering.
pub(super) const NOW: Moment = Duration::from_secs(1000);
pub(super) const SLOW: u64 = 5;
pub(super) const FAST: u64 = 7;
pub(super) const REPLICAS: usize = 3;
/// Events that a stalled watch keeps; with more it has to list again.
const STALLED_EVENTS: usize = 2;

/// What is checked: the rules, the driver's duties, the adversary.
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(super) struct Election {
    pub(super) rules: Rules,
    /// Whether the driver sends the version and the uid that a request names (decision L8).
    pub(super) sends_version: bool,
    pub(super) sends_uid: bool,
    pub(super) faults: u8,
    /// Ticks that one action of the clock makes.
    pub(super) tick: u64,
    pub(super) rates: Vec<[u64; REPLICAS]>,
    /// Whether replica 2 may only poll.
    pub(super) polling: bool,
    /// The case of decision L14 that is included, if any.
    pub(super) included: Option<Unpreventable>,
    /// The faults that the adversary knows.
    pub(super) adversary: fn(&Action) -> bool,
    /// Whether an outsider may act, and a replica be suspended, between a request and its answer, too.
    pub(super) anywhere: bool,
    /// Whether liveness is checked.
    pub(super) live: bool,
    /// Ticks until liveness, by the fingerprint of a healed world.
    pub(super) ticks_to_lead: Mutex<HashMap<u64, u16>>,
}

/// What an outsider or a broken machine can do that no protocol on top of a Lease can prevent (decision L14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpreventable {
    /// The Lease is deleted under a leader while a replica has never seen one, or its create is under way.
    DeletedBeforeNewcomer,
    /// The Lease of a leader is replaced by exactly what its release would be.
    ExactForgedRelease,
    /// A release is forged in any form while a replica has not seen the leader's Lease.
    ForgedReleaseBeforeNewcomer,
    /// The Lease of a leader is overwritten with the identity of a replica that starts afterwards.
    NamedNewcomer,
    /// Two replicas have one identity from the start.
    SharedIdentity,
    /// A replica that is cut off was replaced by one of the same name.
    NameReused,
    /// A replica is paused together with its clock.
    PausedClock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) server: Option<Lease>,
    pub(super) replicas: [Replica; REPLICAS],
    /// An older state that an outsider kept a copy of.
    pub(super) backup: Option<Spec>,
    /// The Lease of a leader with a valid permit was taken from under it.
    pub(super) displaced: bool,
    pub(super) faults_left: u8,
    pub(super) next_version: u64,
    pub(super) next_uid: usize,
    pub(super) next_time: i64,
    /// Which names of replicas occur anywhere.
    pub(super) names: [bool; 2 * REPLICAS],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Replica {
    /// Units by which its clock advances in one tick.
    pub(super) rate: u64,
    pub(super) process: Option<Process>,
    /// Requests that are still somewhere in the network and whose answers nobody waits for.
    pub(super) stale: Vec<Operation>,
    pub(super) cut: bool,
    pub(super) suspended: bool,
    /// Whether its clock stands while it is suspended.
    pub(super) paused: bool,
    pub(super) watch: Watch,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Watch {
    /// It can't watch.
    None,
    /// Events arrive within the tick.
    Live,
    /// Events are held back.
    Stalled(Vec<Option<Lease>>),
    /// Events were missed; the next thing is a list.
    Broken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) state: State,
    pub(super) wake: Option<Moment>,
    /// The end of the permit that the driver holds.
    pub(super) permit: Option<Moment>,
    pub(super) channel: Channel,
    /// Started while the Lease did not show who leads.
    pub(super) newcomer: bool,
    /// The release has ended: the process exits.
    pub(super) finished: bool,
}

/// The one connection of a replica's lease client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Channel {
    Idle,
    /// A request on its way to the API server.
    Pending(Operation),
    /// A request that the API server gets when the adversary lets it.
    Held(Operation),
    /// An answer that arrives when the adversary lets it.
    Late(Answer),
    /// No answer will come.
    Silent,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Tick,
    /// The replica's timer fires.
    Wake(usize),
    /// The API server does what is asked and the answer arrives.
    Serve(usize),
    /// A late answer arrives.
    Deliver(usize),
    Fault(usize, Fault),
    Edit(Edit),
    /// A stale request reaches the API server.
    Land(usize, usize),
    Start {
        replica: usize,
        identity: &'static str,
    },
    Reconnect(usize),
    Resume(usize),
    CatchUp(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    Crash,
    Cut,
    Suspend,
    PauseClock,
    StallWatch,
    BreakWatch,
    Stop,
    LoseRequest,
    LoseReply,
    HoldRequest,
    DelayReply,
    Fail,
}

pub(super) const IDENTITIES: [[&str; 2]; REPLICAS] = [["a", "a2"], ["b", "b2"], ["c", "c2"]];

// === impl Election ===

impl Model for Election {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        self.rates.iter().map(|rates| self.initial(*rates)).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let mut urgent = false;
        for (index, replica) in world.replicas.iter().enumerate() {
            for due in replica.due(index) {
                urgent = true;
                actions.push(due);
            }
        }
        if !urgent {
            actions.push(Action::Tick);
        }
        self.recoveries(world, actions);
        if world.faults_left > 0 {
            let before = actions.len();
            self.replica_faults(world, urgent, actions);
            if !urgent || self.anywhere {
                self.edits(world, actions);
            }
            let mut nth = 0;
            actions.retain(|action| {
                nth += 1;
                nth <= before || (self.adversary)(action)
            });
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        self.act(&mut next, action);
        next.renumber(self);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![Property::always(
            "at most one valid permit",
            |_: &Election, world: &World| world.valid_permits() <= 1,
        )];
        if self.live {
            properties.push(Property::always(
                "somebody leads in the end",
                Election::leads_in_the_end,
            ));
        }
        properties.push(Property::sometimes("somebody leads", |_, world: &World| {
            world.valid_permits() == 1
        }));
        if self.faults > 0 {
            properties.push(Property::sometimes("a second term", |_, world: &World| {
                let term = world.server.as_ref().and_then(|lease| lease.spec.transitions);
                world.valid_permits() == 1 && term > Some(0)
            }));
        }
        properties
    }
}

impl Election {
    fn timings() -> Timings {
        Timings::new(
            Duration::from_secs(75),
            Duration::from_secs(50),
            Duration::from_secs(10),
        )
        .unwrap()
    }

    fn initial(&self, rates: [u64; REPLICAS]) -> World {
        let replica = |index: usize| Replica {
            rate: rates[index],
            process: None,
            stale: Vec::new(),
            cut: false,
            suspended: false,
            paused: false,
            watch: if self.polling && index == 2 {
                Watch::None
            } else {
                Watch::Live
            },
        };
        let mut world = World {
            server: None,
            replicas: [replica(0), replica(1), replica(2)],
            backup: None,
            displaced: false,
            faults_left: self.faults,
            next_version: 1,
            next_uid: 0,
            next_time: 1,
            names: [false; 2 * REPLICAS],
        };
        self.act(
            &mut world,
            Action::Start {
                replica: 0,
                identity: "a",
            },
        );
        match self.included {
            Some(Unpreventable::SharedIdentity) => {
                self.act(
                    &mut world,
                    Action::Start {
                        replica: 1,
                        identity: "a",
                    },
                );
            }
            Some(Unpreventable::NameReused) => {}
            _ => self.act(
                &mut world,
                Action::Start {
                    replica: 1,
                    identity: "b",
                },
            ),
        }
        world.renumber(self);
        world
    }

    /// Does `action`, without renumbering.
    pub(super) fn act(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => self.tick(world),
            Action::Wake(index) => self.observe(world, index, Observation::Elapsed),
            Action::Serve(index) => self.serve(world, index),
            Action::Deliver(index) => self.deliver(world, index),
            Action::Fault(index, fault) => {
                world.faults_left -= 1;
                self.fault(world, index, fault);
            }
            Action::Edit(edit) => {
                world.faults_left -= 1;
                self.edit(world, &edit);
            }
            Action::Land(index, nth) => {
                let operation = world.replicas[index].stale.remove(nth);
                self.apply(world, &operation);
            }
            Action::Start { replica, identity } => self.start(world, replica, identity),
            Action::Reconnect(index) => {
                world.replicas[index].cut = false;
                self.list(world, index);
            }
            Action::Resume(index) => {
                let replica = &mut world.replicas[index];
                (replica.suspended, replica.paused) = (false, false);
                self.catch_up(world, index);
            }
            Action::CatchUp(index) => self.catch_up(world, index),
        }
    }

    fn tick(&self, world: &mut World) {
        for replica in &mut world.replicas {
            if !replica.paused {
                replica.advance(replica.rate * self.tick);
            }
        }
    }

    fn start(&self, world: &mut World, index: usize, identity: &'static str) {
        let newcomer = world.displaced;
        let mut state = State::new(identity, Election::timings());
        state.watchable = world.replicas[index].watch != Watch::None;
        if state.watchable {
            world.replicas[index].watch = Watch::Live;
        }
        world.replicas[index].process = Some(Process {
            state,
            wake: None,
            permit: None,
            channel: Channel::Idle,
            newcomer,
            finished: false,
        });
        self.observe(world, index, Observation::Started);
    }

    /// Lets a replica take a step and does what a driver does with its actions.
    pub(super) fn observe(&self, world: &mut World, index: usize, observation: Observation) {
        let now = Now {
            at: NOW,
            wall_micros: world.next_time,
            jitter: 0,
        };
        let replica = &mut world.replicas[index];
        let Some(process) = &mut replica.process else {
            return;
        };
        let (state, actions) = step_under(&self.rules, process.state.clone(), observation, now);
        world.next_time = world.next_time.max(state.last_renew_time.map_or(0, |time| time + 1));
        process.state = state;
        process.wake = None;
        let mut sent = None;
        for action in actions {
            match action {
                Do::Send(request) => sent = Some(request.operation),
                Do::WaitUntil(moment) => process.wake = Some(moment),
                Do::Granted { until, .. } | Do::Extended { until } => process.permit = Some(until),
                Do::Revoked(_) => process.permit = None,
                Do::Released | Do::NotReleased(_) => process.finished = true,
            }
        }
        let before = std::mem::replace(&mut process.channel, Channel::Idle);
        process.channel = match (sent, before) {
            (None, before) if process.state.in_flight.is_some() => before,
            (sent, before) => {
                if let Channel::Pending(operation) | Channel::Held(operation) = before {
                    replica.stale.push(operation);
                }
                match sent {
                    Some(_) if replica.cut => Channel::Silent,
                    Some(operation) => Channel::Pending(operation),
                    None => Channel::Idle,
                }
            }
        };
        if replica.process.as_ref().is_some_and(|process| process.finished) {
            replica.end();
        }
    }
}

// === impl Replica ===

impl Replica {
    /// What happens within this tick unless a fault prevents it.
    fn due(&self, index: usize) -> Vec<Action> {
        let Some(process) = &self.process else {
            return Vec::new();
        };
        let mut due = Vec::new();
        if !self.suspended && process.wake.is_some_and(|wake| wake <= NOW) {
            due.push(Action::Wake(index));
        }
        if matches!(process.channel, Channel::Pending(_)) {
            due.push(Action::Serve(index));
        }
        due
    }

    /// The process is gone; what it had sent may still arrive.
    pub(super) fn end(&mut self) {
        if let Some(Process {
            channel: Channel::Pending(operation) | Channel::Held(operation),
            ..
        }) = self.process.take()
        {
            self.stale.push(operation);
        }
        (self.cut, self.suspended, self.paused) = (false, false, false);
        if self.watch != Watch::None {
            self.watch = Watch::Live;
        }
    }

    /// Keeps an event back that can't be delivered now. Returns whether it can.
    pub(super) fn takes_event(&mut self, event: Option<&Lease>) -> bool {
        let reachable = self.process.is_some() && !self.cut && !self.suspended;
        match &mut self.watch {
            Watch::None | Watch::Broken => false,
            Watch::Live if reachable => true,
            Watch::Live if self.process.is_none() => false,
            Watch::Live => {
                self.watch = if self.cut {
                    Watch::Broken
                } else {
                    Watch::Stalled(vec![event.cloned()])
                };
                false
            }
            Watch::Stalled(_) if self.cut => {
                self.watch = Watch::Broken;
                false
            }
            Watch::Stalled(events) => {
                events.push(event.cloned());
                if events.len() > STALLED_EVENTS {
                    self.watch = Watch::Broken;
                }
                false
            }
        }
    }

    pub(super) fn has_permit(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.permit.is_some())
    }
}

// === impl World ===

impl World {
    pub(super) fn valid_permits(&self) -> usize {
        self.replicas.iter().filter(|replica| replica.has_permit()).count()
    }
}
