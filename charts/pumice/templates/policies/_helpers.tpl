{{/* Whether admission is by webhook: "true" or nothing. */}}
{{- define "pumice.byWebhook" -}}
{{- if and .Values.webhook.enabled (eq .Values.admission.mode "webhook") }}true{{ end -}}
{{- end -}}

{{/* Whether admission is by policies: "true" or nothing. */}}
{{- define "pumice.byPolicies" -}}
{{- if and .Values.webhook.enabled (eq .Values.admission.mode "policies") }}true{{ end -}}
{{- end -}}

{{/* A list of names as CEL writes it. */}}
{{- define "pumice.celList" -}}
['{{ join "', '" . }}']
{{- end -}}

{{/*
Where a rule has a level: (list root form level). A condition in CEL, nothing for nowhere. YAML reads
`off` as false.
*/}}
{{- define "pumice.policyScope" -}}
{{- $settings := (index . 0).Values.webhook.settings -}}
{{- $form := index . 1 -}}
{{- $level := index . 2 -}}
{{- $applies := true -}}
{{- with $form.setting -}}
{{- $value := .default -}}
{{- if hasKey $settings .name -}}
{{- $value = get $settings .name -}}
{{- end -}}
{{- $applies = eq (toString $value) (toString .value) -}}
{{- end -}}
{{- if $applies -}}
{{- $usual := $form.level -}}
{{- if and $form.stricter (eq (toString (get $settings "strict-upstream")) "true") -}}
{{- $usual = "warn" -}}
{{- end -}}
{{- with $settings.rules -}}
{{- if hasKey . $form.code -}}
{{- $usual = get . $form.code | toString | replace "false" "off" -}}
{{- end -}}
{{- end -}}
{{- $same := list -}}
{{- $other := list -}}
{{- range $namespace, $rules := $settings.namespaces -}}
{{- if hasKey $rules $form.code -}}
{{- if eq (get $rules $form.code | toString | replace "false" "off") $level -}}
{{- $same = append $same $namespace -}}
{{- else -}}
{{- $other = append $other $namespace -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $usual $level -}}
{{- if $other }}!(request.namespace in {{ include "pumice.celList" (sortAlpha $other) }}){{ else }}true{{ end -}}
{{- else if $same -}}
request.namespace in {{ include "pumice.celList" (sortAlpha $same) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A CEL expression of the generated file, values filled in: (list root expression). */}}
{{- define "pumice.policyExpression" -}}
{{- $values := (index . 0).Values -}}
{{- $plugins := "" -}}
{{- range $values.admission.jobPlugins -}}
{{- $plugins = printf "%s, %s" $plugins (include "pumice.celText" .) -}}
{{- end -}}
{{- index . 1 | replace ", '$jobPlugins'" $plugins | replace "$schedulerNames" (include "pumice.schedulerNames" (index . 0)) | replace "$firstScheduler" $values.schedulerName -}}
{{- end -}}

{{/* What policies of a kind are asked about: (list root spec). */}}
{{- define "pumice.policyMatch" -}}
{{- $root := index . 0 -}}
{{- $spec := index . 1 -}}
failurePolicy: {{ $spec.failurePolicy }}
matchConstraints:
  {{- omit $spec.matchConstraints "namespaceSelector" | toYaml | nindent 2 }}
  {{- with $spec.matchConstraints.namespaceSelector }}
  namespaceSelector:
    matchExpressions: {{- include "pumice.namespaceExpressions" (list $root .matchExpressions) | nindent 4 }}
  {{- end }}
{{- with $spec.matchConditions }}
matchConditions:
{{- range . }}
- name: {{ .name }}
  expression: {{ include "pumice.policyExpression" (list $root .expression) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Variables of a policy: (list root variables). */}}
{{- define "pumice.policyVariables" -}}
{{- $root := index . 0 -}}
{{- range index . 1 }}
- name: {{ .name }}
  expression: {{ include "pumice.policyExpression" (list $root .expression) | quote }}
{{- end }}
{{- end -}}

{{/* A validation that fails when a list of texts is not empty, and tells them. */}}
{{- define "pumice.policyValidation" -}}
{{- $text := printf "%s.join('; ').replace('\\n', ' ')" . -}}
- expression: {{ printf "%s.size() == 0" . | quote }}
  messageExpression: {{ printf "bytes(%s).size() <= 5000 ? %s : %s.substring(0, 1200) + ' …'" $text $text $text | quote }}
  message: breaks rules of admission; the reasons are too long to be told
  reason: Invalid
{{- end -}}

{{/*
The policy of a kind that takes of a draft the rules of one level, and its binding: (list root draft
level). Nothing when there are none. It says what pumice.webhook.policies.manifests says.
*/}}
{{- define "pumice.validatingPolicy" -}}
{{- $root := index . 0 -}}
{{- $draft := index . 1 -}}
{{- $level := index . 2 -}}
{{- $name := ternary $draft.name (printf "%s-warn" $draft.name) (eq $level "enforce") -}}
{{- $forms := list -}}
{{- range $draft.forms -}}
{{- $scope := include "pumice.policyScope" (list $root . $level) -}}
{{- if $scope -}}
{{- $forms = append $forms (merge (dict "scope" $scope "id" (replace "-" "_" .code)) .) -}}
{{- end -}}
{{- end -}}
{{- if $forms -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels: {{- include "pumice.labels" (list $root "policies") | nindent 4 }}
spec:
  {{- include "pumice.policyMatch" (list $root $draft.spec) | nindent 2 }}
  variables:
  {{- include "pumice.policyVariables" (list $root $draft.variables) | trim | nindent 2 }}
  {{- $covered := list }}
  {{- range $draft.forms }}
  {{- if has .code $draft.covering }}
  {{- include "pumice.policyVariables" (list $root .variables) | trim | nindent 2 }}
  {{- $scope := include "pumice.policyScope" (list $root . "enforce") }}
  {{- if $scope }}
  {{- $covered = append $covered (printf "(%s ? variables.%s.map(p, p[0]) : [])" $scope (replace "-" "_" .code)) }}
  {{- end }}
  {{- end }}
  {{- end }}
  {{- if $draft.covering }}
  - name: covered
    expression: {{ join " + " $covered | default "[]" | quote }}
  {{- end }}
  {{- $told := list }}
  {{- range $forms }}
  {{- if not .erring }}
  {{- $told = append $told (printf "variables.%s_told" .id) }}
  {{- if not (has .code $draft.covering) }}
  {{- include "pumice.policyVariables" (list $root .variables) | trim | nindent 2 }}
  {{- end }}
  {{- end }}
  {{- end }}
  {{- range $forms }}
  {{- if not .erring }}
  - name: {{ .id }}_told
    expression: {{ ternary .problems (printf "%s ? %s : []" .scope .problems) (eq .scope "true") | quote }}
  {{- end }}
  {{- end }}
  {{- if and $told (eq $level "enforce") }}
  - name: problems
    expression: {{ printf "[%s].flatten()" (join ", " $told) | quote }}
  {{- end }}
  validations:
  {{- if and $told (eq $level "enforce") }}
  {{- include "pumice.policyValidation" "variables.problems" | nindent 2 }}
  {{- else }}
  {{- range $told }}
  {{- include "pumice.policyValidation" . | nindent 2 }}
  {{- end }}
  {{- end }}
  {{- range $forms }}
  {{- if .erring }}
  - expression: {{ ternary .erring (printf "!(%s) || (%s)" .scope .erring) (eq .scope "true") | quote }}
    message: breaks rules of admission; the reasons are too long to be told
    reason: Invalid
  {{- end }}
  {{- end }}
---
{{ include "pumice.policyBinding" (list $root "Validating" $name) }}
  validationActions: {{ ternary "[Deny]" "[Warn, Audit]" (eq $level "enforce") }}
{{- end -}}
{{- end -}}

{{/* A policy's binding, which bears the same name: (list root sort name). */}}
{{- define "pumice.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: {{ index . 1 }}AdmissionPolicyBinding
metadata:
  name: {{ index . 2 }}
  labels: {{- include "pumice.labels" (list (index . 0) "policies") | nindent 4 }}
spec:
  policyName: {{ index . 2 }}
{{- end -}}
