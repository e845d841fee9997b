"""The audio inputs that a channel lists for its encoders. The inputs that an encoder has found are recorded on the Event
instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.configuration.encoder_settings import AudioInputEntry, FfmpegSpecific
from domain.kernel.json_document import readable
from domain.media_event.values import AudioInput


def configured_inputs(specific: Mapping[str, object]) -> Sequence[AudioInput]:
    """Return the inputs of an `encoderSpecific`, as far as it can be read."""
    return listed_inputs(readable(FfmpegSpecific, specific).audio_inputs or ())


def listed_inputs(entries: Sequence[AudioInputEntry]) -> Sequence[AudioInput]:
    inputs = []
    for place, entry in enumerate(entries):
        index = place if entry.index is None else entry.index
        inputs.append(AudioInput(id=entry.id or str(place), name=entry.name or "", index=index, language=entry.language or ""))
    return inputs
