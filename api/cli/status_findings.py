"""What `medialedger status` says of the overview of health, whether it was read from the API or from the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from api.cli.findings import Finding
from api.cli.output import Document, text
from projections.kernel.sizes import shown

_DELIVERIES: Final = (("pending", "pending"), ("due", "due"), ("inFlight", "being sent"))


def findings(seen: Document) -> Iterator[Finding]:
    """`seen` is the answer of `GET /api/health/overview/`."""
    attention = defaultdict[str, list[str]](list)
    for one in _objects(seen, "attention"):
        command = one.get("command")
        attention[text(one.get("about"))].append(text(one.get("text")) + (f" `{command}`" if command else ""))
    for name, said in _said(seen):
        yield Finding(name, said, "; ".join(attention.pop(name, ())))
    for name, wrong in attention.items():
        yield Finding(name, "needs attention", "; ".join(wrong))


def _said(seen: Document) -> Iterator[tuple[str, str]]:
    """What there is, by what it is about."""
    database, log = _object(seen, "database"), _object(seen, "log")
    yield "database", f"PostgreSQL {text(database.get('version'))}, {_size(database.get('bytes'))}"
    yield (
        "log",
        f"{log['position']:,} events, the last at {text(log.get('recordedAt'))}" if log.get("position") else "no events yet",
    )
    yield "disks", ", ".join(f"{text(one.get('name'))} {_size(one.get('freeBytes'))} free" for one in _objects(seen, "disks"))
    builds = Counter(text(one.get("build")) for one in _objects(seen, "processes"))
    yield "processes", ", ".join(f"{count} of build {build}" for build, count in sorted(builds.items())) or "none"
    late = [f"{text(one.get('name'))} is {one['lag']:,} events behind" for one in _objects(seen, "consumers") if one.get("lag")]
    yield "consumers", ", ".join(late) or "all are at the end of the log"
    states = _object(_object(seen, "jobs"), "states")
    yield "jobs", ", ".join(f"{count} {state}" for state, count in states.items() if count) or "none"
    deliveries = _object(seen, "deliveries")
    yield "deliveries", ", ".join(f"{deliveries.get(name)} {said}" for name, said in _DELIVERIES)
    yield "sessions", ", ".join(f"{one.get('count')} {text(one.get('state'))}" for one in _objects(seen, "sessions")) or "none"


def _size(count: object) -> str:
    return shown(count) if isinstance(count, int) else "?"


def _object(document: Document, name: str) -> Document:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _objects(document: Document, name: str) -> list[Document]:
    found = document.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
