{{/* Metadata of a policy and of its binding: (list root name). */}}
{{- define "pumice.policyMetadata" -}}
name: {{ index . 1 }}
labels: {{- include "pumice.labels" (list (index . 0) "policies") | nindent 2 }}
{{- end -}}

{{/* The namespaces whose objects a policy is asked about. */}}
{{- define "pumice.policyNamespaces" -}}
{{- $system := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" (list "kube-system") -}}
matchExpressions: {{- include "pumice.namespaceExpressions" (list . (list $system)) | nindent 0 }}
{{- end -}}

{{/* Objects that are being deleted and updates that do not change the spec are not looked at. */}}
{{- define "pumice.policyConditions" -}}
- name: not-being-deleted
  expression: "!has(object.metadata.deletionTimestamp)"
- name: spec-changes
  expression: request.operation != 'UPDATE' || object.?spec != oldObject.?spec
{{- end -}}

{{/* The binding of a policy that refuses, or of one that writes defaults: (list root sort name). */}}
{{- define "pumice.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: {{ index . 1 }}AdmissionPolicyBinding
metadata: {{- include "pumice.policyMetadata" (list (index . 0) (index . 2)) | nindent 2 }}
spec:
  policyName: {{ index . 2 }}
  {{- if eq (index . 1) "Validating" }}
  validationActions: [Deny]
  {{- end }}
{{- end -}}

{{/* Names of the job plugins that a Job may ask for, as CEL writes them. */}}
{{- define "pumice.policyPlugins" -}}
'env', 'hcclrank', 'mpi', 'mxnet', 'pytorch', 'ray', 'roles', 'ssh', 'svc', 'task-topology', 'tensorflow'
{{- range .Values.admission.jobPlugins }}, {{ include "pumice.celText" . }}{{ end -}}
{{- end -}}
