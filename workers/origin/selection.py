"""The part of a stream that a player requests by the parameters of its address: docs/reference/playback.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import eq, ge, gt, le, lt, ne
from re import compile as regex
from typing import Any, Final
from urllib.parse import urlencode

from domain.kernel.errors import FieldError, Malformed
from domain.kernel.stream_time import StreamPoint, stream_point
from workers.origin.limits import LONGEST_WINDOW

BEGIN: Final = "vbegin"
END: Final = "vend"
WINDOW: Final = "dvr_window_length"
FILTER: Final = "filter"
MOST: Final = "max_bitrate"
LEAST: Final = "min_bitrate"
NAMES: Final = (BEGIN, END, WINDOW, FILTER, MOST, LEAST)
NO_POINT: Final = StreamPoint()
_NUMBER: Final = regex(r"[0-9]{1,12}")
_TERM: Final = regex(r"""\s*(?:(type)\s*(==|!=)\s*(["']?)(audio|video)\3|(systemBitrate)\s*(==|!=|<=|>=|<|>)\s*([0-9]{1,12}))\s*""")
_COMPARISONS: Final = {"==": eq, "!=": ne, "<=": le, ">=": ge, "<": lt, ">": gt}
_FILTERS: Final = 'must compare type with "audio" or "video", or systemBitrate with bits a second, joined by && and ||'
_MOST_TERMS: Final = 16


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """A comparison of a rendition: of its kinds of media, or of its bit rate in bits a second."""

    name: str
    operator: str
    value: str

    def accepts(self, kinds: frozenset[str], bitrate: float) -> bool:
        if self.name == "type":
            return (kinds == {self.value}) is (self.operator == "==")
        result: bool = _COMPARISONS[self.operator](bitrate, float(self.value))
        return result


@dataclass(frozen=True, slots=True)
class Selection:
    """The requested part: its bounds, the length of the live window in seconds, and the renditions. `filters` are alternatives,
    each of terms that must all accept a rendition. The bit rates limit pictures only."""

    begin: StreamPoint = NO_POINT
    end: StreamPoint = NO_POINT
    window: float | None = None
    filters: Sequence[Sequence[FilterTerm]] = ()
    max_bitrate: float = inf
    min_bitrate: float = 0.0
    query: str = ""
    """The parameters as they were sent, for the addresses of further playlists."""

    @property
    def bounded(self) -> bool:
        """True if a begin or an end was requested."""
        return self.begin.has_value or self.end.has_value

    def bounds(self, start: float) -> tuple[float, float]:
        """Return the begin and the end as Unix times. Times from the start of the stream count from `start`."""
        return (
            _unix(self.begin, start) if self.begin.has_value else start,
            _unix(self.end, start) if self.end.has_value else inf,
        )

    def accepts(self, kinds: frozenset[str], bitrate: float) -> bool:
        """Return True if the filter accepts a rendition with these kinds of media and this bit rate."""
        return not self.filters or any(all(term.accepts(kinds, bitrate) for term in terms) for terms in self.filters)


EVERYTHING: Final = Selection()


def selection(parameters: Mapping[str, str]) -> Selection:
    """Parse the parameters of an address; others are ignored. Raise `Malformed` with all that are wrong."""
    sent = {name: parameters[name] for name in NAMES if name in parameters}
    if not sent:
        return EVERYTHING
    errors: list[FieldError] = []
    values: dict[str, Any] = {"query": urlencode(sent)}
    for name, read in _READERS.items():
        if name in sent:
            try:
                values[_FIELDS[name]] = read(sent[name], name)
            except Malformed as refusal:
                errors += refusal.errors
    result = Selection(**values)
    if result.end.is_before(result.begin):
        errors.append(FieldError(END, f"is before `{BEGIN}`"))
    if result.min_bitrate > result.max_bitrate:
        errors.append(FieldError(LEAST, f"is more than `{MOST}`"))
    if errors:
        raise Malformed(*errors)
    return result


def _point(text: str, name: str) -> StreamPoint:
    return stream_point(text, field=name)


def _seconds(text: str, name: str) -> float:
    if not _NUMBER.fullmatch(text) or int(text) == 0:
        raise Malformed.at(name, "must be whole seconds, from 1")
    return float(min(int(text), LONGEST_WINDOW))


def _bitrate(text: str, name: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise Malformed.at(name, "must be a whole number of bits a second")
    return float(text)


def _filters(text: str, name: str) -> Sequence[Sequence[FilterTerm]]:
    alternatives = [alternative.split("&&") for alternative in text.split("||")]
    if sum(map(len, alternatives)) > _MOST_TERMS:
        raise Malformed.at(name, f"may have {_MOST_TERMS} comparisons")
    return tuple(tuple(_term(term, name) for term in terms) for terms in alternatives)


def _term(text: str, name: str) -> FilterTerm:
    match = _TERM.fullmatch(text)
    if match is None:
        raise Malformed.at(name, _FILTERS)
    return FilterTerm("type", match[2], match[4]) if match[1] else FilterTerm("systemBitrate", match[6], match[7])


_READERS: Final = {BEGIN: _point, END: _point, WINDOW: _seconds, FILTER: _filters, MOST: _bitrate, LEAST: _bitrate}
_FIELDS: Final = {
    BEGIN: "begin",
    END: "end",
    WINDOW: "window",
    FILTER: "filters",
    MOST: "max_bitrate",
    LEAST: "min_bitrate",
}


def _unix(point: StreamPoint, start: float) -> float:
    return point.date_time.timestamp() if point.date_time is not None else start + point.seconds
