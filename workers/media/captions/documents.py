"""Timed texts of documents that ttconv reads: TTML with its profiles, and SCC.

ttconv's own writer of WebVTT computes the picture at each moment, which is quadratic in cues that overlap. Here each paragraph is
read once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from re import compile as regex
from typing import Final
from xml.etree import ElementTree

from lxml import etree
from ttconv import model
from ttconv.imsc import reader as imsc
from ttconv.scc import reader as scc
from ttconv.style_properties import DisplayAlignType, FontStyleType, FontWeightType, LengthType, StyleProperties, TextAlignType

from domain.kernel.untrusted_xml import HasDoctype, NotXml, parsed_xml
from workers.media.captions.cues import LONGEST_TEXT, Cue, UnreadableCaptions, clean, escaped

_UNENDED: Final = Fraction(10)
"""Seconds for which a text without an end is shown."""
_MOST_SCC: Final = 1024 * 1024
"""The largest number of characters: those of six hours in which each picture has caption data. The time that ttconv takes is
quadratic in them."""
_MOST_CHANGES: Final = 500
"""The largest number of changes of the text of a paragraph whose parts have their own times."""
_LINE: Final = 6
"""The height of a line in per cent of the picture."""
_BOTTOM: Final = 80
_TT: Final = "{http://www.w3.org/ns/ttml}"
_CONTAINERS: Final = (f"{_TT}body", f"{_TT}div")
_AFTER_TAGS: Final = regex(r"^((?:<[ibu]>)+) ")
_ALIGNED: Final = {TextAlignType.start: "align:start", TextAlignType.end: "align:end"}


def ttml_document(text: str) -> model.ContentDocument:
    """Parse TTML. Raise `UnreadableCaptions`."""
    try:
        tree = parsed_xml(text.encode("utf-8", "replace") if not text.startswith("<?xml") else _without_declaration(text))
    except NotXml as fault:
        raise UnreadableCaptions(f"The captions begin as TTML and are {fault}.") from None
    except HasDoctype:
        raise UnreadableCaptions("The captions have a document type, which is refused.") from None
    root = ElementTree.fromstring(etree.tostring(tree.getroot()))  # noqa: S314 - it was parsed before, and has no document type
    document = _read(lambda: imsc.to_model(ElementTree.ElementTree(root)), "TTML")
    if document is None:
        raise UnreadableCaptions("The captions are XML, but not TTML.")
    if not any(_ends(element) for element in root.iter() if element.tag in _CONTAINERS):
        _without_ends(document)
    return document


def _ends(element: ElementTree.Element) -> bool:
    return "end" in element.attrib or "dur" in element.attrib


def _without_ends(document: model.ContentDocument) -> None:
    """Remove the ends of body and divisions. For an element without an end, ttconv uses the end of its children and ignores that
    their times count from the begin of the element."""
    body = document.get_body()
    for element in () if body is None else body.dfs_iterator():
        if isinstance(element, model.Body | model.Div):
            element.set_end(None)


def scc_document(text: str) -> model.ContentDocument:
    """Parse SCC. Raise `UnreadableCaptions`."""
    if len(text) > _MOST_SCC:
        raise UnreadableCaptions("The captions have more SCC than any film.")
    document = _read(lambda: scc.to_model(text), "SCC")
    assert document is not None
    return document


def _without_declaration(text: str) -> bytes:
    """Return the text without its declaration of an encoding, which no longer applies because the text is already decoded."""
    return text.partition("?>")[2].encode("utf-8", "replace")


def _read(reader: Callable[[], model.ContentDocument | None], name: str) -> model.ContentDocument | None:
    logging.getLogger("ttconv").setLevel(logging.CRITICAL)  # a hostile file has a warning for each of its elements
    try:
        return reader()
    except Exception:  # a hostile file can make it raise anything
        raise UnreadableCaptions(f"The captions begin as {name} and cannot be read as that.") from None


@dataclass(frozen=True, slots=True)
class _Style:
    """The style of a text. `align` is a setting of a cue."""

    italic: bool = False
    bold: bool = False
    underlined: bool = False
    align: str = ""

    def of(self, element: model.ContentElement) -> _Style:
        """Return the style inside of the element."""
        style, made = element.get_style, self
        if (slant := style(StyleProperties.FontStyle)) is not None:
            made = replace(made, italic=slant is not FontStyleType.normal)
        if (weight := style(StyleProperties.FontWeight)) is not None:
            made = replace(made, bold=weight is FontWeightType.bold)
        if (line := style(StyleProperties.TextDecoration)) is not None and line.underline is not None:
            made = replace(made, underlined=bool(line.underline))
        if (align := style(StyleProperties.TextAlign)) is not None:
            made = replace(made, align=_ALIGNED.get(align, ""))
        return made

    def tagged(self, text: str) -> str:
        made = escaped(text)
        for tag, wanted in (("u", self.underlined), ("b", self.bold), ("i", self.italic)):
            if wanted and text.strip():
                made = f"<{tag}>{made}</{tag}>"
        return made


@dataclass(frozen=True, slots=True)
class _Span:
    """A time span from `begin` until before `end`, which is None if it does not end."""

    begin: Fraction
    end: Fraction | None

    def of(self, element: model.ContentElement) -> _Span:
        """Return the span of the element, whose times count from the begin of its parent."""
        begin, end = element.get_begin(), element.get_end()
        ends = [time for time in (self.end, None if end is None else self.begin + Fraction(end)) if time is not None]
        return _Span(self.begin + Fraction(begin or 0), min(ends, default=None))


@dataclass(frozen=True, slots=True)
class _Piece:
    span: _Span
    text: str


def timed_texts(document: model.ContentDocument) -> Iterator[Cue]:
    """Yield the cues of a document. Raise `UnreadableCaptions`."""
    body = document.get_body()
    if body is not None:
        yield from _of_element(body, _Span(Fraction(0), None), (), region=None, rows=document.get_cell_resolution().rows)


def _of_element(
    element: model.ContentElement,
    span: _Span,
    around: Sequence[model.ContentElement],
    *,
    region: model.Region | None,
    rows: int,
) -> Iterator[Cue]:
    own, inside, around = element.get_region(), span.of(element), (*around, element)
    region = region if own is None else own
    if isinstance(element, model.P):
        styled = around if region is None else (region, *around)
        style = reduce(lambda style, ancestor: style.of(ancestor), styled, _Style())
        yield from _of_paragraph(element, inside, style, place=lambda lines: _position(region, lines, rows))
        return
    for child in element:
        yield from _of_element(child, inside, around, region=region, rows=rows)


def _of_paragraph(paragraph: model.P, span: _Span, style: _Style, *, place: Callable[[int], str]) -> Iterator[Cue]:
    """Yield one cue, or one for each change if parts of the paragraph have their own times."""
    pieces = [piece for child in paragraph for piece in _pieces(child, span.of(child), style)]
    if sum(len(piece.text) for piece in pieces) > 8 * LONGEST_TEXT:
        raise UnreadableCaptions(f"A paragraph of the captions has more than {LONGEST_TEXT} characters.")
    times = sorted({time for piece in pieces for time in (piece.span.begin, piece.span.end) if time is not None})
    if len(times) > _MOST_CHANGES:
        raise UnreadableCaptions(f"The text of a paragraph of the captions changes more than {_MOST_CHANGES} times.")
    if span.end is not None and span.end <= span.begin:
        yield Cue(round(span.begin * 1000), round(span.end * 1000), "")
        return
    ends: list[Fraction | None] = [*times[1:], None]
    for begin, end in zip(times, ends, strict=True):
        shown = [piece for piece in pieces if piece.span.begin <= begin and (piece.span.end is None or piece.span.end > begin)]
        text = clean(_lines("".join(piece.text for piece in shown)))
        if text:
            last = begin + _UNENDED if end is None else end
            settings = " ".join(filter(None, (place(text.count("\n") + 1), style.align)))
            yield Cue(round(begin * 1000), round(last * 1000), text, settings)


def _pieces(element: model.ContentElement, span: _Span, style: _Style) -> Iterator[_Piece]:
    if isinstance(element, model.Br):
        yield _Piece(span, "\n")
    elif isinstance(element, model.Text):
        text = str(element.get_text())
        parent = element.parent()
        preserved = parent is not None and parent.get_space() is model.WhiteSpaceHandling.PRESERVE
        yield _Piece(span, style.tagged(text if preserved else _collapse(text)))
    else:
        for child in element:
            yield from _pieces(child, span.of(child), style.of(element))


def _collapse(text: str) -> str:
    """Collapse blanks and line breaks between words into one blank, as XML specifies."""
    words = " ".join(text.split())
    if not words:
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{words}{' ' if text[-1].isspace() else ''}"


def _lines(text: str) -> str:
    return "\n".join(line for raw in text.splitlines() if (line := _AFTER_TAGS.sub(r"\1", " ".join(raw.split()))))


def _position(region: model.Region | None, lines: int, rows: int) -> str:
    """Return the setting for the position of the text, unless that is at the bottom, where players show cues by default."""
    if region is None:
        return ""
    origin, position = region.get_style(StyleProperties.Origin), region.get_style(StyleProperties.Position)
    top = _per_cent(getattr(position, "v_offset", None) if origin is None else origin.y, rows)
    height = _per_cent(getattr(region.get_style(StyleProperties.Extent), "height", None), rows)
    if top is None or height is None:
        return ""
    align, place = region.get_style(StyleProperties.DisplayAlign), top
    if align is DisplayAlignType.after:
        place += height - _LINE * lines
    elif align is DisplayAlignType.center:
        place += (height - _LINE * lines) / 2
    return f"line:{round(place)}%" if 0 <= place < _BOTTOM - _LINE * (lines - 1) else ""


def _per_cent(length: LengthType | None, rows: int) -> float | None:
    """Return the length in per cent of the height of the picture."""
    if length is None:
        return None
    if length.units is LengthType.Units.c:
        return float(length.value) * 100 / rows
    return float(length.value) if length.units in (LengthType.Units.pct, LengthType.Units.rh) else None
