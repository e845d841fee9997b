"""The encoder of an Event, as a part of the aggregate: who is on the air on a channel, and what its sessions report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from domain.kernel.aggregate import NO_CLAIMS, AggregateRoot, Claim
from domain.media_event import events
from domain.media_event.values import ENCODER_TRIGGERS, LIVE, AudioInput, Encoding, EventDetails, EventState

ON_AIR: Final = "channel.on_air"
"""The scope of the claim that keeps two Events from sending on one channel."""
_NO_ENCODING: Final = Encoding()


class EncodedEvent(AggregateRoot):
    """The decisions and appliers that are about the encoder. A GET of the Event shows none of it."""

    details: EventDetails

    def under_way(self) -> bool:
        """On the air, or being made into a film."""
        return self._encoding.channel_id is not None or self.details.vod_job is not None

    # --- decisions

    def take_channel(self, channel_id: UUID, *, order: int, at: datetime) -> None:
        """Go on the air on this channel, as the state change of version `order` asked for. Changes nothing where this was done, or
        is not wanted any more. Of an Event that was left on the air by its former channel, that one is released."""
        encoding = self._encoding
        if not encoding.wanted or order <= encoding.order or self.details.date_deleted or channel_id != self.details.channel_id:
            return
        if encoding.channel_id != channel_id:
            self._go_off_air(at=at)
            self._trigger(events.ChannelTaken, at=at, channel_id=channel_id, order=order)

    def release_channel(self, channel_id: UUID, *, at: datetime) -> None:
        """Go off the air, in whatever state the Event is, until the next order."""
        if self._encoding.channel_id == channel_id:
            self._go_off_air(at=at)

    def record_encoder_start(self, session: int, *, at: datetime) -> None:
        """Of an Event that was stopped meanwhile it is not recorded: the session ends, and nothing starts after a stop."""
        if session > self._encoding.session and self._encoding.channel_id is not None:
            self._trigger(events.EncoderStarted, at=at, session=session)

    def record_encoder_stop(self, session: int, *, reason: str, at: datetime) -> None:
        if self._encoding.running and session == self._encoding.session:
            self._trigger(events.EncoderStopped, at=at, session=session, reason=reason)

    def record_encoder_failure(self, version: int, *, session: int | None, reason: str, at: datetime) -> None:
        """The encoder is given up, and the channel is free for others. `version` is that of the event that took it: there may be
        a later order already."""
        encoding = self._encoding
        if encoding.channel_id is not None and encoding.version == version:
            self._trigger(events.EncoderFailed, at=at, session=session, reason=reason)
            self._trigger(events.ChannelReleased, at=at, channel_id=encoding.channel_id)

    def record_audio_inputs(self, audio_inputs: Sequence[AudioInput], *, at: datetime) -> None:
        found = tuple(audio_inputs)
        if self.details.date_deleted is None and found != (self.details.audio_inputs or ()):
            self._trigger(events.AudioInputsChanged, at=at, audio_inputs=found)

    @property
    def _encoding(self) -> Encoding:
        return self.details.encoding or _NO_ENCODING

    def _go_off_air(self, *, at: datetime) -> None:
        """In the append of the order that stops the encoder: the channel is free for the next Event at once."""
        if (channel_id := self._encoding.channel_id) is not None:
            self._trigger(events.ChannelReleased, at=at, channel_id=channel_id)

    # --- state

    def _follow(self, event: events.StateChanged) -> None:
        if event.trigger in ENCODER_TRIGGERS:
            if event.state in LIVE:
                self._encode(wanted=True)
            elif event.state is EventState.STOPPED:
                self._want_no_encoder()

    def _when_channel_taken(self, event: events.ChannelTaken) -> None:
        self._encode(order=event.order, channel_id=event.channel_id, version=event.originator_version)

    def _when_channel_released(self, event: events.ChannelReleased) -> None:
        self._encode(channel_id=None, version=0)

    def _when_encoder_started(self, event: events.EncoderStarted) -> None:
        self._encode(session=event.session, running=True)

    def _when_encoder_stopped(self, event: events.EncoderStopped) -> None:
        self._encode(running=False)

    def _when_encoder_failed(self, event: events.EncoderFailed) -> None:
        self._encode(running=False)

    def _encode(self, **facts: Any) -> None:
        self.details.encoding = self._encoding.model_copy(update=facts)

    def _want_no_encoder(self) -> None:
        if self.details.encoding is not None:
            self._encode(wanted=False)

    # --- claims

    def claims(self) -> frozenset[Claim]:
        channel_id = self.details.on_air_channel_id
        return NO_CLAIMS if channel_id is None else frozenset({Claim(ON_AIR, str(channel_id), self.id)})
