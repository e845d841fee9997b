"""Use cases of destinations over in-memory twins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from domain.destination.handlers import DestinationHandlers
from domain.destination.targets import Target
from domain.kernel.errors import Malformed, NotFound
from domain.kernel.ports import Invocation
from domain.record.handlers import RecordHandlers
from tests.domain.memory import Memory

ME = Invocation.by("studio")
NOWHERE = UUID(int=99)


class Reached:
    """The twin of the trial of targets where all are reached; FILESYSTEM is not taken."""

    async def fault(self, target: Target, config: Mapping[str, Any]) -> str | None:
        return None

    def refusal(self, target: Target) -> str | None:
        return "has no root here" if target is Target.FILESYSTEM else None


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"configuration_json": "no JSON"}, "destinationJson"),
        ({"configuration_json": '{"password": 1}'}, "destinationJson.password"),
        ({"target": Target.S3, "configuration_json": "{}"}, "destinationJson.endpoint"),
        ({"target": Target.FILESYSTEM}, "target"),
    ],
)
async def test_bad_input_is_told_before_an_unknown_id(values: dict[str, Any], field: str) -> None:
    memory = Memory()
    deletions = RecordHandlers(memory.executor, memory.records)
    handlers = DestinationHandlers(memory.executor, memory.records, vault=memory.vault, trial=Reached(), deletions=deletions)
    with pytest.raises(Malformed) as refused:
        await handlers.change(NOWHERE, values, invocation=ME)
    assert field in [error.field for error in refused.value.errors]
    with pytest.raises(NotFound):
        await handlers.change(NOWHERE, {"configuration_json": json.dumps({"bucket": 1})}, invocation=ME)
