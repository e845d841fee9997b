"""`medialedger status`: one look at the installation, and what needs somebody's attention."""

from __future__ import annotations

import os
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import gethostname
from typing import Final

from api.cli.arguments import NEEDS_ATTENTION
from api.cli.findings import Finding, print_findings
from api.cli.open_core import open_core
from api.wiring.core import Core
from api.wiring.settings import Settings
from domain.kernel.clock import iso
from projections.consumers.queries import ConsumerQueries
from projections.deliveries.queries import DeliveryQueries
from projections.job.backlog import JobBacklogQueries
from projections.kernel.builds import living
from projections.kernel.database import Database
from projections.kernel.sizes import shown
from projections.log.extent import LAST, SERVER
from projections.sessions.store import SessionQueries, SessionState
from workers.adapters.free_space import LOW, free_bytes

LATE: Final = 300.0
"""Seconds after which deliveries that are due, and jobs that could start, are late."""


async def run(args: Namespace, settings: Settings) -> int:
    """0: nothing needs attention."""
    async with open_core(settings) as wired:
        found = await findings(wired, _directories(settings))
    print_findings(found, form=args.form)
    return NEEDS_ATTENTION if any(one.attention for one in found) else 0


async def findings(wired: Core, directories: Mapping[str, Path]) -> Sequence[Finding]:
    """`directories` by their names."""
    database = wired.database
    processes = await _processes(database)
    return [
        await _database(database),
        await _log(database),
        *(_disk(name, path) for name, path in directories.items()),
        processes,
        await _consumers(database, running=not processes.attention),
        await _jobs(database),
        await _deliveries(database),
        await _sessions(database),
    ]


def _directories(settings: Settings) -> Mapping[str, Path]:
    media = settings.media_root if isinstance(settings.media_root, Path) else settings.media_work
    return {"home": settings.home, "media": media}


async def _database(database: Database) -> Finding:
    version, size = await database.row(SERVER) or ("", 0)
    return Finding("database", f"PostgreSQL {version.partition(' ')[0]}, {shown(size)}")


async def _log(database: Database) -> Finding:
    last = await database.row(LAST)
    return Finding("log", "no events yet" if last is None else f"{last[0]:,} events, the last at {iso(last[1])}")


def _disk(name: str, path: Path) -> Finding:
    free = free_bytes(path)
    wrong = f"less than {shown(LOW)} free: make room on the disk of {path}" if free < LOW else ""
    return Finding(name, f"{path}, {shown(free)} free", wrong)


async def _processes(database: Database) -> Finding:
    own = (gethostname(), os.getpid())
    builds = Counter(build for build, host, pid, *_ in await living(database) if (host, pid) != own)
    if not builds:
        return Finding("processes", "none", "the product does not run on this database: `medialedger up` starts it")
    text = ", ".join(f"{count} of build {build}" for build, count in sorted(builds.items()))
    return Finding("processes", text)


async def _consumers(database: Database, *, running: bool) -> Finding:
    queries = ConsumerQueries(database)
    members = await queries.members()
    late, wrong = [], []
    for one in await queries.all():
        if one.lag:
            late.append(f"{one.name} is {one.lag:,} events behind")
        if running and one.position is not None and one.held < one.shards:
            wrong.append(f"nobody runs {one.name}: `medialedger workers {one.name}`")
        if one.parked:
            wrong.append(f"{one.name} has parked {one.parked}: `medialedger consumers parked {one.name}`")
        failing = [member for member in members.get(one.name, ()) if member.failing is not None]
        wrong += [f"{one.name} on {member.host} fails for {member.failing:.0f} s: {member.fault}" for member in failing]
    return Finding("consumers", ", ".join(late) or "all are at the end of the log", "; ".join(wrong))


async def _jobs(database: Database) -> Finding:
    found = await JobBacklogQueries(database).all()
    text = ", ".join(f"{count} {state}" for state, count in found.jobs.items() if count) or "none"
    wrong = []
    if found.jobs["failed"]:
        wrong.append("some failed: `medialedger jobs list --failed`")
    if found.oldest_queued > LATE:
        wrong.append(f"one has waited for {found.oldest_queued:.0f} s: `medialedger jobs list --state queued`")
    return Finding("jobs", text, "; ".join(wrong))


async def _deliveries(database: Database) -> Finding:
    found = await DeliveryQueries(database).backlog()
    wrong = f"the first has been due for {found.oldest:.0f} s: look at the receivers" if found.oldest > LATE else ""
    return Finding("deliveries", f"{found.pending} pending, {found.due} due, {found.in_flight} being sent", wrong)


async def _sessions(database: Database) -> Finding:
    states = Counter(row.state for row in await SessionQueries(database).list())
    text = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    wrong = "some failed: `medialedger sessions list`" if states[SessionState.FAILED] else ""
    return Finding("sessions", text, wrong)
