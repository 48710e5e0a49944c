//! What an outsider does to the Lease.

use super::world::{Action, Channel, Election, IDENTITIES, Process, Unpreventable, World};
use crate::lease::messages::{Answer, Operation};
use crate::lease::sight::Known;
use crate::lease::{Lease, Spec};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Edit {
    /// A new version, and nothing else.
    Metadata,
    /// The holder is removed, the times stay.
    Clear,
    /// A holder that runs nowhere.
    Stranger,
    /// The identity of this replica, whether it runs or not.
    Name(usize),
    /// Exactly what the holder would write to release it.
    ExactRelease,
    /// As a release, with another count.
    InexactRelease,
    /// The last state of an earlier holder is written back.
    Restore,
    /// What this candidate saw last is written back.
    Rewind(usize),
    Delete,
}

// === impl Election ===

impl Election {
    pub(super) fn edits(&self, world: &World, actions: &mut Vec<Action>) {
        let Some(lease) = &world.server else {
            return;
        };
        let mut push = |edit: Edit| {
            if self.may_name(world, &edit) {
                actions.push(Action::Edit(edit));
            }
        };
        push(Edit::Metadata);
        if lease.spec.held_by().is_some() {
            push(Edit::Clear);
        }
        push(Edit::Stranger);
        for index in 0..world.replicas.len() {
            if world.name(index) != lease.spec.held_by().map_or("", |holder| holder) {
                push(Edit::Name(index));
            }
            if world
                .saw(index)
                .is_some_and(|saw| *saw != lease.spec && saw.held_by().is_some())
            {
                push(Edit::Rewind(index));
            }
        }
        if world.backup.as_ref().is_some_and(|backup| *backup != lease.spec) {
            push(Edit::Restore);
        }
        if self.may_forge(world, lease, true) {
            push(Edit::ExactRelease);
        }
        if self.may_forge(world, lease, false) {
            push(Edit::InexactRelease);
        }
        if self.may_delete(world) {
            push(Edit::Delete);
        }
    }

    pub(super) fn edit(&self, world: &mut World, edit: &Edit) {
        let Some(lease) = world.server.clone() else {
            return;
        };
        let shows_leader = world.shows_leader();
        let count = lease.spec.transition_count();
        let time = world.next_time;
        let spec = match edit {
            Edit::Metadata => lease.spec.clone(),
            Edit::Clear => Spec {
                holder: None,
                ..lease.spec.clone()
            },
            Edit::Stranger => held("ghost", time, count + 1),
            Edit::Name(index) => {
                let name = world.name(*index).to_owned();
                held(&name, time, count + 1)
            }
            Edit::ExactRelease => lease.spec.released(),
            Edit::InexactRelease => Spec {
                transitions: Some(count + 7),
                ..lease.spec.released()
            },
            Edit::Restore => world.backup.clone().unwrap_or_default(),
            Edit::Rewind(index) => world.saw(*index).cloned().unwrap_or_default(),
            Edit::Delete => {
                world.server = None;
                world.next_version += 1;
                world.displaced |= world.somebody_leads();
                self.notify(world, None);
                return;
            }
        };
        world.next_time += 1;
        world.displaced |= shows_leader && spec != lease.spec;
        self.store(world, Lease { spec, ..lease });
    }

    fn may_forge(&self, world: &World, lease: &Lease, exact: bool) -> bool {
        if lease.spec.looks_released() {
            return false;
        }
        if !world.somebody_leads() {
            return true;
        }
        if exact && world.shows_leader() && self.included != Some(Unpreventable::ExactForgedRelease) {
            return false;
        }
        // A replica that has not seen the leader's Lease can't tell a forged release from a true one.
        !world
            .processes()
            .any(|process| process.newcomer || !process.state.sight.holder_seen)
            || self.included == Some(Unpreventable::ForgedReleaseBeforeNewcomer)
    }

    /// Under a leader, no replica that has seen nothing so far may find its own name in the Lease.
    fn may_name(&self, world: &World, edit: &Edit) -> bool {
        let holder = match edit {
            Edit::Name(index) => Some(world.name(*index)),
            Edit::Restore => world.backup.as_ref().and_then(|backup| backup.holder.as_deref()),
            Edit::Rewind(index) => world.saw(*index).and_then(|saw| saw.holder.as_deref()),
            _ => None,
        };
        let newcomer = |process: &Process| {
            process.state.sight.known == Known::Nothing
                && !process.leads()
                && Some(&**process.state.identity()) == holder
        };
        !world.somebody_leads()
            || !world.processes().any(newcomer)
            || self.included == Some(Unpreventable::NamedNewcomer)
    }

    fn may_delete(&self, world: &World) -> bool {
        if !world.somebody_leads() || self.included == Some(Unpreventable::DeletedBeforeNewcomer) {
            return true;
        }
        let creates = |operation: &Operation| matches!(operation, Operation::Create(_));
        !world.processes().any(|process| {
            !process.state.sight.lease_seen
                || matches!(&process.channel, Channel::Pending(operation) | Channel::Held(operation) if creates(operation))
        }) && !world.replicas.iter().any(|replica| replica.stale.iter().any(creates))
    }
}

// === impl World ===

impl World {
    pub(super) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.replicas.iter().filter_map(|replica| replica.process.as_ref())
    }

    /// Whether a replica has a valid permit, or the answer that grants it one is on its way.
    pub(super) fn somebody_leads(&self) -> bool {
        self.processes().any(Process::leads)
    }

    /// What a candidate saw last.
    fn saw(&self, index: usize) -> Option<&Spec> {
        let process = self.replicas[index].process.as_ref()?;
        process.state.sight.lease().map(|lease| &lease.spec)
    }

    /// The name of a replica, or its first one while it does not run.
    fn name(&self, index: usize) -> &str {
        self.replicas[index]
            .process
            .as_ref()
            .map_or(IDENTITIES[index][0], |process| process.state.identity())
    }

    /// Whether the Lease names a replica that has a valid permit.
    pub(super) fn shows_leader(&self) -> bool {
        self.server.as_ref().is_some_and(|lease| {
            self.processes()
                .any(|process| process.leads() && lease.spec.held_by() == Some(process.state.identity()))
        })
    }
}

// === impl Process ===

impl Process {
    fn leads(&self) -> bool {
        let earned = match &self.channel {
            Channel::Late(Answer::Lease(lease)) => lease.spec.held_by() == Some(self.state.identity()),
            _ => false,
        };
        earned || self.permit.is_some()
    }
}

fn held(holder: &str, time: i64, transitions: i32) -> Spec {
    Spec {
        holder: Some(holder.into()),
        acquire_time: Some(time),
        renew_time: Some(time),
        duration_seconds: Some(75),
        transitions: Some(transitions),
        ..Spec::default()
    }
}
