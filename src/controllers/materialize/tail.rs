//! Balancer and Console: handed to their own controllers once a generation is active (decision R16).

use kube::{Api, ResourceExt as _};
use tracing::debug;

use super::apply::Writer;
use super::build::{Environment, balancer, console};
use super::error::Error;
use super::proof::Proof;
use crate::api::conditions::READY;
use crate::api::v1alpha1::{Balancer, BalancerStatus, Console};

/// What the hand-over came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Both are as they should be.
    Done,
    /// The Console waits for the Balancer to be ready; its change starts the next pass.
    AwaitsBalancer,
}

/// Applies or deletes both. The resource is proved current before an image changes (decision R11).
pub(super) async fn hand_over(
    writer: &Writer<'_>,
    environment: &Environment<'_>,
    proof: &Proof,
) -> Result<Tail, Error> {
    let name = &environment.identity.name;
    if environment.config.features.create_balancers {
        let desired = balancer::build(environment);
        let live = Api::<Balancer>::namespaced(writer.client.clone(), writer.namespace)
            .get_opt(name)
            .await
            .map_err(Error::request("read the Balancer"))?;
        if live
            .as_ref()
            .is_some_and(|live| live.spec.balancerd_image_ref != desired.spec.balancerd_image_ref)
        {
            proof.require(environment.materialize).await?;
        }
        let applied = writer.apply_over(&desired, live).await?;
        if !is_ready(applied.object().status.as_ref()) {
            debug!(
                namespace = writer.namespace,
                name = applied.object().name_any(),
                "the Balancer is not ready yet"
            );
            return Ok(Tail::AwaitsBalancer);
        }
    } else {
        writer.delete_owned::<Balancer>(name, environment).await?;
    }
    if environment.config.features.create_console {
        let desired = console::build(environment);
        let live = Api::<Console>::namespaced(writer.client.clone(), writer.namespace)
            .get_opt(name)
            .await
            .map_err(Error::request("read the Console"))?;
        if live
            .as_ref()
            .is_some_and(|live| live.spec.console_image_ref != desired.spec.console_image_ref)
        {
            proof.require(environment.materialize).await?;
        }
        writer.apply_over(&desired, live).await?;
    } else {
        writer.delete_owned::<Console>(name, environment).await?;
    }
    Ok(Tail::Done)
}

fn is_ready(status: Option<&BalancerStatus>) -> bool {
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == READY && condition.status == "True")
}
