//! Another release whose webhook serves the CRD (decision W9).

use std::fmt;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, Client};

use super::{Options, render};

/// A webhook that is not ours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rival {
    /// Its Service, as the CRD names it.
    pub theirs: ServiceName,
    /// Where we are: our Service, or our namespace if we have no webhook.
    pub ours: String,
}

/// Namespace and name of a Service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServiceName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// The rival that `live` names, whether it is alive or not. Without a webhook of our own, a Service in our namespace
/// is what this release had before the webhook was switched off.
pub(super) fn of(live: Option<&CustomResourceDefinition>, name: &str, options: &Options) -> Option<Rival> {
    if name != render::MATERIALIZES {
        return None;
    }
    let service = render::service(live?)?;
    let theirs = ServiceName {
        namespace: service.namespace.clone(),
        name: service.name.clone(),
    };
    let (is_ours, ours) = match &options.conversion {
        Some(conversion) => {
            let ours = ServiceName {
                namespace: conversion.service_namespace.clone(),
                name: conversion.service_name.clone(),
            };
            (theirs == ours, ours.to_string())
        }
        None => (
            theirs.namespace == options.registrant.namespace,
            options.registrant.namespace.clone(),
        ),
    };
    (!is_ours).then_some(Rival { theirs, ours })
}

/// Whether the rival's Service exists and has an endpoint that is ready. Who may not look, or can't, believes that.
pub(super) async fn is_alive(client: &Client, rival: &Rival) -> bool {
    let ServiceName { namespace, name } = &rival.theirs;
    match Api::<Service>::namespaced(client.clone(), namespace)
        .get_opt(name)
        .await
    {
        Ok(None) => return false,
        Ok(Some(_)) => {}
        Err(error) => {
            tracing::debug!(service = %rival.theirs, %error, "can't look whether the other release's Service exists");
        }
    }
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    match Api::<EndpointSlice>::namespaced(client.clone(), namespace)
        .list(&of_service)
        .await
    {
        Ok(slices) => slices.items.iter().any(has_ready_endpoint),
        Err(error) => {
            tracing::debug!(service = %rival.theirs, %error, "can't look whether the other release is ready");
            true
        }
    }
}

fn has_ready_endpoint(slice: &EndpointSlice) -> bool {
    slice.endpoints.iter().any(|endpoint| {
        let conditions = endpoint.conditions.as_ref();
        // Not said means ready.
        conditions.and_then(|conditions| conditions.ready).unwrap_or(true)
    })
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
