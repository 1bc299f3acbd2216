{{/* Pods of all components that serve metrics, whatever the component. */}}
{{- define "pumice.allPods" -}}
app.kubernetes.io/name: pumice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Metadata of an object of the Prometheus operator. */}}
{{- define "pumice.monitoringMetadata" -}}
name: {{ include "pumice.fullname" . }}
namespace: {{ .Release.Namespace }}
labels: {{- include "pumice.labelsWith" (list . "monitoring" .Values.monitoring.labels) | nindent 2 }}
{{- end -}}

{{/* Where and how often metrics are read. */}}
{{- define "pumice.metricsEndpoint" -}}
port: metrics
{{- with .Values.monitoring.interval }}
interval: {{ . }}
{{- end }}
{{- end -}}
