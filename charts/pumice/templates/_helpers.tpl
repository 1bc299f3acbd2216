{{/* Name that all objects of the release start with. */}}
{{- define "pumice.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "pumice.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{/* Labels that select the pods of a component: (list root component). */}}
{{- define "pumice.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: pumice
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of every object: (list root component). */}}
{{- define "pumice.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{ include "pumice.selector" . }}
{{- end -}}

{{- define "pumice.component" -}}
{{- printf "%s-%s" (include "pumice.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{- define "pumice.secretName" -}}
{{- default (printf "%s-webhook-certs" (include "pumice.fullname" .)) .Values.webhook.secretName -}}
{{- end -}}

{{/* Secret that is served from, where somebody else keeps it. */}}
{{- define "pumice.servedSecretName" -}}
{{- default (printf "%s-webhook-tls" (include "pumice.fullname" .)) .Values.webhook.certificates.secretName -}}
{{- end -}}

{{/* A ServiceAccount of a component: (list root component). */}}
{{- define "pumice.serviceAccount" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "pumice.component" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "pumice.labels" . | nindent 4 }}
{{- end -}}

{{/* Binds a component's ServiceAccount to its ClusterRole: (list root component). */}}
{{- define "pumice.clusterRoleBinding" -}}
{{- $root := index . 0 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "pumice.component" . }}
  labels: {{- include "pumice.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "pumice.component" . }}
subjects:
- kind: ServiceAccount
  name: {{ include "pumice.component" . }}
  namespace: {{ $root.Release.Namespace }}
{{- end -}}

{{/* Binds a component's ServiceAccount to its Role in the release namespace: (list root component). */}}
{{- define "pumice.roleBinding" -}}
{{- $root := index . 0 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "pumice.component" . }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "pumice.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "pumice.component" . }}
subjects:
- kind: ServiceAccount
  name: {{ include "pumice.component" . }}
  namespace: {{ $root.Release.Namespace }}
{{- end -}}

{{/* Metadata of a component's pods: (list root component annotations). */}}
{{- define "pumice.podMetadata" -}}
labels: {{- include "pumice.labels" . | nindent 2 }}
{{- with index . 2 }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Everything of a pod that the components share: (list root component values). */}}
{{- define "pumice.podCommon" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
serviceAccountName: {{ printf "%s-%s" (include "pumice.fullname" $root) (index . 1) }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
affinity:
{{- if $values.affinity }}
  {{- toYaml $values.affinity | nindent 2 }}
{{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "pumice.selector" (list $root (index . 1)) | nindent 12 }}
{{- end }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "pumice.selector" (list $root (index . 1)) | nindent 6 }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Everything of a container that the components share: (list root values). */}}
{{- define "pumice.containerCommon" -}}
{{- $root := index . 0 -}}
image: {{ include "pumice.image" $root | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources: {{- toYaml (index . 1).resources | nindent 2 }}
{{- end -}}

{{/* Rules that leader election and events need: in the release namespace. */}}
{{- define "pumice.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ . }}]
  verbs: [get, update]
{{- end -}}

{{/* The configuration of the scheduler. */}}
{{- define "pumice.schedulerConfig" -}}
{{- default (.Files.Get "files/volcano-scheduler.conf") .Values.scheduler.config -}}
{{- end -}}

{{/* Names of the schedulers whose pods are judged, as a list in CEL. */}}
{{- define "pumice.schedulerNames" -}}
{{- prepend .Values.webhook.extraSchedulerNames .Values.schedulerName | uniq | join "', '" -}}
{{- end -}}

{{/* Namespaces whose pods belong to a resource group, as the inside of a list in CEL. */}}
{{- define "pumice.groupNamespaces" -}}
{{- $found := list -}}
{{- range .Values.webhook.resourceGroups -}}
{{- with .object -}}
{{- if eq (.key | default "") "namespace" -}}
{{- $found = concat $found (.value | default list) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $index, $name := $found | uniq | sortAlpha -}}
{{- if $index }}, {{ end }}'{{ $name }}'
{{- end -}}
{{- end -}}

{{/*
Annotations by which pods belong to a resource group, each with a comma before it, for a list in CEL that
holds the groups' own annotation already. Volcano writes each as a text that is YAML.
*/}}
{{- define "pumice.groupAnnotations" -}}
{{- $found := list -}}
{{- range .Values.webhook.resourceGroups -}}
{{- with .object -}}
{{- if ne (.key | default "") "namespace" -}}
{{- range .value -}}
{{- $found = concat $found (keys (ternary . (fromYaml (toString .)) (kindIs "map" .))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range without ($found | uniq | sortAlpha) "volcano.sh/resource-group" "pumice.dev/plugins" "scheduling.volcano.sh/queue-allocation-gate" -}}
, '{{ . }}'
{{- end -}}
{{- end -}}

{{/*
What follows the path of an endpoint. The API server shows the address of a webhook that does not answer to
whoever waits for it, and nothing else that we could write: so the address says what to do.
*/}}
{{- define "pumice.advice" -}}
{{- printf "if-this-fails-run/kubectl-describe-deployment-%s--n-%s" (include "pumice.component" (list . "webhook")) .Release.Namespace -}}
{{- end -}}

{{/* What to do when admission is down. kubectl shows 138 characters of a line. */}}
{{- define "pumice.whenDown" -}}
{{- $name := include "pumice.component" (list . "webhook") -}}
{{- $labels := printf "app.kubernetes.io/instance=%s,app.kubernetes.io/component=webhook" .Release.Name -}}
While no replica answers, new Jobs, Queues and other objects of Pumice wait, and changes of their specs.
Pods, Deployments, status, labels and deletion go on. To see why there is none:
  kubectl -n {{ .Release.Namespace }} describe pods -l {{ $labels }}
  kubectl -n {{ .Release.Namespace }} logs deployment/{{ $name }}
To let everything pass unchecked until it is mended, add `--set webhook.failurePolicy=Ignore` to:
  helm upgrade {{ .Release.Name }} CHART -n {{ .Release.Namespace }} --reuse-values
Or take the webhooks away; the next `helm upgrade` or `kubectl apply` of the manifest brings them back:
  kubectl delete mutatingwebhookconfigurations -l {{ $labels }}
  kubectl delete validatingwebhookconfigurations -l {{ $labels }}
{{- end -}}

{{/*
One webhook configuration: (list root configuration). Whatever does not depend on values is taken over
from the generated file as it is.
*/}}
{{- define "pumice.webhookConfiguration" -}}
{{- $root := index . 0 -}}
{{- $configuration := index . 1 -}}
{{- $values := $root.Values.webhook -}}
apiVersion: {{ $configuration.apiVersion }}
kind: {{ $configuration.kind }}
metadata:
  name: {{ $configuration.metadata.name }}
  labels: {{- include "pumice.labels" (list $root "webhook") | nindent 4 }}
  {{- if eq $values.certificates.mode "cert-manager" }}
  annotations:
    cert-manager.io/inject-ca-from: {{ $root.Release.Namespace }}/{{ include "pumice.component" (list $root "webhook") }}
  {{- end }}
webhooks:
{{- range $webhook := $configuration.webhooks }}
{{- $path := printf "%s/%s" $webhook.clientConfig.service.path (include "pumice.advice" $root) }}
- {{ omit $webhook "clientConfig" "failurePolicy" "namespaceSelector" "matchConditions" | toYaml | nindent 2 | trim }}
  clientConfig:
    {{- if $values.url }}
    url: {{ printf "%s%s" (trimSuffix "/" $values.url) $path | quote }}
    {{- else }}
    service:
      name: {{ include "pumice.component" (list $root "webhook") }}
      namespace: {{ $root.Release.Namespace }}
      path: {{ $path }}
      port: 443
    {{- end }}
    {{- if and $values.certificates.caBundle (eq $values.certificates.mode "files") }}
    caBundle: {{ b64enc $values.certificates.caBundle }}
    {{- end }}
  failurePolicy: {{ ternary $values.failurePolicy "Ignore" (eq $webhook.failurePolicy "Fail") }}
  matchConditions:
  {{- range $webhook.matchConditions }}
  {{- $expression := .expression | replace "$schedulerNames" (include "pumice.schedulerNames" $root) }}
  {{- $expression = $expression | replace "'$groupNamespaces'" (include "pumice.groupNamespaces" $root) }}
  {{- $expression = $expression | replace ", '$groupAnnotations'" (include "pumice.groupAnnotations" $root) }}
  - name: {{ .name }}
    expression: {{ quote $expression }}
  {{- end }}
  {{- with $webhook.namespaceSelector }}
  namespaceSelector:
    matchExpressions:
    {{- toYaml .matchExpressions | nindent 4 }}
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: [{{ $root.Release.Namespace }}]
    {{- with $values.namespaceSelectorExpressions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end -}}
