"""Track filter: an expression over the tracks of a video, such as `type=="audio" || type=="video" && bitrate<=1500000`.

`type` ("video" or "audio") and `language` are compared with texts by `==` and `!=`. `bitrate` (bits per second) and `height`
(pixels) are compared with whole numbers. `!`, `&&`, `||` and parentheses have their usual meaning. A comparison with a property
that a track lacks, such as the height of sound, is false.
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
    """Raised when an expression is invalid. The message is a sentence for the person who sent it."""


@dataclass(frozen=True, slots=True)
class AssetTrack:
    """A track of a video. A property is None if the track does not have it, or if the file does not tell it."""

    type: str
    bitrate: int | None = None
    height: int | None = None
    language: str | None = None


TrackFilter = Callable[[AssetTrack], bool]


def track_filter(expression: str) -> TrackFilter:
    """Parse an expression. Raises `InvalidFilter`."""
    if len(expression) > LONGEST:
        raise InvalidFilter(f"may have at most {LONGEST} characters")
    return _Parser(expression).parse()


@dataclass(frozen=True, slots=True)
class _Token:
    """A token. `kind` is `mark`, `name`, `text`, `number` or `end`; `at` is the position of its first character, from 1."""

    kind: str
    value: str
    at: int


class _Parser:
    """A recursive-descent parser. `||` binds less tightly than `&&`, and `&&` less tightly than `!`."""

    def __init__(self, expression: str) -> None:
        self._tokens = _tokens(expression)
        self._next = 0
        self._depth = 0

    def parse(self) -> TrackFilter:
        track_filter = self._disjunction()
        if self._peek.kind != "end":
            raise _unexpected(self._peek)
        return track_filter

    def _disjunction(self) -> TrackFilter:
        parts = [self._conjunction()]
        while self._accept("||"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else lambda track: any(part(track) for part in parts)

    def _conjunction(self) -> TrackFilter:
        parts = [self._term()]
        while self._accept("&&"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else lambda track: all(part(track) for part in parts)

    def _term(self) -> TrackFilter:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise InvalidFilter(f"is nested more than {_DEEPEST} levels deep")
        try:
            if self._accept("!"):
                inner = self._term()
                return lambda track: not inner(track)
            if self._accept("("):
                inner = self._disjunction()
                if not self._accept(")"):
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

        def holds(track: AssetTrack) -> bool:
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

    def _accept(self, mark: str) -> bool:
        if (self._peek.kind, self._peek.value) != ("mark", mark):
            return False
        self._next += 1
        return True


def _tokens(expression: str) -> list[_Token]:
    tokens, position, text = list[_Token](), 0, expression.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidFilter(f"cannot be read from character {position + 1} on")
        kind = str(match.lastgroup)
        tokens.append(_Token(kind, match[kind], match.start(kind) + 1))
        position = match.end()
    return [*tokens, _Token("end", "", len(text) + 1)]


def _unexpected(token: _Token) -> InvalidFilter:
    what = "the end" if token.kind == "end" else f"character {token.at}"
    names = ", ".join((*_TEXTS, *_NUMBERS))
    return InvalidFilter(f"has a syntax error at {what}; it compares {names} with a text or a number")
