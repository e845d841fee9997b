"""Compositions for tests over HTTP."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.api.asking import add, add_channel

COMPOSING = json.dumps({"encoders": [{"name": "e", "supportsComposition": True}]})


def item(value: str, **more: Any) -> dict[str, Any]:
    return {"type": 0, "value": value, **more}


async def source(http: httpx.AsyncClient, title: str = "Opener") -> str:
    return str((await add(http, Title=title, eventState="VOD_PUBLIC"))["id"])


async def composing_channel(http: httpx.AsyncClient) -> str:
    return await add_channel(http, name="Composing", configurationJson=COMPOSING)


async def composed(http: httpx.AsyncClient, *items: dict[str, Any], event: dict[str, Any] | None = None, **more: Any) -> str:
    """The id of an Event with a playlist of which a film is made."""
    body = {"event": event or {}, "playlist": {"name": "Evening", "items": list(items) or [item(await source(http))], **more}}
    answer = await http.post("/api/compose/", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json())


async def composed_for_encoder(http: httpx.AsyncClient, *items: dict[str, Any], **event: Any) -> str:
    body = {
        "event": {"channelId": await composing_channel(http), **event},
        "playlist": {"name": "Night", "looped": True, "items": list(items) or [item(await source(http))]},
    }
    answer = await http.post("/api/compose/encoder/", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json())
