"""The starts of the streams of Events, for steps that are given times of day: the worker answers, since steps have no database."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from domain.event.aggregate import MediaEvent
from domain.kernel.clock import iso
from projections.log.streams import Streams

START: Final = "stream_start"
"""The kind of the question."""
FindStart = Callable[[str], Awaitable[str | None]]
"""Finds the start of the stream of the Event with this id; None if its stream carries no timecode."""

_log = logging.getLogger(__name__)


async def no_starts(event: str) -> str | None:
    return None


class StreamStarts:
    """Reads the start from the Event: when its capture began, else when it went on the air."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    async def __call__(self, event: str) -> str | None:
        aggregate = await self._streams.load(MediaEvent.stream(event))
        if not isinstance(aggregate, MediaEvent):
            return None
        begun = aggregate.details.capture_vod_start or aggregate.details.actual_live_start
        return None if begun is None else iso(begun)


async def answer(find: FindStart, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer for a step that asks for the start of a stream."""
    try:
        return {"start": await find(str(question.get("event")))}
    except Exception as fault:  # of any kind: the step would wait for ever
        _log.error("a step cannot get the start of a stream: %s: %s", type(fault).__name__, fault)
        return {"refused": "The Event cannot be read; see the log of the worker."}
