//! What the console's pages are told: the file `app-config.json`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;

use super::Input;
use crate::api::AuthenticatorKind;
use crate::api::image::tag;
use crate::controllers::building::json;
use crate::controllers::building::names;

/// The key of the `ConfigMap`, and the name of the mounted file.
pub(super) const FILE: &str = "app-config.json";

/// The members stand in the order in which they are written.
#[derive(Serialize)]
struct AppConfig<'a> {
    version: &'a str,
    auth: Auth,
    #[serde(skip_serializing_if = "Option::is_none")]
    balancerd_dns_names: Option<&'a [String]>,
}

#[derive(Serialize)]
struct Auth {
    mode: AuthenticatorKind,
}

pub(super) fn build(input: &Input<'_>) -> ConfigMap {
    let spec = &input.console.spec;
    let config = AppConfig {
        version: version(&spec.console_image_ref),
        auth: Auth {
            mode: spec.authenticator_kind,
        },
        balancerd_dns_names: spec.balancerd.dns_names.as_deref(),
    };
    ConfigMap {
        metadata: input.identity.metadata(names::console(&input.identity.resource_id)),
        data: Some(BTreeMap::from([(FILE.to_owned(), json(&config))])),
        ..ConfigMap::default()
    }
}

/// The image's tag; without one the text after the last colon, which is a digest, or else the whole reference.
fn version(image: &str) -> &str {
    tag(image).unwrap_or_else(|| image.rsplit_once(':').map_or(image, |(_, digest)| digest))
}
