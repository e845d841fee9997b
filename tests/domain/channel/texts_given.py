"""Complete configurations, and functions that change one place in them."""

from __future__ import annotations

import json
from typing import Any, Final

from domain.kernel.errors import Malformed
from domain.kernel.json_document import Section, checked

STREAM: Final = {
    "streamProtocol": "HLS",
    "vodCdnPrimaryUrl": "http://cdn/1",
    "vodCdnSecondaryUrl": "http://cdn/2",
    "vodOriginPrimaryUrl": "http://origin/1",
    "vodOriginSecondaryUrl": "http://origin/2",
    "vodPrivateUrl": "http://private",
}
SRVA: Final = {
    "primaryPublishingPoint": {"srvaApi": "http://srva/1", "srvaApiKey": "first-key"},
    "secondaryPublishingPoint": {"srvaApi": "http://srva/2", "srvaApiKey": "second-key"},
}
FLOW: Final[dict[str, Any]] = {
    "flows": [
        {
            "name": "main",
            "type": "TaskEngine",
            "ismUrl": "http://ism",
            "taskEngineSpecific": {"apiUrl": "http://api", "flowGuiUrl": "http://gui", "callbackUrls": ["http://callback"]},
            "streamingServer": {"type": "SRVA", "streamingServerSpecific": SRVA},
            "outputUrls": [STREAM],
            "storageUrlPublic": "http://storage",
            "captureOnStop": True,
            "instantVod": False,
            "storageUrlPrivate": "http://storage.inside",
        }
    ]
}
OUTPUT: Final = {
    "streamProtocol": "DASH",
    "liveCdnPrimaryUrl": "http://cdn/live/1",
    "liveCdnSecondaryUrl": "http://cdn/live/2",
    "liveOriginPrimaryUrl": "http://origin/live/1",
    "liveOriginSecondaryUrl": "http://origin/live/2",
    "vodCdnPrimaryUrl": "http://cdn/1",
    "vodCdnSecondaryUrl": "http://cdn/2",
    "vodOriginPrimaryUrl": "http://origin/1",
    "vodOriginSecondaryUrl": "http://origin/2",
    "vodPrivateUrl": "http://private",
}
CHANNEL: Final[dict[str, Any]] = {
    "statusCheckStrategy": "ALL",
    "encoders": [
        {
            "name": "enc-1",
            "type": "ffmpeg",
            "resource": "encoder-1",
            "supportsComposition": True,
            "encoderSpecific": {"preset": 3},
            "settings": {"password": "open sesame"},
            "streamingServer": {
                "type": "SRVA",
                "streamingServerSpecific": {
                    "primaryPublishingPoint": {
                        "resource": "origin-1",
                        "publishingPointUrl": "http://o/live.isml",
                        "srvaApi": "http://srva",
                        "srvaApiKey": "first-key",
                        "dvrWindowLength": 30,
                    },
                    "secondaryPublishingPoint": {},
                },
            },
            "outputUrls": [OUTPUT],
        }
    ],
    "playoutProfiles": [{"id": "low", "name": "Low", "outputUrls": [OUTPUT]}],
    "rampServers": [
        {
            "serverAddress": "http://ramp",
            "apiKey": "ramp-key",
            "location": "north",
            "proxyPass": "http://pass",
            "playerAddress": "http://player",
            "proxyPassEmpty": False,
        }
    ],
}
RESOURCE: Final = {
    "name": "origin-1",
    "type": "origin",
    "vendor": "acme",
    "settings": {"deep": {"is": ["kept"]}},
    "version": "1",
    "subnet": "s",
    "securityGroup": "g",
    "ipAddress": "10.0.0.1",
    "internalIpAddress": "10.0.0.2",
    "dns": "a.example",
    "internalDns": "b.example",
    "fullName": "Origin 1",
    "region": "north",
    "size": "large",
    "role": "r",
    "diskType": "ssd",
    "diskSize": 100,
    "image": "i",
    "tags": ["one"],
}
PROFILE: Final[dict[str, Any]] = {
    "request": {
        "infrastructureKey": None,
        "callbackUrls": ["http://callback"],
        "settings": {"zone": "a"},
        "options": {"deploymentType": "template", "allowUpdates": None, "isolationMode": "byEvent"},
        "resources": [RESOURCE],
    },
    "workflow": {"termination": [{"states": ["INSTANT_VOD"], "type": "t", "select": ["origin"]}]},
}

Place = tuple[str | int, ...]


def changed(document: dict[str, Any], place: Place, *, to: object) -> str:
    copy = json.loads(json.dumps(document))  # not deepcopy, which keeps what is shared shared
    _holder(copy, place)[place[-1]] = to
    return json.dumps(copy)


def without(document: dict[str, Any], place: Place) -> str:
    copy = json.loads(json.dumps(document))  # not deepcopy, which keeps what is shared shared
    del _holder(copy, place)[place[-1]]
    return json.dumps(copy)


def _holder(node: Any, place: Place) -> Any:
    for step in place[:-1]:
        node = node[step]
    return node


def field(place: Place) -> str:
    return "configurationJson" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


def faults(model: type[Section], text: str, *, is_new: bool = False) -> list[tuple[str, str]]:
    """Field and message of all that is wrong with the text; nothing for a good one."""
    try:
        checked(model, text, is_new=is_new)
    except Malformed as refusal:
        return [(error.field, error.message) for error in refusal.errors]
    return []


def spelled(path: str) -> str:
    """Return a path in a readable form: `encoders[enc-1].streamingServer.apiKey`."""
    return "".join(f".{step}" if isinstance(step, str) else f"[{_entry(step)}]" for step in json.loads(path)).removeprefix(".")


def _entry(step: Any) -> Any:
    return next(iter(step.values())) if isinstance(step, dict) else step
