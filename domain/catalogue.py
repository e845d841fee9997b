"""The list of every aggregate of the product: what the log may hold."""

from __future__ import annotations

from domain.client.aggregate import Client
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.mapper import Catalogue
from domain.media_event.aggregate import MediaEvent
from domain.records.kinds.room import Room
from domain.records.kinds.tag import Tag
from domain.records.record import Record

RECORDS: tuple[type[Record], ...] = (Room, Tag)
AGGREGATES: tuple[type[AggregateRoot], ...] = (MediaEvent, Client, *RECORDS)


def catalogue() -> Catalogue:
    return Catalogue(AGGREGATES)
