//! Requests, answers and events, and what can go wrong with them.

use super::world::{Action, Channel, Election, Fault, Unpreventable, Watch, World};
use crate::lease::messages::{Answer, Observation, Operation};
use crate::lease::{Lease, ResourceVersion, Spec};

// === impl Election ===

impl Election {
    /// Serves the request of a replica and lets the answer arrive, or wait if the replica is suspended.
    pub(super) fn serve(&self, world: &mut World, index: usize) {
        let answer = self.serve_silently(world, index);
        let replica = &mut world.replicas[index];
        let Some(process) = &mut replica.process else {
            return;
        };
        process.channel = Channel::Late(answer);
        if !replica.suspended {
            self.deliver(world, index);
        }
    }

    fn serve_silently(&self, world: &mut World, index: usize) -> Answer {
        let Some(process) = &mut world.replicas[index].process else {
            return Answer::Unknown { retry_after: None };
        };
        match std::mem::replace(&mut process.channel, Channel::Silent) {
            Channel::Pending(operation) | Channel::Held(operation) => self.apply(world, &operation),
            other => {
                process.channel = other;
                Answer::Unknown { retry_after: None }
            }
        }
    }

    pub(super) fn deliver(&self, world: &mut World, index: usize) {
        let Some(process) = &mut world.replicas[index].process else {
            return;
        };
        let channel = std::mem::replace(&mut process.channel, Channel::Idle);
        if let (Channel::Late(answer), Some(in_flight)) = (channel, &process.state.in_flight) {
            let to = in_flight.id;
            self.observe(world, index, Observation::Answer { to, answer });
        }
    }

    /// What the API server does with a request.
    pub(super) fn apply(&self, world: &mut World, operation: &Operation) -> Answer {
        match operation {
            Operation::Read => world.server.clone().map_or(Answer::Absent, Answer::Lease),
            Operation::Create(spec) => match &world.server {
                None => Answer::Lease(self.create(world, spec.clone())),
                Some(_) => Answer::Conflict,
            },
            Operation::Replace { uid, version, spec } => match world.server.clone() {
                None if self.sends_uid => Answer::Conflict,
                None => Answer::Lease(self.create(world, spec.clone())),
                Some(stored) => {
                    let same_version = !self.sends_version || stored.version == *version;
                    let same_uid = !self.sends_uid || stored.uid == *uid;
                    if !same_version || !same_uid {
                        Answer::Conflict
                    } else if stored.spec == *spec {
                        Answer::Lease(stored)
                    } else {
                        Answer::Lease(self.store(
                            world,
                            Lease {
                                spec: spec.clone(),
                                ..stored
                            },
                        ))
                    }
                }
            },
        }
    }

    pub(super) fn create(&self, world: &mut World, spec: Spec) -> Lease {
        let uid = super::canonical::uid(world.next_uid);
        world.next_uid += 1;
        self.store(
            world,
            Lease {
                uid,
                version: ResourceVersion(0),
                spec,
            },
        )
    }

    /// Stores a new version and tells everybody who watches.
    pub(super) fn store(&self, world: &mut World, lease: Lease) -> Lease {
        let version = ResourceVersion(world.next_version);
        world.next_version += 1;
        let lease = Lease { version, ..lease };
        if let Some(before) = &world.server
            && before.spec.holder != lease.spec.holder
            && before.spec.held_by().is_some()
        {
            world.backup = Some(before.spec.clone());
        }
        world.server = Some(lease.clone());
        self.notify(world, Some(&lease));
        lease
    }

    pub(super) fn notify(&self, world: &mut World, event: Option<&Lease>) {
        for index in 0..world.replicas.len() {
            if world.replicas[index].takes_event(event) {
                self.observe(world, index, seen(event, false));
            }
        }
    }

    /// A watch that was broken lists again.
    pub(super) fn list(&self, world: &mut World, index: usize) {
        let replica = &mut world.replicas[index];
        if replica.watch != Watch::None && !replica.cut {
            replica.watch = Watch::Live;
            let found = world.server.clone();
            self.observe(world, index, seen(found.as_ref(), true));
        }
    }

    /// A watch that was held back delivers what it has.
    pub(super) fn catch_up(&self, world: &mut World, index: usize) {
        match std::mem::replace(&mut world.replicas[index].watch, Watch::Live) {
            Watch::None => world.replicas[index].watch = Watch::None,
            Watch::Live => {}
            Watch::Stalled(events) => {
                for event in events {
                    self.observe(world, index, seen(event.as_ref(), false));
                }
            }
            Watch::Broken => self.list(world, index),
        }
    }

    pub(super) fn fault(&self, world: &mut World, index: usize, fault: Fault) {
        let replica = &mut world.replicas[index];
        match fault {
            Fault::Crash => replica.end(),
            Fault::Cut => {
                replica.cut = true;
                if let Some(process) = &mut replica.process
                    && process.channel != Channel::Idle
                    && let Channel::Held(operation) = std::mem::replace(&mut process.channel, Channel::Silent)
                {
                    replica.stale.push(operation);
                }
            }
            Fault::Suspend => replica.suspended = true,
            Fault::PauseClock => (replica.suspended, replica.paused) = (true, true),
            Fault::StallWatch => replica.watch = Watch::Stalled(Vec::new()),
            Fault::BreakWatch => replica.watch = Watch::Broken,
            Fault::Stop => {
                self.observe(world, index, Observation::Resign);
                self.observe(world, index, Observation::Release);
            }
            Fault::LoseRequest => {
                if let Some(process) = &mut replica.process {
                    process.channel = Channel::Silent;
                }
            }
            Fault::LoseReply => {
                self.serve_silently(world, index);
            }
            Fault::HoldRequest => {
                if let Some(process) = &mut replica.process
                    && let Channel::Pending(operation) = std::mem::replace(&mut process.channel, Channel::Silent)
                {
                    process.channel = Channel::Held(operation);
                }
            }
            Fault::DelayReply => {
                let answer = self.serve_silently(world, index);
                if let Some(process) = &mut world.replicas[index].process
                    && process.channel == Channel::Silent
                {
                    process.channel = Channel::Late(answer);
                }
            }
            Fault::Fail => {
                if let Some(process) = &mut replica.process {
                    process.channel = Channel::Late(Answer::Unknown { retry_after: None });
                }
                self.deliver(world, index);
            }
        }
    }

    pub(super) fn replica_faults(&self, world: &World, urgent: bool, actions: &mut Vec<Action>) {
        for (index, replica) in world.replicas.iter().enumerate() {
            let Some(process) = &replica.process else {
                continue;
            };
            let mut push = |fault| actions.push(Action::Fault(index, fault));
            if let Channel::Pending(operation) = &process.channel {
                [Fault::LoseRequest, Fault::DelayReply, Fault::Fail]
                    .into_iter()
                    .for_each(&mut push);
                if *operation != Operation::Read {
                    [Fault::LoseReply, Fault::HoldRequest].into_iter().for_each(&mut push);
                }
                push(Fault::Crash);
                if self.anywhere && !replica.suspended {
                    push(Fault::Suspend);
                }
            }
            if urgent {
                continue;
            }
            push(Fault::Crash);
            if !replica.cut {
                push(Fault::Cut);
            }
            if !replica.suspended {
                push(Fault::Suspend);
                push(Fault::Stop);
                if self.included == Some(Unpreventable::PausedClock) {
                    push(Fault::PauseClock);
                }
            }
            if replica.watch == Watch::Live && !replica.cut && !replica.suspended {
                push(Fault::StallWatch);
                push(Fault::BreakWatch);
            }
        }
    }

    pub(super) fn recoveries(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, replica) in world.replicas.iter().enumerate() {
            for nth in 0..replica.stale.len() {
                actions.push(Action::Land(index, nth));
            }
            let Some(process) = &replica.process else {
                for identity in world.names_for(index) {
                    if self.may_start(world, identity) {
                        actions.push(Action::Start {
                            replica: index,
                            identity,
                        });
                    }
                }
                if self.included == Some(Unpreventable::NameReused) && index == 1 && world.replicas[0].cut {
                    actions.push(Action::Start {
                        replica: index,
                        identity: "a",
                    });
                }
                continue;
            };
            if replica.suspended {
                actions.push(Action::Resume(index));
                continue;
            }
            match process.channel {
                Channel::Late(_) => actions.push(Action::Deliver(index)),
                Channel::Held(_) => actions.push(Action::Serve(index)),
                _ => {}
            }
            if replica.cut {
                actions.push(Action::Reconnect(index));
            } else if matches!(replica.watch, Watch::Stalled(_) | Watch::Broken) {
                actions.push(Action::CatchUp(index));
            }
        }
    }

    /// Whether a replica may start now without making a case of decision L14.
    fn may_start(&self, world: &World, identity: &str) -> bool {
        if !world.displaced {
            return true;
        }
        match &world.server {
            // Its creation would meet the old permit.
            None => self.included == Some(Unpreventable::DeletedBeforeNewcomer),
            Some(lease) => {
                let named = lease.spec.held_by().is_some_and(|holder| **holder == *identity);
                let looks_free = lease.spec.looks_released();
                (!named || self.included == Some(Unpreventable::NamedNewcomer))
                    && (!looks_free || self.included == Some(Unpreventable::ForgedReleaseBeforeNewcomer))
            }
        }
    }
}

fn seen(event: Option<&Lease>, after_gap: bool) -> Observation {
    match event {
        Some(lease) => Observation::Seen {
            lease: lease.clone(),
            after_gap,
        },
        None => Observation::Missing,
    }
}
