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
{{- default (printf "%s-webhook-ca" (include "pumice.fullname" .)) .Values.webhook.secretName -}}
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

{{/* Everything of a pod that the components share: (list root component values). */}}
{{- define "pumice.podCommon" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
serviceAccountName: {{ printf "%s-%s" (include "pumice.fullname" $root) (index . 1) }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- range . }}
- name: {{ . }}
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
image: {{ include "pumice.image" $root }}
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
  verbs: [get, update, patch]
{{- end -}}

{{/* Volcano's prefix of webhook configuration names, so that there is one set of them in a cluster. */}}
{{- define "pumice.webhookPrefix" -}}
volcano-admission-service
{{- end -}}

{{/* One webhook configuration: (list root webhook). */}}
{{- define "pumice.webhookConfiguration" -}}
{{- $root := index . 0 -}}
{{- $webhook := index . 1 -}}
{{- $values := $root.Values.webhook -}}
apiVersion: admissionregistration.k8s.io/v1
kind: {{ ternary "MutatingWebhookConfiguration" "ValidatingWebhookConfiguration" $webhook.mutating }}
metadata:
  name: {{ include "pumice.webhookPrefix" $root }}{{ $webhook.suffix }}
  labels: {{- include "pumice.labels" (list $root "webhook") | nindent 4 }}
webhooks:
- name: {{ $webhook.name }}
  admissionReviewVersions: [v1]
  clientConfig:
    {{- if $values.url }}
    url: {{ printf "%s%s" (trimSuffix "/" $values.url) $webhook.path }}
    {{- else }}
    service:
      name: {{ include "pumice.component" (list $root "webhook") }}
      namespace: {{ $root.Release.Namespace }}
      path: {{ $webhook.path }}
      port: 443
    {{- end }}
  failurePolicy: {{ ternary $values.failurePolicy "Ignore" (eq $webhook.failurePolicy "Fail") }}
  matchPolicy: Equivalent
  timeoutSeconds: {{ $values.timeoutSeconds }}
  sideEffects: None
  {{- if $webhook.mutating }}
  reinvocationPolicy: IfNeeded
  {{- end }}
  rules:
  - apiGroups: [{{ $webhook.group | quote }}]
    apiVersions: [{{ $webhook.version }}]
    resources: [{{ $webhook.resource }}]
    operations: [{{ join ", " $webhook.operations }}]
    scope: {{ ternary "Namespaced" "Cluster" $webhook.namespaced }}
  {{- if $webhook.namespaced }}
  namespaceSelector:
    matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values: [{{ $root.Release.Namespace }}, kube-system]
    {{- with $values.namespaceSelectorExpressions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- with $webhook.matchConditions }}
  matchConditions:
  {{- range . }}
  - name: {{ .name }}
    expression: {{ .expression | replace "$schedulerName" $root.Values.schedulerName | quote }}
  {{- end }}
  {{- end }}
{{- end -}}
