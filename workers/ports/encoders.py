"""Encoders: what a session needs of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.channel.encoding import EncoderPlan
from domain.event.values import AudioInput
from workers.ports.playout import PlayoutStatistics, Programme


class EncoderFailed(Exception):
    """Raised when an encoder cannot be started or does not do what it is asked. Its text is one sentence without secrets."""


@dataclass(frozen=True, slots=True)
class PointStatistics:
    """Statistics of what was sent to a publishing point. `url` has neither user info nor query."""

    encoder: int
    index: int
    url: str
    bytes: int = 0
    connected: bool = False
    reconnects: int = 0
    dropped: int = 0
    """The number of segments that were never delivered to the point."""
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class EncoderStatistics:
    """Statistics of an encoder since its start."""

    since: datetime
    bytes: int = 0
    frames: int = 0
    fps: float = 0.0
    bitrate: float = 0.0
    """Bits a second of all renditions together."""
    last_error: str = ""
    points: Sequence[PointStatistics] = ()
    playout: PlayoutStatistics | None = None
    """The state of the playout; None if no composition is played."""


@dataclass(frozen=True, slots=True)
class JudgedStatistics(EncoderStatistics):
    """The statistics of an encoder that checks its output."""

    fault: str = ""
    """A sentence on what is wrong with the output. The encoder continues."""


class RunningEncoder(Protocol):
    """A running encoder of a session, from its start to its end."""

    async def ended(self) -> str:
        """Wait until the encoder ends without being stopped, and return the reason in one sentence without secrets. The result is
        empty after `stop`. It may be called again."""
        ...

    @property
    def over(self) -> bool:
        """True if the encoder ended with its source, and starting it again would begin the source anew: a film that is not
        repeated."""
        ...

    async def stop(self, *, final: bool = True) -> None:
        """Stop the encoder, first politely, then by force, within a bounded time. Nothing is sent any more when this returns. It
        may be called again. With `final` the stream is over, and its playlists say so; otherwise another session follows."""
        ...

    def statistics(self) -> EncoderStatistics: ...

    def audio_inputs(self) -> Sequence[AudioInput] | None:
        """Return the audio inputs of the source; None while they are unknown."""
        ...


class Encoder(Protocol):
    """Encodes a source and sends the result to publishing points."""

    async def start(
        self,
        plan: EncoderPlan,
        *,
        channel: str,
        session: int,
        may_send: Callable[[], bool],
        programme: Programme | None = None,
    ) -> RunningEncoder:
        """Start an encoder. With a `programme` it plays the programme instead of the source of the plan. Raise `EncoderFailed`. A
        point that cannot be reached is no failure: the encoder retries. `may_send` is called before every write to a point; once it
        returns False nothing is sent, so a frozen worker that wakes up sends nothing. A start may be cancelled: it ends at once and
        leaves nothing behind."""
        ...

    async def check(self, plan: EncoderPlan) -> str | None:
        """Return why it could not be started as planned, or which points cannot be reached; None if nothing is wrong."""
