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
{{- if $index }}, {{ end }}{{ include "pumice.celText" $name }}
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
{{- $pairs := ternary . (fromYaml (toString .)) (kindIs "map" .) -}}
{{- /* What Helm gives for a text that is no map. */ -}}
{{- if hasPrefix "error " (get $pairs "Error" | toString) -}}
{{- fail (printf "webhook.resourceGroups: %q is no annotation such as \"key: value\"" .) -}}
{{- end -}}
{{- $found = concat $found (keys $pairs) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range without ($found | uniq | sortAlpha) "volcano.sh/resource-group" "pumice.dev/plugins" "scheduling.volcano.sh/queue-allocation-gate" -}}
, {{ include "pumice.celText" . }}
{{- end -}}
{{- end -}}

{{/*
What follows the path of an endpoint. When a webhook does not answer, the API server's error shows its
address, and nothing else that we could write: so the address says what to do.
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
To admit everything unchecked until it is repaired, add `--set webhook.failurePolicy=Ignore` to:
  helm upgrade {{ .Release.Name }} CHART -n {{ .Release.Namespace }} --reset-then-reuse-values
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
- {{ omit $webhook "clientConfig" "failurePolicy" "namespaceSelector" "objectSelector" "matchConditions" | toYaml | nindent 2 | trim }}
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
  {{- /* The controller, which labels pods, knows nothing of resource groups; only mutation does. */}}
  {{- if not (and $values.resourceGroups (eq $configuration.kind "MutatingWebhookConfiguration")) }}
  {{- with $webhook.objectSelector }}
  objectSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $webhook.namespaceSelector }}
  namespaceSelector:
    matchExpressions: {{- include "pumice.namespaceExpressions" (list $root .matchExpressions) | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/*
The same configuration where admission is not by webhook: (list root configuration). Nothing where another
release, Volcano for one, has it.
*/}}
{{- define "pumice.emptyConfiguration" -}}
{{- $root := index . 0 -}}
{{- $configuration := index . 1 -}}
{{- $name := $configuration.metadata.name -}}
{{- $found := lookup $configuration.apiVersion $configuration.kind "" $name -}}
{{- $release := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $found -}}
{{- $namespace := dig "metadata" "annotations" "meta.helm.sh/release-namespace" "" $found -}}
{{- if or (empty $found) (and (eq $release $root.Release.Name) (eq $namespace $root.Release.Namespace)) -}}
apiVersion: {{ $configuration.apiVersion }}
kind: {{ $configuration.kind }}
metadata:
  name: {{ $name }}
  labels: {{- include "pumice.labels" (list $root "webhook") | nindent 4 }}
webhooks: []
{{- end -}}
{{- end -}}
