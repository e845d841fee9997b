"""Cue: a text with the time for which it is shown. The text is clean WebVTT: what it may have, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from re import Match
from re import compile as regex
from typing import Final

LONGEST_TEXT: Final = 5_000
"""Characters of one cue. A screen holds some hundred."""
_STYLES: Final = frozenset({"i", "b", "u", "ruby", "rt"})
_DEEPEST: Final = 8
_TOKEN: Final = regex(r"<([^<>]{0,300})>|([^<]+|<)")
_TAG: Final = regex(r"<[^<>]*>")
_NAME: Final = regex(r"(/?)\s*([A-Za-z]{1,10})")
_ENTITY: Final = regex(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31});")
_SILENT: Final = regex(r"<\s*(script|style)\b[^<>]*>.*?(?:<\s*/\s*\1\s*>|\Z)", 2 | 16)
"""What an HTML page would carry out and not show. 2 | 16: in any case, and over lines."""
_CONTROLS: Final = regex("[\x00-\x08\x0b-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_SETTING: Final = regex(
    r"(?:vertical:(?:rl|lr)|line:-?[0-9]{1,3}(?:\.[0-9]{1,3})?%?(?:,(?:start|center|end))?"
    r"|position:[0-9]{1,3}(?:\.[0-9]{1,3})?%(?:,(?:line-left|center|line-right))?"
    r"|size:[0-9]{1,3}(?:\.[0-9]{1,3})?%|align:(?:start|center|end|left|right))"
)


@dataclass(frozen=True, slots=True)
class Cue:
    """`begin` and `end` are milliseconds from the first picture of the film. `text` and `settings` are those of WebVTT."""

    begin: int
    end: int
    text: str
    settings: str = ""

    @property
    def is_blank(self) -> bool:
        """Nothing of it would be seen."""
        return not _TAG.sub("", self.text).strip()


def in_order(cues: Iterable[Cue]) -> list[Cue]:
    """By their begin. Cues that begin at the same time stay in the order of the file, in which players put them on the screen."""
    return sorted(cues, key=lambda cue: cue.begin)


def clean(text: str) -> str:
    """The text of a cue of WebVTT, with italics, bold, underlines, ruby and the names of voices. All other markup is removed, with
    the scripts and styles in it; what is left shows as text."""
    lines = (line.strip() for line in _marked(_CONTROLS.sub("", _SILENT.sub("", text))).splitlines())
    return "\n".join(line for line in lines if line)


def clean_settings(settings: str) -> str:
    """The settings of a cue that say where it is shown. Those of regions go, since the regions do."""
    return " ".join(setting for setting in settings.split()[:10] if _SETTING.fullmatch(setting))


def escaped(text: str) -> str:
    """A text that shows as it is."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _marked(text: str) -> str:
    """With tags that are closed in the order of their opening."""
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
    """Who speaks."""
    name, _, annotation = tag.partition(" ")
    known = name == "v" or name.startswith("v.")
    return escaped(" ".join(_ENTITY.sub(_character, annotation).split())[:100]) if known else ""


def _character(entity: Match[str]) -> str:
    return _CONTROLS.sub("", unescape(entity[0]))
