"""`medialedger load-sample`: written, asked about where webhooks would be flooded, and removed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from api.cli.main import main
from api.wiring.core import Core


@pytest.fixture(autouse=True)
def database(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)


async def _command(*words: str) -> int:
    return await asyncio.to_thread(main, ["load-sample", "--events", "3", *words])


async def _count(inner: Core) -> tuple[int, int]:
    """Return the numbers of Events and rooms."""
    [(events,)] = await inner.database.rows("SELECT count(*) FROM event_view WHERE NOT deleted")
    [(rooms,)] = await inner.database.rows("SELECT count(*) FROM record_view WHERE kind = 'room' AND NOT deleted")
    return events, rooms


async def test_the_sample_is_removed_and_nothing_else(inner: Core, http: httpx.AsyncClient) -> None:
    mine = (await http.post("/api/event/", json={"title": "Mine"})).json()["id"]
    assert await _command() == 0
    assert await _count(inner) == (4, 40)
    assert await _command("--remove", "--yes") == 0
    assert await _count(inner) == (1, 0)
    assert (await http.get(f"/api/event/{mine}")).status_code == 200
    assert await _command("--remove", "--yes") == 0


async def test_a_room_that_somebody_uses_stays_and_is_named(
    inner: Core, http: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await _command() == 0
    room = (await http.get("/api/room/")).json()[0]["Id"]
    await http.post("/api/event/", json={"title": "Mine", "roomId": room})
    assert await _command("--remove", "--yes") == 1
    assert f"/api/room/{room} stays" in capsys.readouterr().out
    assert await _count(inner) == (1, 1)


async def test_webhooks_are_not_flooded_without_consent(inner: Core, http: httpx.AsyncClient) -> None:
    await http.post("/api/webhook/", json={"webhookUrl": "https://receiver.example/"})
    assert await _command() == 1
    assert await _count(inner) == (0, 0)
    assert await _command("--yes") == 0
