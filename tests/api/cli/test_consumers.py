"""`medialedger consumers`, as a person calls it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from api.cli.main import main
from api.wiring.core import Core
from projections.consumers.parked_records import ParkedRecords
from tests.projections.consuming import MEMBER, consumer, park, wanted

EVENT = "event:0f0e0d0c-0b0a-4908-8706-050403020100"
Said = tuple[int, str, str]


@pytest.fixture
def call(
    inner: Core, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Awaitable[Said]]:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))

    async def called(line: str) -> Said:
        code = await asyncio.to_thread(main, ["consumers", *line.split()])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


async def test_consumers_are_listed(inner: Core, call: Callable[[str], Awaitable[Said]]) -> None:
    assert await call("list") == (0, "", "no consumers yet\n")
    await consumer(inner, "webhooks", 0)
    await consumer(inner, "deliveries", None, None)
    await park(inner, "webhooks", (1, EVENT))
    code, shown, err = await call("list")
    assert (code, [line.replace("reads no log", "none").split() for line in shown.splitlines()], err) == (
        0,
        [
            ["NAME", "POSITION", "BEHIND", "PROCESSES", "BUSY", "PARKED", "OLDEST", "FAULT"],
            ["deliveries", "none", "-", "1", "2", "0", "-", "-"],
            ["webhooks", "0", "0", "1", "2", "1", "2031-01-02", "-"],
        ],
        "",
    )
    code, shown, _ = await call("list --json")
    documents = {row["name"]: row for row in json.loads(shown)}
    assert documents["webhooks"]["members"][0]["id"] == str(MEMBER)
    assert documents["webhooks"]["parked"] == 1


async def test_parked_records_are_listed(inner: Core, call: Callable[[str], Awaitable[Said]]) -> None:
    await consumer(inner, "webhooks", 0)
    await consumer(inner, "other", 0)
    await park(inner, "webhooks", (1, EVENT))
    await park(inner, "other", (2, "room:a"))
    await ParkedRecords(inner.database).request_replay("webhooks")
    assert [line.split() for line in (await call("parked"))[1].splitlines()] == [
        ["CONSUMER", "POSITION", "STREAM", "TYPE", "ATTEMPTS", "PARKED", "ERROR"],
        ["other", "2", "room:a", "room.described", "1", "2031-01-02", "ValueError:", "no"],
        ["webhooks", "1", EVENT, "event.described", "1", "2031-01-02", "ValueError:", "no"],
    ]
    only = (await call("parked webhooks -o ndjson"))[1]
    assert {name: json.loads(only)[name] for name in ("consumer", "position", "replay")} == {
        "consumer": "webhooks",
        "position": 1,
        "replay": True,
    }


async def test_text_of_others_cannot_control_the_terminal(inner: Core, call: Callable[[str], Awaitable[Said]]) -> None:
    """An error repeats received text, and a host chooses its own name."""
    await consumer(inner, "webhooks", 0)
    await inner.database.execute("UPDATE consumer_members SET host = E'a\x1b[2Jb'")
    await inner.database.execute(
        "INSERT INTO parked_records (consumer, position, stream, topic, error) VALUES ('webhooks', 1, 'room:a', 'room.added', %s)",
        ("no\x1b]0;x\x07 \x9b31m \u202e\rend",),
    )
    _, listed, _ = await call("list -o wide")
    assert "a\\x1b[2Jb" in listed
    _, parked, _ = await call("parked")
    assert "no\\x1b]0;x\\x07 \\x9b31m \\u202e" in parked
    assert all(character.isprintable() for shown in (listed, parked) for character in shown.replace("\n", ""))


async def test_all_parked_records_are_listed_however_many(inner: Core, call: Callable[[str], Awaitable[Said]]) -> None:
    await consumer(inner, "webhooks", 0)
    await inner.database.execute(
        "INSERT INTO parked_records (consumer, position, stream, topic, error) SELECT 'webhooks', n, 'room:a', 'room.amended', 'no'"
        " FROM generate_series(1, 2001) AS n"
    )
    code, shown, _ = await call("parked")
    assert (code, shown.count("room.amended")) == (0, 2001)


async def test_parked_records_are_tried_again(inner: Core, call: Callable[[str], Awaitable[Said]]) -> None:
    await consumer(inner, "webhooks", 0)
    await park(inner, "webhooks", (1, EVENT), (2, "room:a"))
    assert await call(f"replay webhooks --stream {EVENT}") == (
        0,
        "1 records will be processed again by the workers that run webhooks\n",
        "",
    )
    assert await wanted(inner, "webhooks") == [1]
    assert (await call("replay webhooks"))[1] == "2 records will be processed again by the workers that run webhooks\n"
    assert await wanted(inner, "webhooks") == [1, 2]


@pytest.mark.parametrize("line", ["parked nobody", "replay nobody"])
async def test_an_unknown_consumer_is_one_line_and_1(inner: Core, call: Callable[[str], Awaitable[Said]], line: str) -> None:
    assert await call(line) == (1, "", "medialedger: the consumer nobody does not exist; the consumers are: none yet\n")
    await consumer(inner, "webhooks", 0)
    assert (await call(line))[2] == "medialedger: the consumer nobody does not exist; the consumers are: webhooks\n"


async def test_a_consumer_is_forgotten_with_yes(inner: Core, call: Callable[[str], Awaitable[Said]]) -> None:
    await consumer(inner, "relay-of-a-trial", None)
    assert "is running: stop the processes" in (await call("forget relay-of-a-trial --yes"))[2]
    await inner.database.execute("UPDATE consumer_members SET seen_at = clock_timestamp() - interval '1 min'")
    assert "give --yes" in (await call("forget relay-of-a-trial"))[2]
    assert await call("forget relay-of-a-trial --yes") == (0, "relay-of-a-trial is forgotten\n", "")
    assert await call("list") == (0, "", "no consumers yet\n")
