"""The schedule of the demo, a pure function of a seed and a time. Equal inputs give the same Events with the same ids."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid5

from api.cli.demo.words import PEOPLE, SERIES, Series

LAST_DAY: Final = 7
FILM_LENGTH: Final = 8
_NAMESPACE: Final = UUID("6d656469-616c-4564-8765-722064656d6f")
_FILMS: Final = ("evening-bulletin", "second-movement", "harbour-league", "tideline")
_FREE: Final = timedelta(hours=3)
"""The time around the present in which there are only the Events of `_now`."""


@dataclass(frozen=True, slots=True)
class Planned:
    """An Event. Its room, type, category and channel are keys of `words`."""

    key: str
    title: str
    start: datetime
    minutes: int
    room: str | None
    type: str
    category: str
    by: str
    description: str = ""
    channel: str | None = None
    tags: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    film: int | None = None
    """The look of its film; None if it has none."""


class DemoSchedule:
    """The Events of the demo. `number` is that of the ledger, so that ids of a removed demo are not used again."""

    def __init__(self, seed: int, around: datetime, *, number: int, films: int = 0) -> None:
        self.seed = seed
        self.films = films
        self.around = around
        self._number = number

    def id_of(self, key: str) -> str:
        return str(uuid5(_NAMESPACE, f"{self.seed}/{self._number}/{key}"))

    def events(self) -> list[Planned]:
        """Return the Events. The number of films does not affect the other Events."""
        parts = (self._past, self._now, self._coming)
        return [event for part in parts for event in part(random.Random(f"{self.seed} {part.__name__}"))]  # noqa: S311 - no secrets

    def _past(self, chance: random.Random) -> Iterator[Planned]:
        """Yield the latest past broadcasts as films: each is on demand and has a picture."""
        by_key = {programme.key: programme for programme in SERIES}
        for look, key in enumerate(_FILMS[: self.films]):
            series = by_key[key]
            start = self.around.replace(hour=0, minute=0) + timedelta(hours=series.hour)
            while start > self.around - _FREE:
                start -= timedelta(days=1)
            yield self._of(series, f"film-{key}", start, chance=chance, channel=None, values={"eventState": "PRE_VOD"}, film=look)

    def _now(self, chance: random.Random) -> Iterator[Planned]:
        """Yield the Events that are live, late, next and in conflict."""
        guest = chance.choice(("Marit Solheim", "Dr Okafor", "the harbour master", "Eszter Varga"))
        town = chance.choice(("Kestrel Bay", "Northgate", "St Olave", "Riverside"))

        def at(key: str, title: str, minutes: int, length: int, **others: Any) -> Planned:
            return Planned(key, title, self.around + timedelta(minutes=minutes), length, by=chance.choice(PEOPLE), **others)

        news: dict[str, Any] = {"type": "news", "category": "current-affairs"}
        parliament: dict[str, Any] = {"type": "parliament", "category": "current-affairs"}
        yield at(
            "live",
            f"Live from {town}",
            -25,
            120,
            room="studio-1",
            channel="one",
            tags=("news", "live"),
            values={"autoEnd": True, "dvrLength": 600},
            description="A test picture stands for the programme.",
            **news,
        )
        yield at(
            "rehearsal", "Line check, Concert hall", -12, 5, room="concert-hall", type="music", category="culture", tags=("test",)
        )
        yield at("late", f"Press conference: {guest}", -9, 45, room="press-room", tags=("press",), **news)
        starts = {"autoStart": True, "autoEnd": True, "autoPublish": True}
        yield at(
            "next", f"Committee of inquiry: the {town} bridge", 4, 40, room="plenary", channel="two", values=starts, **parliament
        )
        yield at("soon", "Talk at the quay", 18, 30, room="studio-2", type="talk", category="regional", tags=("talk",))
        yield at("overlap-1", "Sound check: Young soloists", 50, 60, room="concert-hall", type="music", category="culture")
        yield at("overlap-2", "Organ tuning, with guests", 85, 60, room="concert-hall", type="music", category="culture")
        if self.films:
            vod = {"eventState": "PRE_VOD"}
            yield at("recording", f"Archive copy: live from {town}", -25, 120, room=None, tags=("archive",), values=vod, **news)
        yield at(
            "provisioned",
            f"From the road: {town} harbour fair",
            (14 - self.around.hour + 24) * 60 - self.around.minute,
            90,
            room="harbour-stadium",
            type="documentary",
            category="regional",
            tags=("outside broadcast",),
        )

    def _coming(self, chance: random.Random) -> Iterator[Planned]:
        for day in range(LAST_DAY + 1):
            midnight = self.around.replace(hour=0, minute=0) + timedelta(days=day)
            for series in SERIES:
                start = midnight + timedelta(hours=series.hour)
                if start.weekday() not in series.weekdays or start < self.around + _FREE:
                    continue
                yield self._of(series, f"{series.key}-{day}", start, chance=chance, channel=series.channel, values=_on_air(series))

    def _of(self, series: Series, key: str, start: datetime, *, chance: random.Random, **others: Any) -> Planned:
        part = chance.choice(series.parts)
        return Planned(
            key,
            f"{series.title}: {part}",
            start,
            series.minutes,
            series.room,
            series.type,
            series.category,
            by=chance.choice(PEOPLE),
            description=f"{part}. A programme of the series {series.title}.",
            tags=(*series.tags, series.title.lower()),
            **others,
        )


def _on_air(series: Series) -> dict[str, Any]:
    """Return the fields with which an Event on a channel starts and ends automatically in the coming days."""
    return {} if series.channel is None else {"autoStart": True, "autoEnd": True, "autoPublish": True}


def body(planned: Planned, *, id: str, external_id: str, links: dict[str, str | None]) -> dict[str, Any]:
    """Return the body of the request that adds the Event."""
    end = planned.start + timedelta(minutes=planned.minutes)
    return {
        "id": id,
        "title": planned.title,
        "refId": f"{planned.start:%y%m%d}-{planned.key}",
        "externalId": external_id,
        "description": planned.description or None,
        "scheduledStart": _iso(planned.start),
        "scheduledEnd": _iso(end),
        "tags": [{"name": name} for name in planned.tags],
        "additionalStreamingOptions": "-preset ultrafast" if planned.channel else None,
        **links,
        **planned.values,
    }


def to_minute(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(second=0, microsecond=0)


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
