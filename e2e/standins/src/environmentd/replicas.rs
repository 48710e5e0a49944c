//! The clusterd `StatefulSet`s and Services of one generation, and the removal of those of older generations by a new leader.

use std::collections::BTreeMap;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, Service, ServicePort,
    ServiceSpec, TCPSocketAction, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;

use super::args::Args;
use crate::clusterd::{COMPUTE_PORT, STORAGE_PORT};
use crate::settings::map;

/// Stands on everything that was made here.
const KIND_LABEL: &str = "environmentd.materialize.cloud/namespace";
const KIND: &str = "cluster";
const SERVICE_LABEL: &str = "environmentd.materialize.cloud/service-id";
const GENERATION_LABEL: &str = "cluster.environmentd.materialize.cloud/generation";
/// The one cluster and replica of the stand-in's catalogue.
const REPLICA: &str = "cluster-s1-replica-s1";

/// Creates or updates this generation's objects.
pub(crate) async fn ensure(
    client: &Client,
    namespace: &str,
    args: &Args,
    owners: &[OwnerReference],
) -> anyhow::Result<()> {
    let name = name(args);
    let params = PatchParams::apply("environmentd").force();
    let service = service(args, owners);
    Api::<Service>::namespaced(client.clone(), namespace)
        .patch(&name, &params, &Patch::Apply(&service))
        .await
        .with_context(|| format!("cannot apply Service {name}"))?;
    let set = stateful_set(args, owners)?;
    Api::<StatefulSet>::namespaced(client.clone(), namespace)
        .patch(&name, &params, &Patch::Apply(&set))
        .await
        .with_context(|| format!("cannot apply StatefulSet {name}"))?;
    Ok(())
}

/// Deletes the objects of generations before this one.
pub(crate) async fn remove_older(client: &Client, namespace: &str, args: &Args) -> anyhow::Result<()> {
    let list = ListParams::default().labels(&format!("{KIND_LABEL}={KIND}"));
    let (sets, services) = (
        Api::<StatefulSet>::namespaced(client.clone(), namespace),
        Api::<Service>::namespaced(client.clone(), namespace),
    );
    let old_sets = sets
        .list(&list)
        .await?
        .items
        .into_iter()
        .filter_map(|set| set.metadata.name);
    let old_services = services
        .list(&list)
        .await?
        .items
        .into_iter()
        .filter_map(|service| service.metadata.name);
    for name in old_sets.filter(|name| is_older(name, args)) {
        gone(sets.delete(&name, &DeleteParams::background()).await.map(drop)).with_context(|| name.clone())?;
    }
    for name in old_services.filter(|name| is_older(name, args)) {
        gone(services.delete(&name, &DeleteParams::background()).await.map(drop)).with_context(|| name.clone())?;
    }
    Ok(())
}

fn gone(result: kube::Result<()>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}

/// Whether a name is of this environment and of a generation before this one.
fn is_older(name: &str, args: &Args) -> bool {
    name.strip_prefix(&args.orchestrator_kubernetes_name_prefix)
        .and_then(|rest| rest.strip_prefix("cluster-"))
        .and_then(|rest| rest.rsplit_once("-gen-"))
        .and_then(|(_, generation)| generation.parse::<u64>().ok())
        .is_some_and(|generation| generation < args.deploy_generation)
}

fn name(args: &Args) -> String {
    format!(
        "{}{REPLICA}-gen-{}",
        args.orchestrator_kubernetes_name_prefix, args.deploy_generation
    )
}

fn metadata(args: &Args, owners: &[OwnerReference]) -> ObjectMeta {
    ObjectMeta {
        name: Some(name(args)),
        labels: Some(labels(args)),
        owner_references: Some(owners.to_vec()),
        ..ObjectMeta::default()
    }
}

fn labels(args: &Args) -> BTreeMap<String, String> {
    let mut labels = map(&args.orchestrator_kubernetes_service_label);
    labels.extend(selector(args));
    labels.insert(KIND_LABEL.to_owned(), KIND.to_owned());
    labels.insert(GENERATION_LABEL.to_owned(), args.deploy_generation.to_string());
    labels
}

fn selector(args: &Args) -> BTreeMap<String, String> {
    BTreeMap::from([(SERVICE_LABEL.to_owned(), name(args))])
}

fn service(args: &Args, owners: &[OwnerReference]) -> Service {
    let port = |name: &str, port: u16| ServicePort {
        name: Some(name.to_owned()),
        port: port.into(),
        target_port: Some(IntOrString::Int(port.into())),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata(args, owners),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(selector(args)),
            ports: Some(vec![port("storagectl", STORAGE_PORT), port("computectl", COMPUTE_PORT)]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

fn stateful_set(args: &Args, owners: &[OwnerReference]) -> anyhow::Result<StatefulSet> {
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(args)),
            annotations: Some(map(&args.orchestrator_kubernetes_service_annotation)),
            ..ObjectMeta::default()
        }),
        spec: Some(pod(args)?),
    };
    Ok(StatefulSet {
        metadata: metadata(args, owners),
        spec: Some(StatefulSetSpec {
            replicas: Some(1),
            service_name: Some(name(args)),
            selector: LabelSelector {
                match_labels: Some(selector(args)),
                ..LabelSelector::default()
            },
            pod_management_policy: Some("Parallel".to_owned()),
            template,
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    })
}

fn pod(args: &Args) -> anyhow::Result<PodSpec> {
    let port = |name: &str, port: u16| ContainerPort {
        name: Some(name.to_owned()),
        container_port: port.into(),
        ..ContainerPort::default()
    };
    let affinity: Option<Affinity> = args
        .orchestrator_kubernetes_service_affinity
        .as_deref()
        .map(strict)
        .transpose()
        .context("--orchestrator-kubernetes-service-affinity")?;
    let tolerations: Option<Vec<Toleration>> = args
        .orchestrator_kubernetes_service_tolerations
        .as_deref()
        .map(strict)
        .transpose()
        .context("--orchestrator-kubernetes-service-tolerations")?;
    Ok(PodSpec {
        containers: vec![Container {
            name: "clusterd".to_owned(),
            image: Some(args.clusterd_image.clone()),
            image_pull_policy: Some(args.orchestrator_kubernetes_image_pull_policy.kubernetes().to_owned()),
            ports: Some(vec![port("storagectl", STORAGE_PORT), port("computectl", COMPUTE_PORT)]),
            readiness_probe: Some(Probe {
                tcp_socket: Some(TCPSocketAction {
                    port: IntOrString::Int(COMPUTE_PORT.into()),
                    ..TCPSocketAction::default()
                }),
                period_seconds: Some(1),
                ..Probe::default()
            }),
            ..Container::default()
        }],
        affinity,
        tolerations,
        node_selector: Some(map(&args.orchestrator_kubernetes_service_node_selector)),
        priority_class_name: args.orchestrator_kubernetes_priority_class_name.clone(),
        scheduler_name: args.orchestrator_kubernetes_scheduler_name.clone(),
        service_account_name: Some(args.orchestrator_kubernetes_service_account.clone()),
        security_context: Some(PodSecurityContext {
            fs_group: Some(args.orchestrator_kubernetes_service_fs_group),
            run_as_user: Some(args.orchestrator_kubernetes_service_fs_group),
            run_as_group: Some(args.orchestrator_kubernetes_service_fs_group),
            ..PodSecurityContext::default()
        }),
        termination_grace_period_seconds: Some(0),
        ..PodSpec::default()
    })
}

/// Reads JSON of a Kubernetes type, and refuses what the type does not know: it would silently be lost.
fn strict<T: serde::de::DeserializeOwned + serde::Serialize>(text: &str) -> anyhow::Result<T> {
    let given: Value = serde_json::from_str(text)?;
    let typed: T = serde_json::from_value(given.clone())?;
    let kept = serde_json::to_value(&typed)?;
    anyhow::ensure!(
        without_nulls(&given) == without_nulls(&kept),
        "{given} has members that Kubernetes does not know"
    );
    Ok(typed)
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Checks what would only fail when the first pod is made.
pub(crate) fn check(args: &Args) -> anyhow::Result<()> {
    pod(args).map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use clap::Parser as _;

    use super::*;

    fn args(more: &[&str]) -> Args {
        let base = [
            "environmentd",
            "--environment-id=local-kind-12345678-1234-1234-1234-123456789012-0",
            "--clusterd-image=r/clusterd:v26.43.0",
            "--secrets-controller=kubernetes",
            "--persist-isolated-runtime-threads=-1",
            "--orchestrator=kubernetes",
            "--orchestrator-kubernetes-service-account=mz",
            "--orchestrator-kubernetes-image-pull-policy=if-not-present",
            "--orchestrator-kubernetes-service-label=team=db",
            "--orchestrator-kubernetes-service-annotation=note=a=b",
            "--orchestrator-kubernetes-name-prefix=mzabc-",
            "--log-format=json",
            "--opentelemetry-resource=a=b",
            "--tls-mode=disable",
            "--orchestrator-kubernetes-service-fs-group=999",
            "--persist-pubsub-url=http://p:1",
            "--internal-persist-pubsub-listen-addr=0.0.0.0:1",
            "--deploy-generation=10",
            "--internal-console-redirect-url=u",
        ];
        Args::parse_from(base.iter().chain(more))
    }

    #[test]
    fn names_labels_and_image_are_those_of_the_flags() {
        let set = stateful_set(&args(&[]), &[]).unwrap();
        assert_eq!(set.metadata.name.as_deref(), Some("mzabc-cluster-s1-replica-s1-gen-10"));
        let template = set.spec.unwrap().template;
        let metadata = template.metadata.unwrap();
        assert_eq!(metadata.labels.unwrap()["team"], "db");
        assert_eq!(metadata.annotations.unwrap()["note"], "a=b");
        let container = &template.spec.unwrap().containers[0];
        assert_eq!(container.image.as_deref(), Some("r/clusterd:v26.43.0"));
        assert_eq!(container.image_pull_policy.as_deref(), Some("IfNotPresent"));
    }

    #[test]
    fn only_older_generations_of_this_environment_are_removed() {
        let args = args(&[]);
        for (name, older) in [
            ("mzabc-cluster-s1-replica-s1-gen-9", true),
            ("mzabc-cluster-u2-replica-u7-gen-1", true),
            ("mzabc-cluster-s1-replica-s1-gen-10", false),
            ("mzabc-cluster-s1-replica-s1-gen-11", false),
            ("mzother-cluster-s1-replica-s1-gen-9", false),
            ("mzabc-environmentd-9", false),
            ("mzabc-cluster-s1-replica-s1-gen-x", false),
        ] {
            assert_eq!(is_older(name, &args), older, "{name}");
        }
    }

    #[test]
    fn scheduling_is_taken_over_and_what_kubernetes_does_not_know_is_refused() {
        let good = args(&[r#"--orchestrator-kubernetes-service-tolerations=[{"key":"a","operator":"Exists"}]"#]);
        assert_eq!(pod(&good).unwrap().tolerations.unwrap()[0].key.as_deref(), Some("a"));
        for wrong in [
            r#"--orchestrator-kubernetes-service-tolerations=[{"keys":"a"}]"#,
            r#"--orchestrator-kubernetes-service-tolerations={"key":"a"}"#,
            r#"--orchestrator-kubernetes-service-affinity={"podAffinities":{}}"#,
            "--orchestrator-kubernetes-service-affinity=x",
        ] {
            assert!(pod(&args(&[wrong])).is_err(), "{wrong}");
        }
    }
}
