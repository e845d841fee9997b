"""An event whose meaning changed twice: the three ages of it are all read as the newest."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from pydantic import ValidationError
from pydantic_core import from_json

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent, FirstEvent
from domain.kernel.mapper import Catalogue, EventMapper
from tests.golden.samples import HAPPENED

STREAM = "clip:1"
TIME = '"timestamp":"2031-01-02T03:04:05.678000Z"'


class Cut(FirstEvent):
    """v1 had `length` in seconds; v2 `length_ms`; v3 has `begin_ms` and `end_ms`."""

    TOPIC: ClassVar[str] = "clip.cut"
    class_version: ClassVar[int] = 3

    begin_ms: int
    end_ms: int
    note: str | None = None

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        state["length_ms"] = int(state.pop("length") * 1000)

    @staticmethod
    def upcast_v2_v3(state: dict[str, Any]) -> None:
        state["begin_ms"], state["end_ms"] = 0, state.pop("length_ms")


class CutByOldCode(FirstEvent):
    """The event in the form that the first version of the code knows."""

    TOPIC: ClassVar[str] = "clip.cut"

    length: float = 0.0
    note: str | None = None


class Clip(AggregateRoot):
    KIND: ClassVar[str] = "clip"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = (Cut,)

    def _when_cut(self, event: Cut) -> None:
        self.end_ms = event.end_ms


class OldClip(AggregateRoot):
    KIND: ClassVar[str] = "clip"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = (CutByOldCode,)


Cut.AGGREGATE = Clip
MAPPER = EventMapper(Catalogue([Clip]))


def read(state: str) -> Cut:
    event = MAPPER.read("clip.cut", stream=STREAM, version=1, state=state.encode())
    assert isinstance(event, Cut)
    return event


@pytest.mark.parametrize(
    "state",
    [
        f'{{{TIME},"length":1.5,"note":null}}',
        f'{{"class_version":1,{TIME},"length":1.5,"note":null}}',
        f'{{"class_version":2,{TIME},"length_ms":1500,"note":null}}',
        f'{{"class_version":3,{TIME},"begin_ms":0,"end_ms":1500,"note":null}}',
    ],
)
def test_every_age_is_read_as_the_newest(state: str) -> None:
    event = read(state)
    assert event == Cut(originator_id=STREAM, originator_version=1, timestamp=HAPPENED, begin_ms=0, end_ms=1500, note=None)
    assert event.facts() == {"begin_ms": 0, "end_ms": 1500, "note": None}
    clip = event.mutate(None)
    assert clip.end_ms == 1500


def test_a_new_event_is_stored_with_its_version_and_comes_back() -> None:
    event = Cut(originator_id=STREAM, originator_version=1, timestamp=HAPPENED, begin_ms=5, end_ms=9)
    stored = MAPPER.state(event)
    assert from_json(stored) == {"class_version": 3, "timestamp": "2031-01-02T03:04:05.678000Z", "begin_ms": 5, "end_ms": 9}
    assert read(stored.decode()) == event


def test_an_upcast_event_still_ignores_what_it_does_not_know() -> None:
    assert read(f'{{"class_version":3,{TIME},"begin_ms":1,"end_ms":2,"mood":"tense"}}').facts() == {"begin_ms": 1, "end_ms": 2}


def test_an_event_of_newer_code_is_read_as_far_as_it_goes() -> None:
    state = f'{{"class_version":3,{TIME},"begin_ms":1,"end_ms":2,"note":"n"}}'
    old = EventMapper(Catalogue([OldClip])).read("clip.cut", stream=STREAM, version=1, state=state.encode())
    assert old.facts() == {"note": "n"}


def test_a_stored_event_without_what_it_must_hold_is_not_made_up() -> None:
    with pytest.raises(ValidationError):
        read(f'{{"class_version":3,{TIME},"begin_ms":1}}')
