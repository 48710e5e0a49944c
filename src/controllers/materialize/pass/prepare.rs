//! What has to be settled before anything is rolled out: the first status, Secret, licence key, environment id.

use k8s_controller::Outcome;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use uuid::Uuid;

use super::super::decide::Gate;
use super::super::error::Error;
use super::super::validate::{Claimant, Verdict, validate};
use super::super::{dereference, status};
use super::Pass;
use crate::controllers::resource_id;
use crate::kubernetes::FIELD_MANAGER;

// === impl Pass ===

impl Pass<'_> {
    /// Writes the first status.
    pub(super) async fn initialise(&mut self) -> Result<(), Error> {
        let step = self.trace.step("initialize_status");
        let known = self
            .materialize
            .status
            .as_ref()
            .map(|status| status.resource_id.clone());
        let resource_id = known.filter(|id| !id.is_empty()).unwrap_or_else(resource_id::random);
        match status::initial(&self.materialize, resource_id.clone()) {
            Ok(initial) => {
                self.shared.own.status(&self.uid(), &initial);
                self.materialize = status::write(&self.api, &self.materialize, &initial).await?;
                self.proof.note(&self.materialize);
                step.finish(Outcome::Completed);
                Ok(())
            }
            Err(stall) => {
                let mut status = self.materialize.status.clone().unwrap_or_default();
                status.resource_id = resource_id;
                self.materialize.status.get_or_insert(status);
                self.stall(stall).await
            }
        }
    }

    /// Checks Secret, licence key and environment id; `None` if the spec was filled in.
    pub(super) async fn resolve_environment_id(&mut self) -> Result<Option<Gate>, Error> {
        let step = self.trace.step("resolve_environment_id");
        self.secret = dereference::backend_secret(&self.client, &self.materialize).await?;
        let claimants = self.claimants();
        let keys = &self.shared.config.license_keys;
        let verdict = validate(
            &self.materialize,
            &self.secret,
            &claimants,
            keys,
            self.now(),
            Uuid::new_v4,
        );
        let gate = match verdict {
            Verdict::Valid => Some(Gate::Open),
            Verdict::Stalled(stall) => {
                let gate = Gate::Stalled(stall.to_string());
                self.stall = Some(stall);
                Some(gate)
            }
            Verdict::FillIn {
                request_rollout,
                environment_id,
            } => {
                self.fill_in(request_rollout, environment_id).await?;
                None
            }
        };
        step.finish(Outcome::Completed);
        Ok(gate)
    }

    /// Fills in the spec by a patch of just these keys, on the version that was read (decision R22).
    pub(super) async fn fill_in(
        &self,
        request_rollout: Option<Uuid>,
        environment_id: Option<Uuid>,
    ) -> Result<(), Error> {
        let mut spec = serde_json::Map::new();
        if let Some(id) = request_rollout {
            spec.insert("requestRollout".to_owned(), json!(id));
        }
        if let Some(id) = environment_id {
            spec.insert("environmentId".to_owned(), json!(id));
        }
        let metadata = &self.materialize.metadata;
        let patch = json!({
            "metadata": { "resourceVersion": metadata.resource_version, "uid": metadata.uid },
            "spec": spec,
        });
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        self.api
            .patch(&self.materialize.name_any(), &parameters, &Patch::Merge(&patch))
            .await
            .map(|_| ())
            .map_err(Error::request("fill in requestRollout and environmentId"))
    }

    /// All resources with this one's environment id.
    pub(super) fn claimants(&self) -> Vec<Claimant> {
        let id = self.materialize.spec.environment_id;
        let all = self.shared.store.state();
        all.iter()
            .filter(|other| other.spec.environment_id == id)
            .map(|other| Claimant::of(other))
            .collect()
    }
}
