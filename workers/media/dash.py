"""DASH manifests (MPD): the segments that they list. ISO/IEC 23009-1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil, floor
from re import Match
from re import compile as regex
from typing import Final, Literal

from lxml import etree

from domain.kernel.iso_8601 import moment_of, seconds_of
from domain.kernel.untrusted_xml import HasDoctype, NotXml, parsed_xml
from workers.media.errors import Unreadable
from workers.media.resources import MediaResource, ResourceRange, joined

Kind = Literal["main", "audio"]

MOST_ENTRIES: Final = 100_000
"""The largest number of segments of one manifest."""
_IDENTIFIER: Final = regex(r"\$(?:(RepresentationID|Number|Time|Bandwidth)(?:%0(\d{1,2})d)?)?\$")
_RANGE: Final = regex(r"(\d{1,18})-(\d{1,18})")
_LONGEST_WINDOW: Final = 24 * 3600.0
_MOST_ADDRESSES: Final = 64 * 1024 * 1024
"""The largest number of characters of the addresses of all segments."""
_TRICK: Final = "trickmode"
_DEFAULT_UPDATE: Final = 2.0


@dataclass(frozen=True, slots=True)
class DashSegment:
    """A segment. If it has an `index`, it is not a segment yet but a file whose index lists the segments, which begin at `at`."""

    epoch: int
    resource: MediaResource
    at: float
    lasts: float
    init: MediaResource | None
    index: MediaResource | None = None


@dataclass(frozen=True, slots=True)
class TextSet:
    """An adaptation set of text, of all periods. Its files are segments of MP4 with an initialization section, or whole files of
    WebVTT or TTML, whose times count from the begin of their period."""

    language: str
    kind: str
    name: str
    segments: list[DashSegment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Mpd:
    """A parsed MPD. `ended` is True if it does not change any more; `clocked` if its times are seconds since 1970."""

    ended: bool
    clocked: bool
    update: float
    tracks: Mapping[Kind, Sequence[DashSegment]]
    texts: Sequence[TextSet] = ()


def parse(body: bytes, url: str, *, now: float) -> Mpd:
    """Parse an MPD. Raise `Unreadable`."""
    return _Reader(manifest_root(body), url, now).read()


def manifest_root(body: bytes) -> etree._Element:
    """Return the element `MPD`. Raise `Unreadable`."""
    try:
        root = parsed_xml(body).getroot()
    except NotXml:
        raise Unreadable("the MPD is not XML that can be read") from None
    except HasDoctype:
        raise Unreadable("the MPD has a document type, which is refused") from None
    if etree.QName(root).localname != "MPD":
        raise Unreadable("the answer is XML, but not an MPD")
    return root


@dataclass(frozen=True, slots=True)
class _Period:
    element: etree._Element
    start: float
    lasts: float | None


class _Reader:
    def __init__(self, root: etree._Element, url: str, now: float) -> None:
        self._root = root
        self._url = url
        self._dynamic = root.get("type") == "dynamic"
        available = _moment(root.get("availabilityStartTime"))
        if self._dynamic and available is None:
            raise Unreadable("the MPD is live and has no availabilityStartTime")
        self._clock = available
        self._addresses = 0
        self._now = now - (available or 0.0)
        self._window = min(_duration(root.get("timeShiftBufferDepth")) or _LONGEST_WINDOW, _LONGEST_WINDOW)

    def read(self) -> Mpd:
        tracks: dict[Kind, list[DashSegment]] = {}
        for period in self._periods():
            for kind, sets in self._chosen(period).items():
                self._add(tracks.setdefault(kind, []), self._segments(period, sets))
        if not tracks.get("main"):
            if not self._dynamic:
                raise Unreadable("the MPD lists no segment of video")
            tracks.setdefault("main", [])
        update = _duration(self._root.get("minimumUpdatePeriod")) or _DEFAULT_UPDATE
        return Mpd(not self._dynamic, self._clock is not None, update, tracks, self._texts())

    def _texts(self) -> list[TextSet]:
        """Return the sets of text. A set that cannot be read is skipped."""
        by_description: dict[tuple[str, str, str], TextSet] = {}
        for period in self._periods():
            for adaptation in _children(period.element, "AdaptationSet"):
                representation = next(_children(adaptation, "Representation"), None)
                if representation is None or not _is_text(adaptation, representation):
                    continue
                label = next((item.text or "" for item in _children(adaptation, "Label")), "").strip()
                made = TextSet(adaptation.get("lang") or "", _text_kind(adaptation), label)
                text = by_description.setdefault((made.language, made.kind, made.name), made)
                with suppress(Unreadable):
                    self._add(text.segments, self._text(period, [self._root, period.element, adaptation, representation]))
        return list(by_description.values())

    def _text(self, period: _Period, chain: list[etree._Element]) -> Iterator[DashSegment]:
        if "mp4" in _either(chain, "mimeType"):
            yield from self._segments(period, chain)
            return
        base = self._url
        for element in chain:
            base = joined(base, next((url.text or "" for url in _children(element, "BaseURL")), "").strip())
        begins = (self._clock or 0.0) + period.start
        yield DashSegment(round(period.start * 1000), MediaResource(base), begins, period.lasts or 0.0, None)

    def _add(self, track: list[DashSegment], segments: Iterator[DashSegment]) -> None:
        """Add segments, within the limits. A line of the MPD can list the largest number of segments, each with an address as long
        as the MPD."""
        for segment in segments:
            self._addresses += len(segment.resource.url)
            if len(track) >= MOST_ENTRIES:
                raise _too_many()
            if self._addresses > _MOST_ADDRESSES:
                raise Unreadable("the addresses of the segments of the MPD are too long")
            track.append(segment)

    def _periods(self) -> list[_Period]:
        elements = list(_children(self._root, "Period"))
        total = _duration(self._root.get("mediaPresentationDuration"))
        starts: list[float] = []
        cursor: float | None = 0.0
        for element in elements:
            start = _duration(element.get("start"))
            start = cursor if start is None else start
            if start is None:
                raise Unreadable("a period of the MPD does not say when it begins")
            starts.append(start)
            lasts = _duration(element.get("duration"))
            cursor = None if lasts is None else start + lasts
        ends = [*starts[1:], total]
        periods = []
        for element, start, end in zip(elements, starts, ends, strict=False):
            lasts = _duration(element.get("duration"))
            periods.append(_Period(element, start, lasts if lasts is not None else None if end is None else end - start))
        return periods

    def _chosen(self, period: _Period) -> dict[Kind, list[etree._Element]]:
        """Return the chain of elements down to the representation of each track: the highest video, the main audio."""
        videos: list[tuple[tuple[int, int], list[etree._Element]]] = []
        audios: list[tuple[tuple[bool, int, int], list[etree._Element]]] = []
        for number, adaptation in enumerate(_children(period.element, "AdaptationSet")):
            if any(_TRICK in (item.get("schemeIdUri") or "") for item in adaptation):
                continue
            main = any(item.get("value") == "main" for item in _children(adaptation, "Role"))
            for representation in _children(adaptation, "Representation"):
                chain = [self._root, period.element, adaptation, representation]
                bandwidth = whole(representation.get("bandwidth"))
                match _content(adaptation, representation):
                    case "video":
                        pixels = whole(_either(chain, "width")) * whole(_either(chain, "height"))
                        videos.append(((pixels, bandwidth), chain))
                    case "audio":
                        audios.append(((main, -number, bandwidth), chain))
        chosen: dict[Kind, list[etree._Element]] = {}
        if videos:
            chosen["main"] = max(videos, key=lambda video: video[0])[1]
        if audios:
            chosen["audio"] = max(audios, key=lambda audio: audio[0])[1]
        return chosen

    def _segments(self, period: _Period, chain: list[etree._Element]) -> Iterator[DashSegment]:
        if any(True for element in chain for _ in _children(element, "ContentProtection")):
            raise Unreadable("the stream is encrypted; only a clear one is captured")
        if "mp4" not in _either(chain, "mimeType", "video/mp4"):
            raise Unreadable("the segments are not MP4; others are not supported in DASH")
        base = self._url
        for element in chain:
            base = joined(base, next((url.text or "" for url in _children(element, "BaseURL")), "").strip())
        begins = (self._clock or 0.0) + period.start
        for name, read in (("SegmentTemplate", self._template), ("SegmentList", self._list), ("SegmentBase", self._base)):
            layers = [layer for element in chain for layer in _children(element, name)]
            if layers:
                yield from read(period, chain, layers=layers, base=base, begins=begins)
                return
        raise Unreadable("the MPD does not list segments in a way that is supported")

    def _template(
        self, period: _Period, chain: list[etree._Element], *, layers: list[etree._Element], base: str, begins: float
    ) -> Iterator[DashSegment]:
        given = {name: value for layer in layers for name, value in layer.attrib.items()}
        representation, bandwidth = chain[-1].get("id") or "", chain[-1].get("bandwidth") or ""
        if "media" not in given:
            raise Unreadable("the MPD has a template without a name for segments")
        init = None
        if "initialization" in given:
            init = MediaResource(
                joined(base, _fill(str(given["initialization"]), representation=representation, bandwidth=bandwidth))
            )
        for number, time, at, lasts in self._times(period, layers):
            name = _fill(str(given["media"]), representation=representation, bandwidth=bandwidth, number=number, time=time)
            yield DashSegment(round(period.start * 1000), MediaResource(joined(base, name)), begins + at, lasts, init)

    def _list(
        self, period: _Period, chain: list[etree._Element], *, layers: list[etree._Element], base: str, begins: float
    ) -> Iterator[DashSegment]:
        init = _initialization(layers, base)
        urls = [url for layer in layers for url in _children(layer, "SegmentURL")]
        if len(urls) > MOST_ENTRIES:
            raise _too_many()
        for url, (_, _, at, lasts) in zip(urls, self._times(period, layers, most=len(urls)), strict=False):
            resource = MediaResource(joined(base, url.get("media") or ""), _byte_range(url.get("mediaRange")))
            yield DashSegment(round(period.start * 1000), resource, begins + at, lasts, init)

    def _base(
        self, period: _Period, chain: list[etree._Element], *, layers: list[etree._Element], base: str, begins: float
    ) -> Iterator[DashSegment]:
        given = {name: value for layer in layers for name, value in layer.attrib.items()}
        index = _byte_range(str(given["indexRange"]) if "indexRange" in given else None)
        if index is None:
            raise Unreadable("the MPD does not say where the index of a file is (indexRange)")
        offset = whole(given.get("presentationTimeOffset")) / (whole(given.get("timescale")) or 1)
        init = _initialization(layers, base)
        yield DashSegment(round(period.start * 1000), MediaResource(base), begins - offset, 0.0, init, MediaResource(base, index))

    def _times(
        self, period: _Period, layers: list[etree._Element], *, most: int | None = None
    ) -> Iterator[tuple[int, int, float, float]]:
        """Yield number and time in units of the MPD, then time from the start of the period and duration in seconds."""
        given = {name: value for layer in layers for name, value in layer.attrib.items()}
        scale = whole(given.get("timescale")) or 1
        offset = whole(given.get("presentationTimeOffset"))
        first = whole(given.get("startNumber"), default=1)
        lines = [line for layer in layers for line in _children(layer, "SegmentTimeline")]
        now = self._now - period.start
        if lines:
            end = period.lasts if period.lasts is not None else now if self._dynamic else None
            for number, (time, lasts) in enumerate(_timeline(lines[-1], end=None if end is None else end * scale + offset)):
                yield first + number, time, (time - offset) / scale, lasts / scale
            return
        each = whole(given.get("duration"))
        if not each:
            raise Unreadable("the MPD does not say how long segments last")
        seconds = each / scale
        count = most if most is not None else None if period.lasts is None else ceil(round(period.lasts / seconds, 6))
        begin = 0
        if self._dynamic and most is None:
            available = floor(now / seconds)
            count = available if count is None else min(count, available)
            begin = max(floor((now - self._window) / seconds), 0)
        if count is None:
            raise Unreadable("the MPD does not say how many segments there are")
        if count - begin > MOST_ENTRIES:
            raise _too_many()
        for number in range(begin, count):
            length = seconds if period.lasts is None else min(seconds, period.lasts - number * seconds)
            yield first + number, offset + number * each, number * seconds, length


def _timeline(line: etree._Element, *, end: float | None) -> Iterator[tuple[int, int]]:
    """Yield time and duration of segments. An entry that repeats without end does so until the next one, or until the end."""
    entries = list(_children(line, "S"))
    time = count = 0
    for index, entry in enumerate(entries):
        time = whole(entry.get("t"), default=time)
        lasts = whole(entry.get("d"))
        if not lasts:
            raise Unreadable("a segment of the MPD has no duration")
        repeats = entry.get("r") or "0"
        if repeats.startswith("-"):
            until = whole(entries[index + 1].get("t")) if index + 1 < len(entries) else end
            if until is None:
                raise Unreadable("the MPD does not say how many segments there are")
            times = max(floor((until - time) / lasts + 1e-9), 0)
        else:
            times = whole(repeats) + 1
        count += times
        if count > MOST_ENTRIES:
            raise _too_many()
        for _ in range(times):
            yield time, lasts
            time += lasts


def _initialization(layers: list[etree._Element], base: str) -> MediaResource | None:
    inits = [init for layer in layers for init in _children(layer, "Initialization")]
    return MediaResource(joined(base, inits[-1].get("sourceURL") or ""), _byte_range(inits[-1].get("range"))) if inits else None


def _content(adaptation: etree._Element, representation: etree._Element) -> str:
    kind = adaptation.get("contentType") or adaptation.get("mimeType") or representation.get("mimeType") or ""
    return kind.partition("/")[0]


def _is_text(adaptation: etree._Element, representation: etree._Element) -> bool:
    codecs = representation.get("codecs") or adaptation.get("codecs") or ""
    kind = _content(adaptation, representation)
    return kind == "text" or codecs.startswith(("stpp", "wvtt")) or "ttml" in (representation.get("mimeType") or "")


def _text_kind(adaptation: etree._Element) -> str:
    roles = {item.get("value") for item in _children(adaptation, "Role")}
    if roles & {"forced-subtitle", "forced_subtitle"}:
        return "forced"
    if "description" in roles:
        return "descriptions"
    return "captions" if "caption" in roles else "subtitles"


def _either(chain: list[etree._Element], name: str, default: str = "") -> str:
    """Return an attribute of the lowest element that has it."""
    return next((str(value) for element in reversed(chain) if (value := element.get(name)) is not None), default)


def _children(element: etree._Element, name: str) -> Iterator[etree._Element]:
    return (child for child in element if isinstance(child.tag, str) and etree.QName(child).localname == name)


def whole(text: str | bytes | None, *, default: int = 0) -> int:
    """Parse a number without a sign, of 18 digits at most."""
    digits = text.decode() if isinstance(text, bytes) else text or ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else default


def _too_many() -> Unreadable:
    return Unreadable(f"the MPD lists more than {MOST_ENTRIES} segments")


def _duration(text: str | None) -> float | None:
    """Parse a duration in seconds."""
    if text is None:
        return None
    duration = seconds_of(text)
    if duration is None:
        raise Unreadable("a duration of the MPD cannot be read")
    return duration


def _moment(text: str | None) -> float | None:
    """Parse a time as seconds since 1970."""
    if text is None:
        return None
    moment = moment_of(text)
    if moment is None:
        raise Unreadable("a time of the MPD cannot be read")
    return moment.timestamp()


def _byte_range(text: str | None) -> ResourceRange | None:
    if text is None:
        return None
    match = _RANGE.fullmatch(text.strip())
    if match is None or int(match[2]) < int(match[1]):
        raise Unreadable("a byte range of the MPD cannot be read")
    return ResourceRange(int(match[1]), int(match[2]) - int(match[1]) + 1)


def _fill(template: str, *, representation: str, bandwidth: str, number: int = 0, time: int = 0) -> str:
    values = {"RepresentationID": representation, "Bandwidth": bandwidth, "Number": str(number), "Time": str(time)}

    def fill(match: Match[str]) -> str:
        return values[match[1]].zfill(int(match[2] or 0)) if match[1] else "$"

    made = _IDENTIFIER.sub(fill, template)
    if "$SubNumber" in template:
        raise Unreadable("the MPD counts parts of segments ($SubNumber$), which is not supported")
    return made
