"""Cues: texts with the time for which they are shown. A text is clean WebVTT: it has the allowed markup, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import unescape
from re import Match
from re import compile as regex
from typing import Final


class UnreadableCaptions(Exception):
    """Raised when captions cannot be read or shown. The message is a sentence without text of the file."""


def clock(milliseconds: int) -> str:
    """Format a time as WebVTT does: `hh:mm:ss.fff`."""
    seconds, rest = divmod(abs(milliseconds), 1000)
    sign = "-" if milliseconds < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"


LONGEST_TEXT: Final = 5_000
"""The largest number of characters of one cue. A screen holds some hundred."""
_STYLES: Final = frozenset({"i", "b", "u", "ruby", "rt"})
_DEEPEST: Final = 8
_TOKEN: Final = regex(r"<([^<>]{0,300})>|([^<]+|<)")
_TAG: Final = regex(r"<[^<>]*>")
_NAME: Final = regex(r"(/?)\s*([A-Za-z]{1,10})")
_ENTITY: Final = regex(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31});")
_SILENT: Final = regex(r"<\s*(script|style)\b[^<>]*>.*?(?:<\s*/\s*\1\s*>|\Z)", 2 | 16)
"""Elements that an HTML page would execute and not show. The flags 2 | 16 ignore case and let a dot match line breaks."""
_CONTROLS: Final = regex("[\x00-\x08\x0b-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_SETTING: Final = regex(
    r"(?:vertical:(?:rl|lr)|line:-?[0-9]{1,3}(?:\.[0-9]{1,3})?%?(?:,(?:start|center|end))?"
    r"|position:[0-9]{1,3}(?:\.[0-9]{1,3})?%(?:,(?:line-left|center|line-right))?"
    r"|size:[0-9]{1,3}(?:\.[0-9]{1,3})?%|align:(?:start|center|end|left|right))"
)


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue. `begin` and `end` are milliseconds from the first picture of the film. `text` and `settings` are those of WebVTT."""

    begin: int
    end: int
    text: str
    settings: str = ""

    @property
    def is_blank(self) -> bool:
        """True if nothing of the cue would be visible."""
        return not _TAG.sub("", self.text).strip()


def in_order(cues: Iterable[Cue]) -> list[Cue]:
    """Sort cues by their begin. Cues that begin at the same time stay in the order of the file, which is the order in which players
    place them."""
    return sorted(cues, key=lambda cue: cue.begin)


def clean(text: str) -> str:
    """Return the text of a WebVTT cue with italics, bold, underlines, ruby and the names of voices. All other markup is removed,
    with the scripts and styles in it; the rest is shown as text."""
    lines = (line.strip() for line in _clean_markup(_CONTROLS.sub("", _SILENT.sub("", text))).splitlines())
    return "\n".join(line for line in lines if line)


def clean_settings(settings: str) -> str:
    """Return the settings of a cue that place it. Settings of regions are removed, because the regions are."""
    return " ".join(setting for setting in settings.split()[:10] if _SETTING.fullmatch(setting))


def escaped(text: str) -> str:
    """Escape a text so that it is shown as it is."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clean_markup(text: str) -> str:
    """Return the text with tags that are closed in the order of their opening."""
    opened: list[str] = []
    return "".join([*_tokens(text, opened), *(f"</{name}>" for name in reversed(opened))])


def _tokens(text: str, opened: list[str]) -> Iterator[str]:
    for token in _TOKEN.finditer(text):
        if token[2] is not None:
            yield escaped(_ENTITY.sub(_character, token[2]))
            continue
        named = _NAME.match(token[1])
        name = "" if named is None else named[2].lower()
        if named is not None and named[1] and name in opened:
            while opened:
                yield f"</{(last := opened.pop())}>"
                if last == name:
                    break
        elif named is not None and not named[1] and len(opened) < _DEEPEST:
            if name in _STYLES and token[1].strip().lower().partition(".")[0] == name:
                opened.append(name)
                yield f"<{name}>"
            elif name == "v" and (voice := _voice(token[1])):
                opened.append(name)
                yield f"<v {voice}>"


def _voice(tag: str) -> str:
    """Return the name of the speaker."""
    name, _, annotation = tag.partition(" ")
    is_voice = name == "v" or name.startswith("v.")
    return escaped(" ".join(_ENTITY.sub(_character, annotation).split())[:100]) if is_voice else ""


def _character(entity: Match[str]) -> str:
    return _CONTROLS.sub("", unescape(entity[0]))


_SHORTEST: Final = 40
"""The shortest remainder, in milliseconds, of a cue at the border of a cut that is visible."""


def cut(cues: Iterable[Cue], *, begin: float, end: float, to: float = 0.0) -> list[Cue]:
    """Return the cues from `begin` until before `end`, in seconds; `begin` is moved to the time `to`."""
    first, last, moved = round(begin * 1000), round(end * 1000), round((to - begin) * 1000)
    shown = ((max(cue.begin, first), min(cue.end, last), cue) for cue in cues)
    return [
        replace(cue, begin=since + moved, end=until + moved)
        for since, until, cue in shown
        if until - since >= min(_SHORTEST, cue.end - cue.begin)
    ]
