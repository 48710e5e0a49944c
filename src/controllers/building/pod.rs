//! Parts of pods and Services that look the same wherever they occur.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, ContainerPort, EnvVar, EnvVarSource, KeyToPath, PodSecurityContext,
    SeccompProfile, SecretKeySelector, SecretVolumeSource, SecurityContext, ServicePort, Volume, VolumeMount,
};

use super::identity::pairs;

/// Mode of mounted secrets and configuration: readable for their owner only.
const FILE_MODE: i32 = 0o400;

/// The user and group that environmentd and balancerd run as.
pub const RUN_AS: i64 = 999;

/// What the *restricted* Pod Security Standard asks of a container.
pub fn restricted_security_context() -> SecurityContext {
    SecurityContext {
        run_as_non_root: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        allow_privilege_escalation: Some(false),
        ..SecurityContext::default()
    }
}

/// The pod security context of environmentd and balancerd.
pub fn pod_security_context() -> PodSecurityContext {
    PodSecurityContext {
        fs_group: Some(RUN_AS),
        run_as_user: Some(RUN_AS),
        run_as_group: Some(RUN_AS),
        ..PodSecurityContext::default()
    }
}

/// The annotations by which Prometheus finds the metrics of a pod at `port`.
pub fn scrape_annotations(port: u16) -> BTreeMap<String, String> {
    pairs([
        ("prometheus.io/scrape", "true"),
        ("prometheus.io/port", port.to_string().as_str()),
        ("prometheus.io/path", "/metrics"),
        ("prometheus.io/scheme", "http"),
    ])
}

/// `values`, or nothing if there are none.
///
/// The API server drops empty maps, so that sending one would look like a difference for ever.
pub fn non_empty(values: &BTreeMap<String, String>) -> Option<BTreeMap<String, String>> {
    (!values.is_empty()).then(|| values.clone())
}

/// As [`non_empty`], for lists.
pub fn non_empty_list<T: Clone>(values: &[T]) -> Option<Vec<T>> {
    (!values.is_empty()).then(|| values.to_vec())
}

/// A named TCP port of a container.
pub fn container_port(name: &str, port: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: port.into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

/// A named TCP port of a Service, with the same number on the pod.
pub fn service_port(name: &str, port: u16) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: port.into(),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    }
}

/// A variable with its value in plain text.
pub fn env_value(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.into()),
        value_from: None,
    }
}

/// A variable whose value is a key of a Secret that must exist.
pub fn env_secret(name: &str, secret: &str, key: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret.to_owned(),
                key: key.to_owned(),
                optional: Some(false),
            }),
            ..EnvVarSource::default()
        }),
    }
}

/// A volume with the keys of a Secret: one of them under its own name, or all.
pub fn secret_volume(name: &str, secret: &str, key: Option<&str>, optional: Option<bool>) -> Volume {
    Volume {
        name: name.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            default_mode: Some(FILE_MODE),
            items: key.map(item),
            optional,
        }),
        ..Volume::default()
    }
}

/// A volume with the keys of a `ConfigMap`: one of them under its own name, or all.
pub fn config_map_volume(name: &str, config_map: &str, key: Option<&str>, optional: bool) -> Volume {
    Volume {
        name: name.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: config_map.to_owned(),
            default_mode: Some(FILE_MODE),
            items: key.map(item),
            optional: Some(optional),
        }),
        ..Volume::default()
    }
}

/// Mounts the volume of that name at `path`.
pub fn mount(volume: &str, path: &str, read_only: Option<bool>) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        read_only,
        ..VolumeMount::default()
    }
}

fn item(key: &str) -> Vec<KeyToPath> {
    vec![KeyToPath {
        key: key.to_owned(),
        path: key.to_owned(),
        mode: None,
    }]
}
