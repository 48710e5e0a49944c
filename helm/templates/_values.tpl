{{/*
Values with defaults under them, for releases whose stored values come from another chart (`helm upgrade --reuse-values`): values.yaml is not
read then. A value that may be absent on purpose has no default here. These defaults must be those of values.yaml.
*/}}
{{- define "materialize-operator.defaults" -}}
operator:
  image: {repository: localhost/orchestratord, pullPolicy: IfNotPresent}
  replicas: 2
  podDisruptionBudget: {enabled: true, maxUnavailable: 1}
  args:
    startupLogFilter: INFO,mz_orchestratord=TRACE
    enableInternalStatementLogging: true
    enableLicenseKeyChecks: false
    installV1CRD: false
  certificate: {source: cert-manager, caDuration: 87600h, caRenewBefore: 8760h}
  cloudProvider:
    type: local
    region: kind
    providers:
      aws: {iam: {roles: {}}}
      gcp: {nodeUpgradeRolloutTrigger: {enabled: false}}
  clusters:
    swap_enabled: true
    sizes: {}
    defaultSizes: {}
    defaultReplicationFactor: {}
  resources: {requests: {cpu: 100m, memory: 512Mi}, limits: {memory: 512Mi}}
  secretsController: kubernetes
environmentd:
  defaultResources: {}
clusterd:
  scratchfsNodeSelector: {materialize.cloud/scratch-fs: "true"}
  swapNodeSelector: {materialize.cloud/swap: "true"}
balancerd:
  enabled: true
  defaultResources: {}
console:
  enabled: true
  imageTagDefault: v26.43.0
  imageTagMapOverride: {}
  defaultResources: {}
rbac: {create: true}
serviceAccount: {create: true, name: orchestratord, annotations: {}}
observability:
  enabled: true
  podMetrics: {enabled: false}
  prometheus: {scrapeAnnotations: {enabled: true}}
telemetry: {enabled: true, segmentClientSide: true}
networkPolicies:
  enabled: false
  internal: {enabled: false, apiServerPorts: [443, 6443, 8443]}
  ingress: {enabled: false, cidrs: [0.0.0.0/0]}
  egress: {enabled: false, cidrs: [0.0.0.0/0]}
tls: {defaultCertificateSpecs: {}}
storage:
  storageClass: {create: false, allowVolumeExpansion: false, reclaimPolicy: Delete, volumeBindingMode: WaitForFirstConsumer}
{{- end }}

{{- define "materialize-operator.values" -}}
{{- $defaults := include "materialize-operator.defaults" . | fromYaml -}}
{{- include "materialize-operator.overlay" (dict "values" .Values "defaults" $defaults) }}
{{- end }}

{{/* `values` over `defaults`, key by key. What users fill as a whole is taken as a whole: a key that they removed stays away. */}}
{{- define "materialize-operator.overlay" -}}
{{- $whole := list "resources" "defaultResources" "sizes" "swapNodeSelector" "scratchfsNodeSelector" "defaultCertificateSpecs" -}}
{{- $result := dict -}}
{{- range $key, $value := .values -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $result $key $value -}}
{{- end -}}
{{- end -}}
{{- range $key, $default := .defaults -}}
{{- if not (hasKey $result $key) -}}
{{- $_ := set $result $key $default -}}
{{- else if and (kindIs "map" $default) (kindIs "map" (get $result $key)) (not (has $key $whole)) -}}
{{- $_ := set $result $key (include "materialize-operator.overlay" (dict "values" (get $result $key) "defaults" $default) | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- toYaml $result }}
{{- end }}
