"""The storage format of a release: a line for each event, view and migration, kept as a file for each release.

`python -m tests.golden.releases 0.1.0` writes the file when 0.1.0 is released. Later builds are compared with the newest one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from api.wiring.catalogue import catalogue, migrations, views
from domain.kernel.event import DomainEvent
from projections.kernel.schema.builds import BUILD
from projections.kernel.schema.migrate import Migration
from projections.kernel.schema.view import View

RELEASES = Path(__file__).parent / "releases"
_TAKES_AWAY = re.compile(r"\b(DROP|RENAME|SET\s+NOT\s+NULL|SET\s+DATA\s+TYPE|ALTER\s+COLUMN\s+\w+\s+TYPE|REVOKE)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Release:
    """The number of its build, and the hash of each form by kind and name, such as `view event_view 3`."""

    build: int
    forms: Mapping[str, str]

    @property
    def text(self) -> str:
        return "".join([f"build {self.build}\n", *(f"{name} {form}\n" for name, form in sorted(self.forms.items()))])

    @classmethod
    def read(cls, text: str) -> Release:
        first, *lines = text.splitlines()
        return cls(int(first.removeprefix("build ")), dict(line.rsplit(" ", 1) for line in lines))


def release(build: int, *, events: Sequence[type[DomainEvent]], shown: Sequence[View[Any]], steps: Sequence[Migration]) -> Release:
    forms = {f"event {event.TOPIC} {event.class_version}": _hash(event.model_json_schema()) for event in events}
    forms |= {f"view {view.name} {view.version}": _hash(_form(view)) for view in shown}
    forms |= {f"migration {step.name.replace(' ', '_')}": step.sha256[:16] for step in steps}
    return Release(build, forms)


def today() -> Release:
    return release(BUILD, events=list(catalogue().events.values()), shown=views().all, steps=migrations())


def _form(view: View[Any]) -> list[Any]:
    return [[(column.name, column.type) for column in view.columns], view.key, dict(view.indexes)]


def _hash(form: Any) -> str:
    return sha256(to_json(form)).hexdigest()[:16]


def faults(last: Release, now: Release, *, shown: Sequence[View[Any]], steps: Sequence[Migration]) -> Iterator[str]:
    """Yield the steps that are needed before the next release can run next to the last one."""
    for name, form in last.forms.items():
        if now.forms.get(name, form) != form and not name.startswith("event "):
            yield f"{name} was released and is not edited: raise its version, or add a migration"
    for view in shown:
        released = [int(name.split()[2]) for name in last.forms if name.startswith(f"view {view.name} ")]
        if released and released != [view.version] and (view.earlier is None or released != [view.earlier.version]):
            yield f"view {view.name} needs version {released[0]} as `earlier`"
    for name in last.forms:
        if name.startswith("view ") and name.split()[1] not in {view.name for view in shown}:
            yield f"{name} is still read by the last release: give it up in the release after this one"
    for step in steps:
        new = f"migration {step.name.replace(' ', '_')}" not in last.forms
        if new and not step.contracts and (match := _TAKES_AWAY.search(step.statements)):
            yield f"migration {step.name} says {match[0]}: if it takes something away, it has contracts=True"
    if now.forms != last.forms and now.build <= last.build:
        build = last.build + 1
        yield f"what is stored has changed since the last release: raise BUILD in projections/kernel/schema/builds.py to {build}"


if __name__ == "__main__":
    RELEASES.mkdir(exist_ok=True)
    (RELEASES / f"{sys.argv[1]}.txt").write_text(today().text, encoding="utf-8")
