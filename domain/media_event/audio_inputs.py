"""The audio inputs that a channel lists for its encoders. What an encoder has found is recorded on the Event instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.configuration.encoder_settings import AudioInputEntry, FfmpegSpecific
from domain.kernel.json_document import readable
from domain.media_event.values import AudioInput


def configured_inputs(specific: Mapping[str, object]) -> Sequence[AudioInput]:
    """Of an `encoderSpecific`, as far as it can be read."""
    return listed_inputs(readable(FfmpegSpecific, specific).audio_inputs or ())


def listed_inputs(entries: Sequence[AudioInputEntry]) -> Sequence[AudioInput]:
    found = []
    for place, one in enumerate(entries):
        index = place if one.index is None else one.index
        found.append(AudioInput(id=one.id or str(place), name=one.name or "", index=index, language=one.language or ""))
    return found
