//! Asks environmentd outside of any pass, so that a slow one holds up nobody's slot. A changed answer starts a pass.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::channel::mpsc::UnboundedSender;
use kube::runtime::reflector::ObjectRef;
use tokio::task::AbortHandle;

use super::decide::{Answer, Question};
use crate::api::v1alpha1::Materialize;
use crate::environmentd::{Endpoint, Error, LeaderClient, LeaderStatus};

/// The pause after the first answer that is not the awaited one; it grows by half with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two requests.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What is asked, and of whom. A changed subject is asked anew, over a new connection (decision R15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// What is asked.
    pub(super) question: Question,
    /// Whom.
    pub(super) endpoint: Endpoint,
    /// Which version of which `StatefulSet` stands behind the endpoint: its uid and `metadata.generation`.
    pub(super) incarnation: String,
}

/// The questions under way, at most one for each resource. They end when this is dropped.
#[derive(Clone)]
pub(super) struct Inquiries {
    open: Open,
    wake: UnboundedSender<ObjectRef<Materialize>>,
}

type Open = Arc<Mutex<HashMap<String, Inquiry>>>;

struct Inquiry {
    subject: Subject,
    latest: Option<Answer>,
    /// Nothing more is asked.
    finished: bool,
    task: AbortHandle,
}

// === impl Inquiries ===

impl Inquiries {
    /// No questions yet. Whoever is to look again is sent to `wake`.
    pub(super) fn new(wake: UnboundedSender<ObjectRef<Materialize>>) -> Self {
        Inquiries {
            open: Arc::default(),
            wake,
        }
    }

    /// The last answer to `subject`, or `None` if there is none yet; it goes on being asked until it is the awaited
    /// one. That one is given out once: the next call asks again.
    pub(super) fn ask(&self, resource: &ObjectRef<Materialize>, uid: &str, subject: &Subject) -> Option<Answer> {
        let mut open = lock(&self.open);
        match open.get(uid) {
            Some(inquiry) if inquiry.subject == *subject => {
                if inquiry.finished {
                    open.remove(uid)?.latest.clone()
                } else {
                    inquiry.latest.clone()
                }
            }
            _ => {
                let asking = ask_until_answered(
                    Arc::downgrade(&self.open),
                    self.wake.clone(),
                    resource.clone(),
                    uid.to_owned(),
                    subject.clone(),
                );
                let task = tokio::spawn(asking).abort_handle();
                let inquiry = Inquiry {
                    subject: subject.clone(),
                    latest: None,
                    finished: false,
                    task,
                };
                open.insert(uid.to_owned(), inquiry);
                None
            }
        }
    }

    /// Ends what is being asked about the resource `uid`, unless it is about `subject`.
    pub(super) fn keep_only(&self, uid: &str, subject: Option<&Subject>) {
        let mut open = lock(&self.open);
        if open.get(uid).is_some_and(|inquiry| subject != Some(&inquiry.subject)) {
            open.remove(uid);
        }
    }
}

// === impl Inquiry ===

impl Drop for Inquiry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(open: &Open) -> MutexGuard<'_, HashMap<String, Inquiry>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn ask_until_answered(
    open: Weak<Mutex<HashMap<String, Inquiry>>>,
    wake: UnboundedSender<ObjectRef<Materialize>>,
    resource: ObjectRef<Materialize>,
    uid: String,
    subject: Subject,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let answer = ask_once(&subject).await;
        let finished = is_awaited(subject.question, &answer);
        {
            let Some(open) = open.upgrade() else { return };
            let mut open = lock(&open);
            // Replaced or ended meanwhile: the task is being aborted.
            let Some(inquiry) = open.get_mut(&uid).filter(|inquiry| inquiry.subject == subject) else {
                return;
            };
            inquiry.finished = finished;
            if inquiry.latest.as_ref() != Some(&answer) {
                tracing::info!(
                    materialize = %resource,
                    environmentd = %subject.endpoint.base_url,
                    question = ?subject.question,
                    ?answer,
                    "environmentd answered"
                );
                inquiry.latest = Some(answer);
                // Nobody listens once the controller has ended.
                let _ = wake.unbounded_send(resource.clone());
            }
        }
        if finished {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause + pause / 2).min(LONGEST_PAUSE);
    }
}

/// Whether asking again would tell nothing more.
fn is_awaited(question: Question, answer: &Answer) -> bool {
    match question {
        Question::Status | Question::SkipCatchUp => matches!(answer, Answer::Ready | Answer::Leader),
        Question::Promote => *answer == Answer::Leader,
    }
}

async fn ask_once(subject: &Subject) -> Answer {
    let answer = async {
        let client = LeaderClient::connect(&subject.endpoint).await?;
        match subject.question {
            Question::Status => Ok(read(client.status().await?)),
            // Its own state does not matter here, only that it answers at all.
            Question::SkipCatchUp => {
                client.status().await?;
                client.skip_catchup().await?;
                Ok(Answer::Ready)
            }
            Question::Promote => {
                client.promote().await.map_err(refusal)?;
                Ok(match client.status().await {
                    Ok(LeaderStatus::IsLeader) => Answer::Leader,
                    Ok(_) => Answer::NotYet("the promotion has begun".to_owned()),
                    // It restarts as the leader. Its status is read whatever the HTTP status is.
                    Err(error) if error.is_unreadable() => return Err(error),
                    Err(error) => Answer::NotYet(error.to_string()),
                })
            }
        }
    };
    answer.await.unwrap_or_else(|error| match error {
        Error::Refused(text) => Answer::Refused(text),
        error if error.is_unreadable() => Answer::Unreadable(error.to_string()),
        error => Answer::NotYet(error.to_string()),
    })
}

/// Any other HTTP status than success refuses a promotion, with or without a message of the API's own.
fn refusal(error: Error) -> Error {
    match error {
        Error::Status { .. } => Error::Refused(error.to_string()),
        error => error,
    }
}

fn read(status: LeaderStatus) -> Answer {
    match status {
        LeaderStatus::Initializing => {
            Answer::NotYet("environmentd has not caught up with the active one yet".to_owned())
        }
        LeaderStatus::ReadyToPromote | LeaderStatus::Promoting => Answer::Ready,
        LeaderStatus::IsLeader => Answer::Leader,
    }
}

#[cfg(test)]
#[path = "inquiry_tests.rs"]
mod tests;
