"""A limited number of places of a process, shared between owners: readers of files, uploads, bytes in memory.

A limit alone protects the process but not its users: the first owner could hold all places. Here the owner with the most places
gives up its slowest place for an owner with fewer.
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
    """Raised when all places are taken, and no other owner has more of them or is slower."""


class WorkPlace:
    """A place of an owner until `FairPlaces.leave`. `give_up` ends the work that it is for; without it the place cannot be
    withdrawn."""

    __slots__ = ("give_up", "moved_at", "owner", "size")

    def __init__(self, owner: str, give_up: Callable[[], None] | None, *, size: int, moved_at: float) -> None:
        self.owner = owner
        self.give_up = give_up
        self.size = size
        self.moved_at = moved_at


class FairPlaces:
    """A pool of `most` places."""

    def __init__(self, most: int, *, clock: Callable[[], float] = monotonic) -> None:
        self.most = most
        self.used = 0
        self.given_up = 0
        """The number of places that were given up for other owners."""
        self.refused = 0
        self._clock = clock
        self._sizes: Counter[str] = Counter()
        self._places: dict[str, dict[WorkPlace, None]] = {}
        """The places of each owner in the order of their progress, the slowest first."""

    def take(self, owner: str, give_up: Callable[[], None] | None, *, size: int = 1) -> WorkPlace:
        """Take a place. Raise `NoPlace`."""
        self._make_room(owner, size)
        place = WorkPlace(owner, give_up, size=size, moved_at=self._clock())
        self._places.setdefault(owner, {})[place] = None
        self._count(owner, size)
        return place

    def grow(self, place: WorkPlace, by: int) -> None:
        """Enlarge a place. Raise `NoPlace`, also if the place was given up meanwhile."""
        if not self._holds(place):
            raise NoPlace
        self.moved(place)
        self._make_room(place.owner, by, excluded=place)
        place.size += by
        self._count(place.owner, by)

    def moved(self, place: WorkPlace) -> None:
        """Record progress of the work that the place is for."""
        if self._holds(place):
            place.moved_at = self._clock()
            of_owner = self._places[place.owner]
            del of_owner[place]
            of_owner[place] = None

    def leave(self, place: WorkPlace) -> None:
        """Release a place. A second call changes nothing."""
        if not self._holds(place):
            return
        of_owner = self._places[place.owner]
        del of_owner[place]
        if not of_owner:
            del self._places[place.owner]
        self._count(place.owner, -place.size)

    def _holds(self, place: WorkPlace) -> bool:
        return place in self._places.get(place.owner, ())

    def _count(self, owner: str, by: int) -> None:
        self.used += by
        self._sizes[owner] += by
        if not self._sizes[owner]:
            del self._sizes[owner]

    def _make_room(self, owner: str, size: int, *, excluded: WorkPlace | None = None) -> None:
        while self.used + size > self.most:
            slowest = max(self._slowest(excluded), key=lambda place: (self._sizes[place.owner], -place.moved_at), default=None)
            if slowest is None or not self._yields(slowest, wanted=self._sizes[owner] + size):
                self.refused += 1
                raise NoPlace
            self.leave(slowest)
            self.given_up += 1
            if slowest.give_up is not None:
                slowest.give_up()

    def _slowest(self, excluded: WorkPlace | None) -> Iterator[WorkPlace]:
        for places in self._places.values():
            slowest = next((place for place in places if place.give_up is not None and place is not excluded), None)
            if slowest is not None:
                yield slowest

    def _yields(self, place: WorkPlace, *, wanted: int) -> bool:
        """Return True if the place gives way to an owner that would then have `wanted` places."""
        return self._sizes[place.owner] > wanted or place.moved_at + _STALLED <= self._clock()


class PlacesInUse(Collector):
    """Metrics of the places of a process, by purpose."""

    def __init__(self, places: Mapping[str, FairPlaces], *, prefix: str) -> None:
        self._places = places
        self._prefix = prefix

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        used = GaugeMetricFamily(f"{self._prefix}_places_used", "Places that are taken, by purpose.", labels=["kind"])
        most = GaugeMetricFamily(f"{self._prefix}_places", "Places that a process has, by purpose.", labels=["kind"])
        given_up = CounterMetricFamily(
            f"{self._prefix}_places_given_up",
            "Places that the owner with the most gave up for others, by purpose.",
            labels=["kind"],
        )
        refused = CounterMetricFamily(
            f"{self._prefix}_places_refused", "Requests for which there was no place, by purpose.", labels=["kind"]
        )
        for kind, places in self._places.items():
            used.add_metric([kind], places.used)
            most.add_metric([kind], places.most)
            given_up.add_metric([kind], places.given_up)
            refused.add_metric([kind], places.refused)
        yield from (used, most, given_up, refused)
