//! Where a pair comes from.

use tokio::sync::watch;

use super::files::Files;
use super::pair::{Material, Part};
use super::self_managed::Found;

/// Where a pair comes from.
#[derive(Debug)]
pub enum Source {
    /// Files that somebody else writes.
    Files(Files),
    /// The Secret that the operator writes itself.
    SelfManaged {
        /// The Secret, for messages.
        secret: String,
        /// What it has.
        found: watch::Receiver<Found>,
    },
}

// === impl Source ===

impl Source {
    /// What there is now; of a Secret, once it has been looked at. An error is a text that names file or Secret.
    pub(super) async fn read(&mut self) -> Result<Material, String> {
        match self {
            Self::Files(files) => files.read().await.map_err(|error| format!("{error}: {}", error.source)),
            Self::SelfManaged { secret, found } => {
                let found = found
                    .wait_for(Option::is_some)
                    .await
                    .ok()
                    .and_then(|found| found.clone());
                found.unwrap_or_else(|| Err(format!("nobody looks at the Secret {secret} any more")))
            }
        }
    }

    /// Ends when there may be something else. Files have to be polled.
    pub(super) async fn changed(&mut self) {
        if let Self::SelfManaged { found, .. } = self
            && found.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// What to call a part in a message.
    pub(super) fn describe(&self, part: Part) -> String {
        match self {
            Self::Files(files) => files.path(part).display().to_string(),
            Self::SelfManaged { secret, .. } => format!("{} of the Secret {secret}", part.key()),
        }
    }
}
