"""`medialedger channel test`, as a person calls it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.cli.main import main
from api.wiring.core import Core
from tests.api.asking import add_channel
from tests.api.media.provision.provisions_given import Ends, document, event_with, provision
from tests.support.clock import NOON
from tests.workers.health.point_server import PointServer, answers, smil

Said = tuple[int, str, str]
Call = Callable[..., Awaitable[Said]]


@pytest.fixture
async def server() -> AsyncIterator[PointServer]:
    async with PointServer() as listening:
        yield listening


@pytest.fixture
def call(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run commands with the master key of the product that `http` reaches."""
    key = tmp_path / "master.key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))
    monkeypatch.setenv("MEDIALEDGER_OUTBOUND_ALLOW", "127.0.0.0/8")

    async def called(*words: str) -> Said:
        code = await asyncio.to_thread(main, ["channel", "test", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


def configuration(*points: dict[str, Any], type: str = "ffmpeg") -> str:
    specific = dict(zip(("primaryPublishingPoint", "secondaryPublishingPoint"), points, strict=False))
    return json.dumps({"encoders": [{"name": "enc", "type": type, "streamingServer": {"streamingServerSpecific": specific}}]})


async def test_a_channel_whose_points_answer_is_ready(http: httpx.AsyncClient, call: Call, server: PointServer) -> None:
    server.pages = {"/a/archive": answers(smil("idle")), "/api/state": answers(smil("stopped", NOON))}
    points = ({"publishingPointUrl": f"{server.url}/a?token=s3cret"}, {"publishingPointUrl": f"{server.url}/b",
              "srvaApi": f"{server.url}/api", "srvaApiKey": "s3cret"})  # fmt: skip
    key = await add_channel(http, name="News 24", configurationJson=configuration(*points))
    code, output, error = await call("News 24")
    assert (code, error) == (0, "")
    assert [line.split() for line in output.splitlines()] == [
        ["News", "24", key],
        ["encoder", "name", "type", "for", "an", "Event"],
        ["0", "enc", "ffmpeg", "starts,", "2", "publishing", "points"],
        ["point", "address", "method", "state", "last", "updated", "after"],
        ["0", "primary", f"{server.url}/a", "SRVA_ARCHIVE", "idle", "-", *timed(output, 4)],
        ["0", "secondary", f"{server.url}/b", "SRVA_API", "stopped", "2031-01-02T12:00:00.000Z", *timed(output, 5)],
    ]
    assert "API-KEY: s3cret\r\n" in server.heads[-1]


def timed(text: str, line: int) -> list[str]:
    seconds, unit = text.splitlines()[line].split()[-2:]
    assert float(seconds) < 60
    return [seconds, unit]


async def test_a_point_that_does_not_answer_is_named_with_the_reason(
    http: httpx.AsyncClient, call: Call, server: PointServer
) -> None:
    server.pages = {"/a/archive": answers(smil("idle"))}
    points = [{"publishingPointUrl": url} for url in (f"{server.url}/a", "http://10.1.2.3/b")]
    key = await add_channel(http, configurationJson=configuration(*points, type="unheard"))
    code, output, error = await call(key, "--json")
    assert code == 1
    assert error == "medialedger: 1 of 2 publishing points reported no state\n"
    result = json.loads(output)
    assert result["encoders"] == [
        {"encoderIndex": 0, "name": "enc", "type": "unheard", "starts": False, "publishingPoints": [0, 1], "unresolved": []}
    ]
    assert [(point["state"], point["fault"]) for point in result["points"]] == [
        ("idle", None),
        ("unknown", "The address is not public and not in an allowed network."),
    ]
    assert (await call(key))[1].count("its type is unknown") == 1


async def test_the_own_origin_is_asked_though_it_is_not_public(
    http: httpx.AsyncClient, call: Call, server: PointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The origin is that of `up`, which runs next to this command at the same address."""
    server.pages = {"/origin/live/news/archive": answers(smil("idle")), "/news/archive": answers(smil("idle"))}
    points = [{"publishingPointUrl": f"{server.url}{path}"} for path in ("/origin/live/news", "/news")]
    key = await add_channel(http, configurationJson=configuration(*points))
    monkeypatch.delenv("MEDIALEDGER_OUTBOUND_ALLOW")
    monkeypatch.setenv("MEDIALEDGER_PORT", server.url.rpartition(":")[2])
    result = json.loads((await call(key, "--json"))[1])
    assert [point["state"] for point in result["points"]] == ["idle", "unknown"]
    monkeypatch.setenv("MEDIALEDGER_ORIGIN", "off")
    result = json.loads((await call(key, "--json"))[1])
    assert [point["state"] for point in result["points"]] == ["unknown", "unknown"]


async def test_the_hosts_that_are_provisioned_for_an_event_fill_the_placeholders(
    http: httpx.AsyncClient, inner: Core, call: Call, server: PointServer
) -> None:
    server.pages = {"/a/archive": answers(smil("idle"))}
    points = [{"publishingPointUrl": f"http://{{ipAddress}}:{server.url.rpartition(':')[2]}/a", "resource": "origin-1"}]
    key = await add_channel(http, configurationJson=configuration(*points))
    event = await event_with(http, document())
    await provision(http, event)
    for words in ((), ("--event", event)):  # provisioning is under way
        code, output, _ = await call(key, *words)
        assert (code, "1 not resolved" in output, "contains a placeholder that is not filled" in output) == (1, True, True)
    await Ends(inner).tell(event, 1, {"name": "origin-1", "type": "origin", "ipAddress": "127.0.0.1"})
    code, output, _ = await call(key, "--event", event, "--json")
    result = json.loads(output)
    assert (code, result["points"][0]["state"], result["encoders"][0]["unresolved"]) == (0, "idle", [])


async def test_a_channel_must_be_there_once_and_have_a_point(http: httpx.AsyncClient, call: Call) -> None:
    keys = [await add_channel(http, name="twin") for _ in range(2)]
    assert await call("nobody") == (1, "", "medialedger: the channel 'nobody' does not exist\n")
    code, _, error = await call("twin")
    assert code == 1
    assert all(key in error for key in keys)
    assert (await call(keys[0]))[::2] == (1, "medialedger: the channel has no publishing point\n")
