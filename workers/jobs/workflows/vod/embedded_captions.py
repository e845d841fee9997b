"""Captions that the pictures of a rendition carry: CEA-608 and CEA-708. They are looked for in the rendition itself, so that a
manifest says what is true of its segments, whatever the source was and whatever the filters did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from workers.jobs.context import StepContext
from workers.jobs.workflows.encode import encode
from workers.jobs.workflows.media_file import MediaFile
from workers.media.captions.a53 import caption_data
from workers.media.captions.embedded import EmbeddedCaptions, Timed

_MOST_PICTURES: Final = 12 * 3600 * 60
_LONGEST: Final = 65_536
"""Bytes of SEI messages of a picture."""
_SEI_ONLY: Final = "h264_mp4toannexb,filter_units=pass_types=6"


def embedded_captions(context: StepContext[Any], rendition: MediaFile) -> EmbeddedCaptions:
    """Its packets are read, and no picture is decoded."""
    data, times = context.workspace / "messages", context.workspace / "messages.times"
    outputs = (("-f", "data", data.name), ("-f", "framecrc", times.name))
    copied = ("-map", "0:v:0", "-c", "copy", "-bsf:v", _SEI_ONLY)
    encode(context, rendition, *rendition.input(), *(option for output in outputs for option in (*copied, *output)), lasts=0.0)
    found = EmbeddedCaptions(islice(_pictures(data, times), _MOST_PICTURES))
    data.unlink()
    times.unlink()
    return found


def closed_captions(services: Mapping[str, Sequence[Any]], languages: Mapping[str, str]) -> str:
    """The flag with which the packager signals them in both manifests; empty, without any: its playlist then says that there are
    none. `services` has `channels` of CEA-608 and numbers of `services` of CEA-708, `languages` are by the names of the flag."""
    names = {str(name): str(name) for name in services["channels"]}
    names |= {f"SERVICE{number}": f"Service {number}" for number in services["services"]}
    spoken = {channel: f",lang={language}" for channel, language in languages.items()}
    return ";".join(f"channel={channel},name={name}{spoken.get(channel, '')}" for channel, name in names.items())


def _pictures(data: Path, times: Path) -> Iterator[Timed]:
    """`times` lists the packets of `data`: the stream, when it is decoded and shown, how long, and its size in bytes."""
    scale = 1.0
    with data.open("rb") as messages, times.open() as lines:
        for line in lines:
            if line.startswith("#tb 0:"):
                scale = _fraction(line.partition(":")[2])
            if line.startswith("#"):
                continue
            fields = line.split(",")
            shown, size = int(fields[2]), int(fields[4])
            unit = messages.read(size)
            triples = caption_data(unit[:_LONGEST], "h264", length_size=0)
            if triples:
                yield max(shown * scale, 0.0), triples


def _fraction(text: str) -> float:
    above, _, below = text.strip().partition("/")
    return int(above) / int(below)
