{{/* What all pods have. The product asks for a master key that only its user can read; a secret's file with fsGroup is the group's too. */}}
{{- define "medialedger.pod" -}}
automountServiceAccountToken: false
{{/* Else a service named medialedger would set MEDIALEDGER_PORT in every pod. */ -}}
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "medialedger.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- define "medialedger.key" -}}
initContainers:
  - name: master-key
    {{- include "medialedger.image" . | nindent 4 }}
    command: [install, -m, "0600", /run/secrets/medialedger/master.key, /var/lib/medialedger/master.key]
    {{- include "medialedger.confined" . | nindent 4 }}
    volumeMounts:
      - { name: home, mountPath: /var/lib/medialedger }
      - { name: master-key, mountPath: /run/secrets/medialedger, readOnly: true }
{{- end -}}

{{- define "medialedger.environment" -}}
envFrom:
  - configMapRef:
      name: {{ include "medialedger.name" . }}
  {{- with .Values.secretSettings }}
  - secretRef:
      name: {{ . }}
  {{- end }}
env:
  - name: MEDIALEDGER_DATABASE_URL
    valueFrom:
      secretKeyRef:
        name: {{ .Values.database.existingSecret }}
        key: {{ .Values.database.urlKey }}
{{- end -}}

{{- define "medialedger.mounts" -}}
volumeMounts:
  - { name: home, mountPath: /var/lib/medialedger }
  - { name: tmp, mountPath: /tmp }
  {{- if .Values.media.existingClaim }}
  - { name: media, mountPath: /media }
  {{- end }}
{{- end -}}

{{- define "medialedger.volumes" -}}
volumes:
  - name: home
    emptyDir: {}
  - name: tmp
    emptyDir: {}
  - name: master-key
    secret:
      secretName: {{ .Values.masterKey.existingSecret }}
      items:
        - key: {{ .Values.masterKey.key }}
          path: master.key
  {{- with .Values.media.existingClaim }}
  - name: media
    persistentVolumeClaim:
      claimName: {{ . }}
  {{- end }}
{{- end -}}

{{- define "medialedger.placing" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
