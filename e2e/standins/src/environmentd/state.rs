//! What the ports of one running environmentd share.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::config::Config;
use super::faults::Book;
use super::leader::{Deployment, Promotion, Status};
use super::statements::Facts;
use super::users::Users;

/// What the main loop is asked for by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Write this generation as leader, and start anew.
    Promote,
}

/// Shared by all ports and the main loop.
pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) users: Users,
    parameters: Mutex<BTreeMap<String, String>>,
    deployment: Mutex<Deployment>,
    book: Mutex<Book>,
    commands: mpsc::UnboundedSender<Command>,
}

// === impl State ===

impl State {
    pub(crate) fn new(config: Config, deployment: Deployment, commands: mpsc::UnboundedSender<Command>) -> Self {
        let users = Users::new(config.system_password.clone());
        let parameters = crate::settings::map(&config.args.system_parameter_default);
        Self {
            config,
            users,
            parameters: Mutex::new(parameters),
            deployment: Mutex::new(deployment),
            book: Mutex::default(),
            commands,
        }
    }

    pub(crate) fn deployment(&self) -> MutexGuard<'_, Deployment> {
        self.deployment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> Status {
        self.deployment().status()
    }

    /// Promotes, and wakes the main loop if there is something to do.
    pub(crate) fn promote(&self) -> Result<(), &'static str> {
        if self.deployment().promote()? == Promotion::Started {
            // The loop is gone only when the process ends anyway.
            let _ = self.commands.send(Command::Promote);
        }
        Ok(())
    }

    /// Takes over parameters of the config-sync file; what the file doesn't name keeps its value.
    pub(crate) fn set_parameters(&self, parameters: BTreeMap<String, serde_json::Value>) {
        let mut current = self.parameters.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, value) in parameters {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            current.insert(name, text);
        }
    }

    /// What a user's session can ask about.
    pub(crate) fn facts(&self, user: &str) -> Facts {
        Facts {
            version: self.config.version.to_string(),
            environment_id: self.config.args.environment_id.text.clone(),
            generation: self.config.args.deploy_generation,
            user: user.to_owned(),
            parameters: self.parameters.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
