"""The records that the Events of the demo refer to: rooms, types, categories, channels, an infrastructure profile; and clients."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.cli.demo.ledger import DemoRequest, Ledger
from api.cli.demo.words import CATEGORIES, CHANNELS, FLOW, PEOPLE, PROFILE, ROOMS, TYPES
from domain.client.roles import Role

_RENDITION: Final = {"height": 360, "width": 640, "bitrate": 250_000, "fps": 10}
"""A small rendition: a test picture of this size costs a few hundredths of a core."""


@dataclass(frozen=True, slots=True)
class DemoRecords:
    """The ids of the records by the keys of `words`."""

    rooms: dict[str, str]
    types: dict[str, str]
    categories: dict[str, str]
    channels: dict[str, str]
    profile: str
    flow: str


async def make_clients(ledger: Ledger) -> Sequence[tuple[str, str]]:
    """Create a client for each role that people have. Return the names and keys of new clients; no other answer contains the
    keys."""
    new_clients = []
    for role in (Role.VIEWER, Role.OPERATOR, Role.AUDITOR, Role.KEYS):
        step = DemoRequest(f"client/{role}", "POST", "/api/client/", {"name": f"demo-{role}", "roles": [role.value]})
        if ledger.find(step.name) is None:
            answer = await ledger.send(step)
            new_clients.append((answer["name"], answer["key"]))
    return new_clients


async def make_catalogue(ledger: Ledger) -> DemoRecords:
    """Create the records in this order, because lists show the oldest first."""
    rooms = {key: {"name": name, "referenceId": f"demo/{key}"} for key, name in ROOMS.items()}
    types = {key: {"name": name, "referenceId": f"demo/{key}", "colour": colour} for key, (name, colour) in TYPES.items()}
    categories = {key: {"name": name, "label": f"demo-{key}"} for key, name in CATEGORIES.items()}
    base = ledger.product.base
    channels = {
        key: {"name": name, "referenceId": f"demo/{key}", "configurationJson": json.dumps(_encoders(base, key, pattern=pattern))}
        for key, (name, pattern) in CHANNELS.items()
    }
    profile = {"name": PROFILE, "referenceId": f"demo/{ledger.number}/van", "configurationJson": json.dumps(_van())}
    return DemoRecords(
        rooms=await _all(ledger, "room", rooms),
        types=await _all(ledger, "eventtype", types),
        categories=await _all(ledger, "category", categories),
        channels=await _all(ledger, "channel", channels),
        profile=(await _all(ledger, "infrastructureprofile", {"van": profile}))["van"],
        flow=(await _all(ledger, "flow", {"films": {"name": FLOW, "configurationJson": json.dumps(_films(base))}}))["films"],
    )


async def _all(ledger: Ledger, path: str, bodies: dict[str, dict[str, Any]]) -> dict[str, str]:
    steps = [DemoRequest(f"{path}/{key}", "POST", f"/api/{path}/", body, by=PEOPLE[0]) for key, body in bodies.items()]
    return dict(zip(bodies, await ledger.all(steps), strict=True))


def _encoders(base: str, key: str, *, pattern: str) -> dict[str, Any]:
    """Return the configuration of a test picture that is sent to the built-in origin."""
    live = f"{base}/origin/live/demo-{key}"
    urls = [
        {"streamProtocol": protocol, "liveCdnPrimaryUrl": f"{live}/{file}", "liveOriginPrimaryUrl": f"{live}/{file}"}
        for protocol, file in (("HLS", "master.m3u8"), ("DASH", "manifest.mpd"))
    ]
    encoder = {
        "type": "ffmpeg",
        "encoderSpecific": {"source": {"type": "test", "pattern": pattern}, "renditions": [_RENDITION], "deleteSegments": True},
        "streamingServer": {"streamingServerSpecific": {"primaryPublishingPoint": {"publishingPointUrl": live}}},
        "outputUrls": urls,
    }
    return {"encoders": [encoder]}


def _films(base: str) -> dict[str, Any]:
    """Return the configuration of a flow. The product serves films from the folder of their packages, with one flow for protected
    and other films."""
    film = f"{base}/media/{{contentId}}/{{packaging}}"
    urls = [
        {"streamProtocol": protocol, "vodCdnPrimaryUrl": f"{film}/{file}", "vodOriginPrimaryUrl": f"{film}/{file}"}
        for protocol, file in (("HLS", "master.m3u8"), ("DASH", "manifest.mpd"))
    ]
    flow = {
        "name": "films",
        "type": "TaskEngine",
        "ismUrl": f"{base}/media/{{contentId}}/{{contentId}}.ism",
        "storageUrlPublic": f"{base}/media",
        "taskEngineSpecific": {"apiUrl": f"{base}/engine", "flowGuiUrl": f"{base}/console/jobs"},
        "streamingServer": {"type": "SRVA", "streamingServerSpecific": {}},
        "outputUrls": urls,
    }
    return {"flows": [flow]}


def _van() -> dict[str, Any]:
    """Return the configuration of existing resources, which are used as listed. The addresses are of a network for
    documentation."""
    resources = [
        {"name": "van-encoder", "type": "encoder", "vendor": "Invented", "ipAddress": "192.0.2.10"},
        {"name": "van-camera", "type": "source", "ipAddress": "192.0.2.11"},
    ]
    return {"request": {"options": {"deploymentType": "static"}, "resources": resources}, "workflow": {}}
