//! The names of everything that is generated, in one place (docs/reference/generated-objects.md).
//!
//! Users, Terraform modules and load balancers refer to these names: none may ever change.

use std::fmt::Display;

/// `mz{id}-{suffix}`: how the name of nearly every generated object is formed.
pub fn prefixed(resource_id: &str, suffix: impl Display) -> String {
    format!("mz{resource_id}-{suffix}")
}

/// The `StatefulSet` of one generation, and the Service that selects only its pod.
pub fn generation(resource_id: &str, generation: u64) -> String {
    prefixed(resource_id, format_args!("environmentd-{generation}"))
}

/// The Service that selects whichever generation was promoted last.
pub fn public_service(resource_id: &str) -> String {
    prefixed(resource_id, "environmentd")
}

/// The Service through which clusterd pods reach one generation's persist-pubsub server.
pub fn persist_pubsub(resource_id: &str, generation: u64) -> String {
    prefixed(resource_id, format_args!("persist-pubsub-{generation}"))
}

/// The `ConfigMap` with one generation's listeners.
pub fn listeners(resource_id: &str, generation: u64) -> String {
    prefixed(resource_id, format_args!("listeners-{generation}"))
}

/// The Certificate of environmentd.
pub fn environmentd_certificate(resource_id: &str) -> String {
    prefixed(resource_id, "environmentd-external")
}

/// The Secret that holds environmentd's certificate and key.
pub fn environmentd_certificate_secret(resource_id: &str) -> String {
    prefixed(resource_id, "environmentd-tls")
}

/// Deployment and Service of balancerd.
pub fn balancerd(resource_id: &str) -> String {
    prefixed(resource_id, "balancerd")
}

/// The Certificate that balancerd presents to clients.
pub fn balancerd_certificate(resource_id: &str) -> String {
    prefixed(resource_id, "balancerd-external")
}

/// The Secret that holds balancerd's certificate and key.
pub fn balancerd_certificate_secret(resource_id: &str) -> String {
    prefixed(resource_id, "balancerd-external-tls")
}

/// Deployment, Service and `ConfigMap` of the console.
pub fn console(resource_id: &str) -> String {
    prefixed(resource_id, "console")
}

/// The Certificate that the console presents to browsers.
pub fn console_certificate(resource_id: &str) -> String {
    prefixed(resource_id, "console-external")
}

/// The Secret that holds the console's certificate and key.
pub fn console_certificate_secret(resource_id: &str) -> String {
    prefixed(resource_id, "console-external-tls")
}

/// The `NetworkPolicy` that admits browsers to the console.
pub fn console_network_policy(resource_id: &str) -> String {
    prefixed(resource_id, "console-ingress")
}

/// The network policies of an environment.
pub mod network_policy {
    use super::prefixed;

    /// Lets the pods of one environment talk to each other.
    pub fn within_environment(resource_id: &str) -> String {
        prefixed(resource_id, "allow-all-within-environment")
    }

    /// Lets the operator reach environmentd's HTTP ports.
    pub fn operator(resource_id: &str) -> String {
        prefixed(resource_id, "allow-orchestratord")
    }

    /// Admits SQL and HTTP clients to balancerd.
    pub fn ingress(resource_id: &str) -> String {
        prefixed(resource_id, "sql-and-http-ingress")
    }

    /// Lets the environment reach its sources and sinks.
    pub fn egress(resource_id: &str) -> String {
        prefixed(resource_id, "sources-and-sinks-egress")
    }

    /// All four, so that those a setting no longer wants can be found and deleted (decision R8).
    pub fn all(resource_id: &str) -> [String; 4] {
        [within_environment, operator, ingress, egress].map(|name| name(resource_id))
    }
}

/// `{service}.{namespace}.svc.cluster.local`: how one Service is reached from another namespace.
pub fn service_host(service: &str, namespace: &str) -> String {
    format!("{service}.{namespace}.svc.cluster.local")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name table of the specification, written out.
    #[test]
    fn every_name_is_the_published_one() {
        let id = "k3x9q0ab7z";
        assert_eq!(generation(id, 7), "mzk3x9q0ab7z-environmentd-7");
        assert_eq!(public_service(id), "mzk3x9q0ab7z-environmentd");
        assert_eq!(persist_pubsub(id, 7), "mzk3x9q0ab7z-persist-pubsub-7");
        assert_eq!(listeners(id, 7), "mzk3x9q0ab7z-listeners-7");
        assert_eq!(environmentd_certificate(id), "mzk3x9q0ab7z-environmentd-external");
        assert_eq!(environmentd_certificate_secret(id), "mzk3x9q0ab7z-environmentd-tls");
        assert_eq!(balancerd(id), "mzk3x9q0ab7z-balancerd");
        assert_eq!(balancerd_certificate(id), "mzk3x9q0ab7z-balancerd-external");
        assert_eq!(balancerd_certificate_secret(id), "mzk3x9q0ab7z-balancerd-external-tls");
        assert_eq!(console(id), "mzk3x9q0ab7z-console");
        assert_eq!(console_certificate(id), "mzk3x9q0ab7z-console-external");
        assert_eq!(console_certificate_secret(id), "mzk3x9q0ab7z-console-external-tls");
        assert_eq!(console_network_policy(id), "mzk3x9q0ab7z-console-ingress");
        assert_eq!(
            network_policy::all(id),
            [
                "mzk3x9q0ab7z-allow-all-within-environment",
                "mzk3x9q0ab7z-allow-orchestratord",
                "mzk3x9q0ab7z-sql-and-http-ingress",
                "mzk3x9q0ab7z-sources-and-sinks-egress",
            ]
        );
        assert_eq!(service_host("a", "b"), "a.b.svc.cluster.local");
    }
}
