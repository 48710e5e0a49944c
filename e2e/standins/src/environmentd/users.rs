//! The users that the stand-in knows: `mz_system` with the password it was given, and the ordinary user `materialize` with its name as
//! password, so that a test can show what ordinary users may not do.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The user whose password the operator sets.
pub(crate) const SYSTEM: &str = "mz_system";
const ORDINARY: &str = "materialize";

/// Users and the sessions that they have opened over HTTP.
pub(crate) struct Users {
    system_password: Option<String>,
    sessions: Mutex<BTreeMap<String, String>>,
}

/// Whether a user is one of the system's own.
pub(crate) fn is_internal(user: &str) -> bool {
    matches!(user, SYSTEM | "mz_support" | "mz_analytics")
}

// === impl Users ===

impl Users {
    pub(crate) fn new(system_password: Option<String>) -> Self {
        Self {
            system_password,
            sessions: Mutex::default(),
        }
    }

    /// The password of a user; none can log in who has none.
    pub(crate) fn password(&self, user: &str) -> Option<&str> {
        match user {
            SYSTEM => self.system_password.as_deref(),
            ORDINARY => Some(ORDINARY),
            _ => None,
        }
    }

    /// Opens a session, and returns its id.
    pub(crate) fn log_in(&self, user: &str, password: &str) -> Option<String> {
        if self.password(user) != Some(password) {
            return None;
        }
        let id = uuid::Uuid::new_v4().to_string();
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.clone(), user.to_owned());
        Some(id)
    }

    /// The user of a session.
    pub(crate) fn of_session(&self, id: &str) -> Option<String> {
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(id)
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn only_the_right_password_opens_a_session() {
        let users = Users::new(Some("secret".to_owned()));
        assert_eq!(users.log_in(SYSTEM, "Secret"), None);
        assert_eq!(users.log_in("mz_support", ""), None);
        let id = users.log_in(SYSTEM, "secret").unwrap();
        assert_eq!(users.of_session(&id).as_deref(), Some(SYSTEM));
        assert_eq!(users.of_session("other"), None);
        assert_eq!(Users::new(None).log_in(SYSTEM, ""), None);
    }
}
