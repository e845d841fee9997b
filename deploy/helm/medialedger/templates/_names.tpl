{{- define "medialedger.name" -}}
{{- if contains "medialedger" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-medialedger" (.Release.Name | trunc 28) -}}
{{- end -}}
{{- end -}}

{{- define "medialedger.selector" -}}
app.kubernetes.io/name: medialedger
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "medialedger.labels" -}}
{{ include "medialedger.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* As the product reads it. YAML takes a plain `on` for true, and Helm every number for a float, which text shows as 1e+06. */}}
{{- define "medialedger.setting" -}}
{{- if kindIs "bool" . -}}
{{- ternary "on" "off" . -}}
{{- else if kindIs "string" . -}}
{{- . -}}
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}

{{- define "medialedger.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}
