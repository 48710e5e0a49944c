//! Liveness as a property of every state: with all faults healed the same steps lead to a leader.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use stateright::Model;

use super::world::{Action, Election, World};

/// Within so many ticks somebody must lead. A slow replica waits 15 ticks for an expiry; one wait may follow another
/// (what it read last, then what it lost a race to), and then the pause between attempts.
pub(super) const ENOUGH_TICKS: u64 = 48;

// === impl Election ===

impl Election {
    pub(super) fn leads_in_the_end(&self, world: &World) -> bool {
        if world.valid_permits() == 1 {
            return true;
        }
        let mut healed = world.clone();
        healed.faults_left = 0;
        self.heal(&mut healed);
        let mut path = Vec::new();
        let mut ticks = 0_u16;
        let found = loop {
            healed.renumber(self);
            if healed.valid_permits() == 1 {
                break Some(0);
            }
            let fingerprint = BuildHasherDefault::<DefaultHasher>::default().hash_one(&healed);
            if let Some(known) = self.ticks_to_lead.lock().unwrap().get(&fingerprint) {
                break Some(*known);
            }
            path.push((fingerprint, ticks));
            if u64::from(ticks) * self.tick > ENOUGH_TICKS {
                break None;
            }
            self.run_tick(&mut healed);
            ticks += 1;
        };
        let Some(more) = found else {
            return false;
        };
        let total = ticks + more;
        let mut known = self.ticks_to_lead.lock().unwrap();
        known.extend(path.into_iter().map(|(fingerprint, at)| (fingerprint, total - at)));
        u64::from(total) * self.tick <= ENOUGH_TICKS
    }

    /// Ends every fault. What is still in the network is lost.
    fn heal(&self, world: &mut World) {
        let mut recoveries = Vec::new();
        for index in 0..world.replicas.len() {
            world.replicas[index].stale.clear();
        }
        self.recoveries(world, &mut recoveries);
        for action in recoveries {
            let starts_again =
                matches!(action, Action::Start { replica, .. } if world.replicas[replica].process.is_some());
            if !starts_again {
                self.act(world, action);
            }
        }
        // Resuming or reconnecting may leave a stalled watch behind.
        let mut rest = Vec::new();
        self.recoveries(world, &mut rest);
        for action in rest {
            if matches!(
                action,
                Action::Reconnect(_) | Action::CatchUp(_) | Action::Serve(_) | Action::Deliver(_)
            ) {
                self.act(world, action);
            }
        }
    }

    /// Everything that is due, in the order of the replicas, and then one tick.
    fn run_tick(&self, world: &mut World) {
        for _ in 0..200 {
            let mut actions = Vec::new();
            self.actions(world, &mut actions);
            let Some(due) = actions
                .into_iter()
                .find(|action| matches!(action, Action::Wake(_) | Action::Serve(_)))
            else {
                self.act(world, Action::Tick);
                return;
            };
            self.act(world, due);
            world.renumber(self);
        }
        panic!("a busy loop: {world:?}");
    }
}
