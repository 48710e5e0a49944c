//! Area `election`: what the network, the API server, outsiders and the operating system do to those who elect a leader.
//!
//! One file a kind of trouble; `stage` has the replicas, each behind a network of its own, `ledger` what the API server saw, `judge` what must hold
//! whatever happens. All is judged by the audit log and the log of the networks, never by what the operator says about itself.

mod answers;
mod contents;
mod identity;
mod judge;
mod kit;
pub(crate) mod ledger;
mod losses;
mod outages;
mod outsiders;
mod pauses;
mod permissions;
mod processes;
mod stage;
mod standbys;
mod tolerance;

use std::time::Duration;

use super::context::Context;
use super::{Scenario, Sharing};
use crate::cluster::Level;

/// How long a Lease must have been silent before another replica may take it (decision L4), in microseconds.
const LEASE_DURATION: i128 = 15_000_000;

/// After so much time without a successful renewal a leader must have stopped (decision L1).
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// What a take-over may add to the fifteen seconds: a retry period, and what a busy machine needs.
const TAKE_OVER: Duration = Duration::from_secs(22);

/// The scenarios of this area, the longest first.
pub(super) const SCENARIOS: &[Scenario] = &[
    shared(
        "election::a_wrong_answer_makes_a_leader_or_a_busy_loop",
        answers::SCENARIO,
        4,
    ),
    shared("election::an_outsider_stops_the_election", outsiders::SCENARIO, 4),
    shared("election::what_stands_in_a_lease_is_misread", contents::SCENARIO, 4),
    shared("election::a_short_fault_costs_the_lease", tolerance::SCENARIO, 4),
    shared(
        "election::a_leader_without_answers_goes_on_or_none_follows",
        losses::SCENARIO,
        4,
    ),
    shared(
        "election::a_standby_does_not_hear_and_never_leads",
        standbys::SCENARIO,
        4,
    ),
    shared(
        "election::an_outage_ends_a_process_or_the_election",
        outages::SCENARIO,
        4,
    ),
    shared("election::a_start_in_an_outage_fails", outages::START, 4),
    shared("election::one_of_several_fail_overs_fails", processes::FAIL_OVERS, 4),
    shared(
        "election::a_termination_hangs_or_is_ignored",
        processes::TERMINATIONS,
        4,
    ),
    shared(
        "election::a_missing_permission_needs_a_restart",
        permissions::SCENARIO,
        3,
    ),
    shared("election::two_of_one_name_go_on_side_by_side", identity::SCENARIO, 2),
    alone("election::a_leader_that_wakes_up_writes", pauses::ONCE, 4),
    long(shared(
        "election::one_of_ten_fail_overs_fails",
        processes::TEN_FAIL_OVERS,
        10,
    )),
    long(shared(
        "election::a_start_in_a_long_outage_fails",
        outages::LONG_START,
        8,
    )),
    long(shared(
        "election::a_slow_api_server_costs_the_lease",
        tolerance::SLOW,
        8,
    )),
    long(shared(
        "election::a_loss_is_the_last_term_of_a_replica",
        losses::ROUNDS,
        8,
    )),
    long(shared(
        "election::requests_multiply_while_all_fail",
        standbys::FAILING,
        4,
    )),
    long(alone(
        "election::an_api_server_that_restarts_ends_the_election",
        outages::RESTART,
        5,
    )),
    long(alone(
        "election::one_of_twenty_wake_ups_writes",
        pauses::TWENTY_TIMES,
        20,
    )),
];

/// What a scenario does.
type Body = fn(&mut Context) -> anyhow::Result<()>;

const fn shared(name: &'static str, body: Body, minutes: u64) -> Scenario {
    Scenario {
        name,
        level: Level::Api,
        sharing: Sharing::Shared,
        long: false,
        limit: Duration::from_secs(minutes * 60),
        body,
    }
}

const fn alone(name: &'static str, body: Body, minutes: u64) -> Scenario {
    Scenario {
        sharing: Sharing::Alone,
        ..shared(name, body, minutes)
    }
}

const fn long(scenario: Scenario) -> Scenario {
    Scenario { long: true, ..scenario }
}
