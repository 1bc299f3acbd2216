{{/* Name that all objects of the release start with. */}}
{{- define "pumice.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "pumice.image" -}}
{{- $image := .Values.image -}}
{{- list $image.registry $image.repository | compact | join "/" -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end -}}

{{/* Labels that select the pods of a component: (list root component). */}}
{{- define "pumice.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: pumice
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* The same for those pods that serve one namespace: (list root component namespace), which may be empty. */}}
{{- define "pumice.serving" -}}
{{ include "pumice.selector" . }}
{{- with index . 2 }}
pumice.dev/namespace: {{ . }}
{{- end }}
{{- end -}}

{{/* Labels of an object, with further ones of its own: (list root component labels). */}}
{{- define "pumice.labelsWith" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{ include "pumice.selector" . }}
{{- with merge dict (index . 2) $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of every object: (list root component). */}}
{{- define "pumice.labels" -}}
{{ include "pumice.labelsWith" (list (index . 0) (index . 1) dict) }}
{{- end -}}

{{/* Whether admission is by webhook: "true" or nothing. */}}
{{- define "pumice.byWebhook" -}}
{{- if and .Values.webhook.enabled (eq .Values.admission.mode "webhook") }}true{{ end -}}
{{- end -}}

{{/* Whether admission is by policies: "true" or nothing. */}}
{{- define "pumice.byPolicies" -}}
{{- if and .Values.webhook.enabled (eq .Values.admission.mode "policies") }}true{{ end -}}
{{- end -}}

{{/* Whether a component is installed: (list root component); "true" or nothing. */}}
{{- define "pumice.isInstalled" -}}
{{- $root := index . 0 -}}
{{- if eq (index . 1) "webhook" }}{{ include "pumice.byWebhook" $root }}{{ else if (index $root.Values (index . 1)).enabled }}true{{ end -}}
{{- end -}}

{{- define "pumice.component" -}}
{{- printf "%s-%s" (include "pumice.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{- define "pumice.secretName" -}}
{{- default (printf "%s-webhook-certs" (include "pumice.fullname" .)) .Values.webhook.secretName -}}
{{- end -}}

{{/* Secret that is served from, where another component keeps it. */}}
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
  {{- with (index $root.Values (index . 1)).serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
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

{{/* Name of what a component has for one of the named namespaces: (list root component namespace). */}}
{{- define "pumice.namespaced" -}}
{{- printf "%s-%s" (include "pumice.component" .) (index . 2) -}}
{{- end -}}

{{/* Binds a component's ServiceAccount to its Role in one of the named namespaces: (list root component namespace). */}}
{{- define "pumice.namespacedRoleBinding" -}}
{{- $root := index . 0 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "pumice.namespaced" . }}
  namespace: {{ index . 2 }}
  labels: {{- include "pumice.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "pumice.namespaced" . }}
subjects:
- kind: ServiceAccount
  name: {{ include "pumice.component" . }}
  namespace: {{ $root.Release.Namespace }}
{{- end -}}

{{/* Metadata of a component's pods: (list root component annotations), and the namespace that they serve, if it is one. */}}
{{- define "pumice.podMetadata" -}}
{{- $root := index . 0 -}}
labels: {{- include "pumice.labelsWith" (list $root (index . 1) (index $root.Values (index . 1)).podLabels) | nindent 2 }}
{{- if gt (len .) 3 }}
{{- with index . 3 }}
  pumice.dev/namespace: {{ . }}
{{- end }}
{{- end }}
{{- with index . 2 }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Everything of a pod that the components share: (list root component values), and the namespace that they serve, if it is
one.
*/}}
{{- define "pumice.podCommon" -}}
{{- $root := index . 0 -}}
{{- $values := index . 2 -}}
{{- $serving := "" -}}
{{- if gt (len .) 3 -}}{{- $serving = index . 3 -}}{{- end -}}
serviceAccountName: {{ printf "%s-%s" (include "pumice.fullname" $root) (index . 1) }}
{{- $critical := ternary "system-cluster-critical" "" (eq $root.Release.Namespace "kube-system") }}
{{- with default $critical $values.priorityClassName }}
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
          matchLabels: {{- include "pumice.serving" (list $root (index . 1) $serving) | nindent 12 }}
{{- end }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "pumice.serving" (list $root (index . 1) $serving) | nindent 6 }}
enableServiceLinks: false
securityContext: {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- end -}}

{{/* Everything of a container that the components share: (list root values env), where env is what the component sets itself. */}}
{{- define "pumice.containerCommon" -}}
{{- $root := index . 0 -}}
image: {{ include "pumice.image" $root | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext: {{- toYaml $root.Values.securityContext | nindent 2 }}
resources: {{- toYaml (index . 1).resources | nindent 2 }}
{{- with concat (index . 2) (index . 1).env }}
env: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{/* Arguments of all components, the last of a container's: (list root values). */}}
{{- define "pumice.lastArguments" -}}
- '--metrics-port={{ (index . 1).metricsPort }}'
- --log-level={{ (index . 0).Values.logLevel }}
{{- with (index . 1).extraArgs }}
{{ toYaml . }}
{{- end }}
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
{{- include "pumice.configFile" .Values.scheduler.config | default (.Files.Get "files/volcano-scheduler.conf") -}}
{{- end -}}

{{/* Names of the schedulers whose pods are judged, as a list in CEL. */}}
{{- define "pumice.schedulerNames" -}}
{{- prepend .Values.webhook.extraSchedulerNames .Values.schedulerName | uniq | join "', '" -}}
{{- end -}}

{{/* A text as CEL writes it. */}}
{{- define "pumice.celText" -}}
'{{ . | replace "\\" "\\\\" | replace "'" "\\'" }}'
{{- end -}}

{{/*
Conditions on the namespaces whose objects are reviewed: (list root generated). Those of the generated
file, the release's own namespace, and what the values add.
*/}}
{{- define "pumice.namespaceExpressions" -}}
{{- $root := index . 0 -}}
{{- $name := "kubernetes.io/metadata.name" -}}
{{- $exempt := false -}}
{{- range index . 1 -}}
{{- $exempt = or $exempt (and (eq .key $name) (eq .operator "NotIn") (has $root.Release.Namespace .values)) -}}
{{- end -}}
{{- $own := dict "key" $name "operator" "NotIn" "values" (list $root.Release.Namespace) -}}
{{- concat (index . 1) (ternary list (list $own) $exempt) $root.Values.webhook.namespaceSelectorExpressions | toYaml -}}
{{- end -}}

{{/* An amount such as 500m or 1.5Gi, as a number. */}}
{{- define "pumice.amount" -}}
{{- $text := toString . | trimPrefix "+" -}}
{{- $number := regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" $text -}}
{{- $decimal := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $binary := dict "Ki" 0x1p10 "Mi" 0x1p20 "Gi" 0x1p30 "Ti" 0x1p40 "Pi" 0x1p50 "Ei" 0x1p60 -}}
{{- mulf (float64 $number) (get (merge $decimal $binary) (trimPrefix $number $text)) -}}
{{- end -}}

{{/* A length of time such as 720h, in seconds. */}}
{{- define "pumice.seconds" -}}
{{- toDate "2006" "1970" | dateModify . | unixEpoch -}}
{{- end -}}

{{/* A configuration file that the values hold as a string or as YAML. */}}
{{- define "pumice.configFile" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toYaml . }}{{ end }}
{{- end }}
