"""HLS playlists of recordings: RFC 8216."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from workers.media.captions.a53 import CaptionServices
from workers.media.hls import date_time
from workers.origin.timeline import OriginTrack, PointTimeline, TrackPart, all_captions

_GROUP: Final = "audio"
_CAPTIONS: Final = "captions"
_CLOCK_EVERY: Final = 100
"""The number of segments of a long playlist after which the time of day is repeated."""
_SHORT: Final = 1000


def master(timeline: PointTimeline, *, query: str = "") -> str:
    """Return the master playlist: video with its audio. Separate audio is a group of its own. `query` is added to each address."""
    sounds = [track for track in timeline.tracks if _kinds(track) == {"audio"}]
    pictures = [track for track in timeline.tracks if "video" in _kinds(track)]
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    for number, track in enumerate(sounds if pictures else []):
        language = f',LANGUAGE="{track.init.language}"' if track.init.language else ""
        channels = f',CHANNELS="{track.init.channels}"' if track.init.channels else ""
        default = "YES" if number == 0 else "NO"
        lines.append(
            f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="{_GROUP}",NAME="{track.name}"{language}{channels},'
            f'DEFAULT={default},AUTOSELECT=YES,URI="tracks/{track.name}.m3u8{query}"'
        )
    captions = all_captions(pictures)
    lines += _captions(captions)
    for track in sorted(pictures or sounds, key=lambda track: (track.init.width * track.init.height, track.peak), reverse=True):
        separate = sounds if _kinds(track) == {"video"} else []
        lines += [_stream(track, separate, captions=bool(captions)), f"tracks/{track.name}.m3u8{query}"]
    return "\n".join([*lines, ""])


def _captions(captions: CaptionServices) -> Iterator[str]:
    """Yield the tags of captions in the pictures. Captions that have not appeared yet are not mentioned: they may begin at any
    time, and `NONE` would keep players from looking for them."""
    names = {channel: channel for channel in captions.channels}
    names |= {f"SERVICE{number}": f"Service {number}" for number in captions.services}
    for channel, name in names.items():
        described = f'TYPE=CLOSED-CAPTIONS,GROUP-ID="{_CAPTIONS}",NAME="{name}",INSTREAM-ID="{channel}"'
        default = "YES" if channel == next(iter(names)) else "NO"
        yield f"#EXT-X-MEDIA:{described},DEFAULT={default},AUTOSELECT=YES"


def _stream(track: OriginTrack, sounds: Sequence[OriginTrack], *, captions: bool) -> str:
    bandwidth = ceil(track.peak + max((sound.peak for sound in sounds), default=0.0)) or 1
    codecs = ",".join(filter(None, dict.fromkeys([track.init.codecs, *(sound.init.codecs for sound in sounds)])))
    complete = all(part.init.codecs for part in (track, *sounds))
    return "".join(
        [
            f"#EXT-X-STREAM-INF:BANDWIDTH={bandwidth}",
            f',CODECS="{codecs}"' if complete else "",
            f",RESOLUTION={track.init.width}x{track.init.height}" if track.init.width else "",
            f',AUDIO="{_GROUP}"' if sounds else "",
            f',CLOSED-CAPTIONS="{_CAPTIONS}"' if captions and "video" in _kinds(track) else "",
        ]
    )


def media(timeline: PointTimeline, name: str, *, up: str, query: str = "") -> str | None:
    """Return the media playlist of a track; None if there is no such track. `up` is the relative path from the playlist to the
    publishing point; `query` is added to each address."""
    track = next((track for track in timeline.tracks if track.name == name), None)
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
    if timeline.begin is not None:
        lines.append(f"#EXT-X-START:TIME-OFFSET={max(timeline.begin - first.segments[0].at, 0):.3f},PRECISE=YES")
    length = sum(len(part.segments) for part in track.parts)
    for part in track.parts:
        lines += _part(part, f"{up}{part.session}/{track.name}", query, breaks=part is not first, often=length <= _SHORT)
    if timeline.ended:
        lines.append("#EXT-X-ENDLIST")
    return "\n".join([*lines, ""])


def _part(part: TrackPart, folder: str, query: str, *, breaks: bool, often: bool) -> Iterator[str]:
    if breaks:
        yield "#EXT-X-DISCONTINUITY"
    if part.init.name:
        yield f'#EXT-X-MAP:URI="{folder}/{part.init.name}{query}"'
    for number, segment in enumerate(part.segments):
        if often or number % _CLOCK_EVERY == 0:
            yield f"#EXT-X-PROGRAM-DATE-TIME:{date_time(segment.at)}"
        if not segment.name:
            yield "#EXT-X-GAP"
        yield f"#EXTINF:{segment.lasts:.6f},"
        yield f"{folder}/{segment.name or f'{segment.number}.gap'}{query}"


def _kinds(track: OriginTrack) -> set[str]:
    return set(track.init.kinds)
