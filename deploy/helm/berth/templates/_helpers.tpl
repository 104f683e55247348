{{- define "berth.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}

{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "berth.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The addresses of all servers, as clients know them. */}}
{{- define "berth.servers" -}}
{{- $servers := list -}}
{{- range $i := until (int .Values.berthd.replicas) -}}
{{- $servers = append $servers (printf "%s-berthd-%d.%s-berthd.%s.svc:7070" (include "berth.name" $) $i (include "berth.name" $) $.Release.Namespace) -}}
{{- end -}}
{{ join "," $servers }}
{{- end -}}

{{/* What values.schema.json cannot say. */}}
{{- define "berth.check" -}}
{{- if and (gt (int .Values.berthd.replicas) 1) (not .Values.ha.enabled) -}}
{{- fail "berthd.replicas: several servers need ha.enabled" -}}
{{- end -}}
{{- if .Values.ha.enabled -}}
{{- if not .Values.ha.etcd -}}{{- fail "ha.etcd: the addresses of etcd are missing" -}}{{- end -}}
{{- if not .Values.ha.etcdSecret -}}{{- fail "ha.etcdSecret: the secret with the certificate for etcd is missing" -}}{{- end -}}
{{- if and .Values.ha.initialize (gt (int .Values.berthd.replicas) 1) -}}
{{- fail "ha.initialize: only with berthd.replicas 1; add servers afterwards, without it" -}}
{{- end -}}
{{- else if .Values.ha.initialize -}}
{{- fail "ha.initialize needs ha.enabled" -}}
{{- end -}}
{{- if .Values.web.enabled -}}
{{- if not .Values.web.url -}}{{- fail "web.url is missing" -}}{{- end -}}
{{- if not .Values.web.tlsSecret -}}{{- fail "web.tlsSecret is missing" -}}{{- end -}}
{{- if not (or .Values.web.certificatesSecret (hasKey .Values.web.config "authd")) -}}
{{- fail "web: people sign in by web.config.authd or web.certificatesSecret" -}}
{{- end -}}
{{- end -}}
{{- end -}}
