//! The controller of resources that consist of one Deployment and what belongs to it: Balancer and Console.
//!
//! What they differ in they say by implementing [`Workload`]: which objects they want, and what else is watched.
//! [`stall`], [`ready`], [`trouble`], [`migration`], [`status`] and [`pace`] decide and do no I/O; `pass` puts them
//! together; [`run`] runs the passes. docs/reference/generated-objects.md describes what comes out.

mod controller;
mod error;
mod migration;
mod pace;
mod pass;
mod ready;
mod stall;
mod status;
mod trouble;
mod watches;

use futures::stream::BoxStream;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::core::object::HasStatus;
use kube::runtime::reflector::ObjectRef;

pub(in crate::controllers) use controller::run;
pub(in crate::controllers) use stall::Stall;

use super::building::certificate::Certificate;
use super::building::identity::{Component, IncompleteOwner};
use super::watching::{Primary, Watches};
use crate::args::Config;

/// A resource that consists of one Deployment and what belongs to it.
pub(in crate::controllers) trait Workload:
    Primary + Resource<Scope = NamespaceResourceScope>
{
    /// Which program runs in the pods.
    const COMPONENT: Component;
    /// The reporting controller of the events (decision O1).
    const REPORTER: &'static str;

    /// The resource id that the spec asks for.
    fn requested_resource_id(&self) -> Option<&str>;

    /// Resource id and conditions of the status.
    fn recorded(&self) -> Option<(&str, &[Condition])>;

    /// A status that says this.
    fn status_of(resource_id: String, conditions: Vec<Condition>) -> <Self as HasStatus>::Status;

    /// The name of the Deployment.
    fn deployment(resource_id: &str) -> String;

    /// What has to exist, and what must not exist any more.
    ///
    /// # Errors
    /// If the resource lacks what nothing can be generated without: a fault of this program.
    fn plan(&self, config: &Config) -> Result<Plan, IncompleteOwner>;

    /// Watches of what belongs to such resources beside Deployment, Service and Certificate. `labels` selects it.
    fn watches(watches: &Watches<'_>, labels: &str) -> Vec<BoxStream<'static, ObjectRef<Self>>>;
}

/// What a resource consists of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::controllers) struct Plan {
    /// What has to exist, in the order of application. The first that can't be applied ends the pass.
    pub(in crate::controllers) objects: Vec<Object>,
    /// What a setting no longer wants: deleted if it is there and ours (decision R8).
    pub(in crate::controllers) unwanted: Vec<Unwanted>,
    /// Why not everything is planned.
    pub(in crate::controllers) stall: Option<Stall>,
    /// The Secret that pods wait for, with the Certificate that fills it.
    pub(in crate::controllers) certificate: Option<(String, String)>,
    /// A `ConfigMap` of the user's that pods wait for, and the key that it must have.
    pub(in crate::controllers) config_map: Option<(String, &'static str)>,
}

/// An object to apply.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controllers) enum Object {
    /// A Certificate of cert-manager.
    Certificate(Box<Certificate>),
    /// Configuration.
    ConfigMap(Box<ConfigMap>),
    /// The Deployment.
    Deployment(Box<Deployment>),
    /// Admits clients.
    NetworkPolicy(Box<NetworkPolicy>),
    /// How clients find the pods.
    Service(Box<Service>),
}

/// An object that must not exist any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controllers) enum Unwanted {
    /// The Certificate of this name. It stays until no pod mounts its Secret any more.
    Certificate(String),
    /// The `NetworkPolicy` of this name.
    NetworkPolicy(String),
}

// === impl Plan ===

impl Plan {
    /// Nothing but a reason why nothing can be planned.
    pub(in crate::controllers) fn stalled(stall: Stall) -> Self {
        Self {
            stall: Some(stall),
            ..Self::default()
        }
    }
}
