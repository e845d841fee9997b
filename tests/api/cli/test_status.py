"""`medialedger status`, as a person calls it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from api.cli.main import main
from api.wiring.core import Core
from projections.job.queue import JobNumberSequence
from projections.kernel.schema.builds import BUILD
from tests.api.engine.jobs_given import fail, start
from tests.support.engine import Engine
from tests.support.feeding import event

Said = tuple[int, str, str]
Call = Callable[..., Awaitable[Said]]


@pytest.fixture
def call(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))

    async def called(*words: str) -> Said:
        code = await asyncio.to_thread(main, ["status", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


@pytest.fixture
async def running(inner: Core) -> None:
    """Another process of the product on the database."""
    values = (uuid4(), BUILD, "another-host", 1)
    await inner.database.execute("INSERT INTO builds (process, build, host, pid, seen_at) VALUES (%s, %s, %s, %s, now())", values)


@pytest.mark.usefixtures("running")
async def test_a_healthy_installation_needs_nothing(inner: Core, call: Call) -> None:
    await event(inner, 1)
    code, out, err = await call()
    assert (code, err, "!" in out) == (0, "", False)
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert list(lines) == ["database", "log", "disks", "processes", "consumers", "jobs", "deliveries", "sessions"]
    assert lines["log"].startswith("1 events, the last at 20")
    assert (lines["processes"], lines["jobs"], lines["sessions"]) == ("1 of build 1", "none", "none")


async def test_without_a_process_it_says_what_starts_one(inner: Core, call: Call) -> None:
    code, out, _ = await call()
    assert code == 4
    assert "  ! No process of the product has been active in the last seconds. `medialedger up`" in out.splitlines()


@pytest.mark.usefixtures("running")
async def test_attention_names_the_command_that_shows_more(inner: Core, call: Call) -> None:
    engine = Engine(inner, JobNumberSequence(inner.database))
    job = await engine.accept("http_fetch_verify", url="https://origin.test/a.mp4")
    await start(inner, job)
    await fail(inner, job)
    code, out, _ = await call("--json")
    findings = {finding["name"]: finding for finding in json.loads(out)}
    assert (code, findings["jobs"]["text"]) == (4, "1 failed")
    assert findings["jobs"]["attention"] == "1 job has failed. `medialedger jobs list --failed`"


async def test_without_a_database_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MEDIALEDGER_DATABASE_URL", raising=False)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path / "home"))
    assert await asyncio.to_thread(main, ["status"]) == 1
    assert "there is no medialedger in" in capsys.readouterr().err
