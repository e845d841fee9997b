"""Reading of captions in WebVTT, SubRip (SRT), TTML with its profiles IMSC and EBU-TT-D, and Scenarist (SCC).

The files are untrusted. Their content is bounded before a library reads them, and messages of a library about an unreadable file
are not shown: they may hold any text. webvtt-py and ttconv do the parsing: see ADR 0102.
"""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from re import compile as regex
from typing import Final

import webvtt
from webvtt.errors import MalformedCaptionError, MalformedFileError

from workers.media.captions.cues import LONGEST_TEXT, Cue, UnreadableCaptions, clean, clean_settings, clock, in_order

MOST_BYTES: Final = 5 * 1024 * 1024
MOST_CUES: Final = 20_000
LATEST: Final = 100 * 3600 * 1000
"""The latest time in milliseconds. No film is longer."""
_BOMS: Final = (
    (BOM_UTF32_LE, "utf-32"),
    (BOM_UTF32_BE, "utf-32"),
    (BOM_UTF8, "utf-8-sig"),
    (BOM_UTF16_LE, "utf-16"),
    (BOM_UTF16_BE, "utf-16"),
)
_LOOKED_AT: Final = 1000
_PLACED: Final = regex(r"\{\\an?([1-9])\}")
_ASS: Final = regex(r"\{\\[^{}]{0,200}\}")
_UNNUMBERED: Final = regex(r"(\A|\n[ \t\r]{0,9}\n)(?=[0-9]{1,4}:[0-9]{1,2}:[0-9]{1,2}[,.][0-9]{1,3}[ \t]{0,9}-->)")
"""Matches the position before an SRT cue without a number, which players accept and the reader does not."""
_LINES: Final = {"7": "line:0", "8": "line:0", "9": "line:0", "4": "line:50%", "5": "line:50%", "6": "line:50%"}


@dataclass(frozen=True, slots=True)
class Captions:
    """The cues of a file in the order of their begin. `remarks` are sentences about what was skipped or guessed."""

    format: str
    cues: Sequence[Cue]
    remarks: Sequence[str] = field(default=())


def read(content: bytes) -> Captions:
    """Parse a file of captions. Raise `UnreadableCaptions`."""
    if len(content) > MOST_BYTES:
        raise UnreadableCaptions(f"The captions have more than {MOST_BYTES // 1024 // 1024} MiB.")
    remarks: list[str] = []
    text = _decode(content, remarks).lstrip("\ufeff\n\r\t ")
    if not text:
        raise UnreadableCaptions("The file of the captions is empty.")
    name = _detect_format(text)
    if text.count("-->") > MOST_CUES:
        raise _too_many()
    cues = in_order(_showable(_READERS[name](text, remarks), remarks))
    if not cues:
        raise UnreadableCaptions(" ".join([f"There is no cue in the captions, read as {name}.", *remarks]))
    return Captions(name, cues, remarks)


def _too_many() -> UnreadableCaptions:
    return UnreadableCaptions(f"The captions have more than {MOST_CUES} cues.")


def _decode(content: bytes, remarks: list[str]) -> str:
    """Decode a file: UTF-8 unless a byte order mark, or a zero in every other byte, says otherwise. Text that is not UTF-8 is taken
    for Windows-1252."""
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), None) or _utf16(content)
    if encoding is None and content.lstrip().startswith(b"<?xml") and b"encoding=" in (head := content[:200]).lower():
        stated = regex(rb"encoding=[\"']([A-Za-z0-9._-]{1,40})[\"']").search(head)
        encoding = "cp1252" if stated is not None and stated[1].lower() in (b"iso-8859-1", b"windows-1252") else None
    try:
        return content.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        if encoding is not None:
            raise UnreadableCaptions(f"The captions are not whole in {encoding.upper().removesuffix('-SIG')}.") from None
    remarks.append("The captions are not in UTF-8; they were read as Windows-1252.")
    return content.decode("cp1252", "replace")


def _utf16(content: bytes) -> str | None:
    head = content[:_LOOKED_AT]
    if len(head) < 8 or head.count(0) < len(head) // 3:
        return None
    return "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"


def _detect_format(text: str) -> str:
    if text.startswith("WEBVTT"):
        return "WebVTT"
    if text.startswith("Scenarist_SCC"):
        return "SCC"
    return "TTML" if text.startswith("<") else "SRT"


def _showable(cues: Iterator[Cue], remarks: list[str]) -> Iterator[Cue]:
    """Yield the cues that can be shown."""
    bad: list[Cue] = []
    for number, cue in enumerate(cues, 1):
        if number > MOST_CUES:
            raise _too_many()
        if len(cue.text) > LONGEST_TEXT:
            raise UnreadableCaptions(f"The cue at {clock(cue.begin)} has more than {LONGEST_TEXT} characters.")
        if not 0 <= cue.begin < cue.end <= LATEST:
            bad.append(cue)
        elif not cue.is_blank:
            yield cue
    if bad:
        times = ", ".join(clock(cue.begin) for cue in bad[:5])
        many = "One cue is" if len(bad) == 1 else f"{len(bad)} cues are"
        remarks.append(f"{many} left out: the end is not after the begin, or later than in any film, at {times}.")


def _vtt(text: str, remarks: list[str]) -> Iterator[Cue]:
    try:
        read = webvtt.from_string(text)
    except (MalformedFileError, MalformedCaptionError):
        raise UnreadableCaptions("The captions begin as WebVTT and cannot be read as that.") from None
    if read.styles or read.regions:
        remarks.append("Style sheets and regions of the captions are left out.")
    return _read(read, text, remarks)


def _srt(text: str, remarks: list[str]) -> Iterator[Cue]:
    numbered = _UNNUMBERED.sub(r"\g<1>1\n", text)
    try:
        read = webvtt.from_buffer(StringIO(numbered), format="srt")
    except (MalformedFileError, MalformedCaptionError):
        raise UnreadableCaptions("The captions are neither WebVTT nor SRT, TTML or SCC.") from None
    return _read(read, text, remarks)


def _read(read: webvtt.WebVTT, text: str, remarks: list[str]) -> Iterator[Cue]:
    missing = text.count("-->") - sum(1 + caption.raw_text.count("-->") for caption in read.captions)
    if missing > 0:
        many = "One cue has" if missing == 1 else f"{missing} cues have"
        remarks.append(f"{many} no times or text that can be read, and {'is' if missing == 1 else 'are'} left out.")
    for caption in read.captions:
        raw = caption.raw_text
        if len(raw) > 4 * LONGEST_TEXT:
            raise UnreadableCaptions(f"The cue at {caption.start} has more than {4 * LONGEST_TEXT} characters.")
        begin, end = caption.start_time.in_milliseconds(), caption.end_time.in_milliseconds()
        yield Cue(begin, end, clean(_ASS.sub("", raw)), _settings(raw, str(caption.settings or "")))


def _settings(raw: str, settings: str) -> str:
    """Return the settings of a cue. SRT has none; its files place cues by a code of another format."""
    placed = _PLACED.search(raw)
    return clean_settings(settings) or (_LINES.get(placed[1], "") if placed is not None else "")


def _ttml(text: str, remarks: list[str]) -> Iterator[Cue]:
    from workers.media.captions.documents import timed_texts, ttml_document  # imports ttconv, which only steps need

    return timed_texts(ttml_document(text))


def _scc(text: str, remarks: list[str]) -> Iterator[Cue]:
    from workers.media.captions.documents import scc_document, timed_texts

    return timed_texts(scc_document(text))


_READERS: Final[Mapping[str, Callable[[str, list[str]], Iterator[Cue]]]] = {
    "WebVTT": _vtt,
    "SRT": _srt,
    "TTML": _ttml,
    "SCC": _scc,
}
