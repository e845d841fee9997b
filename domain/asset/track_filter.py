"""Track filter: an expression over the tracks of a video, such as `type=="audio" || type=="video" && bitrate<=1500000`.

The names are `type` ("video" or "audio") and `language`, which are compared with texts by `==` and `!=`, and `bitrate` (bits in a
second) and `height` (pixels), which are compared with whole numbers. `!`, `&&`, `||` and parentheses have their usual meaning. A
comparison with what a track does not have, such as the height of sound, is false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 1000
_DEEPEST: Final = 20
_TOKEN: Final = re.compile(
    r'\s*(?:(?P<mark>&&|\|\||[=!<>]=|[<>!()])|(?P<name>[A-Za-z_]+)|"(?P<text>[^"]*)"|(?P<number>[0-9]{1,15}))', re.ASCII
)
_COMPARE: Final[Mapping[str, Callable[[object, object], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,  # type: ignore[dict-item]
    "<=": operator.le,  # type: ignore[dict-item]
    ">": operator.gt,  # type: ignore[dict-item]
    ">=": operator.ge,  # type: ignore[dict-item]
}
_TEXTS: Final = ("type", "language")
_NUMBERS: Final = ("bitrate", "height")


class InvalidFilter(ValueError):
    """The message is a sentence for the person who sent it."""


@dataclass(frozen=True, slots=True)
class Track:
    """None: the track does not have it, or the file does not say it."""

    type: str
    bitrate: int | None = None
    height: int | None = None
    language: str | None = None


TrackFilter = Callable[[Track], bool]


def track_filter(expression: str) -> TrackFilter:
    """Raises `InvalidFilter`."""
    if len(expression) > LONGEST:
        raise InvalidFilter(f"may have {LONGEST} characters")
    return _Parser(expression).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    """`kind` is `mark`, `name`, `text`, `number` or `end`; `at` the place of its first character, from 1."""

    kind: str
    value: str
    at: int


class _Parser:
    """Recursive descent: `||` binds less than `&&`, that less than `!`."""

    def __init__(self, expression: str) -> None:
        self._tokens = _tokens(expression)
        self._next = 0
        self._depth = 0

    def whole(self) -> TrackFilter:
        found = self._either()
        if self._peek.kind != "end":
            raise _unexpected(self._peek)
        return found

    def _either(self) -> TrackFilter:
        parts = [self._all()]
        while self._takes("||"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda track: any(part(track) for part in parts)

    def _all(self) -> TrackFilter:
        parts = [self._one()]
        while self._takes("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda track: all(part(track) for part in parts)

    def _one(self) -> TrackFilter:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise InvalidFilter(f"is nested more than {_DEEPEST} deep")
        try:
            if self._takes("!"):
                inner = self._one()
                return lambda track: not inner(track)
            if self._takes("("):
                inner = self._either()
                if not self._takes(")"):
                    raise _unexpected(self._peek)
                return inner
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> TrackFilter:
        name, mark, value = self._take(), self._take(), self._take()
        if name.kind != "name" or name.value not in (*_TEXTS, *_NUMBERS):
            raise _unexpected(name)
        kind, marks = ("text", ("==", "!=")) if name.value in _TEXTS else ("number", tuple(_COMPARE))
        if mark.kind != "mark" or mark.value not in marks:
            raise _unexpected(mark)
        if value.kind != kind:
            raise _unexpected(value)
        compare, wanted = _COMPARE[mark.value], int(value.value) if kind == "number" else value.value

        def holds(track: Track) -> bool:
            has = getattr(track, name.value)
            return has is not None and compare(has, wanted)

        return holds

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek
        if token.kind != "end":
            self._next += 1
        return token

    def _takes(self, mark: str) -> bool:
        if (self._peek.kind, self._peek.value) != ("mark", mark):
            return False
        self._next += 1
        return True


def _tokens(expression: str) -> list[_Token]:
    found, at, text = list[_Token](), 0, expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidFilter(f"cannot be read from character {at + 1} on")
        kind = str(match.lastgroup)
        found.append(_Token(kind, match[kind], match.start(kind) + 1))
        at = match.end()
    return [*found, _Token("end", "", len(text) + 1)]


def _unexpected(token: _Token) -> InvalidFilter:
    what = "the end" if token.kind == "end" else f"character {token.at}"
    names = ", ".join((*_TEXTS, *_NUMBERS))
    return InvalidFilter(f"is not expected to go on so at {what}; it compares {names} with a text or a number")
