//! The `StatefulSet` of one generation.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::environment::Environment;
use super::pod_template;
use crate::api::labels;
use crate::controllers::building::identity::pairs;
use crate::controllers::building::names;

/// The `StatefulSet`, without the record of what it is applied for.
pub fn build(environment: &Environment<'_>, generation: u64) -> StatefulSet {
    let name = names::generation(environment.id(), generation);
    let selector = pairs([(labels::LABEL_NAME, name.as_str())]);
    let mut metadata = environment.identity.metadata(name);
    metadata.annotations = Some(pairs([
        (labels::ANNOTATION_GENERATION, generation.to_string().as_str()),
        (labels::ANNOTATION_FORCE, force(environment).as_str()),
    ]));
    StatefulSet {
        metadata,
        spec: Some(StatefulSetSpec {
            replicas: Some(1),
            service_name: Some(names::public_service(environment.id())),
            selector: LabelSelector {
                match_labels: Some(selector),
                ..LabelSelector::default()
            },
            template: pod_template::build(environment, generation),
            ..StatefulSetSpec::default()
        }),
        status: None,
    }
}

/// What makes a generation differ although nothing else does.
fn force(environment: &Environment<'_>) -> String {
    let force_rollout = environment.spec().force_rollout;
    let annotations = environment.materialize.metadata.annotations.as_ref();
    match annotations.and_then(|annotations| annotations.get(labels::ANNOTATION_FORCE_ROLLOUT)) {
        Some(annotation) => format!("{force_rollout}/{annotation}"),
        None => force_rollout.to_string(),
    }
}
