//! What is mounted into environmentd.

use k8s_openapi::api::core::v1::{Volume, VolumeMount};

use super::environment::Environment;
use crate::api::labels;
use crate::controllers::building::names;
use crate::controllers::building::pod::{config_map_volume, mount, secret_volume};

/// Directory of environmentd's certificate and key.
pub const CERTIFICATE_PATH: &str = "/etc/materialized";
/// Directory of the licence key.
pub const LICENSE_KEY_PATH: &str = "/license_key";
/// Directory of the listeners file.
pub const LISTENERS_PATH: &str = "/listeners";
/// Directory of the system parameters.
pub const SYSTEM_PARAMETERS_PATH: &str = "/system-params";

/// Volumes and where they are mounted, in one order.
pub fn build(environment: &Environment<'_>, generation: u64) -> (Vec<Volume>, Vec<VolumeMount>) {
    let id = environment.id();
    let mut all = Vec::new();
    if environment.internal_tls {
        all.push((
            secret_volume("certificate", &names::environmentd_certificate_secret(id), None, None),
            mount("certificate", CERTIFICATE_PATH, Some(true)),
        ));
    }
    if let Some(config_map) = system_parameters(environment) {
        all.push((
            config_map_volume("system-params", config_map, None, true),
            mount("system-params", SYSTEM_PARAMETERS_PATH, Some(true)),
        ));
    }
    if has_license_key(environment) {
        let secret = &environment.spec().backend_secret_name;
        all.push((
            secret_volume("license-key", secret, Some(labels::SECRET_KEY_LICENSE_KEY), Some(false)),
            mount("license-key", LICENSE_KEY_PATH, None),
        ));
    }
    if environment.version.supports_listeners_config() {
        all.push((
            config_map_volume(
                "listeners-configmap",
                &names::listeners(id, generation),
                Some(labels::CONFIGMAP_KEY_LISTENERS),
                false,
            ),
            mount("listeners-configmap", LISTENERS_PATH, None),
        ));
    }
    all.into_iter().unzip()
}

/// The `ConfigMap` with system parameters, if there is one and environmentd reads it.
pub fn system_parameters<'a>(environment: &Environment<'a>) -> Option<&'a str> {
    let name = environment.spec().system_parameter_configmap_name.as_deref();
    name.filter(|_| environment.version.supports_system_parameter_configmap())
}

/// Whether environmentd is given a licence key: it asks for one since 0.140, and since 0.153 checks cannot be
/// switched off any more.
pub fn has_license_key(environment: &Environment<'_>) -> bool {
    let checked = !environment.config.features.disable_license_key_checks;
    (environment.version.supports_license_key() && checked) || environment.version.always_mounts_license_key()
}

#[cfg(test)]
mod tests;
