//! Renumbering: worlds that differ only in what the protocol can't tell become one.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::world::{Channel, Election, IDENTITIES, NOW, Process, REPLICAS, Replica, Watch, World};
use crate::lease::messages::{Answer, Operation, RequestId};
use crate::lease::sight::{Known, Sight};
use crate::lease::state::{Role, State};
use crate::lease::{Identity, Lease, Moment, ResourceVersion, Spec, Uid};

static UIDS: LazyLock<Vec<Uid>> = LazyLock::new(|| (0..64).map(|n: usize| Arc::from(format!("{n:02}"))).collect());

static IDENTITY: LazyLock<Vec<Identity>> =
    LazyLock::new(|| IDENTITIES.iter().flatten().map(|name| Arc::from(*name)).collect());

/// The place of a name among all names of replicas; none for a stranger.
fn place(identity: &Identity) -> Option<usize> {
    IDENTITY.iter().position(|name| name == identity)
}

/// The uid of the `nth` Lease.
pub(super) fn uid(nth: usize) -> Uid {
    UIDS[nth].clone()
}

/// Visits everything in a world that is known by its rank only.
trait Ranked {
    fn version(&mut self, version: &mut ResourceVersion);
    fn uid(&mut self, uid: &mut Uid);
    fn time(&mut self, time: &mut i64);
    fn identity(&mut self, identity: &mut Identity);
}

#[derive(Default)]
struct Collect {
    versions: Vec<u64>,
    uids: Vec<Uid>,
    times: Vec<i64>,
    /// Which of [`NAMES`] occur.
    names: [bool; NAMES],
}

struct Rename(Collect);

/// Renames replicas, by the places of their names in [`names`].
struct Swap([usize; NAMES]);

const NAMES: usize = 2 * REPLICAS;

// === impl World ===

impl World {
    pub(super) fn renumber(&mut self, election: &Election) {
        for replica in &mut self.replicas {
            replica.tidy(election);
        }
        self.drop_hopeless_requests(election);
        if !self.somebody_leads() || self.shows_leader() {
            self.displaced = false;
            for replica in &mut self.replicas {
                if let Some(process) = &mut replica.process {
                    process.newcomer = false;
                }
            }
        }
        if self.faults_left == 0 {
            self.backup = None;
        }
        self.order_twins();
        let mut collect = Collect::default();
        self.visit(&mut collect);
        self.rename_reborn(&mut collect);
        self.names = collect.names;
        collect.versions.sort_unstable();
        collect.versions.dedup();
        collect.uids.sort_unstable();
        collect.uids.dedup();
        collect.times.sort_unstable();
        collect.times.dedup();
        self.next_version = collect.versions.len() as u64 + 1;
        self.next_uid = collect.uids.len();
        self.next_time = i64::try_from(collect.times.len()).unwrap() + 1;
        self.visit(&mut Rename(collect));
    }

    /// Replicas with the same clock and the same means are interchangeable.
    fn order_twins(&mut self) {
        let [_, left, right] = &self.replicas;
        let twins = left.rate == right.rate && (left.watch == Watch::None) == (right.watch == Watch::None);
        if twins && left.outline() < right.outline() {
            self.replicas.swap(1, 2);
            self.visit(&mut Swap([0, 1, 4, 5, 2, 3]));
        }
    }

    /// A replica whose former name nobody remembers may as well have kept it.
    fn rename_reborn(&mut self, collect: &mut Collect) {
        let mut places = [0, 1, 2, 3, 4, 5];
        for first in [0, 2, 4] {
            if !collect.names[first] && collect.names[first + 1] {
                places.swap(first, first + 1);
            }
        }
        if places != [0, 1, 2, 3, 4, 5] {
            self.visit(&mut Swap(places));
            collect.names = std::array::from_fn(|place| collect.names[places[place]]);
        }
    }

    /// The names under which a replica may start; of two that nobody remembers only one.
    pub(super) fn names_for(&self, index: usize) -> &'static [&'static str] {
        if self.names[2 * index] {
            &IDENTITIES[index]
        } else {
            &IDENTITIES[index][..1]
        }
    }

    /// A stale write whose version has passed can't succeed any more.
    fn drop_hopeless_requests(&mut self, election: &Election) {
        if !election.sends_version || !election.sends_uid {
            return;
        }
        let current = self.server.as_ref().map(|lease| lease.version);
        for replica in &mut self.replicas {
            replica.stale.retain(|operation| match operation {
                Operation::Read => false,
                Operation::Create(_) => true,
                Operation::Replace { version, .. } => Some(*version) == current,
            });
        }
    }

    fn visit(&mut self, ranked: &mut impl Ranked) {
        if let Some(lease) = &mut self.server {
            visit_lease(lease, ranked);
        }
        if let Some(spec) = &mut self.backup {
            visit_spec(spec, ranked);
        }
        for replica in &mut self.replicas {
            for operation in &mut replica.stale {
                visit_operation(operation, ranked);
            }
            if let Watch::Stalled(events) = &mut replica.watch {
                for lease in events.iter_mut().flatten() {
                    visit_lease(lease, ranked);
                }
            }
            if let Some(process) = &mut replica.process {
                match &mut process.channel {
                    Channel::Pending(operation) | Channel::Held(operation) => visit_operation(operation, ranked),
                    Channel::Late(Answer::Lease(lease)) => visit_lease(lease, ranked),
                    Channel::Late(_) | Channel::Idle | Channel::Silent => {}
                }
                visit_state(&mut process.state, ranked);
            }
        }
    }
}

fn visit_state(state: &mut State, ranked: &mut impl Ranked) {
    ranked.identity(&mut state.identity);
    if let Some(in_flight) = &mut state.in_flight {
        visit_operation(&mut in_flight.operation, ranked);
    }
    for write in &mut state.written {
        visit_spec(&mut write.spec, ranked);
    }
    if let Some(version) = &mut state.sight.newest {
        ranked.version(version);
    }
    if let Known::Lease(seen) = &mut state.sight.known {
        visit_lease(&mut seen.lease, ranked);
    }
    match &mut state.role {
        Role::Leader(leader) => visit_lease(&mut leader.stored, ranked),
        Role::Resigned(resigned) => {
            if let Some(lease) = &mut resigned.held {
                visit_lease(lease, ranked);
            }
        }
        Role::Idle | Role::Candidate(_) => {}
    }
}

fn visit_lease(lease: &mut Lease, ranked: &mut impl Ranked) {
    ranked.version(&mut lease.version);
    ranked.uid(&mut lease.uid);
    visit_spec(&mut lease.spec, ranked);
}

fn visit_spec(spec: &mut Spec, ranked: &mut impl Ranked) {
    for time in [&mut spec.acquire_time, &mut spec.renew_time].into_iter().flatten() {
        ranked.time(time);
    }
    if let Some(holder) = &mut spec.holder {
        ranked.identity(holder);
    }
}

fn visit_operation(operation: &mut Operation, ranked: &mut impl Ranked) {
    match operation {
        Operation::Read => {}
        Operation::Create(spec) => visit_spec(spec, ranked),
        Operation::Replace { uid, version, spec } => {
            ranked.uid(uid);
            ranked.version(version);
            visit_spec(spec, ranked);
        }
    }
}

// === impl Collect ===

impl Ranked for Collect {
    fn version(&mut self, version: &mut ResourceVersion) {
        self.versions.push(version.0);
    }

    fn uid(&mut self, uid: &mut Uid) {
        self.uids.push(uid.clone());
    }

    fn time(&mut self, time: &mut i64) {
        self.times.push(*time);
    }

    fn identity(&mut self, identity: &mut Identity) {
        if let Some(place) = place(identity) {
            self.names[place] = true;
        }
    }
}

// === impl Rename ===

impl Ranked for Rename {
    fn version(&mut self, version: &mut ResourceVersion) {
        version.0 = self.0.versions.binary_search(&version.0).unwrap() as u64 + 1;
    }

    fn uid(&mut self, uid: &mut Uid) {
        *uid = UIDS[self.0.uids.binary_search(uid).unwrap()].clone();
    }

    fn time(&mut self, time: &mut i64) {
        *time = i64::try_from(self.0.times.binary_search(time).unwrap()).unwrap() + 1;
    }

    fn identity(&mut self, _identity: &mut Identity) {}
}

// === impl Swap ===

impl Ranked for Swap {
    fn version(&mut self, _version: &mut ResourceVersion) {}

    fn uid(&mut self, _uid: &mut Uid) {}

    fn time(&mut self, _time: &mut i64) {}

    fn identity(&mut self, identity: &mut Identity) {
        if let Some(place) = place(identity) {
            *identity = IDENTITY[self.0[place]].clone();
        }
    }
}

// === impl Replica ===

impl Replica {
    /// The clock of this replica advances: everything else moves into the past.
    pub(super) fn advance(&mut self, units: u64) {
        let by = Duration::from_secs(units);
        if let Some(process) = &mut self.process {
            process.state.each_moment(|moment| *moment = moment.saturating_sub(by));
            for moment in [&mut process.wake, &mut process.permit].into_iter().flatten() {
                *moment = moment.saturating_sub(by);
            }
        }
    }

    fn tidy(&mut self, election: &Election) {
        if let Some(process) = &mut self.process {
            process.tidy(election);
        }
    }

    /// Enough to tell most twins apart.
    fn outline(&self) -> impl Ord + use<> {
        let process = self.process.as_ref();
        (
            process.map(|process| (process.permit, process.wake, process.state.in_flight.is_some())),
            self.cut,
            self.suspended,
            self.stale.len(),
            process.map(|process| match &process.state.sight.known {
                Known::Nothing => (0, Duration::ZERO),
                Known::Absent { create_at, .. } => (1, *create_at),
                Known::Lease(seen) => (2, seen.free_at),
            }),
            process.is_some_and(|process| process.state.role == Role::Idle),
        )
    }
}

// === impl Process ===

impl Process {
    fn tidy(&mut self, election: &Election) {
        if election.rules.stop_at_deadline {
            self.permit.take_if(|until| *until <= NOW);
        } else if self.permit.is_some() {
            self.permit = Some(NOW);
        }
        if let Some(wake) = &mut self.wake {
            forget_past(wake);
        }
        // Every wall-clock time that is handed in is greater than all before it.
        self.state.last_renew_time = None;
        self.state.next_id = 1;
        if let Some(in_flight) = &mut self.state.in_flight {
            in_flight.id = RequestId(1);
            self.state.next_id = 2;
        }
        self.state.tidy();
    }
}

// === impl State ===

impl State {
    fn each_moment(&mut self, mut shift: impl FnMut(&mut Moment)) {
        if let Some(in_flight) = &mut self.in_flight {
            shift(&mut in_flight.sent_at);
            shift(&mut in_flight.deadline);
        }
        for write in &mut self.written {
            shift(&mut write.sent_at);
        }
        if let Some(last_read) = &mut self.last_read {
            shift(last_read);
        }
        match &mut self.sight.known {
            Known::Nothing => {}
            Known::Absent {
                create_at,
                displaced_until,
            } => {
                shift(create_at);
                shift(displaced_until);
            }
            Known::Lease(seen) => {
                shift(&mut seen.at);
                shift(&mut seen.free_at);
                shift(&mut seen.displaced_until);
            }
        }
        match &mut self.role {
            Role::Idle => {}
            Role::Candidate(candidate) => {
                for moment in [&mut candidate.not_before, &mut candidate.read_at, &mut candidate.doubt]
                    .into_iter()
                    .flatten()
                {
                    shift(moment);
                }
            }
            Role::Leader(leader) => {
                shift(&mut leader.renewed);
                shift(&mut leader.until);
                shift(&mut leader.next_at);
                if let Some(doubt) = &mut leader.doubt {
                    shift(doubt);
                }
            }
            Role::Resigned(resigned) => {
                if let Some(next_at) = &mut resigned.next_at {
                    shift(next_at);
                }
            }
        }
    }

    /// Makes moments equal that lie so far in the past that no rule can tell them apart.
    fn tidy(&mut self) {
        let retry = self.timings.retry_period();
        let read_sent = self.in_flight.as_ref().map(|in_flight| in_flight.sent_at);
        let settled = |moment: &mut Moment| {
            if read_sent.is_none_or(|sent| *moment < sent) {
                *moment = Duration::ZERO;
            }
        };
        self.last_read.take_if(|last| *last + retry / 2 <= NOW);
        for write in &mut self.written {
            write.sent_at = write.sent_at.max(NOW.saturating_sub(self.timings.lease_duration()));
        }
        match &mut self.sight.known {
            Known::Nothing => {}
            Known::Absent {
                create_at,
                displaced_until,
            } => {
                forget_past(create_at);
                forget_past(displaced_until);
            }
            Known::Lease(seen) => {
                settled(&mut seen.at);
                forget_past(&mut seen.free_at);
                forget_past(&mut seen.displaced_until);
            }
        }
        match &mut self.role {
            Role::Idle => {}
            Role::Candidate(candidate) => {
                candidate.not_before.take_if(|moment| *moment <= NOW);
                if let Some(read_at) = &mut candidate.read_at {
                    forget_past(read_at);
                }
                if let Some(doubt) = &mut candidate.doubt
                    && read_sent.is_none_or(|sent| *doubt <= sent)
                {
                    *doubt = Duration::ZERO;
                }
            }
            Role::Leader(leader) => {
                // Replaced by what the leader has stored when its term ends.
                self.sight = Sight {
                    known: Known::Nothing,
                    lease_seen: true,
                    holder_seen: true,
                    newest: None,
                };
                leader.renewed = leader.renewed.max(NOW.saturating_sub(retry));
                forget_past(&mut leader.next_at);
                if let Some(doubt) = &mut leader.doubt
                    && read_sent.is_none_or(|sent| *doubt <= sent)
                {
                    *doubt = Duration::ZERO;
                }
                leader.failures = leader.failures.min(3);
                if leader.until <= NOW {
                    forget_past(&mut leader.until);
                }
            }
            Role::Resigned(resigned) => {
                if let Some(next_at) = &mut resigned.next_at {
                    forget_past(next_at);
                }
            }
        }
    }
}

fn forget_past(moment: &mut Moment) {
    if *moment <= NOW {
        *moment = Duration::ZERO;
    }
}
