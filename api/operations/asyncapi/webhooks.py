"""The webhook part: notifications as JSON and as a form, and the callbacks, with their headers."""

from __future__ import annotations

from enum import Enum
from typing import Any

from domain.destination.targets import Target
from domain.event.values import EventState, Mp4State
from domain.provision.values import ENDED, ProvisionState
from domain.publication.values import PublicationState
from workers.webhook.callbacks.policy import JOB_STATUSES, TASK_STATUSES
from workers.webhook.policy import PayloadAction

_SCHEMAS = "#/components/schemas/"


def _names(kind: type[Enum]) -> dict[str, Any]:
    return {"type": "string", "enum": [member.name for member in kind]}


def _changed(what: str) -> dict[str, Any]:
    return {"type": "boolean", "description": f"{what} changed."}


_TEXT = {"type": "string"}
_FIELDS: dict[str, dict[str, Any]] = {
    "eventId": {"type": "string", "format": "uuid"},
    "referenceId": _TEXT,
    "externalId": _TEXT,
    "state": {**_names(EventState), "description": "The state after the change, on retries too. The other states likewise."},
    "stateChanged": _changed("The state"),
    "metadataChanged": _changed("A field without its own flag"),
    "thumbnailChanged": _changed("The thumbnail"),
    "isForced": {"type": "boolean", "description": "True if the notification was requested explicitly."},
    "audioChanged": _changed("The audio inputs"),
    "mp4State": _names(Mp4State),
    "mp4StateChanged": _changed("The Mp4State"),
    "chapterPointsChanged": _changed("The Chapter Points"),
    "assetsChanged": _changed("The Assets"),
    "provisionState": {"type": ["string", "null"], "enum": [*_names(ProvisionState)["enum"], None]},
    "provisionStateChanged": _changed("The provisioning state"),
    "capturingLive2VodFlagChanged": _changed("`capturingLive2Vod`"),
    "action": {"type": "string", "enum": [action.value for action in PayloadAction]},
}
_HEADERS = {
    "webhook-id": {"type": "string", "format": "uuid", "description": "The id of the notification, the same on every attempt."},
    "webhook-timestamp": {
        "type": "string",
        "pattern": "^[0-9]+$",
        "description": "The time of this attempt, in seconds of Unix time.",
    },
    "webhook-signature": {
        "type": "string",
        "pattern": "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$",
        "description": (
            "`v1,` and the Base64 of the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`, under the webhook's secret; "
            "for 24 hours after the secret was replaced, a second signature under the previous secret."
        ),
    },
}


_CALLBACK_FIELDS: dict[str, dict[str, Any]] = {
    "job_id": {"type": "integer"},
    "status": {"type": "string", "enum": [*JOB_STATUSES, *TASK_STATUSES]},
    "workflow": {"type": "string"},
    "content_id": {"type": "string"},
    "message": {"type": "string", "description": "The error, or the message of the step about its result; may be empty."},
    "files": {"type": "array", "items": {"type": "string"}, "description": "The published files, below the media root."},
    "metadata": {
        "type": "object",
        "description": "For a task, the findings of its step; for an ended job, the findings by the names of its steps.",
    },
    "custom_data": {"description": "The data submitted with the job, with credentials masked; null if there were none."},
    "time": {"type": "string", "format": "date-time"},
    "client": {"type": "string"},
}
_PROVISION_FIELDS: dict[str, dict[str, Any]] = {
    "eventId": {"type": "string", "format": "uuid"},
    "infrastructureKey": {"type": "string"},
    "state": {"type": "integer", "enum": [int(state) for state in ENDED]},
    "stateString": {"type": "string", "enum": [state.name for state in ENDED]},
    "resources": {"type": "array", "items": {"type": "object"}, "description": "The provisioned resources, as GET shows them."},
    "time": {"type": "string", "format": "date-time"},
}
_OF_A_TASK: dict[str, dict[str, Any]] = {
    "task": {"type": "string", "description": "The step's name; only if the status is of a task."},
    "attempt": {"type": "integer", "description": "Number of the attempt, from 1; only if the status is of a task."},
}


def _form_text(value: str | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else value or ""


_HEADER_EXAMPLES = {
    "webhook-id": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "webhook-timestamp": "1924992000",
    "webhook-signature": "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
}
_NOTIFICATION: dict[str, str | bool | None] = {
    "eventId": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
    "referenceId": "cup-2031",
    "externalId": "",
    "state": "LIVE_PUBLISHED",
    "stateChanged": True,
    "metadataChanged": False,
    "thumbnailChanged": False,
    "isForced": False,
    "audioChanged": False,
    "mp4State": "NONE",
    "mp4StateChanged": False,
    "chapterPointsChanged": False,
    "assetsChanged": False,
    "provisionState": None,
    "provisionStateChanged": False,
    "capturingLive2VodFlagChanged": False,
    "action": PayloadAction.UPDATED.value,
}
_FORM = {name[0].upper() + name[1:]: _form_text(value) for name, value in _NOTIFICATION.items()}
_CALLBACK = {
    "job_id": 17,
    "status": JOB_STATUSES[0],
    "workflow": "http_fetch_verify",
    "content_id": "film",
    "message": "",
    "files": [],
    "metadata": {},
    "custom_data": None,
    "time": "2031-01-02T03:04:05.000Z",
    "client": "studio",
}
_PROVISION = {
    "eventId": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
    "infrastructureKey": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
    "state": int(ProvisionState.PROVISIONED),
    "stateString": ProvisionState.PROVISIONED.name,
    "resources": [{"name": "origin-1", "type": "origin", "ipAddress": "198.51.100.7"}],
    "time": "2031-01-02T03:04:05.000Z",
}

_PUBLICATION_FIELDS = {
    "publicationId": {"type": "string", "format": "uuid"},
    "destinationId": {"type": "string", "format": "uuid"},
    "contentId": {"type": "string"},
    "transactionId": {"type": "string", "format": "uuid"},
    "target": {"type": "integer", "enum": [int(target) for target in Target], "description": "The kind of the destination."},
    "publicationState": {"type": "integer", "enum": [int(state) for state in PublicationState]},
    "publicationStateString": {"type": "string", "enum": [state.name for state in PublicationState]},
    "published": {"type": "boolean", "description": "True if the target shows it to the public."},
    "reason": {"type": "string", "description": "The reason why it failed; otherwise empty."},
    "time": {"type": "string", "format": "date-time"},
    "client": {"type": "string", "description": "The client that created the publication."},
}
_PUBLICATION = {
    "publicationId": "6f9619ff-8b86-4d01-b42d-00c04fc964ff",
    "destinationId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "contentId": "film",
    "transactionId": "7d444840-9dc0-41d1-b245-5ffdce74fad2",
    "target": int(Target.S3),
    "publicationState": int(PublicationState.Completed),
    "publicationStateString": PublicationState.Completed.name,
    "published": False,
    "reason": "",
    "time": "2031-01-02T03:04:05.000Z",
    "client": "studio",
}


def webhook_part() -> dict[str, dict[str, Any]]:
    """Return the sections of the document, the sections of the components next to the channels."""
    json, form_type = "application/json", "application/x-www-form-urlencoded"
    messages = {
        "notification.json": _message("Notification", json, "To a webhook whose `useJsonBody` is true.", example=_NOTIFICATION),
        "notification.form": _message("NotificationForm", form_type, "To any other webhook.", example=_FORM),
    }
    callbacks = {
        "job_callback": _message("JobCallback", json, "To each callback address of a job.", example=_CALLBACK, name="job_callback"),
        "provision_callback": _message(
            "ProvisionCallback",
            json,
            "To each callback address of an infrastructure profile.",
            example=_PROVISION,
            name="provision_callback",
        ),
        "publication_callback": _message(
            "PublicationCallback",
            json,
            "To each callback address of a publication.",
            example=_PUBLICATION,
            name="publication_callback",
        ),
    }
    form = {name[0].upper() + name[1:]: _in_form(field) for name, field in _FIELDS.items()}
    return {
        "channels": {
            "notification": _channel(messages, "the URL of each webhook, of the Event or system-wide"),
            "job_callback": _channel(
                _single(callbacks, "job_callback"), "each callback URL of the job, or of the flow of its Event"
            ),
            "provision_callback": _channel(
                _single(callbacks, "provision_callback"),
                "each callback URL that the infrastructure profile had when the Event was provisioned",
            ),
            "publication_callback": _channel(_single(callbacks, "publication_callback"), "each callback URL of the publication"),
        },
        "operations": {
            "send.notification": _operation("notification", "One message for each webhook and write that changed an Event"),
            "send.job_callback": _operation(
                "job_callback", "One message for each callback address and change of the job or of one of its tasks"
            ),
            "send.provision_callback": _operation(
                "provision_callback",
                "One message for each callback address when the infrastructure is provisioned, has failed or is terminated",
            ),
            "send.publication_callback": _operation(
                "publication_callback",
                "One message for each callback address when the state changes, or the target shows or hides the publication",
            ),
        },
        "schemas": {
            "WebhookHeaders": _whole(_HEADERS, "Standard Webhooks 1.0, in addition to the webhook's own headers."),
            "Notification": _whole(_FIELDS, "The effect of a write on an Event."),
            "NotificationForm": _whole(form, "The effect of a write on an Event. Null is an empty text."),
            "ProvisionCallback": _whole(
                _PROVISION_FIELDS, "The outcome of provisioning or terminating the infrastructure of an Event."
            ),
            "PublicationCallback": _whole(_PUBLICATION_FIELDS, "The new state of a publication."),
            "JobCallback": {
                **_whole(_CALLBACK_FIELDS, "A change of a job or of one of its tasks."),
                "properties": {**_CALLBACK_FIELDS, **_OF_A_TASK},
            },
        },
        "messages": {**messages, **callbacks},
    }


def _single(messages: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: messages[name]}


def _channel(messages: dict[str, Any], where: str) -> dict[str, Any]:
    return {
        "address": None,
        "description": f"POST to {where}; with basic authentication if it is configured.",
        "servers": [{"$ref": "#/servers/subscriber"}],
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
    }


def _operation(channel: str, what: str) -> dict[str, Any]:
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": f"{what}; retried unless the answer is 2xx or 410.",
        "bindings": {"http": {"method": "POST", "bindingVersion": "0.3.0"}},
    }


def _message(
    schema: str, content_type: str, summary: str, *, example: dict[str, Any], name: str = "notification"
) -> dict[str, Any]:
    return {
        "name": name,
        "summary": summary,
        "contentType": content_type,
        "headers": {"$ref": f"{_SCHEMAS}WebhookHeaders"},
        "payload": {"$ref": f"{_SCHEMAS}{schema}"},
        "examples": [{"headers": _HEADER_EXAMPLES, "payload": example}],
    }


def _whole(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": properties, "required": list(properties)}


def _in_form(field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field in a form, which holds text: `true` and `false`, and null as an empty text."""
    if field["type"] == "boolean":
        return {**field, "type": "string", "enum": ["true", "false"]}
    choices = {"enum": ["" if choice is None else choice for choice in field["enum"]]} if "enum" in field else {}
    return {**field, "type": "string", **choices}
