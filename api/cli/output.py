"""One way to print what commands list and show: a table on a terminal, aligned text on a pipe, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any, Final

from api.cli.printable import printable
from domain.kernel.clock import iso, system_clock

Document = Mapping[str, Any]
TABLE, WIDE, JSON, NDJSON = FORMS = ("table", "wide", "json", "ndjson")
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_OLD: Final = 60 * _DAY
"""What is further away than this is shown as a date."""
_COLOURS: Final = {
    "green": "completed delivered active live_published vod_public provisioned running yes ok applied",
    "red": "failed broken disabled provisioning_failed terminating_failed missing no",
    "yellow": "paused pending provisioning terminating suspended mp4_pending action",
    "cyan": "started queued scheduled live pre_live",
}
_STYLES: Final = {word: colour for colour, words in _COLOURS.items() for word in words.split()}


class Kind(Enum):
    """How the values of a column are shown. LONG may be wrapped on a terminal; no other is."""

    TEXT = auto()
    LONG = auto()
    NUMBER = auto()
    STATE = auto()
    TIME = auto()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list. `of` finds its value in a document. `wide`: shown by `-o wide` only."""

    name: str
    of: Callable[[Document], Any]
    kind: Kind = Kind.TEXT
    wide: bool = False


def field(name: str, *path: str) -> Callable[[Document], Any]:
    """The value at this place of a document; None where there is none."""

    def of(document: Document) -> Any:
        found: Any = document
        for each in (name, *path):
            found = found.get(each) if isinstance(found, Mapping) else None
        return found

    return of


def print_list(documents: Iterable[Document], columns: Sequence[Column], *, form: str, none: str) -> None:
    """`none` is what is said on stderr of an empty list; as JSON it is an empty list."""
    if form == NDJSON:
        for document in documents:
            print(json_line(document), flush=True)
        return
    found = list(documents)
    if form == JSON:
        print(json_text(found))
    elif not found:
        print(none, file=sys.stderr)
    else:
        _print_table(found, [one for one in columns if form == WIDE or not one.wide], wide=form == WIDE)


def print_one(document: Document, facts: Iterable[tuple[str, Any]], *, form: str) -> None:
    """One thing: `facts` are what a person wants to know, by name."""
    if form in (JSON, NDJSON):
        print(json_text(document) if form == JSON else json_line(document))
        return
    shown = [(name, text(value, wide=form == WIDE)) for name, value in facts]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        print(f"{name:<{width}}  {printable(value)}")


def print_document(document: Document, shown: Callable[[Document], str], *, form: str) -> None:
    """One thing that has a form of its own as text."""
    if form in (JSON, NDJSON):
        print_one(document, (), form=form)
    else:
        print(shown(document))


def json_text(value: Any) -> str:
    """Indented. What could steer a terminal is escaped, other letters are as they are."""
    return _escaped(json.dumps(value, indent=2, ensure_ascii=False))


def json_line(value: Any) -> str:
    return _escaped(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def text(value: Any, *, wide: bool = False) -> str:
    """A value as a person reads it."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return iso(value) if wide else relative(value, now=system_clock())
        case list() | tuple():
            return ", ".join(text(one, wide=wide) for one in value) or "-"
        case Mapping():
            return json_line(value)
    return str(value)


def relative(moment: datetime, *, now: datetime) -> str:
    """How long ago, or in how long."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) >= _OLD:
        return f"{moment.astimezone(UTC):%Y-%m-%d}"
    if abs(seconds) < 1:
        return "now"
    length = duration(abs(seconds))
    return f"{length} ago" if seconds > 0 else f"in {length}"


def duration(seconds: float) -> str:
    """In the largest unit that fits."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s" if seconds >= 1 else f"{seconds:.1f} s"


def moment(value: Any) -> Any:
    """A text that is a time, as a time; what is none stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return value
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _escaped(shown: str) -> str:
    if shown.isprintable():
        return shown
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in shown)


def _print_table(documents: Sequence[Document], columns: Sequence[Column], *, wide: bool) -> None:
    rows = [[_cell(column, document, wide=wide) for column in columns] for document in documents]
    if sys.stdout.isatty():
        _print_rich(rows, columns)
        return
    head = [column.name.upper() for column in columns]
    widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = zip(row, columns, widths, strict=True)
        print("  ".join(cell.rjust(width) if of.kind is Kind.NUMBER else cell.ljust(width) for cell, of, width in cells).rstrip())


def _cell(column: Column, document: Document, *, wide: bool) -> str:
    value = column.of(document)
    return printable(text(moment(value) if column.kind is Kind.TIME else value, wide=wide))


def _print_rich(rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> None:
    """rich leaves colours out where NO_COLOR is set."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        justify: Any = "right" if column.kind is Kind.NUMBER else "left"
        table.add_column(Text(column.name.upper()), justify=justify, no_wrap=column.kind is not Kind.LONG, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=_style(cell, column.kind)) for cell, column in zip(row, columns, strict=True)))
    Console(highlight=False, emoji=False, markup=False).print(table)


def _style(cell: str, kind: Kind) -> str:
    return _STYLES.get(cell.lower().replace(" ", "_"), "") if kind is Kind.STATE else ""
