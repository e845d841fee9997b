"""A build can run beside the last release: what is stored differs from that in ways that both can live with."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from api.wiring.catalogue import catalogue, migrations, views
from domain.event.aggregate import MediaEvent
from projections.event.view import EVENT_VIEW
from projections.kernel.schema.migrate import Migration
from projections.kernel.schema.view import Column, View
from tests.architecture.sources import ROOT
from tests.golden.releases import RELEASES, Release, faults, release, today

EVENTS = list(catalogue().events.values())[:3]
FIRST = Migration("0001 first", "CREATE TABLE first (id integer)")
LAST = release(4, events=EVENTS, shown=[EVENT_VIEW], steps=[FIRST])
RAISE = "what is stored has changed since the last release: raise BUILD in projections/kernel/schema/builds.py to 5"
WIDER = replace(
    EVENT_VIEW,
    version=EVENT_VIEW.version + 1,
    columns=(*EVENT_VIEW.columns, Column[MediaEvent]("sponsor", "text", lambda event: event.details.title)),
    earlier=EVENT_VIEW,
)


def test_each_release_has_a_file() -> None:
    """`python -m tests.golden.releases 0.1.0` writes it."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d{2}-\d{2}", changelog, re.MULTILINE)
    assert sorted(released) == sorted(path.stem for path in RELEASES.glob("*.txt"))


def test_this_build_can_run_beside_the_last_release() -> None:
    releases = [Release.read(path.read_text(encoding="utf-8")) for path in RELEASES.glob("*.txt")]
    last = max(releases, key=lambda release: release.build, default=today())
    assert list(faults(last, today(), shown=views().all, steps=migrations())) == []


def test_a_release_is_read_as_it_was_written() -> None:
    assert Release.read(today().text) == today()


@pytest.mark.parametrize(
    ("view", "step", "build", "wrong"),
    [
        (EVENT_VIEW, None, 4, []),
        (WIDER, None, 5, []),
        (WIDER, None, 4, [RAISE]),
        (replace(WIDER, earlier=None), None, 5, [f"view event_view needs version {EVENT_VIEW.version} as `earlier`"]),
        (EVENT_VIEW, Migration("0002 adds", "ALTER TABLE first ADD name text"), 5, []),
        (EVENT_VIEW, Migration("0002 adds", "ALTER TABLE first ADD name text"), 4, [RAISE]),
        (EVENT_VIEW, Migration("0002 drops", "ALTER TABLE first DROP id", contracts=True), 5, []),
        (
            EVENT_VIEW,
            Migration("0002 drops", "ALTER TABLE first DROP id"),
            5,
            ["migration 0002 drops says DROP: if it takes something away, it has contracts=True"],
        ),
        (
            replace(EVENT_VIEW, columns=WIDER.columns),
            None,
            5,
            [f"view event_view {EVENT_VIEW.version} was released and is not edited: raise its version, or add a migration"],
        ),
    ],
)
def test_a_change_that_the_last_release_cannot_live_with_is_named(
    view: View[Any], step: Migration | None, build: int, wrong: list[str]
) -> None:
    steps = [FIRST] if step is None else [FIRST, step]
    now = release(build, events=EVENTS, shown=[view], steps=steps)
    assert list(faults(LAST, now, shown=[view], steps=steps)) == wrong


def test_a_view_is_not_given_up_at_once_and_a_new_event_counts() -> None:
    now = release(4, events=list(catalogue().events.values())[:4], shown=[], steps=[FIRST])
    assert list(faults(LAST, now, shown=[], steps=[FIRST])) == [
        f"view event_view {EVENT_VIEW.version} is still read by the last release: give it up in the release after this one",
        RAISE,
    ]
