"""The port of pushing: it reads the live stream of an Event and sends it to the ingest address of a target."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from workers.ports.live import LiveIngest

PushFault = Literal["source", "target", "worker"]
"""The party at fault: the stream of the Event, the receiver, or this worker, which may not send."""
_MEASURED: Final = 10.0


class PushFailed(Exception):
    """Raised when a push ends early. Its text is one sentence without secrets. `hopeless`: another attempt would fail too."""

    def __init__(self, fault: PushFault, sentence: str, *, hopeless: bool = False) -> None:
        super().__init__(sentence)
        self.fault: PushFault = fault
        self.hopeless = hopeless


@dataclass(frozen=True, slots=True)
class PushedSound:
    """The sound of the stream that is pushed: chosen by its name, its id or its language, else by its place. The first sound if all
    are empty."""

    names: Sequence[str] = ()
    language: str = ""
    place: int = 0


@dataclass(frozen=True, slots=True)
class Push:
    """An order to push a stream. `urls` are HLS addresses of the stream, the best first. `may_send` is called before every write,
    and `arrived` after the first bytes of media."""

    urls: Sequence[str] = field(repr=False)
    sound: PushedSound
    ingest: LiveIngest
    session: int
    may_send: Callable[[], bool]
    arrived: Callable[[], None]


class PushRecord:
    """Statistics of the pushes of one session."""

    def __init__(self) -> None:
        self.bytes = 0
        self.frames = 0
        self.reconnects = 0
        self.last_error: str | None = None
        self._since: float | None = None
        self._was_connected = False
        self._sent: deque[tuple[float, int, int]] = deque()

    @property
    def connected(self) -> bool:
        return self._since is not None

    def took(self, size: int, *, frames: int) -> None:
        """Record media that the target has accepted."""
        now = time.monotonic()
        if self._since is None:
            self.reconnects += self._was_connected
            self._since, self._was_connected = now, True
        self.bytes += size
        self.frames += frames
        self._sent.append((now, size, frames))
        while self._sent[0][0] < now - _MEASURED:
            self._sent.popleft()

    def lost(self, why: str) -> None:
        self._since = None
        self._sent.clear()
        self.last_error = why or self.last_error

    def statistics(self) -> Mapping[str, Any]:
        now = time.monotonic()
        recent = [(size, frames) for at, size, frames in self._sent if at >= now - _MEASURED]
        seconds = min(max(now - self._since, 1.0), _MEASURED) if self._since is not None else 1.0
        return {
            "connected": self.connected,
            "uptime": 0.0 if self._since is None else round(now - self._since, 3),
            "bytes": self.bytes,
            "bitrate": round(sum(size for size, _ in recent) * 8 / seconds, 1),
            "fps": round(sum(frames for _, frames in recent) / seconds, 2),
            "frames": self.frames,
            "reconnects": self.reconnects,
            "last_error": self.last_error,
        }


class Pusher(Protocol):
    async def push(self, push: Push, record: PushRecord) -> None:
        """Push the stream until it is over. Raise `PushFailed`. A caller that cancels it waits for its end: nothing is sent after
        that."""
        ...
