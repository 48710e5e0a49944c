//! Who owns a generated object, and the metadata that follows from it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Resource;

use crate::api::labels;

/// What the metadata of every object generated for one resource is made of
/// (docs/reference/generated-objects.md).
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// `metadata.name` of the owning resource.
    pub name: String,
    /// `metadata.namespace` of the owning resource, and of everything generated for it.
    pub namespace: String,
    /// `status.resourceId`: prefix of nearly every generated name.
    pub resource_id: String,
    /// The labels by which the objects of this owner are found again.
    pub labels: BTreeMap<String, String>,
    owner: OwnerReference,
    component: Component,
}

/// Which controller an object belongs to; decides its recommended labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// Generated for a `Materialize`.
    Environmentd,
    /// Generated for a `Balancer`.
    Balancerd,
    /// Generated for a `Console`.
    Console,
}

/// A resource that lacks what nothing can be generated without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IncompleteOwner {
    /// One of the keys that the API server fills in is missing: the object was never stored.
    #[error("{0} is missing: objects can only be generated for a resource read from the API server")]
    Metadata(&'static str),
    /// There is no status yet. The controller writes the initial status before anything is built.
    #[error("status.resourceId is missing: the initial status must be written before objects are generated")]
    ResourceId,
}

// === impl Component ===

impl Component {
    /// The value of the labels `app`, `app.kubernetes.io/name` and `materialize.cloud/app`.
    pub fn app(self) -> &'static str {
        match self {
            Self::Environmentd => labels::APP_ENVIRONMENTD,
            Self::Balancerd => labels::APP_BALANCERD,
            Self::Console => labels::APP_CONSOLE,
        }
    }
}

// === impl Identity ===

impl Identity {
    /// Reads the identity off `owner`, whose `status.resourceId` is `resource_id`.
    ///
    /// # Errors
    /// If the owner was never stored, or has no status yet.
    pub fn of<K>(owner: &K, resource_id: Option<&str>, component: Component) -> Result<Self, IncompleteOwner>
    where
        K: Resource<DynamicType = ()>,
    {
        let meta = owner.meta();
        let name = meta.name.clone().ok_or(IncompleteOwner::Metadata("metadata.name"))?;
        let namespace = meta
            .namespace
            .clone()
            .ok_or(IncompleteOwner::Metadata("metadata.namespace"))?;
        let uid = meta.uid.clone().ok_or(IncompleteOwner::Metadata("metadata.uid"))?;
        let resource_id = resource_id
            .filter(|id| !id.is_empty())
            .ok_or(IncompleteOwner::ResourceId)?;

        let mut own = pairs([
            (labels::LABEL_ORGANIZATION_NAME, name.as_str()),
            (labels::LABEL_ORGANIZATION_NAMESPACE, namespace.as_str()),
            (labels::LABEL_RESOURCE_ID, resource_id),
        ]);
        // Balancers and Consoles share all three with the Materialize that made them.
        if component != Component::Environmentd {
            own.insert(labels::LABEL_APP.to_owned(), component.app().to_owned());
        }
        Ok(Self {
            owner: OwnerReference {
                api_version: K::api_version(&()).into_owned(),
                kind: K::kind(&()).into_owned(),
                name: name.clone(),
                uid,
                block_owner_deletion: Some(true),
                controller: None,
            },
            name,
            namespace,
            resource_id: resource_id.to_owned(),
            labels: own,
            component,
        })
    }

    /// Namespace, name, labels and owner reference of a generated object.
    ///
    /// Not for pod templates: pods are owned by their `StatefulSet` or Deployment.
    pub fn metadata(&self, name: impl Into<String>) -> ObjectMeta {
        let app = self.component.app();
        let mut all = pairs([
            (labels::LABEL_KUBERNETES_MANAGED_BY, labels::MANAGED_BY),
            (labels::LABEL_KUBERNETES_PART_OF, labels::PART_OF),
            (labels::LABEL_KUBERNETES_NAME, app),
            (labels::LABEL_LEGACY_APP, app),
        ]);
        all.extend(self.labels.clone());
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some(self.namespace.clone()),
            labels: Some(all),
            owner_references: Some(vec![self.owner.clone()]),
            ..ObjectMeta::default()
        }
    }

    /// Selects every pod that carries this identity's labels and, if given, belongs to `app`.
    pub fn selector(&self, app: Option<Component>) -> LabelSelector {
        let mut all = self.labels.clone();
        if let Some(app) = app {
            all.insert(labels::LABEL_APP.to_owned(), app.app().to_owned());
        }
        LabelSelector {
            match_labels: Some(all),
            ..LabelSelector::default()
        }
    }
}

/// A map of labels or annotations from pairs.
pub fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
