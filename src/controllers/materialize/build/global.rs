//! The objects that exist once per environment and are applied in every pass.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};

use super::environment::Environment;
use super::{BuildError, certificate, network_policies, role, role_binding, service_account};
use crate::controllers::building::certificate::Certificate;
use crate::controllers::building::names;

/// Everything that one environment has regardless of its generations, in the order of application.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalObjects {
    /// Those network policies that are switched on.
    pub network_policies: Vec<NetworkPolicy>,
    /// None if the resource names a `ServiceAccount` of its own.
    pub service_account: Option<ServiceAccount>,
    /// What environmentd may do in its namespace.
    pub role: Role,
    /// Gives the role to the pods' `ServiceAccount`.
    pub role_binding: RoleBinding,
    /// environmentd's certificate; none without an issuer.
    pub certificate: Option<Certificate>,
}

// === impl GlobalObjects ===

impl GlobalObjects {
    /// The environment's global objects. `still_bound` are the service accounts that live generations other than the
    /// spec's still run under: they keep the role until their `StatefulSet` is gone (decision R8).
    ///
    /// # Errors
    /// If the certificate's settings contradict each other.
    pub fn build(environment: &Environment<'_>, still_bound: &[String]) -> Result<Self, BuildError> {
        Ok(Self {
            network_policies: network_policies::build(environment),
            service_account: service_account::build(environment),
            role: role::build(environment),
            role_binding: role_binding::build(environment, still_bound),
            certificate: certificate::build(environment)?,
        })
    }

    /// The names of the network policies that the settings no longer want (decision R8).
    pub fn unwanted_network_policies(&self, environment: &Environment<'_>) -> Vec<String> {
        let wanted = |name: &String| {
            self.network_policies
                .iter()
                .any(|p| p.metadata.name.as_ref() == Some(name))
        };
        names::network_policy::all(environment.id())
            .into_iter()
            .filter(|name| !wanted(name))
            .collect()
    }
}

#[cfg(test)]
mod tests;
