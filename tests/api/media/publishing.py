"""Destinations for tests."""

from __future__ import annotations

import json
from typing import Any

import httpx

S3 = {"endpoint": "https://s3.example", "bucket": "films", "accessKeyId": "AK", "secretAccessKey": "sk-marked"}


async def add_destination(http: httpx.AsyncClient, name: str = "Archive", *, active: bool = False, **fields: Any) -> str:
    body = {"name": name, "target": "S3", "destinationJson": json.dumps(S3), **fields}
    answer = await http.post("/api/media/destination/", json=body)
    assert answer.status_code == 200, answer.text
    key = str(answer.json()["id"])
    if active:
        assert (await http.put(f"/api/media/destination/active/{key}?active=true")).status_code == 200
    return key
