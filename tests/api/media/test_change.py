"""The stream of changes: docs/reference/api/changes.md."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
import pytest

from api.http.app import Application
from api.kernel.callers import KnownCallers
from api.kernel.request import Request
from api.kernel.subscribers import AWAY, FULL, Subscriber
from api.media.change import ChangesQuery, ChangeStreams, stream_changes
from api.wiring.core import Core
from domain.kernel.mapper import Catalogue
from projections.log.change_feed import ChangeFeed, ChangeFilter
from tests.api.asking import add, assert_problem, last, logged
from tests.support.application import introduce

PATH = "/api/changes/stream"
ALL = ChangeFilter()


def streams(inner: Core, *, kept: int = 10_000, life: float = 60, silence: float = 15) -> ChangeStreams:
    return ChangeStreams(ChangeFeed(inner.database, inner.log_watcher, buffered=kept, pause=0), life=life, silence=silence)


def messages(sent: bytes) -> list[tuple[str, int, dict[str, Any]]]:
    """The name, the id and the data of each message."""
    result = []
    for text in sent.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in text.splitlines())
        result.append((fields.get("event", "message"), int(fields.get("id", -1)), json.loads(fields["data"])))
    return result


async def until(frames: AsyncIterator[bytes], position: int) -> list[tuple[str, int, dict[str, Any]]]:
    """All messages up to this position."""
    result: list[tuple[str, int, dict[str, Any]]] = []
    async with asyncio.timeout(60):
        while not result or result[-1][1] < position:
            result += messages(await anext(frames))
    return result


async def closed(*streams: AsyncGenerator[bytes, None]) -> None:
    for stream in streams:
        await stream.aclose()


class Away(ChangeFeed):
    """A feed whose database does not answer."""

    async def _turn(self) -> None:
        self._tell(away=True)
        await asyncio.get_running_loop().create_future()


async def test_a_database_that_stays_away_has_no_beat(inner: Core) -> None:
    """A beat says that everything up to its position was looked at, so screens would call themselves live."""
    frames = ChangeStreams(Away(inner.database, inner.log_watcher), life=60, silence=0).frames(None, ALL)
    async with asyncio.timeout(60):
        assert messages(await anext(frames))[0][0] == "open"
        while (sent := await anext(frames)) != AWAY:
            assert messages(sent)[0][0] == "beat"
        assert [await anext(frames) for _ in range(3)] == [AWAY] * 3
    await closed(frames)


async def test_what_changed_is_told_in_the_order_of_the_log(http: httpx.AsyncClient, inner: Core) -> None:
    frames, many = streams(inner).frames(None, ALL), streams(inner)
    assert messages(await anext(frames)) == [("open", await last(inner), {"position": await last(inner)})]
    key = (await add(http, title="secret title"))["id"]
    await http.put(f"/api/event/state/{key}", json={"state": 1})
    seen = await until(frames, await last(inner))
    assert [(data["aggregate"], data["id"], data["version"]) for _, _, data in seen] == [("event", key, 1), ("event", key, 2)]
    appended = [entry for entry in await logged(inner) if entry.position >= seen[0][1]]
    assert [(data["position"], data["type"]) for _, _, data in seen] == [(entry.position, entry.topic) for entry in appended]
    assert {frozenset(data) for _, _, data in seen} == {frozenset({"position", "aggregate", "id", "version", "type", "recordedAt"})}
    assert "secret title" not in str(seen)
    again = many.frames(seen[0][1], ALL)
    assert [place for name, place, _ in await until(again, seen[1][1]) if name == "message"] == [seen[1][1]]
    await closed(frames, again)


async def test_filters_choose_and_every_position_that_was_passed_is_told(http: httpx.AsyncClient, inner: Core) -> None:
    followed = streams(inner, silence=0.01)
    event = (await add(http))["id"]
    room = (await http.post("/api/room/", json={"name": "Hall"})).json()["Id"]
    end = await last(inner)
    for wanted, expected in (
        (ChangeFilter(aggregates=frozenset({"room"})), {room}),
        (ChangeFilter(ids=frozenset({event})), {event}),
        (ChangeFilter(types=frozenset({"event.state_changed"})), set()),
        (ChangeFilter(hidden=frozenset({"client"})), {event, room}),
    ):
        frames = followed.frames(0, wanted)
        seen = await until(frames, end)
        assert {data["id"] for name, _, data in seen if name == "message"} == expected
        await closed(frames)


async def test_another_process_is_heard_and_followers_share_one_reader(inner: Core, second: Core) -> None:
    feed = ChangeFeed(inner.database, inner.log_watcher, pause=0)
    followed = ChangeStreams(feed)
    lookers = [followed.frames(None, ALL) for _ in range(20)]
    for frames in lookers:
        await anext(frames)
    await introduce(second, "studio", "viewer")
    end = await last(inner)
    seen = [await until(frames, end) for frames in lookers]
    assert all(entry == seen[0] for entry in seen)
    assert seen[0][-1][2]["aggregate"] == "client"
    await closed(*lookers)
    assert not feed.is_followed


async def test_a_follower_that_falls_behind_is_told_where_to_go_on(http: httpx.AsyncClient, inner: Core) -> None:
    feed = ChangeFeed(inner.database, inner.log_watcher, buffered=1, pause=0)
    slow, quick = (ChangeStreams(feed).frames(None, ALL) for _ in range(2))
    await anext(quick)
    await anext(slow)
    await add(http)
    began = (await until(slow, await last(inner)))[-1][1]
    for _ in range(3):  # a batch each
        await add(http)
        await until(quick, await last(inner))
    assert [message async for sent in slow for message in messages(sent)] == [("behind", began, {"position": began})]
    again = ChangeStreams(feed).frames(began, ALL)
    seen = [place for name, place, _ in await until(again, await last(inner)) if name == "message"]
    assert seen == list(range(began + 1, await last(inner) + 1))
    await closed(quick, again)


async def test_a_stream_ends_after_its_time_and_a_position_of_another_log_is_reset(inner: Core) -> None:
    frames = streams(inner, life=0, silence=0.001).frames(10**15, ALL)
    seen = [message async for sent in frames for message in messages(sent)]
    end = await last(inner)
    assert [(name, place) for name, place, _ in seen] == [("reset", end), ("beat", end), ("renew", end)]


async def test_roles_decide_whether_clients_are_seen(application: Any, inner: Core) -> None:
    admin = await introduce(inner, "boss", "admin")
    viewer = await introduce(inner, "looker", "viewer")
    end = await last(inner)
    for key, expected in ((viewer, set()), (admin, {"client"})):
        first = b""
        async for piece in answered(application, key, query=b"after=0", until=end):
            first += piece
        assert {data["aggregate"] for name, _, data in messages(first) if name == "message"} == expected


async def answered(application: Any, key: str, *, query: bytes, until: int) -> AsyncIterator[bytes]:
    """The stream as the application sends it, up to a position."""
    sent: asyncio.Queue[Any] = asyncio.Queue()
    gone, asked = asyncio.Event(), iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in asked:
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    headers = [(b"api-key", key.encode())]
    scope = {"type": "http", "method": "GET", "path": PATH, "raw_path": PATH.encode(), "query_string": query, "headers": headers}
    serving = asyncio.create_task(application(scope, receive, sent.put))
    assert (await sent.get())["status"] == 200
    reached = -1
    async with asyncio.timeout(60):
        while reached < until:
            piece = (await sent.get())["body"]
            reached = messages(piece)[-1][1]
            yield piece
    gone.set()
    await serving


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [
        ("after=-1", {}, "after"),
        ("after=x", {}, "after"),
        ("aggregate=nonsense", {}, "aggregate"),
        ("aggregate=,", {}, "aggregate"),
        ("id=" + ",".join(map(str, range(101))), {}, "id"),
        ("type=" + "x" * 4001, {}, "type"),
        ("", {"last-event-id": "1; DROP TABLE events"}, "Last-Event-ID"),
        ("", {"last-event-id": "9" * 19}, "Last-Event-ID"),
    ],
)
async def test_bad_input_is_refused(http: httpx.AsyncClient, query: str, headers: dict[str, str], field: str) -> None:
    answer = await http.get(f"{PATH}?{query}", headers=headers)
    assert_problem(answer, 400)
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize("by", ["session", "key"])
async def test_a_stream_ends_after_the_logout_and_with_the_key(
    http: httpx.AsyncClient, application: Application, services_by_type: dict[Any, Any], inner: Core, by: str
) -> None:
    key, own, sent = await introduce(inner, "desk", "viewer"), {"Sec-Fetch-Site": "same-origin"}, {b"host": b"media.test"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://media.test") as browser:
        if by == "session":
            await browser.post("/console/session", json={"apiKey": key}, headers=own)
            [(name, token)] = browser.cookies.items()
            sent |= {b"cookie": f"{name}={token}".encode(), b"sec-fetch-site": b"same-origin"}
        else:
            sent |= {b"api-key": key.encode()}
        request = Request({"type": "http", "method": "GET", "headers": list(sent.items()), "scheme": "http"})
        caller = await services_by_type[KnownCallers].find(request)
        assert (caller.name, caller.person) == ("desk", by == "session")
        request.caller = caller
        followed = streams(inner, silence=0.05)
        answer = await stream_changes(
            request, ChangesQuery(), followed, services_by_type[Catalogue], services_by_type[KnownCallers]
        )
        assert await anext(answer.content)
        assert await anext(answer.content), "it goes on while the key stands"
        ended = await (browser.delete("/console/session", headers=own) if by == "session" else http.delete("/api/client/desk"))
        assert ended.status_code < 300
        async with asyncio.timeout(60):
            rest = [frame async for frame in answer.content]
        assert len(rest) < 100, "it ends by itself"


async def test_seats_are_limited_for_each_client(inner: Core) -> None:
    followed = streams(inner)
    mine = [
        followed.subscribers.within_limit(followed.frames(None, ALL), Subscriber("", has_key=True, client="a")) for _ in range(251)
    ]
    reported = [await anext(frames) for frames in mine]
    assert (reported.count(FULL), reported[-1]) == (1, FULL)
    other = followed.subscribers.within_limit(followed.frames(None, ALL), Subscriber("", has_key=True, client="b"))
    assert await anext(other) != FULL
    await closed(*mine, other)
