"""When the streams of Events began, for steps that are given times of day: the worker answers, since steps know no database."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from domain.kernel.clock import iso
from domain.media_event.aggregate import MediaEvent
from projections.log.streams import Streams

START: Final = "stream_start"
"""The kind of the question."""
FindStart = Callable[[str], Awaitable[str | None]]
"""By the id of an Event. None: its stream carries no timecode."""

_log = logging.getLogger(__name__)


async def no_starts(event: str) -> str | None:
    return None


class StreamStarts:
    """From the Event: when its capture began, else when it went on the air."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    async def __call__(self, event: str) -> str | None:
        found = await self._streams.load(MediaEvent.stream(event))
        if not isinstance(found, MediaEvent):
            return None
        begun = found.details.capture_vod_start or found.details.actual_live_start
        return None if begun is None else iso(begun)


async def answer(find: FindStart, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a step is told that asks for it."""
    try:
        return {"start": await find(str(question.get("event")))}
    except Exception as fault:  # whatever it is: the step would wait for ever
        _log.error("a step gets no start of a stream: %s: %s", type(fault).__name__, fault)
        return {"refused": "The Event cannot be read; the log of the worker says why."}
