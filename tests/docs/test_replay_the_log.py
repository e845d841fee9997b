"""The program in docs/how-to/replay-the-log.md replays stored events with the eventsourcing library to the states that the product
shows."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from api.wiring.core import Core
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import EventState
from projections.event.queries import EventQueries
from tests.architecture.sources import ROOT
from tests.docs.following import Page
from tests.support.feeding import do, event


def run(program: Path, *given: str) -> subprocess.CompletedProcess[str]:
    surroundings = {"PYTHONPATH": str(ROOT), "PATH": ""}
    command = [sys.executable, str(program), *given]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=surroundings)


async def test_the_program_of_the_page_folds_an_event_to_what_is_shown(inner: Core, database_url: str, tmp_path: Path) -> None:
    [(name, program)] = Page("replay-the-log.md").blocks("python")
    assert len([line for line in program.splitlines() if line]) <= 15
    (tmp_path / name).write_text(program)
    key = await event(inner, 1, title="Grüße", state=EventState.LIVE_PUBLISHED)
    await do(inner, AddOrUpdateEvent(key, {"title": "Final", "auto_start": True}))
    done = await asyncio.to_thread(run, tmp_path / name, database_url, f"event:{key}")
    assert done.returncode == 0, done.stderr
    first, _, rest = done.stdout.partition("\n")
    shown = await EventQueries(inner.database).by_id(key)
    assert shown is not None
    assert first.startswith(f"event:{key} is at version {shown.version}, last changed ")
    assert json.loads(rest) == json.loads(shown.details.model_dump_json(exclude_defaults=True))
