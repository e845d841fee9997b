"""No array is refused for its length or size, over all routes that answer one."""

from __future__ import annotations

from pathlib import Path
from types import GenericAlias
from typing import Any, get_origin

import httpx
import pytest

from api.http.routing import Route
from projections.kernel.database import database, page
from projections.publication import queries as publications
from projections.record import queries as records
from tests.api.asking import add_archiver_stream, add_flow, add_playlist, add_room, add_webhook
from tests.api.media.owners import add_category
from tests.api.media.publishing import add_destination
from tests.api.test_hostile_input import address
from tests.api.test_permissions import declared
from tests.api.valid_bodies import EVENT, PROPERTY, VALID, things

_CEILINGS = (
    (page, "ORDINARY"),
    (database, "ORDINARY"),
    (database, "LARGEST_CONTENT"),
    (records, "ORDINARY"),
)


def arrays() -> dict[str, Route]:
    return {
        name: route
        for name, route in declared().items()
        if route.method == "GET" and isinstance(route.response_model, GenericAlias) and get_origin(route.response_model) is list
    }


async def read(http: httpx.AsyncClient, ids: dict[str, str]) -> dict[str, tuple[int, Any]]:
    answers = {}
    for name, route in arrays().items():
        answer = await http.get(address(route, ids), headers={"client": "admin"})
        answers[name] = answer.status_code, answer.json() if answer.content else None
    return answers


async def several(http: httpx.AsyncClient) -> str:
    """Add several records of each kind that has its own list. Return the id of an infrastructure profile."""
    for name in ("Zoo", "an arena", "Hall"):
        await add_room(http, name)
        await add_flow(http, name)
        await add_playlist(http, name)
        await add_category(http, name)
        await add_archiver_stream(http)
        await add_webhook(http)
        await add_webhook(http, eventId=EVENT)
        await add_destination(http, name)
        for path in ("vodpublications", "media/livepublication"):
            body, transaction = VALID[f"POST /api/{path}/"], {"X-Transaction-ID": PROPERTY}
            assert (await http.post(f"/api/{path}/", json=body, headers=transaction)).status_code == 200
        for kind in ("channel", "eventtype", "infrastructureprofile"):
            answer = await http.post(f"/api/{kind}/", json={**VALID[f"POST /api/{kind}/"], "name": name})
            assert answer.status_code == 200
    return str(answer.json()["id"])


async def test_no_array_is_refused_for_its_size(http: httpx.AsyncClient, media_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = await things(http, media_root)
    ids["resources"] = await several(http)
    whole = await read(http, ids)
    for module, ceiling in _CEILINGS:
        monkeypatch.setattr(module, ceiling, 10)

    monkeypatch.setattr(publications, "_AT_ONCE", 1)
    small = await read(http, ids)
    assert {name: status for name, (status, _) in whole.items() if status != 200} == {"GET /api/consumer/{name}/parked/": 404}
    for name, answered in whole.items():
        assert small[name] == answered or answered[0] == 404, name
    assert sum(len(body) > 2 for _, body in whole.values()) > 20
