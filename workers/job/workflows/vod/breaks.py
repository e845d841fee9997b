"""Breaks in a film, as players and ad servers find them: SCTE-35 in HLS playlists and in the DASH manifest.

The packager is given the times of breaks as cues: it begins a segment at each, and marks them in the playlists. RFC 8216, 4.3.2.7;
ANSI/SCTE 214-1.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from lxml import etree
from pydantic import TypeAdapter

from domain.kernel.clock import iso
from workers.job.context import StepFailed
from workers.media.file import seconds
from workers.media.scte35 import CLOCK, Splice

SCHEME: Final = "urn:scte:scte35:2014:xml+bin"
_SIGNAL: Final = "http://www.scte.org/schemas/35/2016"
_MPD: Final = "{urn:mpeg:dash:schema:mpd:2011}"
_CUE: Final = "#EXT-X-PLACEMENT-OPPORTUNITY"
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The date of the first frame in HLS, which identifies times of programmes only by dates."""
_LEAST: Final = 0.001


@dataclass(frozen=True, slots=True)
class Break:
    """A break, in seconds.

    `at` and `until` are times of the media, at key frames; they are the same for an insertion. `shift` is the length of what was
    inserted before, so that `at + shift` is its place in the programme.
    """

    event: int
    at: float
    until: float
    shift: float
    duration: float

    @property
    def inserts(self) -> bool:
        return self.until <= self.at

    @property
    def out(self) -> Splice:
        return Splice(self.event, True, self.at + self.shift, self.shift, self.duration)

    @property
    def back(self) -> Splice:
        shift = self.shift + (self.duration if self.inserts else 0.0)
        return Splice(self.event, False, self.until + shift, shift)


BREAKS: Final = TypeAdapter(tuple[Break, ...])


def cues(breaks: Sequence[Break], *, duration: float) -> list[float]:
    """Return the times at which segments must begin, apart from the beginning of the film."""
    times = {time for ad_break in breaks for time in (ad_break.at, ad_break.until)}
    return sorted(time for time in times if _LEAST < time < duration - _LEAST)


def cue_flags(breaks: Sequence[Break], *, duration: float) -> tuple[str, ...]:
    """Return the flags with the cues, a little early: the next key frame counts."""
    times = cues(breaks, duration=duration)
    return ("--ad_cues", ";".join(seconds(time - _LEAST / 2) for time in times)) if times else ()


def in_playlist(playlist: str, breaks: Sequence[Break], *, duration: float) -> str:
    """Return a media playlist with the tags of the breaks in place of the packager's cues."""
    cue_times, lines = cues(breaks, duration=duration), playlist.splitlines()
    if lines.count(_CUE) != len(cue_times):
        raise StepFailed("The packager did not begin a segment at each marker.", final=True)
    places = iter(cue_times)
    made: list[str] = []
    for line in lines:
        if line == _CUE:
            made += _cue_tags(breaks, next(places))
        elif line == "#EXT-X-ENDLIST":
            made += [*_tags(breaks, duration), line]
        elif line.startswith("#EXT-X-MAP:"):
            made += [line, *_tags(breaks, 0.0), _date_tag(_programme_after(breaks, 0.0) or 0.0)]
        else:
            made.append(line)
    return "".join(f"{line}\n" for line in made)


def _cue_tags(breaks: Sequence[Break], place: float) -> Iterator[str]:
    """Yield the tags of a cue.

    After an insertion the dates of segments continue later. Players take dates that do not fit the durations of segments for gaps,
    unless there is a discontinuity.
    """
    yield from _tags(breaks, place)
    later = _programme_after(breaks, place)
    if later is not None:
        yield "#EXT-X-DISCONTINUITY"
        yield _date_tag(later)


def _tags(breaks: Sequence[Break], place: float) -> Iterator[str]:
    """Yield the tags of the breaks that end at a place, then of those that begin there."""
    for ad_break in breaks:
        if not ad_break.inserts and _near(ad_break.until, place):
            yield from _return_tags(ad_break)
    for ad_break in breaks:
        if _near(ad_break.at, place):
            begins = iso(_BEGINNING + timedelta(seconds=ad_break.out.at))
            code = ad_break.out.section().hex().upper()
            dates = f'START-DATE="{begins}",PLANNED-DURATION={ad_break.duration:.3f}'
            yield f'#EXT-X-DATERANGE:ID="{ad_break.event}",{dates},SCTE35-OUT=0x{code}'
            yield f"#EXT-X-CUE-OUT:{ad_break.duration:.3f}"
            if ad_break.inserts:
                yield from _return_tags(ad_break)


def _programme_after(breaks: Sequence[Break], place: float) -> float | None:
    """Return when the programme continues after an insertion at this place; None if there is none."""
    return max((ad_break.back.at for ad_break in breaks if ad_break.inserts and _near(ad_break.at, place)), default=None)


def _date_tag(programme: float) -> str:
    return f"#EXT-X-PROGRAM-DATE-TIME:{iso(_BEGINNING + timedelta(seconds=programme))}"


def _return_tags(ad_break: Break) -> Iterator[str]:
    begins, ends = (iso(_BEGINNING + timedelta(seconds=splice.at)) for splice in (ad_break.out, ad_break.back))
    lasts = ad_break.back.at - ad_break.out.at
    code = ad_break.back.section().hex().upper()
    dates = f'START-DATE="{begins}",END-DATE="{ends}",DURATION={lasts:.3f}'
    yield f'#EXT-X-DATERANGE:ID="{ad_break.event}",{dates},SCTE35-IN=0x{code}'
    yield "#EXT-X-CUE-IN"


def in_manifest(manifest: bytes, breaks: Sequence[Break], *, duration: float) -> bytes:
    """Return the DASH manifest with the events of the breaks.

    The packager begins a Period at each cue; all of them are parts of the same files with the same index, so that one Period is
    enough, and players continue seamlessly.
    """
    mpd = etree.fromstring(manifest, etree.XMLParser(remove_blank_text=True))
    first, *others = mpd.findall(f"{_MPD}Period")
    for period in others:
        for track in period.iter(f"{_MPD}Representation"):
            same = next(candidate for candidate in first.iter(f"{_MPD}Representation") if candidate.get("id") == track.get("id"))
            same.set("bandwidth", str(max(int(candidate.get("bandwidth", "0")) for candidate in (same, track))))
        mpd.remove(period)
    mpd.set("mediaPresentationDuration", f"PT{duration}S")
    if "duration" in first.attrib:
        del first.attrib["duration"]
    stream = etree.Element(f"{_MPD}EventStream", schemeIdUri=SCHEME, timescale=str(CLOCK))
    for ad_break in breaks:
        lasts = {} if ad_break.inserts else {"duration": str(round((ad_break.until - ad_break.at) * CLOCK))}
        _event(stream, ad_break.out, at=ad_break.at, **lasts)
        _event(stream, ad_break.back, at=ad_break.until)
    first.insert(0, stream)
    return etree.tostring(mpd, xml_declaration=True, encoding="UTF-8", pretty_print=True)


def _event(stream: etree._Element, splice: Splice, *, at: float, **lasts: str) -> None:
    number = str(2 * splice.event - splice.out)
    event = etree.SubElement(stream, f"{_MPD}Event", attrib={"presentationTime": str(round(at * CLOCK)), **lasts, "id": number})
    signal = etree.SubElement(event, f"{{{_SIGNAL}}}Signal", nsmap=cast("Mapping[str, str]", {None: _SIGNAL}))
    etree.SubElement(signal, f"{{{_SIGNAL}}}Binary").text = b64encode(splice.section()).decode()


def _near(time: float, place: float) -> bool:
    return abs(time - place) < _LEAST
