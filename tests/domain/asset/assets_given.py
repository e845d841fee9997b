"""Scenarios of one asset."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from domain.asset import events
from domain.asset.aggregate import Asset
from domain.asset.values import AssetType
from tests.domain.scenario import THEN, Fact, Scenario, fact, given

KEY, EVENT = UUID(int=7), UUID(int=1)
PATH = f"{EVENT}/assets/goal.jpg"
JOB, NEXT_JOB = 17, 18

REMOVED = fact(events.AssetRemoved, file_left=True)
FILE_DELETED = fact(events.FileDeleted)


def requested(**more: Any) -> Fact:
    return fact(
        events.AssetRequested, **{"event_id": EVENT, "type": AssetType.IMAGE, "name": "Goal", "path": PATH, "job": JOB, **more}
    )


def discovered() -> Fact:
    return fact(events.Discovered, event_id=EVENT, name="goal.jpg", path=PATH, size=3, modified=THEN)


def completed(version: int = 5, size: int = 3) -> Fact:
    return fact(events.AssetCompleted, job_version=version, size=size)


def failed(version: int = 5, reason: str = "no") -> Fact:
    return fact(events.AssetFailed, job_version=version, reason=reason)


def restarted(version: int, job: int = JOB) -> Fact:
    return fact(events.Restarted, job=job, job_version=version)


def an_asset(*since: Fact, first: Fact | None = None) -> Scenario[Asset]:
    """A requested asset that is generating, and the events since."""
    return given(Asset, KEY, first or requested(), *since)
