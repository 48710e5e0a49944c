//! What starts a pass over a Balancer or Console, beside the resource itself.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client};
use tracing::{info, warn};

use super::Workload;
use crate::api::labels::{LABEL_APP, LABEL_RESOURCE_ID};
use crate::controllers::building::certificate::Certificate;
use crate::controllers::watching::{OwnWrites, Starting, Watches, hash, owner};

/// The CRD by which cert-manager's presence is known.
const CERTIFICATES: &str = "certificates.cert-manager.io";
/// How often that CRD is looked for while it is missing.
const LOOK_FOR_CERT_MANAGER: Duration = Duration::from_mins(1);
/// How long after a failure it is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// All watches of one controller but that of the resources.
pub(super) fn secondary<W: Workload>(
    client: &Client,
    own: &OwnWrites,
    starting: &Starting,
) -> Vec<BoxStream<'static, ObjectRef<W>>> {
    // Every object of ours has both; those of an environment's other resources are left out.
    let labels = format!("{LABEL_RESOURCE_ID},{LABEL_APP}={}", W::COMPONENT.app());
    let watches = Watches { client, own, starting };
    let mut all = W::watches(&watches, &labels);
    all.push(watches.objects(Some(&labels), progress, owner));
    all.push(watches.owned_metadata::<Service, W>(&labels));
    all.push(certificates(client, own, starting, labels));
    all
}

/// What of a Deployment a pass may depend on.
fn progress(deployment: &Deployment) -> u64 {
    let meta = &deployment.metadata;
    let status = deployment.status.as_ref();
    let conditions: Vec<_> = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .map(|condition| (&condition.type_, &condition.status, &condition.reason))
        .collect();
    hash(&(
        (
            meta.generation,
            meta.deletion_timestamp.is_some(),
            &meta.labels,
            &meta.annotations,
            meta.owner_references
                .as_ref()
                .map(|owners| owners.iter().map(|owner| &owner.uid).collect::<Vec<_>>()),
        ),
        conditions,
        status.map(|status| {
            (
                status.observed_generation,
                status.replicas,
                status.updated_replicas,
                status.available_replicas,
            )
        }),
    ))
}

/// Changes of Certificates, from the moment when there is such a kind: a watch of a kind that is missing would fail
/// for ever.
fn certificates<W: Workload>(
    client: &Client,
    own: &OwnWrites,
    starting: &Starting,
    labels: String,
) -> BoxStream<'static, ObjectRef<W>> {
    let (client, own, starting) = (client.clone(), own.clone(), starting.clone());
    // The first passes wait until it is known whether there is anything to list.
    let first = starting.expect();
    let watch = async move {
        let mut first = Some(first);
        let crds = Api::<CustomResourceDefinition>::all(client.clone());
        loop {
            let pause = match crds.get_metadata_opt(CERTIFICATES).await {
                Ok(Some(_)) => break,
                Ok(None) => {
                    if first.take().is_some() {
                        info!("cert-manager is not installed: Certificates are not watched until it is");
                    }
                    LOOK_FOR_CERT_MANAGER
                }
                Err(error) => {
                    warn!(%error, "can't tell whether cert-manager is installed; looking again");
                    LOOK_AGAIN
                }
            };
            tokio::time::sleep(pause).await;
        }
        Watches {
            client: &client,
            own: &own,
            starting: &starting,
        }
        .owned_metadata::<Certificate, W>(&labels)
    };
    stream::once(watch).flatten().boxed()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn print(change: impl FnOnce(&mut Value)) -> u64 {
        let mut deployment = json!({
            "metadata": {"name": "mzx-balancerd", "generation": 3, "resourceVersion": "7"},
            "status": {
                "observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2,
                "conditions": [{"type": "Available", "status": "True", "reason": "R", "lastUpdateTime": "2026-01-01T00:00:00Z"}],
            },
        });
        change(&mut deployment);
        progress(&serde_json::from_value(deployment).unwrap())
    }

    #[test]
    fn what_a_pass_depends_on_counts_and_nothing_else() {
        let before = print(|_| ());
        assert_eq!(print(|d| d["metadata"]["resourceVersion"] = json!("8")), before);
        assert_eq!(
            print(|d| d["status"]["conditions"][0]["lastUpdateTime"] = json!("2026-02-01T00:00:00Z")),
            before
        );
        assert_ne!(print(|d| d["metadata"]["generation"] = json!(4)), before);
        assert_ne!(print(|d| d["metadata"]["labels"] = json!({"a": "b"})), before);
        assert_ne!(
            print(|d| d["status"]["conditions"][0]["status"] = json!("False")),
            before
        );
        assert_ne!(print(|d| d["status"]["availableReplicas"] = json!(1)), before);
    }
}
