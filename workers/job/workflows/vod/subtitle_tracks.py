"""The subtitle tracks of a source, and the text of those that have one. Tracks of pictures, as on discs and in broadcasts, are
logged.

A fault in a track never fails the film: the track is left out with a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import langcodes
from langcodes.tag_parser import LanguageTagError

from domain.job.values import Severity
from workers.job.context import StepContext
from workers.job.workflows.encode import LONGEST
from workers.job.workflows.vod.embedded_captions import copied_packets, packets
from workers.media.captions.a53 import Triple
from workers.media.captions.cues import UnreadableCaptions
from workers.media.captions.embedded import EmbeddedCaptions
from workers.media.captions.reading import MOST_BYTES, Captions, read
from workers.media.captions.samples import read_samples
from workers.media.captions.tracks import shown_name
from workers.media.file import ProbedFile

MOST_TRACKS: Final = 32
_TEXTS: Final = frozenset({"mov_text", "subrip", "srt", "ass", "ssa", "webvtt", "text"})
"""Codecs that ffmpeg converts to WebVTT."""
_IN_SAMPLES: Final = frozenset({"ttml", "wvtt"})
_LINE_21: Final = "eia_608"
_PICTURES: Final = frozenset({"hdmv_pgs_subtitle", "dvd_subtitle", "dvb_subtitle", "xsub", "dvb_teletext", "arib_caption"})
_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class SubtitleTrack:
    """A subtitle track of a source.

    `index` is that of its stream. `language` is a tag of BCP 47, `und` if the source states none. `kind` is captions, subtitles,
    descriptions or forced. `name` may be empty.
    """

    index: int
    codec: str
    language: str
    kind: str
    name: str


def subtitle_tracks(context: StepContext[Any], file: ProbedFile) -> tuple[SubtitleTrack, ...]:
    """List the subtitle tracks whose text can be read, and log the others."""
    streams = [stream for stream in file.streams if _is_subtitle(stream)]
    tracks: list[SubtitleTrack] = []
    for stream in streams:
        track = _track(stream)
        if track.codec in _TEXTS or track.codec in _IN_SAMPLES or track.codec == _LINE_21:
            tracks.append(track)
        else:
            why = "they are pictures" if track.codec in _PICTURES else "their format is not supported"
            context.log(f"The {_description(track)} of {file.name} ({track.codec}) are not kept: {why}.", Severity.WARN)
    if len(tracks) > MOST_TRACKS:
        context.log(f"{file.name} has {len(tracks)} subtitle tracks; the first {MOST_TRACKS} are used.", Severity.WARN)
    return tuple(tracks[:MOST_TRACKS])


def subtitles(
    context: StepContext[Any], file: ProbedFile, *, tracks: Sequence[SubtitleTrack]
) -> Iterator[tuple[SubtitleTrack, Captions]]:
    """Yield the tracks with their cues, whose times count from the first picture of the file."""
    if not tracks:
        return
    if not _extract(context, file, tracks=tracks) and len(tracks) > 1:
        for track in tracks:  # one that breaks ffmpeg takes none of the others along
            _extract(context, file, tracks=[track])
    for track in tracks:
        try:
            captions = _read(context, track)
        except UnreadableCaptions as fault:
            context.log(f"The {_description(track)} of {file.name} are not kept. {fault}", Severity.WARN)
            continue
        for remark in captions.remarks:
            context.log(f"The {_description(track)} of {file.name}: {remark}", Severity.WARN)
        yield track, captions


def bcp_47(language: object) -> str:
    """Return the tag of a language that a container names, mostly by three letters; `und` if it names none."""
    if not isinstance(language, str) or not language or len(language) > 35:
        return "und"
    try:
        tag = langcodes.standardize_tag(language)
    except LanguageTagError:
        return "und"
    return tag if langcodes.tag_is_valid(tag) else "und"


def _is_subtitle(stream: dict[str, Any]) -> bool:
    """Return True for a subtitle track. ffmpeg knows WebVTT in MP4 only by its four letters."""
    return stream.get("codec_type") == "subtitle" or stream.get("codec_tag_string") == "wvtt"


def _track(stream: dict[str, Any]) -> SubtitleTrack:
    tags, disposition = (_object(stream.get(name)) for name in ("tags", "disposition"))
    return SubtitleTrack(
        index=int(stream["index"]),
        codec="wvtt" if stream.get("codec_tag_string") == "wvtt" else str(stream.get("codec_name")),
        language=bcp_47(tags.get("language")),
        kind=_kind(disposition, captions=stream.get("codec_name") == _LINE_21),
        name=shown_name(str(tags.get("title", "")))[:_LONGEST_NAME],
    )


def _kind(disposition: dict[str, Any], *, captions: bool) -> str:
    if disposition.get("forced"):
        return "forced"
    if disposition.get("descriptions") or disposition.get("visual_impaired"):
        return "descriptions"
    return "captions" if captions or disposition.get("hearing_impaired") or disposition.get("captions") else "subtitles"


def _extract(context: StepContext[Any], file: ProbedFile, *, tracks: Sequence[SubtitleTrack]) -> bool:
    """Return True if ffmpeg has read the file to its end for the tracks. Sparse tracks show no progress that could be monitored."""
    outputs = [option for track in tracks for option in _output(track)]
    source = file.input(used=[track.index for track in tracks])
    ended = context.run("ffmpeg", "-nostdin", "-v", "error", "-y", *source, *outputs, seconds=LONGEST)
    return ended.status == 0


def _output(track: SubtitleTrack) -> tuple[str, ...]:
    selected = ("-map", f"0:{track.index}")
    if track.codec in _IN_SAMPLES or track.codec == _LINE_21:
        return copied_packets(f"track-{track.index}", *selected)
    return (*selected, "-c:s", "webvtt", "-fs", str(MOST_BYTES + 1024), "-f", "webvtt", f"track-{track.index}.vtt")


def _read(context: StepContext[Any], track: SubtitleTrack) -> Captions:
    """Read the text of an extracted track. Raises `UnreadableCaptions`."""
    place = context.workspace / f"track-{track.index}"
    if track.codec == _LINE_21:
        pictures = ((packet.at, _triples(packet.data)) for packet in packets(place))
        return read(EmbeddedCaptions(pictures).scenarist("CC1").encode())
    if track.codec in _IN_SAMPLES:
        return read_samples(packets(place))
    text = place.with_suffix(".vtt")
    if not text.is_file():
        raise UnreadableCaptions("ffmpeg could not read them.")
    return read(text.read_bytes())


def _triples(data: bytes) -> list[Triple]:
    return [Triple(data[at] & 3, data[at + 1], data[at + 2]) for at in range(0, len(data) - 2, 3) if data[at] & 4]


def _description(track: SubtitleTrack) -> str:
    language = "" if track.language == "und" else f" in {track.language}"
    return f"{'captions' if track.kind == 'captions' else 'subtitles'} of track {track.index}{language}"


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
