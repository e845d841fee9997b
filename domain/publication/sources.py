"""The sources of an Event's live publications: the HLS addresses of its channel, and their audio inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from domain.channel.channel import ChannelDocument, Encoder
from domain.channel.playback import channel_configuration, live_addresses
from domain.channel.secrets import opened
from domain.channel.streams import StreamPlace, StreamProtocol
from domain.event.ports import EventRow
from domain.event.values import LIVE, AudioInput, configured_inputs
from domain.kernel.json_document import readable
from domain.record.kinds.channel import Channel
from domain.record.ports import RecordLookup

_PLACES: Final = (
    StreamPlace.ORIGIN_PRIMARY,
    StreamPlace.ORIGIN_SECONDARY,
    StreamPlace.CDN_PRIMARY,
    StreamPlace.CDN_SECONDARY,
)


@dataclass(frozen=True, slots=True)
class LiveSource:
    """The live stream of an Event: addresses of HLS, the best first. `audio_inputs` are its audio inputs if known. `expected`
    says that there will be addresses when the Event goes live."""

    urls: Sequence[str] = field(repr=False)
    audio_inputs: Sequence[AudioInput] = ()
    expected: bool = False


class ChannelSources:
    """Finds the sources of Events that are on the air. Origins come before CDNs."""

    def __init__(self, records: RecordLookup) -> None:
        self._records = records

    async def of(self, event: EventRow) -> LiveSource:
        """Return the source of an Event. It has no addresses if the Event is not on the air, or if its channel has none of HLS."""
        key = event.details.on_air_channel_id or event.details.channel_id
        channel = None if key is None else await self._records.find(Channel, key)
        if channel is None:
            return LiveSource((), event.details.audio_inputs or ())
        text = channel.details.configuration_json
        urls = tuple(live_addresses(channel_configuration(text), StreamProtocol.HLS, places=_PLACES, content=str(event.id)))
        live = event.details.state in LIVE
        return LiveSource(urls if live else (), event.details.audio_inputs or _configured(text), expected=bool(urls) and not live)


def _configured(text: str) -> Sequence[AudioInput]:
    """Return the inputs of all encoders without duplicates."""
    encoders: Sequence[Encoder] = readable(ChannelDocument, opened(text, {})).encoders or ()
    inputs = [audio_input for encoder in encoders for audio_input in configured_inputs(encoder.encoder_specific or {})]
    return list({audio_input.id: audio_input for audio_input in inputs}.values())
