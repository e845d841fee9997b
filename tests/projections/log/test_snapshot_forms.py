"""The form of a snapshot changes with everything that a snapshot may hold, and with nothing else."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from api.wiring.catalogue import catalogue
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.event import DomainEvent
from projections.log.streams import SnapshotForms, form_of


class Place(BaseModel):
    floor: int = 0


class Farther(BaseModel):
    floor: int = 0
    wing: str = ""


def aggregate(kind: str = "hall", *, version: int = 1, form: int = 1, details: Any = Place, **fields: Any) -> type[AggregateRoot]:
    namespace = {"__annotations__": {"TOPIC": ClassVar[str], "class_version": ClassVar[int], **fields}}
    event = type(
        "Opened", (DomainEvent,), {**namespace, "TOPIC": f"{kind}.opened", "class_version": version, "__module__": __name__}
    )
    body = {"KIND": kind, "EVENTS": (event,), "SNAPSHOT_VERSION": form, "__annotations__": {"details": details}}
    return type("Hall", (AggregateRoot,), body)


def test_the_same_build_has_the_same_form() -> None:
    assert form_of(aggregate(name=str)) == form_of(aggregate(name=str))
    assert len(form_of(aggregate())) == 16


@pytest.mark.parametrize(
    "other",
    [
        aggregate("room", name=str),
        aggregate(name=str, seats=int),
        aggregate(name=int),
        aggregate(name=Place),
        aggregate(name=str, version=2),
        aggregate(name=str, form=2),
        aggregate(name=str, details=Farther),
    ],
    ids=[
        "the kind",
        "a field is added",
        "a field changes its type",
        "a field holds others",
        "an upcast",
        "its code",
        "its details",
    ],
)
def test_every_change_of_what_it_may_hold_is_another_form(other: type[AggregateRoot]) -> None:
    assert form_of(other) != form_of(aggregate(name=str))


def test_a_member_of_a_nested_value_counts() -> None:
    assert form_of(aggregate(place=Place)) != form_of(aggregate(place=Farther))


def test_every_aggregate_of_the_product_has_a_form_of_its_own() -> None:
    catalogue_ = catalogue()
    forms = SnapshotForms(catalogue_)
    assert len({forms.of(kind) for kind in catalogue_.aggregates}) == len(catalogue_.aggregates)
