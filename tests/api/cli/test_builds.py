"""`medialedger builds`, as a person calls it."""

from __future__ import annotations

import asyncio
import os

import pytest

from api.cli.main import main
from api.wiring.core import Core
from projections.kernel.schema.builds import BUILD


async def test_the_processes_are_listed_with_their_builds(
    inner: Core, database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    await inner.database.execute(
        "INSERT INTO builds (process, build, host, pid, seen_at) VALUES"
        " (gen_random_uuid(), 0, 'media-1', 4711, clock_timestamp()), (gen_random_uuid(), 0, 'media-2', 1, '2020-01-01')"
    )
    assert await asyncio.to_thread(main, ["builds"]) == 0
    this, least, _, older, ours = capsys.readouterr().out.splitlines()
    assert this == f"this build  {BUILD}"
    assert least == f"oldest that may start  {BUILD}  (it made the database)"
    assert older.split()[:3] == ["0", "media-1", "4711"]
    assert [ours.split()[0], ours.split()[2]] == [str(BUILD), str(os.getpid())]
