//! Registers the CRDs, on every replica (decisions W6, W8, W9, W10). See `docs/reference/materialize-resource.md`.

mod error;
mod provenance;
mod render;

use futures::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{Condition as _, await_condition, conditions};
use kube::{Api, Client};
use std::time::Duration;

use crate::api::crds::VPC_ENDPOINTS;
use crate::api::labels::FIELD_MANAGER;

pub use error::RegistrationError;
pub use provenance::Registrant;

/// How long a CRD may take to get established before that is reported. Milliseconds are usual.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// What to register.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who registers.
    pub registrant: Registrant,
    /// Where the webhook is; with it, version `v1` is served.
    pub conversion: Option<Conversion>,
    /// Printer columns that go before those of the first version of `Materialize`.
    pub additional_columns: Vec<CustomResourceColumnDefinition>,
}

/// Where the API server finds the conversion webhook.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conversion {
    /// Name of the webhook's Service.
    pub service_name: String,
    /// Namespace of the webhook's Service.
    pub service_namespace: String,
    /// Port of the webhook's Service.
    pub service_port: u16,
    /// Certificate authorities of the webhook's certificate, PEM.
    pub ca_bundle: Vec<u8>,
}

/// What was done with one CRD.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It was written.
    Written,
    /// It stands as it should.
    Unchanged,
    /// A newer operator, or a replica of this version that started later, has registered another one, which stays.
    Yielded(Registrant),
}

/// Registers all CRDs that need it, at the same time, and waits until they are established. All are attempted.
///
/// Each is read first: one that stands as it should is not written. Safe to call again at any time.
///
/// # Errors
/// The first error, those that are fatal ([`RegistrationError::is_fatal`]) first. Any other comes from an outage or
/// missing permissions: call again after a pause (decision W8).
pub async fn register_crds(client: &Client, options: &Options) -> Result<(), RegistrationError> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let crds = render::crds(options);
    let results = join_all(crds.iter().map(|crd| register(&api, crd, &options.registrant))).await;
    let mut errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    // Stable: within the two groups the order is that of the list.
    errors.sort_by_key(|error| !error.is_fatal());
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// Registers one CRD.
async fn register(
    api: &Api<CustomResourceDefinition>,
    crd: &CustomResourceDefinition,
    registrant: &Registrant,
) -> Result<Outcome, RegistrationError> {
    let name = crd.metadata.name.as_deref().unwrap_or_default();
    let error = |source| RegistrationError::from_kube(name, source);
    let live = api.get_opt(name).await.map_err(error)?;
    let outcome = decide(live.as_ref(), crd, registrant);
    let current = match (&outcome, live) {
        (Outcome::Written, _) | (_, None) => {
            tracing::debug!(
                crd = name,
                definition = serde_json::to_string(crd).unwrap_or_default(),
                "writing CRD"
            );
            let params = PatchParams::apply(FIELD_MANAGER).force();
            api.patch(name, &params, &Patch::Apply(crd)).await.map_err(error)?
        }
        (_, Some(live)) => live,
    };
    match &outcome {
        Outcome::Written => tracing::info!(crd = name, outcome = "written", "registered CRD"),
        Outcome::Unchanged => tracing::info!(crd = name, outcome = "unchanged", "registered CRD"),
        Outcome::Yielded(other) => tracing::warn!(
            crd = name,
            outcome = "left alone",
            other.version = other.version,
            other.namespace = other.namespace,
            "another operator, newer or started later, has registered this CRD differently"
        ),
    }
    await_established(api, name, &current).await?;
    Ok(outcome)
}

/// What to do about the `live` CRD, if there is one.
fn decide(live: Option<&CustomResourceDefinition>, crd: &CustomResourceDefinition, registrant: &Registrant) -> Outcome {
    let Some(live) = live else {
        return Outcome::Written;
    };
    if crd.metadata.name.as_deref() == Some(VPC_ENDPOINTS) {
        return Outcome::Unchanged;
    }
    match provenance::winner(live, crd, registrant) {
        Some(other) => Outcome::Yielded(other),
        None if provenance::is_registered(live, crd) && render::equal(live, crd) => Outcome::Unchanged,
        None => Outcome::Written,
    }
}

/// Waits, by watch, until the CRD is established.
async fn await_established(
    api: &Api<CustomResourceDefinition>,
    name: &str,
    current: &CustomResourceDefinition,
) -> Result<(), RegistrationError> {
    if conditions::is_crd_established().matches_object(Some(current)) {
        return Ok(());
    }
    let established = await_condition(api.clone(), name, conditions::is_crd_established());
    match tokio::time::timeout(ESTABLISHED_WITHIN, established).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(source)) => Err(RegistrationError::Watch {
            name: name.to_owned(),
            source,
        }),
        Err(_) => {
            let live = api
                .get_opt(name)
                .await
                .map_err(|source| RegistrationError::from_kube(name, source))?;
            Err(RegistrationError::not_established(name, live.as_ref()))
        }
    }
}

#[cfg(test)]
mod tests;
