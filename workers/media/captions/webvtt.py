"""WebVTT files: a whole one, and the segments of HLS.

The segments of a track are parts of one file, which players read by byte ranges, as they read picture and sound. Therefore a long
film with many languages does not have thousands of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from workers.media.captions.cues import Cue, UnreadableCaptions, clock

SEGMENT_SECONDS: Final = 6
_MOST_SHOWN: Final = 200_000
"""The largest number of cues in all segments together."""
_HEAD: Final = "WEBVTT\n"
_MAP: Final = "X-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n"
"""The header that makes the times of cues count from the begin of the film, as those of the CMAF tracks do."""


def whole(cues: Iterable[Cue]) -> str:
    """Return one file for players of DASH, for downloads and for services."""
    return "\n".join([_HEAD, *map(_block, cues)])


def segments(cues: Sequence[Cue], *, lasts: float, name: str) -> tuple[bytes, str]:
    """Return the file `name` with all segments of a film of this length in seconds, and its media playlist. A cue that is shown
    over the border of two segments is in both. Raise `UnreadableCaptions` if there are so many long cues that they would fill a
    disk."""
    length = SEGMENT_SECONDS * 1000
    lasting = max(round(lasts * 1000), 1)
    count = -(-lasting // length)
    inside: list[list[Cue]] = [[] for _ in range(count)]
    shown_in = [range(cue.begin // length, min(-(-cue.end // length), count)) for cue in cues]
    if sum(map(len, shown_in)) > _MOST_SHOWN:
        raise UnreadableCaptions("Too many cues of the captions are shown for too long at the same time.")
    for cue, numbers in zip(cues, shown_in, strict=True):
        for number in numbers:
            inside[number].append(cue)
    content, lines = bytearray(), ["#EXTM3U", "#EXT-X-VERSION:6", f"#EXT-X-TARGETDURATION:{SEGMENT_SECONDS}"]
    lines.append("#EXT-X-PLAYLIST-TYPE:VOD")
    for number, shown in enumerate(inside):
        segment = "\n".join([_HEAD.rstrip("\n"), _MAP, *map(_block, shown)]).encode()
        seconds = min(length, lasting - number * length) / 1000
        lines += [f"#EXTINF:{seconds:.3f},", f"#EXT-X-BYTERANGE:{len(segment)}@{len(content)}", quote(name)]
        content += segment
    return bytes(content), "".join(f"{line}\n" for line in (*lines, "#EXT-X-ENDLIST"))


def _block(cue: Cue) -> str:
    settings = f" {cue.settings}" if cue.settings else ""
    return f"{clock(cue.begin)} --> {clock(cue.end)}{settings}\n{cue.text}\n"
