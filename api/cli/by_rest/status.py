"""`medialedger status` of a product that is elsewhere: what its API tells."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from api.cli.arguments import NEEDS_ATTENTION
from api.cli.findings import Finding, print_findings
from api.cli.output import Document, text
from api.cli.rest_api import ApiError, RestApi
from projections.kernel.sizes import shown


def run(args: Namespace, api: RestApi) -> int:
    """0: nothing needs attention."""
    found = list(_findings(api))
    print_findings(found, form=args.form)
    return NEEDS_ATTENTION if any(one.attention for one in found) else 0


def _findings(api: RestApi) -> Iterator[Finding]:
    version = api.document("/api/health/version")
    yield Finding("product", f"{version.get('productVersion')} on {version.get('machineName')}, called as {version.get('client')}")
    try:
        api.get("/readyz")
        yield Finding("database", "answers")
    except ApiError as error:
        yield Finding("database", "is not ready", str(error))
    seen = api.document("/api/health/overview/")
    attention: dict[str, list[str]] = {}
    for one in _objects(seen, "attention"):
        command = one.get("command")
        attention.setdefault(text(one.get("about")), []).append(text(one.get("text")) + (f" `{command}`" if command else ""))
    for name, said in _said(seen):
        yield Finding(name, said, "; ".join(attention.pop(name, ())))
    for name, wrong in attention.items():
        yield Finding(name, "needs attention", "; ".join(wrong))


def _said(seen: Document) -> Iterator[tuple[str, str]]:
    """What is there, by what it is about."""
    log = _object(seen, "log")
    yield "log", f"{text(log.get('position'))} events" if log.get("position") else "no events yet"
    yield "disks", ", ".join(f"{one.get('name')} {_size(one)} free" for one in _objects(seen, "disks"))
    yield "processes", f"{len(_objects(seen, 'processes'))} running"
    late = [f"{one.get('name')} is {one['lag']} events behind" for one in _objects(seen, "consumers") if one.get("lag")]
    yield "consumers", ", ".join(late) or "all are at the end of the log"
    yield "jobs", _counts(_object(_object(seen, "jobs"), "states")) or "none"
    yield "deliveries", ", ".join(f"{_object(seen, 'deliveries').get(name)} {name}" for name in ("pending", "due"))
    yield "sessions", ", ".join(f"{one.get('count')} {one.get('state')}" for one in _objects(seen, "sessions")) or "none"


def _counts(states: Document) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.items() if count)


def _size(disk: Document) -> str:
    free = disk.get("freeBytes")
    return shown(free) if isinstance(free, int) else "?"


def _object(document: Document, name: str) -> Document:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _objects(document: Document, name: str) -> list[Document]:
    found = document.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
