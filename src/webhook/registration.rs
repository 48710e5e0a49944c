//! Registers the CRDs, on every replica, and keeps them as they should be (decisions W4, W6, W8, W9, W10). See
//! `docs/reference/webhook.md`.

mod bundle;
mod conflict;
mod error;
mod guard;
mod provenance;
mod render;
mod rival;

use futures::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::wait::{Condition as _, await_condition, conditions};
use kube::{Api, Client};
use std::time::Duration;

use crate::api::crds::VPC_ENDPOINTS;
use crate::api::labels::FIELD_MANAGER;
use crate::webhook::certificates::Authorities;

pub use error::RegistrationError;
pub use guard::{Guard, Links};
pub use provenance::Registrant;
pub use rival::Rival;

/// How long a CRD may take to get established before that is reported. Milliseconds are usual.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);
/// How often a CRD is read again because somebody else has just written it.
const CONFLICTS: usize = 5;

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
}

/// What was done with one CRD.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It was written.
    Written,
    /// It stands as it should.
    Unchanged,
    /// A newer operator, or a replica of this version that started later, has registered another one, which stays;
    /// at most this replica's certificate authorities were added to it.
    Yielded(Registrant),
    /// Its webhook is another release's that is alive: nothing was written.
    Blocked(Rival),
}

/// One CRD after a look at it.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Its name.
    pub name: String,
    /// What was done.
    pub outcome: Outcome,
    /// The CRD as it was found, if it was.
    pub before: Option<CustomResourceDefinition>,
    /// The CRD as it is.
    pub after: CustomResourceDefinition,
    /// When time alone will require a write.
    pub look_again: Option<Timestamp>,
}

/// What to do about one CRD.
#[derive(Debug)]
struct Decision {
    outcome: Outcome,
    /// The definition to apply, if one is to be.
    write: Option<Box<CustomResourceDefinition>>,
    look_again: Option<Timestamp>,
}

/// Registers all CRDs that need it, at the same time, and waits until they are established. All are attempted.
///
/// Each is read first: one that stands as it should is not written. `own` are the authorities that the CRD of
/// `Materialize` must name for this replica. Safe to call again at any time.
///
/// # Errors
/// The first error, those that are fatal ([`RegistrationError::is_fatal`]) first. Any other comes from an outage or
/// missing permissions: call again after a pause (decision W8).
pub async fn register_crds(
    client: &Client,
    options: &Options,
    own: &Authorities,
    now: Timestamp,
) -> Result<Vec<Registered>, RegistrationError> {
    let results = join_all(render::NAMES.map(|name| register(client, name, options, own, now))).await;
    let (registered, mut errors) = results.into_iter().fold((Vec::new(), Vec::new()), |mut all, result| {
        match result {
            Ok(registered) => all.0.push(registered),
            Err(error) => all.1.push(error),
        }
        all
    });
    // Stable: within the two groups the order is that of the list.
    errors.sort_by_key(|error: &RegistrationError| !error.is_fatal());
    errors.into_iter().next().map_or(Ok(registered), Err)
}

/// Registers one CRD.
async fn register(
    client: &Client,
    name: &str,
    options: &Options,
    own: &Authorities,
    now: Timestamp,
) -> Result<Registered, RegistrationError> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let error = |source| RegistrationError::from_kube(name, source);
    let mut attempts = 0;
    loop {
        let before = api.get_opt(name).await.map_err(error)?;
        let mut decision = decide(before.as_ref(), name, options, own, now);
        if let Some(rival) = rival::of(before.as_ref(), name, options)
            && rival::is_alive(client, &rival).await
        {
            decision = Decision {
                outcome: Outcome::Blocked(rival),
                write: None,
                look_again: None,
            };
        }
        let after = match (&decision.write, &before) {
            (Some(crd), _) => match write(&api, name, crd).await {
                Err(kube::Error::Api(status)) if status.code == 409 && attempts < CONFLICTS => {
                    attempts += 1;
                    continue;
                }
                written => written.map_err(error)?,
            },
            (None, Some(live)) => live.clone(),
            // Only an alive rival's CRD is not written, and that exists.
            (None, None) => continue,
        };
        log(name, &decision);
        await_established(api, name, &after).await?;
        return Ok(Registered {
            name: name.to_owned(),
            outcome: decision.outcome,
            before,
            after,
            look_again: decision.look_again,
        });
    }
}

/// Applies `crd`, which carries the version that it was computed from.
async fn write(
    api: &Api<CustomResourceDefinition>,
    name: &str,
    crd: &CustomResourceDefinition,
) -> Result<CustomResourceDefinition, kube::Error> {
    tracing::debug!(
        crd = name,
        definition = serde_json::to_string(crd).unwrap_or_default(),
        "writing CRD"
    );
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(name, &params, &Patch::Apply(crd)).await
}

fn log(name: &str, decision: &Decision) {
    let outcome = if decision.write.is_some() {
        "written"
    } else {
        "unchanged"
    };
    match &decision.outcome {
        Outcome::Written | Outcome::Unchanged => tracing::info!(crd = name, outcome, "registered CRD"),
        Outcome::Yielded(other) => tracing::warn!(
            crd = name,
            outcome,
            other.version = other.version,
            other.namespace = other.namespace,
            "another operator, newer or started later, has registered this CRD differently; its definition stays"
        ),
        Outcome::Blocked(rival) => tracing::error!(
            crd = name,
            outcome,
            service = %rival.theirs,
            ours = rival.ours,
            "the webhook of another release serves this CRD; nothing is written and nothing is reconciled until it is gone"
        ),
    }
}

/// What to do about the CRD `name`, which is `live` if it exists.
fn decide(
    live: Option<&CustomResourceDefinition>,
    name: &str,
    options: &Options,
    own: &Authorities,
    now: Timestamp,
) -> Decision {
    let named = live.map(bundle::live).unwrap_or_default();
    let ledger = live.map(bundle::Ledger::of).unwrap_or_default();
    let plan = bundle::plan(&named, &ledger, own, now);
    let mut crd = render::crd(name, options, &plan, live);
    let decision = |outcome, write| Decision {
        outcome,
        write,
        look_again: crd_names_authorities(name, options)
            .then_some(plan.look_again)
            .flatten(),
    };
    let Some(live) = live else {
        return decision(Outcome::Written, Some(Box::new(crd)));
    };
    if name == VPC_ENDPOINTS {
        return decision(Outcome::Unchanged, None);
    }
    if let Some(other) = provenance::winner(live, &crd, &options.registrant) {
        let lacks = options.conversion.is_some() && render::has_webhook(live) && !named.contains_all(own);
        let write = lacks.then(|| Box::new(render::with_authorities(live, &plan)));
        return decision(Outcome::Yielded(other), write);
    }
    let same = provenance::is_registered(live, &crd) && render::equal(live, &crd);
    if same && (!crd_names_authorities(name, options) || bundle::Ledger::of(live) == plan.ledger) {
        return decision(Outcome::Unchanged, None);
    }
    crd.metadata
        .resource_version
        .clone_from(&live.metadata.resource_version);
    decision(Outcome::Written, Some(Box::new(crd)))
}

/// Whether this CRD has a webhook, and so certificate authorities.
fn crd_names_authorities(name: &str, options: &Options) -> bool {
    name == render::MATERIALIZES && options.conversion.is_some()
}

/// Whether the state of `live` costs users data or service: `v1` is served without our webhook or our authorities.
fn is_urgent(live: &CustomResourceDefinition, options: &Options, own: &Authorities) -> bool {
    let Some(conversion) = &options.conversion else {
        return false;
    };
    let serves_v1 = live
        .spec
        .versions
        .iter()
        .any(|version| version.name == "v1" && version.served);
    serves_v1 && (!render::names_service(live, conversion) || !bundle::live(live).contains_all(own))
}

/// Waits, by watch, until the CRD is established.
async fn await_established(
    api: Api<CustomResourceDefinition>,
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
