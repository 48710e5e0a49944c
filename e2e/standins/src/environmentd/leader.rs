//! Who leads: the decisions of one generation's process about the leader generation that the catalogue holds. No I/O.

use serde::Serialize;

/// What `GET /api/leader/status` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Status {
    Initializing,
    ReadyToPromote,
    Promoting,
    IsLeader,
}

/// What a process becomes that has just read the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boot {
    /// Leads; where nobody ever led it first has to write itself into the catalogue.
    Leader { claim: bool },
    /// Reads only, until it is promoted.
    Standby,
    /// A newer generation leads: ends at once.
    Fenced { by: u64 },
}

/// What a promotion started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promotion {
    /// The catalogue has to be written, then the process starts anew.
    Started,
    /// Nothing: it leads, or is about to.
    Already,
}

/// What a later look at the catalogue means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Fine,
    /// A newer generation leads: ends with code 0.
    Fenced {
        by: u64,
    },
    /// This generation leads, but this process doesn't know yet: another of its processes was promoted.
    Promoted,
    /// The catalogue lost what this process relies on: ends with code 1.
    Lost,
}

/// A running process of one generation.
#[derive(Debug)]
pub(crate) struct Deployment {
    generation: u64,
    leader: bool,
    status: Status,
}

/// Decides what a process of `generation` becomes.
pub(crate) fn boot(generation: u64, stored: Option<u64>) -> Boot {
    match stored {
        None => Boot::Leader { claim: true },
        Some(leader) if leader == generation => Boot::Leader { claim: false },
        Some(leader) if leader > generation => Boot::Fenced { by: leader },
        Some(_) => Boot::Standby,
    }
}

// === impl Deployment ===

impl Deployment {
    pub(crate) fn new(generation: u64, leader: bool) -> Self {
        Self {
            generation,
            leader,
            status: Status::Initializing,
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// What had to be read has been read.
    pub(crate) fn caught_up(&mut self) {
        if self.status == Status::Initializing {
            self.status = if self.leader {
                Status::IsLeader
            } else {
                Status::ReadyToPromote
            };
        }
    }

    /// Leaves out what has not been read yet. Nothing to leave out is no error.
    pub(crate) fn skip_catchup(&mut self) {
        self.caught_up();
    }

    /// Accepted in every state but `Initializing`, any number of times.
    pub(crate) fn promote(&mut self) -> Result<Promotion, &'static str> {
        match self.status {
            Status::Initializing => Err("cannot promote: still initializing"),
            Status::ReadyToPromote => {
                self.status = Status::Promoting;
                Ok(Promotion::Started)
            }
            Status::Promoting | Status::IsLeader => Ok(Promotion::Already),
        }
    }

    /// Judges what the catalogue holds now.
    pub(crate) fn observe(&self, stored: Option<u64>) -> Sight {
        match stored {
            Some(leader) if leader > self.generation => Sight::Fenced { by: leader },
            Some(leader) if leader == self.generation => {
                if self.leader || self.status == Status::Promoting {
                    Sight::Fine
                } else {
                    Sight::Promoted
                }
            }
            Some(_) if !self.leader => Sight::Fine,
            Some(_) | None => Sight::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_catalogue_decides_what_a_process_becomes() {
        assert_eq!(boot(1, None), Boot::Leader { claim: true });
        assert_eq!(boot(2, Some(2)), Boot::Leader { claim: false });
        assert_eq!(boot(3, Some(2)), Boot::Standby);
        assert_eq!(boot(1, Some(2)), Boot::Fenced { by: 2 });
    }

    #[test]
    fn a_leader_is_leader_as_soon_as_it_has_caught_up() {
        let mut leader = Deployment::new(1, true);
        assert_eq!(leader.status(), Status::Initializing);
        leader.caught_up();
        assert_eq!(leader.status(), Status::IsLeader);
        assert_eq!(leader.promote(), Ok(Promotion::Already));
        leader.skip_catchup();
        assert_eq!(leader.status(), Status::IsLeader);
    }

    #[test]
    fn a_standby_is_promoted_once_and_answers_the_same_again() {
        let mut standby = Deployment::new(2, false);
        assert!(standby.promote().is_err());
        assert_eq!(standby.status(), Status::Initializing);
        standby.caught_up();
        assert_eq!(standby.status(), Status::ReadyToPromote);
        assert_eq!(standby.promote(), Ok(Promotion::Started));
        assert_eq!(standby.status(), Status::Promoting);
        assert_eq!(standby.promote(), Ok(Promotion::Already));
        standby.caught_up();
        assert_eq!(standby.status(), Status::Promoting);
    }

    #[test]
    fn skipping_makes_a_standby_ready_at_once() {
        let mut standby = Deployment::new(2, false);
        standby.skip_catchup();
        assert_eq!(standby.status(), Status::ReadyToPromote);
    }

    #[test]
    fn a_newer_leader_fences_whatever_the_state() {
        for leader in [true, false] {
            let deployment = Deployment::new(1, leader);
            assert_eq!(deployment.observe(Some(2)), Sight::Fenced { by: 2 });
        }
    }

    #[test]
    fn an_older_or_missing_leader_is_fine_for_a_standby_only_while_there_is_one() {
        assert_eq!(Deployment::new(2, false).observe(Some(1)), Sight::Fine);
        assert_eq!(Deployment::new(2, false).observe(None), Sight::Lost);
        assert_eq!(Deployment::new(2, true).observe(None), Sight::Lost);
        assert_eq!(Deployment::new(2, true).observe(Some(1)), Sight::Lost);
        assert_eq!(Deployment::new(2, true).observe(Some(2)), Sight::Fine);
    }

    #[test]
    fn a_standby_whose_generation_leads_already_was_promoted_elsewhere() {
        let mut standby = Deployment::new(2, false);
        assert_eq!(standby.observe(Some(2)), Sight::Promoted);
        standby.caught_up();
        standby.promote().unwrap();
        assert_eq!(standby.observe(Some(2)), Sight::Fine);
    }
}
