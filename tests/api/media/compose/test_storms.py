"""Playlists that are replaced, cloned, deleted and composed anew at once, by two processes, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.composition.handlers import CompositionHandlers
from domain.composition.values import CompositionKind
from domain.kernel.errors import Conflict, DomainError, Malformed, NotFound, Refused
from domain.kernel.ports import Invocation
from tests.api.asking import add
from tests.api.media.compose.composing import composed, item, source
from tests.projections.log.helpers import rows
from tests.workers.event.timekeeper.keeping import composition_handlers

Act = Callable[[], Awaitable[int]]
_TOLD = {Conflict: 409, Refused: 409, NotFound: 404, Malformed: 400}
_GENERATIONS = """
SELECT (convert_from(state, 'UTF8')::json ->> 'generation')::int FROM events WHERE topic = 'composition.generation_started'
AND originator_id IN (SELECT 'composition:' || id FROM composition_view WHERE event_id = %s) ORDER BY position
"""
ME = Invocation.by("studio")


async def status(asked: Awaitable[object]) -> int:
    """Return the status that the API would answer."""
    try:
        await asked
    except DomainError as refusal:
        return next(code for kind, code in _TOLD.items() if isinstance(refusal, kind))
    return 200


async def requested(asked: Awaitable[httpx.Response]) -> int:
    return (await asked).status_code


def acts(http: httpx.AsyncClient, there: CompositionHandlers, *, event: str, other: str, opener: str) -> list[Callable[[int], Act]]:
    """Return functions that perform acts with their own numbers, here or in the other process."""
    key = UUID(event)

    def anew(number: int) -> dict[str, Any]:
        return {"event": {"id": event}, "playlist": {"name": f"new {number}", "items": [item(opener)]}}

    path, copied = f"/api/compose/event/{event}", {"targetEventId": event}
    return [
        lambda n: lambda: requested(http.put(path, json={"name": f"here {n}"})),
        lambda n: lambda: status(there.replace(key, CompositionKind.STANDARD, changes={"name": f"there {n}"}, invocation=ME)),
        lambda n: lambda: requested(http.get(f"/api/compose/clone/{other}", params=copied)),
        lambda n: lambda: status(there.clone(UUID(other), key, invocation=ME)),
        lambda n: lambda: requested(http.delete(f"/api/compose/{event}")),
        lambda n: lambda: status(there.delete(key, invocation=ME)),
        lambda n: lambda: requested(http.post("/api/compose/", json=anew(n))),
        lambda n: lambda: requested(http.put(path, json={"items": [item(opener)] * (n % 7 + 1)})),
    ]


async def running(http: httpx.AsyncClient, event: str) -> list[dict[str, Any]]:
    result = (await http.get("/engine/jobs", params={"search": event, "items": "1000"})).json()
    return [job for job in result if job["queue_state"] != "broken"]


@pytest.mark.parametrize("seed", range(3))
async def test_the_newest_playlist_wins_whatever_comes_beside_it(
    http: httpx.AsyncClient, second: Core, database_url: str, seed: int
) -> None:
    draw, opener = random.Random(seed), await source(http)
    event, other = await composed(http, item(opener)), await composed(http, item(opener), item(opener))
    made = acts(http, composition_handlers(second), event=event, other=other, opener=opener)
    for _ in range(4):
        storm = [draw.choice(made)(draw.randrange(1000)) for _ in range(16)]
        statuses = await asyncio.gather(*(act() for act in storm))
        assert set(statuses) <= {200, 201, 400, 404, 409}
        answer, jobs = await http.get(f"/api/compose/{event}"), await running(http, event)
        shown = (await http.get(f"/api/event/{event}")).json()
        if answer.status_code == 404:
            assert (jobs, shown["state"], shown["mp4State"]) == ([], 0, 0)
            continue
        [job] = jobs
        playlist = answer.json()
        assert (shown["state"], shown["mp4State"]) == (19, 2)
        assert job["parameters"]["playlist"]["name"] == playlist["name"]
        assert len(job["parameters"]["playlist"]["items"]) == len(playlist["items"])
    generations = [generation for (generation,) in rows(database_url, _GENERATIONS, event)]
    assert generations == sorted(set(generations)), "each playlist has a higher number"


async def test_callers_who_send_again_have_all_their_playlists_made(http: httpx.AsyncClient) -> None:
    """A caller that loses a race gets an error, and no change that was confirmed is lost."""
    event, count = await composed(http), 12

    async def replace(number: int) -> None:
        while (code := (await http.put(f"/api/compose/event/{event}", json={"name": f"{number}"})).status_code) != 200:
            assert code == 409

    await asyncio.gather(*(replace(number) for number in range(count)))
    [job] = await running(http, event)
    assert job["parameters"]["generation"] == count + 1
    assert job["parameters"]["playlist"]["name"] == (await http.get(f"/api/compose/{event}")).json()["name"]


async def test_one_of_many_composes_into_an_event(http: httpx.AsyncClient) -> None:
    opener, event = await source(http), (await add(http, Title="Evening"))["id"]
    body = {"event": {"id": event}, "playlist": {"items": [item(opener)]}}
    answers = await asyncio.gather(*(http.post("/api/compose/", json=body) for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 11
    assert len(await running(http, event)) == 1
