//! The runs: the protocol holds, each excluded case of decision L14 breaks it, and so does each rule left out.

use stateright::{Checker, HasDiscoveries, Model};

use super::outsider::Edit;
use super::world::{Action, Election, FAST, Fault, SLOW, Unpreventable};
use crate::lease::rules::Rules;

const SAFETY: &str = "at most one valid permit";
const LIVENESS: &str = "somebody leads in the end";

/// The default run: one slow and two fast clocks, of which one belongs to a replica that starts at any time.
fn election() -> Election {
    Election {
        rules: Rules::ALL,
        sends_version: true,
        sends_uid: true,
        faults: 2,
        tick: 1,
        rates: vec![[SLOW, FAST, FAST]],
        polling: false,
        included: None,
        adversary: |_| true,
        anywhere: false,
        live: true,
        ticks_to_lead: std::sync::Mutex::default(),
    }
}

fn holds(name: &str, election: Election) {
    let (faults, tick, rates) = (election.faults, election.tick, election.rates.clone());
    let checker = election
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    report(&format!(
        "{name}: lease 75, deadline 50, retry 10 units; {tick} tick(s) a step of {rates:?} units; at most {faults} faults: \
         {} states, {} of them different, depth {}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth()
    ));
    checker.assert_properties();
}

/// Runs until `property` fails, and shows how.
fn breaks(name: &str, property: &'static str, election: Election) {
    let faults = election.faults;
    let checker = election
        .checker()
        .finish_when(HasDiscoveries::AnyOf([property].into()))
        .spawn_bfs()
        .join();
    let path = checker.discovery(property).unwrap_or_else(|| {
        panic!(
            "{name}: \"{property}\" holds in all {} states with {faults} faults",
            checker.unique_state_count()
        )
    });
    report(&format!("{name}: broken after {:?}", path.into_actions()));
}

#[expect(clippy::print_stdout, reason = "the size of the model is a result of the test")]
fn report(line: &str) {
    println!("{line}");
}

fn without(switch_off: impl FnOnce(&mut Rules)) -> Election {
    let mut rules = Rules::ALL;
    switch_off(&mut rules);
    Election {
        rules,
        live: false,
        ..election()
    }
}

fn including(case: Unpreventable) -> Election {
    Election {
        included: Some(case),
        live: false,
        ..election()
    }
}

#[test]
fn never_two_permits_and_always_a_leader_in_the_end() {
    holds("watching", election());
}

#[test]
fn never_two_permits_and_always_a_leader_in_the_end_where_one_can_only_poll() {
    holds(
        "polling",
        Election {
            polling: true,
            faults: 1,
            ..election()
        },
    );
}

#[test]
#[ignore = "deep model: run by cargo verify --long"]
fn never_two_permits_with_an_outsider_who_acts_between_request_and_answer() {
    holds(
        "anywhere",
        Election {
            anywhere: true,
            rates: vec![[SLOW, FAST, FAST], [FAST, SLOW, SLOW]],
            ..election()
        },
    );
}

#[test]
#[ignore = "deep model: run by cargo verify --long"]
fn never_two_permits_where_one_can_only_poll_with_two_faults() {
    holds(
        "polling",
        Election {
            polling: true,
            ..election()
        },
    );
}

#[test]
#[ignore = "deep model: run by cargo verify --long"]
fn never_two_permits_with_three_faults() {
    holds(
        "three faults",
        Election {
            faults: 3,
            tick: 2,
            live: false,
            ..election()
        },
    );
}

fn suspensions(action: &Action) -> bool {
    matches!(action, Action::Fault(_, Fault::Suspend))
}

fn late_replies(action: &Action) -> bool {
    matches!(action, Action::Fault(_, Fault::Suspend | Fault::DelayReply))
}

// Each case of decision L14 is excluded above. Each by itself is reason enough for two permits.

#[test]
fn l14_a_lease_deleted_before_a_newcomer_looks_makes_two_permits() {
    breaks("deleted", SAFETY, including(Unpreventable::DeletedBeforeNewcomer));
}

#[test]
fn l14_an_exact_forged_release_makes_two_permits() {
    breaks("exact release", SAFETY, including(Unpreventable::ExactForgedRelease));
}

#[test]
fn l14_a_forged_release_before_a_newcomer_looks_makes_two_permits() {
    breaks(
        "release before a newcomer",
        SAFETY,
        including(Unpreventable::ForgedReleaseBeforeNewcomer),
    );
}

#[test]
fn l14_a_lease_that_names_a_newcomer_makes_two_permits() {
    breaks("named newcomer", SAFETY, including(Unpreventable::NamedNewcomer));
}

#[test]
fn l14_a_shared_identity_makes_two_permits() {
    breaks(
        "shared identity",
        SAFETY,
        Election {
            faults: 0,
            ..including(Unpreventable::SharedIdentity)
        },
    );
}

#[test]
fn l14_a_reused_name_makes_two_permits() {
    breaks("reused name", SAFETY, including(Unpreventable::NameReused));
}

#[test]
fn l14_a_paused_clock_makes_two_permits() {
    let adversary = |action: &Action| matches!(action, Action::Fault(_, Fault::PauseClock));
    breaks(
        "paused clock",
        SAFETY,
        Election {
            adversary,
            ..including(Unpreventable::PausedClock)
        },
    );
}

// Each rule is needed: without it the model fails. Where the way to a failure is long, only the faults on it are played.

#[test]
fn mutant_a_renewal_counted_from_its_reply() {
    let election = without(|rules| rules.count_from_request = false);
    breaks(
        "from the reply",
        SAFETY,
        Election {
            adversary: late_replies,
            ..election
        },
    );
}

#[test]
fn mutant_a_renewal_counted_from_the_read_that_proves_it() {
    let election = without(|rules| rules.count_from_proven_write = false);
    breaks(
        "from the read",
        SAFETY,
        Election {
            adversary: late_replies,
            ..election
        },
    );
}

#[test]
fn mutant_a_metadata_edit_taken_for_a_renewal() {
    let adversary = |action: &Action| matches!(action, Action::Fault(_, Fault::Suspend) | Action::Edit(Edit::Metadata));
    let election = without(|rules| rules.version_is_no_renewal = false);
    breaks("metadata", SAFETY, Election { adversary, ..election });
}

#[test]
fn mutant_no_resource_version() {
    breaks(
        "no version",
        SAFETY,
        Election {
            sends_version: false,
            live: false,
            ..election()
        },
    );
}

#[test]
fn mutant_no_uid() {
    let adversary = |action: &Action| matches!(action, Action::Fault(_, Fault::Stop) | Action::Edit(Edit::Delete));
    breaks(
        "no uid",
        SAFETY,
        Election {
            sends_uid: false,
            anywhere: true,
            live: false,
            adversary,
            ..election()
        },
    );
}

#[test]
fn mutant_own_identity_adopted_at_any_time() {
    breaks(
        "own identity",
        SAFETY,
        without(|rules| rules.own_identity_is_not_trusted = false),
    );
}

#[test]
fn mutant_a_forged_release_believed() {
    breaks("forged release", SAFETY, without(|rules| rules.doubt_releases = false));
}

#[test]
fn mutant_a_displaced_holder_forgotten() {
    let election = without(|rules| rules.remember_displaced_holders = false);
    breaks(
        "displaced holder",
        SAFETY,
        Election {
            anywhere: true,
            ..election
        },
    );
}

#[test]
fn mutant_an_old_write_taken_for_its_own() {
    let adversary = |action: &Action| {
        matches!(
            action,
            Action::Fault(0 | 1, Fault::Suspend) | Action::Edit(Edit::Restore)
        )
    };
    let election = without(|rules| rules.own_writes_age = false);
    breaks(
        "old write",
        SAFETY,
        Election {
            adversary,
            anywhere: true,
            tick: 2,
            ..election
        },
    );
}

#[test]
fn mutant_release_before_revoke() {
    breaks(
        "release first",
        SAFETY,
        without(|rules| rules.revoke_before_release = false),
    );
}

#[test]
fn mutant_no_renew_deadline() {
    let election = without(|rules| rules.stop_at_deadline = false);
    breaks(
        "no deadline",
        SAFETY,
        Election {
            adversary: suspensions,
            ..election
        },
    );
}

#[test]
fn mutant_no_wait_for_expiry() {
    breaks("no wait", SAFETY, without(|rules| rules.wait_for_expiry = false));
}

#[test]
fn mutant_no_wait_for_absence() {
    breaks(
        "no wait for absence",
        SAFETY,
        without(|rules| rules.wait_for_absence = false),
    );
}

#[test]
fn mutant_a_gap_does_not_restart_the_wait() {
    let adversary =
        |action: &Action| matches!(action, Action::Fault(_, Fault::Suspend) | Action::Edit(Edit::Rewind(_)));
    let election = without(|rules| rules.gap_restarts_wait = false);
    breaks(
        "gap",
        SAFETY,
        Election {
            adversary,
            polling: true,
            ..election
        },
    );
}

#[test]
fn mutant_clocks_that_differ_by_more_than_the_margin() {
    let rates = vec![[SLOW, 2 * SLOW, 2 * SLOW]];
    breaks(
        "clocks",
        SAFETY,
        Election {
            rates,
            adversary: suspensions,
            live: false,
            ..election()
        },
    );
}

#[test]
fn mutant_nobody_ever_acquires() {
    let election = without(|rules| rules.acquire = false);
    breaks("nobody acquires", LIVENESS, Election { live: true, ..election });
}
