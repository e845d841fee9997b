"""The latest time of a live manifest: the end of the last segment that it lists. RFC 8216 and ISO/IEC 23009-1.

Encrypted streams are supported as well, because only times are read.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import urljoin

from lxml import etree

from domain.kernel.iso_8601 import moment_of, seconds_of
from workers.media.dash import manifest_root, whole
from workers.media.errors import Unreadable
from workers.media.hls import text_of

_TIME: Final = "#EXT-X-PROGRAM-DATE-TIME:"
_LASTS: Final = re.compile(r"(?m)^#EXTINF:\s*(\d{1,9}(?:\.\d{1,18})?)")
_VARIANT: Final = "#EXT-X-STREAM-INF:"
_TAGS_OF_A_SEGMENT: Final = 20
"""The number of lines before a time in which the duration of its segment is searched."""
_TIMELINES: Final = 4
"""The number of timelines of a period that are read; they end at about the same time."""
_MOST_ENTRIES: Final = 30_000
_MOST_PERIODS: Final = 2_000
_MOST_TEMPLATES: Final = 16
"""The largest number of templates of one element; a manifest has one."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class LiveEdge(NamedTuple):
    """The latest time. `ended` is True if the manifest says that nothing more will follow."""

    at: datetime
    ended: bool


def is_playlist(body: bytes) -> bool:
    return body.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"#EXTM3U")


def variant(body: bytes, url: str) -> str | None:
    """Return the first playlist of a master playlist; None for a media playlist. Raise `Unreadable`."""
    text = _text(body)
    begins = text.find(_VARIANT)
    if begins < 0:
        return None
    lines = (line.strip() for line in text[begins:].split("\n"))
    uri = next((line for line in lines if line and not line.startswith("#")), "")
    try:
        return str(urljoin(url, uri))
    except ValueError:
        raise Unreadable("its playlist has an address that cannot be read") from None


def newest_in_playlist(body: bytes) -> LiveEdge:
    """Return the latest time of a playlist. Raise `Unreadable`, also for a playlist without EXT-X-PROGRAM-DATE-TIME."""
    text = _text(body)
    begins = text.rfind(_TIME)
    line = text[begins + len(_TIME) :].partition("\n")[0] if begins >= 0 else ""
    since = moment_of(line)
    if since is None:
        raise Unreadable("its playlist tells no time (EXT-X-PROGRAM-DATE-TIME)")
    lasts = sum(float(match[1]) for match in _LASTS.finditer(text, _first_tag(text, begins)))
    return LiveEdge(_later(since, lasts), "\n#EXT-X-ENDLIST" in text)


def _first_tag(text: str, at: int) -> int:
    """Return the position of the first tag of the segment that the tag at `at` belongs to: its duration may be before that tag."""
    for _ in range(_TAGS_OF_A_SEGMENT):
        before = text.rfind("\n", 0, max(at - 1, 0)) + 1
        if before >= at or not text.startswith("#EXT", before):
            break
        at = before
    return at


def newest_in_mpd(body: bytes) -> LiveEdge:
    """Return the latest time of an MPD. Raise `Unreadable`, also for an MPD that does not list its segments with their times."""
    root = manifest_root(body)
    zero = moment_of(root.get("availabilityStartTime") or "") or (_EPOCH if root.get("type") != "dynamic" else None)
    ends = next((ends for period, start in reversed(_periods(root)) if (ends := _timeline_ends(period, start))), ())
    if zero is None or not ends:
        raise Unreadable("its manifest does not tell when its segments end (SegmentTimeline)")
    return LiveEdge(_later(zero, max(ends)), root.get("type") != "dynamic")


def _periods(root: etree._Element) -> list[tuple[etree._Element, float]]:
    """Return each period with its start, in seconds. A period without a known start is skipped."""
    periods = []
    after: float | None = 0.0
    for count, period in enumerate(root.iterchildren("{*}Period")):
        if count >= _MOST_PERIODS:
            raise Unreadable(f"its manifest has more than {_MOST_PERIODS} periods")
        stated = seconds_of(period.get("start") or "-")
        start = after if stated is None else stated
        lasts = seconds_of(period.get("duration") or "-")
        after = None if start is None or lasts is None else start + lasts
        if start is not None:
            periods.append((period, start))
    return periods


def _timeline_ends(period: etree._Element, start: float) -> list[float]:
    ends = ((line, _end(line)) for line in islice(period.iter("{*}SegmentTimeline"), _TIMELINES))
    return [
        start
        + (end - whole(_attribute(line, "presentationTimeOffset"), default=0))
        / (whole(_attribute(line, "timescale"), default=1) or 1)
        for line, end in ends
        if end is not None
    ]


def _end(line: etree._Element) -> int | None:
    """Return the end in units of the timeline; None if an entry repeats without end, so the manifest does not state it."""
    if len(line) > _MOST_ENTRIES:
        raise Unreadable(f"its manifest lists more than {_MOST_ENTRIES} segments")
    lasts = 0
    for entry in line.iterchildren("{*}S", reversed=True):
        repeats = entry.get("r") or "0"
        if repeats.startswith("-"):
            return None
        lasts += whole(entry.get("d"), default=0) * (whole(repeats, default=0) + 1)
        if (time := entry.get("t")) is not None:
            return whole(time, default=0) + lasts
    return lasts or None


def _attribute(line: etree._Element, name: str) -> str | None:
    """Return an attribute of the template or list that a timeline is in, or of one that it is inherited from."""
    parent = line.getparent()
    holder = parent
    while holder is not None:
        for element in (parent, *islice(holder.iterchildren("{*}SegmentTemplate", "{*}SegmentList"), _MOST_TEMPLATES)):
            if element is not None and (value := element.get(name)) is not None:
                return str(value)
        holder = holder.getparent()
    return None


def _later(since: datetime, seconds: float) -> datetime:
    try:
        return since + timedelta(seconds=seconds)
    except OverflowError:
        raise Unreadable("its manifest tells a time that cannot be") from None


def _text(body: bytes) -> str:
    return text_of(body).replace("\r\n", "\n")
