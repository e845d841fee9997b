"""The findings of `medialedger status` from the overview of health, whether it was read from the API or from the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from api.cli.output import Document, Finding, text
from projections.kernel.sizes import shown

_DELIVERIES: Final = (("pending", "pending"), ("due", "due"), ("inFlight", "being sent"))


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
