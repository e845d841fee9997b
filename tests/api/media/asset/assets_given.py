"""Assets for tests over HTTP: an Event with a file, and requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.api.asking import add

GIF = {"start": "00:00:01.000", "end": "00:00:02.000"}


def vod_file(media_root: Path, content: str, *, extension: str = ".mp4", data: bytes = b"film") -> Path:
    file = media_root / content / f"{content}{extension}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


async def film(http: httpx.AsyncClient, media_root: Path, **fields: Any) -> str:
    """A new Event with a VOD file."""
    key = str((await add(http, **fields))["id"])
    vod_file(media_root, key)
    return key


async def image(http: httpx.AsyncClient, event: str, name: str = "Goal", **fields: Any) -> dict[str, Any]:
    """A new asset."""
    answer = await http.post("/api/asset/image/", json={"eventId": event, "name": name, "time": "00:00:01", **fields})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown
