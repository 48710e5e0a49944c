{{/*
The operator's arguments, as a YAML list. The order is part of the chart's contract (tests and tools address arguments by their place), so
new ones go to the end.
*/}}
{{- define "materialize-operator.args" -}}
{{- $v := include "materialize-operator.values" . | fromYaml -}}
{{- $operator := $v.operator -}}
{{- $args := $operator.args -}}
{{- $cloud := $operator.cloudProvider -}}
{{- $list := list
  (printf "--helm-chart-version=%s" .Chart.Version)
  (printf "--startup-log-filter=%v" $args.startupLogFilter)
  (printf "--cloud-provider=%v" $cloud.type)
  (printf "--region=%v" $cloud.region)
  (printf "--secrets-controller=%v" $operator.secretsController) -}}
{{- if not (kindIs "invalid" $args.statementLoggingMaxSampleRate) -}}
{{- $list = append $list (printf "--statement-logging-max-sample-rate=%v" $args.statementLoggingMaxSampleRate) -}}
{{- end -}}
{{- if not (kindIs "invalid" $args.statementLoggingTargetDataRate) -}}
{{- $list = append $list (printf "--statement-logging-target-data-rate=%d" (int64 $args.statementLoggingTargetDataRate)) -}}
{{- end -}}
{{- range $key, $value := include "materialize-operator.selectorLabels" . | fromYaml -}}
{{- $list = append $list (printf "--orchestratord-pod-selector-labels=%s=%v" $key $value) -}}
{{- end -}}
{{- if $args.enableInternalStatementLogging -}}{{- $list = append $list "--enable-internal-statement-logging" -}}{{- end -}}
{{- if not $args.enableLicenseKeyChecks -}}{{- $list = append $list "--disable-license-key-checks" -}}{{- end -}}
{{- if $args.installV1CRD -}}
{{- $list = append $list "--install-v1-crd" -}}
{{- with $args.webhookCertReloadInterval -}}{{- $list = append $list (printf "--webhook-cert-reload-interval=%s" .) -}}{{- end -}}
{{- end -}}
{{- if eq $cloud.type "aws" -}}
{{- $aws := $cloud.providers.aws -}}
{{- with $aws.accountID -}}{{- $list = append $list (printf "--aws-account-id=%v" (kindIs "float64" . | ternary (printf "%.0f" .) .)) -}}{{- end -}}
{{- with $aws.iam.roles.environment -}}{{- $list = append $list (printf "--environmentd-iam-role-arn=%s" .) -}}{{- end -}}
{{- with $aws.iam.roles.connection -}}{{- $list = append $list (printf "--environmentd-connection-role-arn=%s" .) -}}{{- end -}}
{{- end -}}
{{- $trigger := $cloud.providers.gcp.nodeUpgradeRolloutTrigger -}}
{{- if and (eq $cloud.type "gcp") $trigger.enabled -}}
{{- $path := "operator.cloudProvider.providers.gcp.nodeUpgradeRolloutTrigger" -}}
{{- if not $args.installV1CRD -}}
{{- fail (printf "%s.enabled needs operator.args.installV1CRD: the trigger writes through v1 of the custom resource" $path) -}}
{{- end -}}
{{- $list = concat $list (list
  "--enable-gcp-node-upgrade-rollout-trigger"
  (printf "--gcp-node-upgrade-notification-subscription=%s" (required (printf "%s.notificationSubscription is required" $path) $trigger.notificationSubscription))
  (printf "--gcp-cluster-name=%s" (required (printf "%s.clusterName is required" $path) $trigger.clusterName))
  (printf "--gcp-cluster-location=%s" (required (printf "%s.clusterLocation is required" $path) $trigger.clusterLocation))) -}}
{{- range $trigger.watchedNodePools -}}{{- $list = append $list (printf "--gcp-node-upgrade-watched-node-pool=%v" .) -}}{{- end -}}
{{- end -}}
{{- if $v.balancerd.enabled -}}{{- $list = append $list "--create-balancers" -}}{{- end -}}
{{- if $v.console.enabled -}}{{- $list = append $list "--create-console" -}}{{- end -}}
{{- $list = append $list (printf "--console-image-tag-default=%v" $v.console.imageTagDefault) -}}
{{- range $environmentd, $console := $v.console.imageTagMapOverride -}}
{{- $list = append $list (printf "--console-image-tag-map=%s=%v" $environmentd $console) -}}
{{- end -}}
{{- $list = concat $list (include "materialize-operator.sizeArgs" $v | fromYamlArray) -}}
{{- $list = append $list (printf "--image-pull-policy=%s" (kebabcase $operator.image.pullPolicy)) -}}
{{- range $program := list "environmentd" "clusterd" "balancerd" "console" -}}
{{- $list = concat $list (include "materialize-operator.schedulingArgs" (dict "program" $program "values" (get $v $program)) | fromYamlArray) -}}
{{- end -}}
{{- with $v.storage.storageClass.name -}}{{- $list = append $list (printf "--ephemeral-volume-class=%s" .) -}}{{- end -}}
{{- if $v.networkPolicies.enabled -}}
{{- if $v.networkPolicies.internal.enabled -}}{{- $list = append $list "--network-policies-internal-enabled" -}}{{- end -}}
{{- range $direction := list "ingress" "egress" -}}
{{- $policy := get $v.networkPolicies $direction -}}
{{- if $policy.enabled -}}
{{- $list = append $list (printf "--network-policies-%s-enabled" $direction) -}}
{{- range $policy.cidrs -}}{{- $list = append $list (printf "--network-policies-%s-cidrs=%s" $direction .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $v.tls.defaultCertificateSpecs -}}{{- $list = append $list (printf "--default-certificate-specs=%s" (toJson .)) -}}{{- end -}}
{{- if $v.observability.enabled -}}
{{- if $v.observability.podMetrics.enabled -}}{{- $list = append $list "--collect-pod-metrics" -}}{{- end -}}
{{- if $v.observability.prometheus.scrapeAnnotations.enabled -}}{{- $list = append $list "--enable-prometheus-scrape-annotations" -}}{{- end -}}
{{- end -}}
{{- if and $v.telemetry.enabled $v.telemetry.segmentApiKey -}}
{{- $list = append $list (printf "--segment-api-key=%s" $v.telemetry.segmentApiKey) -}}
{{- if $v.telemetry.segmentClientSide -}}{{- $list = append $list "--segment-client-side" -}}{{- end -}}
{{- end -}}
{{- $list = append $list "--enable-security-context" -}}
{{- with $v.schedulerName -}}{{- $list = append $list (printf "--scheduler-name=%s" .) -}}{{- end -}}
{{- with $operator.additionalMaterializeCRDColumns -}}{{- $list = append $list (printf "--additional-crd-columns=%s" (toJson .)) -}}{{- end -}}
{{- if $args.installV1CRD -}}
{{- $list = concat $list (list
  "--webhook-service-name" (include "materialize-operator.fullname" .)
  "--webhook-service-namespace" .Release.Namespace) -}}
{{- if eq $operator.certificate.source "self-managed" -}}
{{- $list = append $list (printf "--webhook-cert-secret=%s" (include "materialize-operator.certificateSecretName" .)) -}}
{{- end -}}
{{- end -}}
{{- if $args.licenseKeyPublicKeysSecret -}}{{- $list = append $list "--license-key-public-key=/etc/license-key-public-keys" -}}{{- end -}}
{{- toYaml $list }}
{{- end }}

{{/* Sizes of clusters: the JSON of all, and which one and how many the built-in clusters get. Takes the values. */}}
{{- define "materialize-operator.sizeArgs" -}}
{{- $clusters := .operator.clusters -}}
{{- $list := list -}}
{{- with $clusters.sizes -}}
{{- $sizes := dict -}}
{{- range $name, $size := . -}}
{{- if not (kindIs "invalid" $size) -}}
{{- $_ := set $sizes $name (include "materialize-operator.size" (dict "size" $size "values" $) | fromYaml) -}}
{{- end -}}
{{- end -}}
{{- $list = append $list (printf "--environmentd-cluster-replica-sizes=%s" (toJson $sizes)) -}}
{{- end -}}
{{- $flags := list
  (list "default" "default") (list "system" "builtin-system") (list "probe" "builtin-probe") (list "support" "builtin-support")
  (list "catalogServer" "builtin-catalog-server") (list "analytics" "builtin-analytics") -}}
{{- range $flags -}}
{{- $size := get $clusters.defaultSizes (first .) -}}
{{- if $size -}}{{- $list = append $list (printf "--bootstrap-%s-cluster-replica-size=%v" (last .) $size) -}}{{- end -}}
{{- end -}}
{{- range $cluster := list "system" "probe" "support" "analytics" -}}
{{- $factor := get $clusters.defaultReplicationFactor $cluster -}}
{{- if and (hasKey $clusters.defaultReplicationFactor $cluster) (not (kindIs "invalid" $factor)) -}}
{{- $list = append $list (printf "--bootstrap-builtin-%s-cluster-replication-factor=%d" $cluster (int64 $factor)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $list }}
{{- end }}

{{/* One size as environmentd gets it. Takes `size` and `values`. */}}
{{- define "materialize-operator.size" -}}
{{- $size := deepCopy .size -}}
{{- $clusters := .values.operator.clusters -}}
{{- $storageClass := .values.storage.storageClass.name -}}
{{- if or (not $storageClass) $clusters.swap_enabled -}}{{- $_ := set $size "disk_limit" "0" -}}{{- end -}}
{{- if or (not (hasKey $size "swap_enabled")) (kindIs "invalid" $size.swap_enabled) -}}{{- $_ := set $size "swap_enabled" $clusters.swap_enabled -}}{{- end -}}
{{- $more := dict -}}
{{- if $size.swap_enabled -}}
{{- $more = .values.clusterd.swapNodeSelector -}}
{{- else if $storageClass -}}
{{- $more = .values.clusterd.scratchfsNodeSelector -}}
{{- end -}}
{{- $selectors := dict -}}
{{- range $key, $value := $more -}}{{- if $value -}}{{- $_ := set $selectors $key $value -}}{{- end -}}{{- end -}}
{{- range $key, $value := $size.selectors -}}{{- $_ := set $selectors $key $value -}}{{- end -}}
{{- $_ := set $size "selectors" $selectors -}}
{{- $_ := set $size "is_cc" true -}}
{{- toYaml $size }}
{{- end }}

{{/* Where one program's pods run, and with what. Takes `program` and `values`. */}}
{{- define "materialize-operator.schedulingArgs" -}}
{{- $program := .program -}}
{{- $list := list -}}
{{- range $key, $value := .values.nodeSelector -}}{{- $list = append $list (printf "--%s-node-selector=%s=%v" $program $key $value) -}}{{- end -}}
{{- with .values.affinity -}}{{- $list = append $list (printf "--%s-affinity=%s" $program (toJson .)) -}}{{- end -}}
{{- if kindIs "slice" .values.tolerations -}}
{{- range .values.tolerations -}}{{- $list = append $list (printf "--%s-toleration=%s" $program (toJson .)) -}}{{- end -}}
{{- end -}}
{{- if ne $program "clusterd" -}}
{{- with .values.defaultResources -}}{{- $list = append $list (printf "--%s-default-resources=%s" $program (toJson .)) -}}{{- end -}}
{{- end -}}
{{- if has $program (list "environmentd" "clusterd") -}}
{{- with .values.priorityClassName -}}{{- $list = append $list (printf "--%s-priority-class-name=%s" $program .) -}}{{- end -}}
{{- end -}}
{{- toYaml $list }}
{{- end }}
