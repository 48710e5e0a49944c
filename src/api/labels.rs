//! Every label, annotation, finalizer and data key that others rely on. See `docs/reference/materialize-resource.md`.

/// Field manager of every server-side apply of this operator.
pub const FIELD_MANAGER: &str = "orchestratord.materialize.cloud";

/// Finalizer on `Materialize` resources.
pub const FINALIZER: &str = "orchestratord.materialize.cloud/materialize";

/// Annotation on a `Materialize`, set by users: any change of its value forces a new generation.
pub const ANNOTATION_FORCE_ROLLOUT: &str = "materialize.cloud/force-rollout";

/// Annotation on a `Materialize`, set by users: seeds `activeGeneration` of a resource without a status.
pub const ANNOTATION_LAST_KNOWN_ACTIVE_GENERATION: &str = "materialize.cloud/last-known-active-generation";

/// Annotation on `StatefulSet`, pod template and listeners `ConfigMap`: the generation in decimal.
pub const ANNOTATION_GENERATION: &str = "materialize.cloud/generation";

/// Annotation on the `StatefulSet`: `forceRollout`, with `/` and the value of [`ANNOTATION_FORCE_ROLLOUT`] if that is set.
pub const ANNOTATION_FORCE: &str = "materialize.cloud/force";

/// Annotation on the `StatefulSet`'s own metadata: the request id that it was applied for (decision R1).
pub const ANNOTATION_ROLLOUT_REQUEST: &str = "orchestratord.materialize.cloud/rollout-request";

/// Annotation on the `StatefulSet`'s own metadata: hash of the rendered generation that was applied (decision R1).
pub const ANNOTATION_RESOURCES_HASH: &str = "orchestratord.materialize.cloud/resources-hash";

/// Annotation on the `StatefulSet`'s own metadata: the listeners configuration that was deployed with it (decision R20).
pub const ANNOTATION_DEPLOYED_LISTENERS: &str = "orchestratord.materialize.cloud/deployed-listeners";

/// Annotation on a CRD: which replica of which operator registered it (decision W9).
pub const ANNOTATION_REGISTRATION: &str = "orchestratord.materialize.cloud/registration";

/// Annotation on the CRD of `Materialize`: when which certificate authority was added to `caBundle` (decision W4).
pub const ANNOTATION_CA_BUNDLE: &str = "orchestratord.materialize.cloud/ca-bundle";

/// Annotation of a service account on EKS: the IAM role that its pods assume.
pub const ANNOTATION_EKS_ROLE_ARN: &str = "eks.amazonaws.com/role-arn";

/// Label: name of the owning `Materialize`, `Balancer` or `Console`.
pub const LABEL_ORGANIZATION_NAME: &str = "materialize.cloud/organization-name";

/// Label: namespace of the owning `Materialize`, `Balancer` or `Console`.
pub const LABEL_ORGANIZATION_NAMESPACE: &str = "materialize.cloud/organization-namespace";

/// Label: `status.resourceId`. Watches of owned objects select on its presence.
pub const LABEL_RESOURCE_ID: &str = "materialize.cloud/mz-resource-id";

/// Label on pods: name of the `StatefulSet` or Deployment. Selector of the `StatefulSet` and of the Services.
pub const LABEL_NAME: &str = "materialize.cloud/name";

/// Label on pods: which program runs in them ([`APP_ENVIRONMENTD`], [`APP_BALANCERD`], [`APP_CONSOLE`]).
pub const LABEL_APP: &str = "materialize.cloud/app";

/// Label: which program an object belongs to, the older key beside [`LABEL_KUBERNETES_NAME`].
pub const LABEL_LEGACY_APP: &str = "app";

/// Recommended Kubernetes label: which program an object belongs to.
pub const LABEL_KUBERNETES_NAME: &str = "app.kubernetes.io/name";

/// Recommended Kubernetes label: what manages an object, always [`MANAGED_BY`].
pub const LABEL_KUBERNETES_MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Recommended Kubernetes label: the application an object is part of, always [`PART_OF`].
pub const LABEL_KUBERNETES_PART_OF: &str = "app.kubernetes.io/part-of";

/// Value of [`LABEL_KUBERNETES_MANAGED_BY`].
pub const MANAGED_BY: &str = "materialize-operator";

/// Value of [`LABEL_KUBERNETES_PART_OF`].
pub const PART_OF: &str = "materialize";

/// Program name in labels of objects owned by a `Materialize`.
pub const APP_ENVIRONMENTD: &str = "environmentd";

/// Program name in labels of objects owned by a `Balancer`.
pub const APP_BALANCERD: &str = "balancerd";

/// Program name in labels of objects owned by a `Console`.
pub const APP_CONSOLE: &str = "console";

/// Data key of the backend Secret: URL of the metadata database.
pub const SECRET_KEY_METADATA_BACKEND_URL: &str = "metadata_backend_url";

/// Data key of the backend Secret: URL of the blob store.
pub const SECRET_KEY_PERSIST_BACKEND_URL: &str = "persist_backend_url";

/// Data key of the backend Secret: the licence key, a JWT.
pub const SECRET_KEY_LICENSE_KEY: &str = "license_key";

/// Data key of the backend Secret: password of the user `mz_system`.
pub const SECRET_KEY_EXTERNAL_LOGIN_PASSWORD: &str = "external_login_password_mz_system";

/// Data key of the `ConfigMap` named by `systemParameterConfigmapName`.
pub const CONFIGMAP_KEY_SYSTEM_PARAMS: &str = "system-params.json";

/// Data key of the `ConfigMap` named by `balancerdConfigmapName`.
pub const CONFIGMAP_KEY_BALANCERD_CONFIG: &str = "config.json";

/// Data key of the generated listeners `ConfigMap`.
pub const CONFIGMAP_KEY_LISTENERS: &str = "listeners.json";
