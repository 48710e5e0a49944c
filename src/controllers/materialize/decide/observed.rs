//! The input of the decision: what the pass saw, as plain values.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::{Reason, Record, Report, Strategy};

/// Everything that the decision depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The time of this pass.
    pub now: Timestamp,
    /// `metadata.generation` of the resource.
    pub generation: Option<i64>,
    /// What the status says.
    pub reported: Reported,
    /// `spec.requestRollout`.
    pub request: Uuid,
    /// `spec.environmentdImageRef`.
    pub image: String,
    /// `spec.rolloutStrategy`.
    pub strategy: Strategy,
    /// Whether `spec.forcePromote` names this rollout.
    pub force_promote: bool,
    /// `spec.rolloutRequestTimeout`.
    pub timeout: Duration,
    /// Why the upgrade window refuses the step from the deployed image to `image`.
    pub refusal: Option<String>,
    /// Whether a rollout may start at all.
    pub gate: Gate,
    /// Hash of the objects of the active generation's number, rendered from the current spec.
    pub hash_if_active: String,
    /// Hash of the objects of the next number, rendered from the current spec.
    pub hash_if_next: String,
    /// What runs as the active generation.
    pub active: Deployed,
    /// What runs as the next generation.
    pub candidate: Deployed,
    /// Whether objects of generations other than the active one exist that are not being deleted yet.
    pub leftovers: bool,
    /// What environmentd answered, to which question.
    pub answer: Option<(Question, Answer)>,
    /// What this pass has done already.
    pub done: Done,
}

/// What the status of the resource says, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// `activeGeneration`.
    pub active: u64,
    /// Reason of the condition `UpToDate`; `None` without the condition or with a reason that is not ours.
    pub reason: Option<Reason>,
    /// `observedGeneration` of that condition.
    pub observed_generation: Option<i64>,
    /// Message of that condition.
    pub message: String,
    /// `lastCompletedRolloutRequest`.
    pub completed: Uuid,
    /// `lastCompletedRolloutEnvironmentdImageRef`.
    pub image: Option<String>,
    /// `resourcesHash`.
    pub hash: String,
    /// `rolloutStartedAt`, else `lastTransitionTime` of the condition while it is `Unknown`.
    pub started_at: Option<Timestamp>,
}

/// Whether rollouts may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// They may.
    Open,
    /// The user has to repair something first; the text says what.
    Stalled(String),
}

/// What exists of one generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Deployed {
    /// No `StatefulSet`, and nothing that is still being deleted.
    #[default]
    Missing,
    /// Something of it is being deleted.
    Terminating,
    /// Its `StatefulSet` exists.
    Running(Workload),
}

/// The `StatefulSet` of one generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// What it was applied for. `None` if another operator made it (decision R4).
    pub record: Option<Record>,
    /// The hash that the generation before it was deployed with, if that is known.
    pub replaces: Option<String>,
    /// Whether it differs from what the current spec renders; judged only where `record` is `None`.
    pub differs: bool,
    /// The image of environmentd in its pod template.
    pub image: Option<String>,
    /// Whether its one pod runs the current template and is ready (decision R15).
    pub ready: bool,
    /// Why its pod is not ready, as far as Kubernetes says.
    pub trouble: Option<String>,
}

/// What environmentd's leader API is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Whether it is ready to be promoted.
    Status,
    /// To stop waiting for the catch-up.
    SkipCatchUp,
    /// To promote itself, and whether it leads.
    Promote,
}

/// What environmentd answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It can be promoted, is being promoted, or leads.
    Ready,
    /// It leads.
    Leader,
    /// Not yet, and what is known of why. It is asked again without another pass until that changes.
    NotYet(String),
    /// It refuses, with this text.
    Refused(String),
    /// The answer makes no sense.
    Unreadable(String),
}

/// What the pass has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The objects of the active generation were applied or restored.
    pub upkeep: bool,
    /// The objects of the candidate were applied.
    pub deployed: bool,
    /// The deletion of all other generations was issued.
    pub cleaned: bool,
}

// === impl Observed ===

impl Observed {
    /// The number of the next generation. Saturates, so that no stored number can overflow it.
    pub fn next(&self) -> u64 {
        self.reported.active.saturating_add(1)
    }

    /// Whether the spec renders anything else than what is deployed as the active generation.
    pub fn changes(&self) -> bool {
        match &self.active {
            Deployed::Running(workload) => workload.differs_from(&self.hash_if_active),
            // Nothing of ours to compare with: the status is the only witness.
            Deployed::Missing | Deployed::Terminating => self.reported.hash != self.hash_if_active,
        }
    }

    /// Whether the user asked for a rollout that has not been completed.
    pub fn requested(&self) -> bool {
        self.request != self.reported.completed
    }

    /// Whether the active generation was already given up for the candidate: there is no way back (decision R2).
    pub fn downtime_begun(&self) -> bool {
        self.reported.active > 0
            && !matches!(self.active, Deployed::Running(_))
            && matches!(self.candidate, Deployed::Running(_))
    }

    /// Whether catching up is skipped, and the time-out with it.
    pub fn forces(&self) -> bool {
        self.force_promote || self.strategy == Strategy::ImmediatelyPromoteCausingDowntime
    }

    /// Whether the condition was determined from an older version of the spec.
    pub fn stale(&self) -> bool {
        self.reported.reason.is_none() || self.reported.observed_generation != self.generation
    }

    /// Whether a rollout has begun and not ended.
    pub fn in_progress(&self) -> bool {
        self.reported.reason.is_some_and(|reason| reason.status() == "Unknown")
    }

    /// The start of a rollout that begins now: the next whole second, as times are stored, so that no rollout gets less
    /// time than it was given.
    pub(super) fn clock_start(&self) -> Timestamp {
        let partial = self.now.subsec_nanosecond() != 0;
        Timestamp::from_second(self.now.as_second().saturating_add(i64::from(partial))).unwrap_or(self.now)
    }

    /// When the rollout times out, if it does. `None` also where that moment can't be expressed.
    pub fn times_out_at(&self) -> Option<Timestamp> {
        let timeout = SignedDuration::try_from(self.timeout).ok()?;
        self.reported.started_at?.checked_add(timeout).ok()
    }

    /// The moment to look again if nothing happens before: that of the time-out, while it is judged (decision R7).
    pub fn deadline(&self) -> Option<Timestamp> {
        let judged = matches!(self.candidate, Deployed::Running(_)) && !self.forces() && !self.downtime_begun();
        if judged { self.times_out_at() } else { None }
    }

    /// The hash that the active generation was deployed with, as far as it is known.
    pub fn deployed_hash(&self) -> String {
        match &self.active {
            Deployed::Running(Workload {
                record: Some(record), ..
            }) => record.hash.clone(),
            Deployed::Running(_) if !self.changes() => self.hash_if_active.clone(),
            _ => self.reported.hash.clone(),
        }
    }

    /// The hash that is recorded on a new candidate as that of the generation it replaces; `None` if it is not known.
    pub fn replaced_hash(&self) -> Option<String> {
        // From then on the status has the candidate's.
        let is_candidates = matches!(self.reported.reason, Some(Reason::ReadyToPromote | Reason::Promoting));
        let is_known = self.reported.active > 0 && (!is_candidates || matches!(self.active, Deployed::Running(_)));
        Some(self.deployed_hash()).filter(|hash| is_known && !hash.is_empty())
    }

    /// A report that changes nothing but reason and message.
    pub(super) fn report(&self, reason: Reason, message: String) -> Report {
        Report {
            reason,
            message,
            active: self.reported.active,
            completed: self.reported.completed,
            image: match self.reported.active {
                // Nothing was promoted yet: the completed image follows the spec (decision R12).
                0 => Some(self.image.clone()),
                _ => self.reported.image.clone(),
            },
            hash: self.reported.hash.clone(),
            started_at: self.reported.started_at,
        }
    }

    /// What environmentd answered to `question`, if it was asked that.
    pub(super) fn answer_to(&self, question: Question) -> Option<&Answer> {
        self.answer
            .as_ref()
            .filter(|(asked, _)| *asked == question)
            .map(|(_, answer)| answer)
    }
}

// === impl Workload ===

impl Workload {
    /// Whether the spec that renders to `hash` differs from what is deployed.
    pub fn differs_from(&self, hash: &str) -> bool {
        self.record.as_ref().map_or(self.differs, |record| record.hash != hash)
    }
}
