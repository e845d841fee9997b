"""Captions in the pictures of a rendition: CEA-608 and CEA-708.

They are searched for in the rendition itself, so that a manifest is true for its segments, whatever the source was and whatever the
filters did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workers.jobs.context import StepContext
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.vod.packet_files import copied_packets, discard_packets, packets
from workers.media.captions.a53 import caption_data
from workers.media.captions.embedded import EmbeddedCaptions
from workers.media.file import MediaFile

_SEI_ONLY: Final = "h264_mp4toannexb,filter_units=pass_types=6"


def embedded_captions(context: StepContext[Any], rendition: MediaFile) -> EmbeddedCaptions:
    """Return the captions of a rendition. Its packets are read, and no picture is decoded."""
    place = context.workspace / "messages"
    messages = copied_packets(place.name, "-map", "0:v:0", "-bsf:v", _SEI_ONLY)
    encode(context, rendition, *rendition.input(), *messages, lasts=0.0)
    captions = EmbeddedCaptions((packet.at, caption_data(packet.data, "h264", length_size=0)) for packet in packets(place))
    discard_packets(place)
    return captions


def closed_captions(captions: Mapping[str, Any]) -> str:
    """Return the flag with which the packager signals captions in both manifests; empty if there are none, which the playlist then
    states.

    `captions` has `channels` of CEA-608 and numbers of `services` of CEA-708; `languages` are by the names of the flag.
    """
    names = {str(name): str(name) for name in captions["channels"]}
    names |= {f"SERVICE{number}": f"Service {number}" for number in captions["services"]}
    spoken = {channel: f",lang={language}" for channel, language in captions["languages"].items()}
    return ";".join(f"channel={channel},name={name}{spoken.get(channel, '')}" for channel, name in names.items())
