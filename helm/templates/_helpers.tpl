{{/* Names and labels. The two selector labels must never change: a Deployment's selector is immutable. */}}

{{- define "materialize-operator.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "materialize-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "materialize-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "materialize-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "materialize-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "materialize-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "materialize-operator.serviceAccountName" -}}
{{- $account := (include "materialize-operator.values" . | fromYaml).serviceAccount -}}
{{- if $account.create -}}
{{- $account.name | default (include "materialize-operator.fullname" .) }}
{{- else -}}
{{- $account.name | default "default" }}
{{- end -}}
{{- end }}

{{/* The Secret with the webhook's certificate. Certificate, volume and argument all take its name from here. */}}
{{- define "materialize-operator.certificateSecretName" -}}
{{- $certificate := (include "materialize-operator.values" . | fromYaml).operator.certificate -}}
{{- if eq $certificate.source "cert-manager" -}}
{{- include "materialize-operator.fullname" . }}-cert
{{- else if eq $certificate.source "self-managed" -}}
{{- include "materialize-operator.fullname" . }}-webhook-tls
{{- else -}}
{{- required "operator.certificate.secretName is required: operator.certificate.source is neither cert-manager nor self-managed. Name a Secret of the release's namespace with the keys ca.crt, tls.crt and tls.key" $certificate.secretName }}
{{- end -}}
{{- end }}

{{/* The image; refuses what can't be this operator (decision C8). */}}
{{- define "materialize-operator.image" -}}
{{- $image := (include "materialize-operator.values" . | fromYaml).operator.image -}}
{{- $tag := $image.tag | default .Chart.AppVersion -}}
{{- if regexMatch "^(docker\\.io/|index\\.docker\\.io/)?materialize/orchestratord$" $image.repository -}}
{{- fail (printf "operator.image.repository is %s, the image of another operator: this chart can't run it. Set operator.image.repository and operator.image.tag (values kept by --reuse-values count)" $image.repository) -}}
{{- end -}}
{{- if and (eq $image.repository "localhost/orchestratord") (regexMatch "^v26\\." $tag) -}}
{{- fail (printf "operator.image.tag is %s, a version of Materialize: the tags of %s are versions of this operator, for example %s (values kept by --reuse-values count)" $tag $image.repository .Chart.AppVersion) -}}
{{- end -}}
{{- printf "%s:%s" $image.repository $tag }}
{{- end }}
