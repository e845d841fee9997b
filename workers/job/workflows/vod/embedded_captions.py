"""Captions in the pictures of a rendition: CEA-608 and CEA-708.

They are searched for in the rendition itself, so that a manifest is true for its segments, whatever the source was and whatever the
filters did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

from workers.job.context import StepContext
from workers.job.workflows.encode import encode
from workers.media.captions.a53 import caption_data
from workers.media.captions.embedded import EmbeddedCaptions
from workers.media.captions.samples import CaptionSample
from workers.media.file import ProbedFile
from workers.media.packet_list import listed_packets

_MOST: Final = 12 * 3600 * 60
_LARGEST: Final = 1_048_576


def copied_packets(name: str, *selected: str) -> tuple[str, ...]:
    """Return the options of two outputs. `selected` are the options that select a track and the filters for its packets."""
    copied = (*selected, "-c", "copy", "-copy_unknown")
    return (*copied, "-f", "data", f"{name}.bytes", *copied, "-f", "framecrc", f"{name}.times")


def packets(place: Path) -> Iterator[CaptionSample]:
    """Yield the packets in the order in which they are decoded. A packet is cut after 1,048,576 bytes.

    `place` is the path of the two files without their suffixes.
    """
    data, times = place.with_suffix(".bytes"), place.with_suffix(".times")
    if not (data.is_file() and times.is_file()):
        return
    with data.open("rb") as content, times.open() as lines:
        yield from islice(_read_packets(content, lines), _MOST)


def discard_packets(place: Path) -> None:
    for suffix in (".bytes", ".times"):
        place.with_suffix(suffix).unlink(missing_ok=True)


def _read_packets(content: BinaryIO, lines: TextIO) -> Iterator[CaptionSample]:
    for packet in listed_packets(lines):
        yield CaptionSample(max(packet.at, 0.0), packet.lasts, content.read(min(packet.size, _LARGEST)))
        content.seek(max(packet.size - _LARGEST, 0), 1)


_SEI_ONLY: Final = "h264_mp4toannexb,filter_units=pass_types=6"


def embedded_captions(context: StepContext[Any], rendition: ProbedFile) -> EmbeddedCaptions:
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
