"""The encoder of an Event, as a part of the aggregate: the channel that the Event is on the air on, and the reports of its
sessions."""

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
    """The decisions and appliers about the encoder. A GET of the Event shows none of this."""

    details: EventDetails

    def under_way(self) -> bool:
        """Return True while the Event is on the air, or has a job that makes its film."""
        return self._encoding.channel_id is not None or self.details.vod_job is not None

    # --- decisions

    def take_channel(self, channel_id: UUID, *, order: int, at: datetime) -> None:
        """Go on the air on this channel, as requested by the state change of version `order`. Nothing changes if this was done
        already, or is no longer wanted. If the Event is still on the air on its former channel, that channel is released."""
        encoding = self._encoding
        if not encoding.wanted or order <= encoding.order or self.details.date_deleted or channel_id != self.details.channel_id:
            return
        if encoding.channel_id != channel_id:
            self._go_off_air(at=at)
            self._trigger(events.ChannelTaken, at=at, channel_id=channel_id, order=order)

    def release_channel(self, channel_id: UUID, *, at: datetime) -> None:
        """Go off the air until the next order, whatever the state of the Event."""
        if self._encoding.channel_id == channel_id:
            self._go_off_air(at=at)

    def record_encoder_start(self, session: int, *, at: datetime) -> None:
        """Record the start of a session. It is not recorded if the Event was stopped meanwhile: the session ends, and nothing
        starts after a stop."""
        if session > self._encoding.session and self._encoding.channel_id is not None:
            self._trigger(events.EncoderStarted, at=at, session=session)

    def record_encoder_stop(self, session: int, *, reason: str, at: datetime) -> None:
        if self._encoding.running and session == self._encoding.session:
            self._trigger(events.EncoderStopped, at=at, session=session, reason=reason)

    def record_encoder_failure(self, version: int, *, session: int | None, reason: str, at: datetime) -> None:
        """Give the encoder up and free the channel for others. `version` is the version of the event that took it, because there
        may be a later order already."""
        encoding = self._encoding
        if encoding.channel_id is not None and encoding.version == version:
            self._trigger(events.EncoderFailed, at=at, session=session, reason=reason)
            self._trigger(events.ChannelReleased, at=at, channel_id=encoding.channel_id)

    def record_audio_inputs(self, audio_inputs: Sequence[AudioInput], *, at: datetime) -> None:
        new_inputs = tuple(audio_inputs)
        if self.details.date_deleted is None and new_inputs != (self.details.audio_inputs or ()):
            self._trigger(events.AudioInputsChanged, at=at, audio_inputs=new_inputs)

    @property
    def _encoding(self) -> Encoding:
        return self.details.encoding or _NO_ENCODING

    def _go_off_air(self, *, at: datetime) -> None:
        """Release the channel in the append that stops the encoder, so that it is free for the next Event at once."""
        if (channel_id := self._encoding.channel_id) is not None:
            self._trigger(events.ChannelReleased, at=at, channel_id=channel_id)

    # --- state

    def _follow(self, event: events.StateChanged) -> None:
        if event.trigger in ENCODER_TRIGGERS:
            if event.state in LIVE:
                self._encode(wanted=True)
            elif event.state is EventState.STOPPED:
                self._cancel_encoder_order()

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

    def _cancel_encoder_order(self) -> None:
        if self.details.encoding is not None:
            self._encode(wanted=False)

    # --- claims

    def claims(self) -> frozenset[Claim]:
        channel_id = self.details.on_air_channel_id
        return NO_CLAIMS if channel_id is None else frozenset({Claim(ON_AIR, str(channel_id), self.id)})
