//! environmentd's environment variables.
//!
//! Only secrets travel here, everything else as arguments: a misspelt argument stops environmentd, a misspelt
//! variable would be ignored.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::EnvVar;

use super::environment::Environment;
use super::volumes;
use crate::api::labels;
use crate::controllers::building::pod::{env_secret, env_value};

/// The variables, in order.
pub fn build(environment: &Environment<'_>) -> Vec<EnvVar> {
    let spec = environment.spec();
    let secret = spec.backend_secret_name.as_str();
    let mut env = vec![
        env_secret(
            "MZ_METADATA_BACKEND_URL",
            secret,
            labels::SECRET_KEY_METADATA_BACKEND_URL,
        ),
        env_secret("MZ_PERSIST_BLOB_URL", secret, labels::SECRET_KEY_PERSIST_BACKEND_URL),
        env_value("AWS_REGION", &environment.config.cloud.region),
    ];
    env.extend(spec.environmentd_extra_env.iter().flatten().cloned());
    if volumes::has_license_key(environment) {
        env.push(env_value(
            "MZ_LICENSE_KEY",
            format!("{}/{}", volumes::LICENSE_KEY_PATH, labels::SECRET_KEY_LICENSE_KEY),
        ));
    }
    if environment.spec().authenticator_kind.needs_login() && environment.version.supports_listeners_config() {
        let key = labels::SECRET_KEY_EXTERNAL_LOGIN_PASSWORD;
        env.push(env_secret("MZ_EXTERNAL_LOGIN_PASSWORD_MZ_SYSTEM", secret, key));
    }
    last_wins(env)
}

/// Keeps the last of several variables of one name, where it stands.
///
/// To a pod that is no difference; but server-side apply refuses a list with duplicate keys, so that without this
/// nobody could override `AWS_REGION`.
fn last_wins(mut env: Vec<EnvVar>) -> Vec<EnvVar> {
    let mut seen = HashSet::new();
    env.reverse();
    env.retain(|variable| seen.insert(variable.name.clone()));
    env.reverse();
    env
}

#[cfg(test)]
mod tests;
