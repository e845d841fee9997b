"""DASH manifests of recordings, from the same segments as HLS: ISO/IEC 23009-1, profile isoff-live.

A session is a period; its times count from 1970, so no manifest depends on an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final
from xml.sax.saxutils import quoteattr

from workers.media.hls import date_time
from workers.origin.timeline import OriginTrack, PointTimeline, TrackPart, all_captions
from workers.origin.track_index import IndexedSegment

_PROFILE: Final = "urn:mpeg:dash:profile:isoff-live:2011"
_CHANNELS: Final = "urn:mpeg:dash:23003:3:audio_channel_configuration:2011"
_DIRECT: Final = "urn:mpeg:dash:utc:direct:2014"


def manifest(timeline: PointTimeline, *, up: str, now: float, query: str = "") -> str | None:
    """Return the manifest; None if no track is fragmented MP4. `up` is the relative path from the manifest to the publishing point;
    `query` is added to each address."""
    parts = [(track, part) for track in timeline.tracks for part in track.parts if part.init.name]
    sessions = sorted({part.session for _, part in parts})
    if not sessions:
        return None
    segments = [segment for _, part in parts for segment in part.segments]
    begin, end = min(segment.at for segment in segments), max(segment.end for segment in segments)
    if timeline.ended:  # the first and the last segment may reach beyond the selection
        begin, end = max(begin, timeline.begin or begin), min(end, timeline.end or end)
    longest = max(track.longest for track, _ in parts)
    base = begin if timeline.ended else 0.0
    lines = ['<?xml version="1.0" encoding="utf-8"?>', _opening(timeline, now=now, lasts=end - begin, longest=longest)]
    for session in sessions:
        of_session = [(track, part) for track, part in parts if part.session == session]
        lines += _period(of_session, up=up, query=query, base=base, begin=begin if timeline.ended else None)
    if not timeline.ended:
        lines.append(f'  <UTCTiming schemeIdUri="{_DIRECT}" value="{date_time(now)}"/>')
    return "\n".join([*lines, "</MPD>", ""])


def _opening(timeline: PointTimeline, *, now: float, lasts: float, longest: float) -> str:
    common = f'xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="{_PROFILE}" minBufferTime="PT{max(longest, 1):.3f}S"'
    if timeline.ended:
        return f'<MPD {common} type="static" mediaPresentationDuration="PT{lasts:.3f}S">'
    window = f' timeShiftBufferDepth="PT{timeline.window:.3f}S"' if timeline.window is not None else ""
    update, delay = max(min(longest, 2.0), 0.5), max(3 * longest, 3)
    return (
        f'<MPD {common} type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z" publishTime="{date_time(now)}" '
        f'minimumUpdatePeriod="PT{update:.3f}S" suggestedPresentationDelay="PT{delay:.3f}S"{window}>'
    )


def _period(
    parts: Sequence[tuple[OriginTrack, TrackPart]], *, up: str, query: str, base: float, begin: float | None
) -> Iterator[str]:
    """Yield the period of a session. `begin` is the begin of a static presentation."""
    epoch = parts[0][1].epoch
    first = max(min(part.segments[0].at for _, part in parts), begin or 0.0)
    # In a dynamic manifest a period begins at its media time 0, regardless of the segments that have left the window.
    offset = 0.0 if begin is None else first - epoch
    yield f'  <Period id="{parts[0][1].session}" start="PT{epoch + offset - base:.6f}S">'
    groups: dict[tuple[str, ...], list[tuple[OriginTrack, TrackPart]]] = {}
    for track, part in parts:
        init = part.init
        kind = "video" if "video" in init.kinds else "audio"
        own = (track.name,) if kind == "audio" else ()
        groups.setdefault((kind, init.codecs.split(".")[0], init.language, *own), []).append((track, part))
    for number, (key, members) in enumerate(groups.items()):
        yield from _adaptation(number, key[0], members, up=up, query=query, offset=offset)
    yield "  </Period>"


def _adaptation(
    number: int, kind: str, members: Sequence[tuple[OriginTrack, TrackPart]], *, up: str, query: str, offset: float
) -> Iterator[str]:
    init = members[0][1].init
    language = f" lang={quoteattr(init.language)}" if init.language else ""
    yield (
        f'    <AdaptationSet id="{number}" contentType="{kind}" mimeType="{kind}/mp4"{language} '
        'segmentAlignment="true" startWithSAP="1">'
    )
    captions = all_captions(track for track, _ in members)
    if captions.channels:
        yield _accessibility("608", ";".join(f"{name}=und" for name in captions.channels))
    if captions.services:
        yield _accessibility("708", ";".join(f"{number}=lang:und" for number in captions.services))
    for track, part in members:
        yield from _representation(kind, track, part, up=up, query=query, offset=offset)
    yield "    </AdaptationSet>"


def _accessibility(kind: str, value: str) -> str:
    """Return the element for captions in the pictures, as ANSI/SCTE 214-1 names them. Their language is unknown."""
    return f'      <Accessibility schemeIdUri="urn:scte:dash:cc:cea-{kind}:2015" value="{value}"/>'


def _representation(kind: str, track: OriginTrack, part: TrackPart, *, up: str, query: str, offset: float) -> Iterator[str]:
    init, folder = part.init, f"{up}{part.session}/{track.name}"
    size = f' width="{init.width}" height="{init.height}"' if init.width else ""
    rate = f' audioSamplingRate="{init.rate}"' if kind == "audio" and init.rate else ""
    yield (
        f'      <Representation id={quoteattr(track.name)} bandwidth="{ceil(track.peak) or 1}" '
        f"codecs={quoteattr(init.codecs)}{size}{rate}>"
    )
    if kind == "audio" and init.channels:
        yield f'        <AudioChannelConfiguration schemeIdUri="{_CHANNELS}" value="{init.channels}"/>'
    yield (
        f'        <SegmentTemplate timescale="{init.timescale}" presentationTimeOffset="{round(offset * init.timescale)}" '
        f'initialization="{folder}/{init.name}{query}" media="{folder}/$Time$.m4s{query}">'
    )
    yield "          <SegmentTimeline>"
    yield from _times([segment for segment in part.segments if segment.name])
    yield "          </SegmentTimeline>"
    yield "        </SegmentTemplate>"
    yield "      </Representation>"


def _times(segments: Sequence[IndexedSegment]) -> Iterator[str]:
    """Yield an element for each run of segments of equal length. After a gap, a run states its start time."""
    runs: list[tuple[int, int, int]] = []
    for segment in segments:
        if runs and runs[-1][1] == segment.ticks and runs[-1][0] + runs[-1][1] * runs[-1][2] == segment.time:
            runs[-1] = (*runs[-1][:2], runs[-1][2] + 1)
        else:
            runs.append((segment.time, segment.ticks, 1))
    for time, lasts, count in runs:
        yield f'            <S t="{time}" d="{lasts}" r="{count - 1}"/>'
