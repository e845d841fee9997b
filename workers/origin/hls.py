"""HLS playlists of what is recorded: RFC 8216."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from workers.media.captions.a53 import CaptionServices
from workers.media.hls import date_time
from workers.origin.timeline import Part, Timeline, Track, all_captions

_GROUP: Final = "audio"
_CAPTIONS: Final = "captions"
_CLOCK_EVERY: Final = 100
"""Segments of a long playlist after which the time of day is told again."""
_SHORT: Final = 1000


def master(timeline: Timeline, *, query: str = "") -> str:
    """Video with its audio; audio that is separate is a group of its own. `query` is added to each address."""
    sounds = [one for one in timeline.tracks if _kinds(one) == {"audio"}]
    pictures = [one for one in timeline.tracks if "video" in _kinds(one)]
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    for number, one in enumerate(sounds if pictures else []):
        language = f',LANGUAGE="{one.init.language}"' if one.init.language else ""
        channels = f',CHANNELS="{one.init.channels}"' if one.init.channels else ""
        default = "YES" if number == 0 else "NO"
        lines.append(
            f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="{_GROUP}",NAME="{one.name}"{language}{channels},'
            f'DEFAULT={default},AUTOSELECT=YES,URI="tracks/{one.name}.m3u8{query}"'
        )
    captions = all_captions(pictures)
    lines += _captions(captions)
    for one in sorted(pictures or sounds, key=lambda one: (one.init.width * one.init.height, one.peak), reverse=True):
        separate = sounds if _kinds(one) == {"video"} else []
        lines += [_stream(one, separate, captions=bool(captions)), f"tracks/{one.name}.m3u8{query}"]
    return "\n".join([*lines, ""])


def _captions(found: CaptionServices) -> Iterator[str]:
    """Captions in the pictures. Where there are none yet nothing is said of them: they may begin at any time, and `NONE` would keep
    players from looking."""
    named = {**{one: one for one in found.channels}, **{f"SERVICE{one}": f"Service {one}" for one in found.services}}
    for channel, name in named.items():
        described = f'TYPE=CLOSED-CAPTIONS,GROUP-ID="{_CAPTIONS}",NAME="{name}",INSTREAM-ID="{channel}"'
        default = "YES" if channel == next(iter(named)) else "NO"
        yield f"#EXT-X-MEDIA:{described},DEFAULT={default},AUTOSELECT=YES"


def _stream(one: Track, sounds: Sequence[Track], *, captions: bool) -> str:
    bandwidth = ceil(one.peak + max((sound.peak for sound in sounds), default=0.0)) or 1
    codecs = ",".join(filter(None, dict.fromkeys([one.init.codecs, *(sound.init.codecs for sound in sounds)])))
    known = all(part.init.codecs for part in (one, *sounds))
    return "".join(
        [
            f"#EXT-X-STREAM-INF:BANDWIDTH={bandwidth}",
            f',CODECS="{codecs}"' if known else "",
            f",RESOLUTION={one.init.width}x{one.init.height}" if one.init.width else "",
            f',AUDIO="{_GROUP}"' if sounds else "",
            f',CLOSED-CAPTIONS="{_CAPTIONS}"' if captions and "video" in _kinds(one) else "",
        ]
    )


def media(timeline: Timeline, name: str, *, up: str, query: str = "") -> str | None:
    """`up` leads from the playlist to the publishing point; `query` is added to each address. None: there is no such track."""
    track = next((one for one in timeline.tracks if one.name == name), None)
    if track is None or not track.parts:
        return None
    first = track.parts[0]
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:8",
        f"#EXT-X-TARGETDURATION:{max(ceil(track.longest - 0.001), 1)}",
        f"#EXT-X-MEDIA-SEQUENCE:{first.segments[0].number}",
        f"#EXT-X-DISCONTINUITY-SEQUENCE:{first.ordinal}",
        "#EXT-X-INDEPENDENT-SEGMENTS",
    ]
    if timeline.window is None:
        whole = first.segments[0].number == 0  # a playlist of the type EVENT would promise that nothing is removed
        lines += ["#EXT-X-PLAYLIST-TYPE:VOD"] if timeline.ended else ["#EXT-X-PLAYLIST-TYPE:EVENT"] if whole else []
    length = sum(len(part.segments) for part in track.parts)
    for part in track.parts:
        lines += _part(part, f"{up}{part.session}/{track.name}", query, breaks=part is not first, often=length <= _SHORT)
    if timeline.ended:
        lines.append("#EXT-X-ENDLIST")
    return "\n".join([*lines, ""])


def _part(part: Part, folder: str, query: str, *, breaks: bool, often: bool) -> Iterator[str]:
    if breaks:
        yield "#EXT-X-DISCONTINUITY"
    if part.init.name:
        yield f'#EXT-X-MAP:URI="{folder}/{part.init.name}{query}"'
    for number, one in enumerate(part.segments):
        if often or number % _CLOCK_EVERY == 0:
            yield f"#EXT-X-PROGRAM-DATE-TIME:{date_time(one.at)}"
        if not one.name:
            yield "#EXT-X-GAP"
        yield f"#EXTINF:{one.lasts:.6f},"
        yield f"{folder}/{one.name or f'{one.number}.gap'}{query}"


def _kinds(track: Track) -> set[str]:
    return set(track.init.kinds)
