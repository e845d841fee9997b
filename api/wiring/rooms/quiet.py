"""Quiet: the order that nothing leaves the installation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Services
from api.wiring.room import Room
from domain.record.kinds.quiet import Quiet
from domain.record.ports import RecordRow

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer


def _routes() -> Sequence[APIRouter]:
    from api.media import quiet

    return (quiet.routes,)


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.quiet import QUIET

    async def quiet(root: Quiet, moment: Moment) -> Any:
        return QUIET.shape(RecordRow.of(root))

    return {Quiet.KIND: quiet}


QUIET = Room(name="quiet", aggregates=(Quiet,), routes=_routes, past_states=_past_states)
