"""A generated schedule: rooms, and live Events whose titles and references contain special characters. The same seed gives the same
schedule with the same ids, so that loading it twice changes nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

SEED = 20310101
FIRST_DAY = datetime(2031, 1, 1, 6, 0, tzinfo=UTC)
EVENTS_A_DAY = 100

_NAMESPACE = UUID("6d656469-616c-4564-8765-722073616d70")
_PLACES = ("Plenary", "Studio", "Arena", "Hall", "Chapel", "Court", "Theatre", "Press room", "Committee room", "Pitch")
_KINDS = ("Session", "Final", "Quarter final", "Press conference", "Hearing", "Concert", "Debate", "Training", "Mass", "Derby")
_SIDES = ("Lions", "Tigers", "Ångström", "O'Neill", "São Paulo", 'The "Reds"', "Żubry", "東京", "Ölper & Söhne", "50% off!", "C++")
_REFERENCES = ("{day}/{n}", "ref#{n}", "a b&c={n}", "100%/{n}?x=y", "日程-{n}", "Ü{n}", "{n}+{day}", "back\\slash-{n}", 'q"{n}"')


@dataclass(frozen=True, slots=True)
class SampleRoom:
    id: UUID
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SampleEvent:
    id: UUID
    values: dict[str, Any]
    tags: Sequence[str]


def first_day(around: datetime | None) -> datetime:
    """Return the day before this time; `FIRST_DAY` if there is no time."""
    if around is None:
        return FIRST_DAY
    day = around.astimezone(UTC).date() - timedelta(days=1)
    return datetime.combine(day, FIRST_DAY.timetz())


def rooms(count: int = 40) -> list[SampleRoom]:
    return [
        SampleRoom(
            uuid5(_NAMESPACE, f"room {n}"),
            {"name": f"{_PLACES[n % len(_PLACES)]} {n // len(_PLACES) + 1}", "reference_id": f"room/{n:03}"},
        )
        for n in range(count)
    ]


def events(count: int = 10_000, *, seed: int = SEED, first_day: datetime = FIRST_DAY) -> Iterator[SampleEvent]:
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    places = rooms()
    for n in range(count):
        start = first_day + timedelta(days=n // EVENTS_A_DAY, minutes=chance.randrange(0, 17 * 60, 5))
        kind, home, away = chance.choice(_KINDS), chance.choice(_SIDES), chance.choice(_SIDES)
        reference = chance.choice(_REFERENCES).format(n=n, day=f"{start:%Y-%m-%d}")
        values: dict[str, Any] = {
            "title": f"{kind}: {home} – {away}",
            "ref_id": reference,
            "external_id": f"ext:{n:06}/{chance.choice(_SIDES)}",
            "description": f"{kind} number {n} of the sample schedule" if n % 3 else None,
            "room_id": chance.choice(places).id,
            "scheduled_start": start,
            "scheduled_end": start + timedelta(minutes=chance.choice((30, 60, 90, 120, 180))) if n % 10 else None,
            "auto_start": n % 2 == 0,
            "auto_publish": n % 4 == 0,
            "dvr_length": chance.choice((None, 1800, 7200)),
        }
        yield SampleEvent(uuid5(_NAMESPACE, f"event {n}"), values, (kind.lower(),) if n % 5 == 0 else ())
