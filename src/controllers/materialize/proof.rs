//! Proves that a pass acts on the resource as it is stored now (decision R11).

use std::sync::{Mutex, PoisonError};

use kube::{Api, ResourceExt as _};

use super::error::Error;
use crate::api::v1alpha1::Materialize;

/// Remembers the version that was proved, so that one read, or one write of the status, serves a whole pass.
pub(super) struct Proof {
    api: Api<Materialize>,
    proved: Mutex<Option<String>>,
}

// === impl Proof ===

impl Proof {
    /// Nothing is proved yet; `api` reads the resource, without any cache.
    pub(super) fn new(api: Api<Materialize>) -> Self {
        Proof {
            api,
            proved: Mutex::default(),
        }
    }

    /// `materialize` is what the API server just answered a conditional write with.
    pub(super) fn note(&self, materialize: &Materialize) {
        *self.proved.lock().unwrap_or_else(PoisonError::into_inner) = materialize.resource_version();
    }

    /// Reads the resource, unless that was done for this version before.
    ///
    /// # Errors
    /// [`Error::Outdated`] if it has another version by now, or is gone, or is being deleted.
    pub(super) async fn require(&self, materialize: &Materialize) -> Result<(), Error> {
        let version = materialize.resource_version();
        if version.is_some() && *self.proved.lock().unwrap_or_else(PoisonError::into_inner) == version {
            return Ok(());
        }
        let name = materialize.name_any();
        let current = self
            .api
            .get_metadata_opt(&name)
            .await
            .map_err(Error::request("read the Materialize"))?;
        match current {
            Some(current) if current.resource_version() == version && current.metadata.deletion_timestamp.is_none() => {
                self.note(materialize);
                Ok(())
            }
            _ => Err(Error::Outdated),
        }
    }
}
