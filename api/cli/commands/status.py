"""`medialedger status`: shows the state of the installation, from its API, and what needs attention."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from api.cli.command import NEEDS_ATTENTION, calls_api, command, form_option
from api.cli.output import Document, Finding, print_findings, text
from api.cli.remote.rest_api import ApiError, RestApi
from projections.kernel.sizes import shown

_DELIVERIES: Final = (("pending", "pending"), ("due", "due"), ("inFlight", "being sent"))


@command(
    "status",
    examples="""
    medialedger status
    medialedger status --json
    """,
)
@form_option
@calls_api
def status(api: RestApi, form: str) -> int:
    """Show the database, the log, free space, processes, consumers, jobs, deliveries and sessions. A line that begins with ! says
    what needs attention and what to do; the exit code is then 4."""
    rows = [*(_answering(api) if api.running else ()), *findings(api.document("/api/health/overview/"))]
    print_findings(rows, form=form)
    return NEEDS_ATTENTION if any(finding.attention for finding in rows) else 0


def _answering(api: RestApi) -> Iterator[Finding]:
    version = api.document("/api/health/version")
    summary = f"{version.get('productVersion')} on {version.get('machineName')}, called as {version.get('client')}"
    try:
        api.get("/readyz")
        yield Finding("product", summary)
    except ApiError as error:
        yield Finding("product", summary, f"it is not ready: {error}")


def findings(overview: Document) -> Iterator[Finding]:
    """Yield the findings of an answer of `GET /api/health/overview/`."""
    attention = defaultdict[str, list[str]](list)
    for problem in _objects(overview, "attention"):
        command = problem.get("command")
        attention[text(problem.get("about"))].append(text(problem.get("text")) + (f" `{command}`" if command else ""))
    for name, summary in _summaries(overview):
        yield Finding(name, summary, "; ".join(attention.pop(name, ())))
    for name, wrong in attention.items():
        yield Finding(name, "needs attention", "; ".join(wrong))


def _summaries(overview: Document) -> Iterator[tuple[str, str]]:
    """Yield the parts of an installation with a text about each."""
    database, log = _object(overview, "database"), _object(overview, "log")
    yield "database", f"PostgreSQL {text(database.get('version'))}, {_size(database.get('bytes'))}"
    yield (
        "log",
        f"{log['position']:,} events, the last at {text(log.get('recordedAt'))}" if log.get("position") else "no events yet",
    )
    yield "disks", ", ".join(f"{text(row.get('name'))} {_size(row.get('freeBytes'))} free" for row in _objects(overview, "disks"))
    builds = Counter(text(row.get("build")) for row in _objects(overview, "processes"))
    yield "processes", ", ".join(f"{count} of build {build}" for build, count in sorted(builds.items())) or "none"
    late = [f"{text(row.get('name'))} is {row['lag']:,} events behind" for row in _objects(overview, "consumers") if row.get("lag")]
    yield "consumers", ", ".join(late) or "all are at the end of the log"
    states = _object(_object(overview, "jobs"), "states")
    yield "jobs", ", ".join(f"{count} {state}" for state, count in states.items() if count) or "none"
    deliveries = _object(overview, "deliveries")
    yield "deliveries", ", ".join(f"{deliveries.get(name)} {label}" for name, label in _DELIVERIES)
    yield "sessions", ", ".join(f"{row.get('count')} {text(row.get('state'))}" for row in _objects(overview, "sessions")) or "none"


def _size(count: object) -> str:
    return shown(count) if isinstance(count, int) else "?"


def _object(document: Document, name: str) -> Document:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _objects(document: Document, name: str) -> list[Document]:
    value = document.get(name)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
