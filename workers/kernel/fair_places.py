"""Places of which a process has a limited number, shared between those who ask: readers of files, uploads, bytes in memory.

A limit alone protects the process and not the others: whoever comes first could hold all of it. Here the owner with the most places
gives up the slowest of them for an owner with fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

_STALLED: Final = 1.0
"""Seconds without progress after which a place is given up for an owner that has as many."""


class NoPlace(Exception):
    """All places are taken, and nobody has more of them or is slower."""


class Place:
    """What an owner holds, until `FairPlaces.leave`. `give_up` ends what it is held for; without it the place is kept."""

    __slots__ = ("give_up", "moved_at", "owner", "size")

    def __init__(self, owner: str, give_up: Callable[[], None] | None, *, size: int, moved_at: float) -> None:
        self.owner = owner
        self.give_up = give_up
        self.size = size
        self.moved_at = moved_at


class FairPlaces:
    """`most` places in all."""

    def __init__(self, most: int, *, clock: Callable[[], float] = monotonic) -> None:
        self.most = most
        self.used = 0
        self.given_up = 0
        """Places that were given up for others."""
        self.refused = 0
        self._clock = clock
        self._sizes: Counter[str] = Counter()
        self._places: dict[str, dict[Place, None]] = {}
        """Those of each owner, in the order of their progress, the slowest first."""

    def take(self, owner: str, give_up: Callable[[], None] | None, *, size: int = 1) -> Place:
        """Raises `NoPlace`."""
        self._make_room(owner, size)
        place = Place(owner, give_up, size=size, moved_at=self._clock())
        self._places.setdefault(owner, {})[place] = None
        self._count(owner, size)
        return place

    def grow(self, place: Place, by: int) -> None:
        """Raises `NoPlace`, also where the place was given up meanwhile."""
        if not self._holds(place):
            raise NoPlace
        self.moved(place)
        self._make_room(place.owner, by, beside=place)
        place.size += by
        self._count(place.owner, by)

    def moved(self, place: Place) -> None:
        """What the place is held for has made progress."""
        if self._holds(place):
            place.moved_at = self._clock()
            of_owner = self._places[place.owner]
            del of_owner[place]
            of_owner[place] = None

    def leave(self, place: Place) -> None:
        """A second time it changes nothing."""
        if not self._holds(place):
            return
        of_owner = self._places[place.owner]
        del of_owner[place]
        if not of_owner:
            del self._places[place.owner]
        self._count(place.owner, -place.size)

    def _holds(self, place: Place) -> bool:
        return place in self._places.get(place.owner, ())

    def _count(self, owner: str, by: int) -> None:
        self.used += by
        self._sizes[owner] += by
        if not self._sizes[owner]:
            del self._sizes[owner]

    def _make_room(self, owner: str, size: int, *, beside: Place | None = None) -> None:
        while self.used + size > self.most:
            slowest = max(self._slowest(beside), key=lambda one: (self._sizes[one.owner], -one.moved_at), default=None)
            if slowest is None or not self._yields(slowest, wanted=self._sizes[owner] + size):
                self.refused += 1
                raise NoPlace
            self.leave(slowest)
            self.given_up += 1
            if slowest.give_up is not None:
                slowest.give_up()

    def _slowest(self, beside: Place | None) -> Iterator[Place]:
        for places in self._places.values():
            found = next((one for one in places if one.give_up is not None and one is not beside), None)
            if found is not None:
                yield found

    def _yields(self, place: Place, *, wanted: int) -> bool:
        """Whether it gives way to an owner that would then have as many as `wanted`."""
        return self._sizes[place.owner] > wanted or place.moved_at + _STALLED <= self._clock()


class PlacesInUse(Collector):
    """Metrics of the places of a process, by what they are for."""

    def __init__(self, places: Mapping[str, FairPlaces], *, prefix: str) -> None:
        self._places = places
        self._prefix = prefix

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        used = GaugeMetricFamily(f"{self._prefix}_places_used", "Places that are taken, by what they are for.", labels=["kind"])
        most = GaugeMetricFamily(f"{self._prefix}_places", "Places that a process has, by what they are for.", labels=["kind"])
        given_up = CounterMetricFamily(
            f"{self._prefix}_places_given_up",
            "Places that the slowest of the owner with the most gave up for others, by what they are for.",
            labels=["kind"],
        )
        refused = CounterMetricFamily(
            f"{self._prefix}_places_refused", "Requests for which there was no place, by what it was for.", labels=["kind"]
        )
        for kind, places in self._places.items():
            used.add_metric([kind], places.used)
            most.add_metric([kind], places.most)
            given_up.add_metric([kind], places.given_up)
            refused.add_metric([kind], places.refused)
        yield from (used, most, given_up, refused)
