"""The output of commands that list and show: a table on a terminal, aligned text on a pipe, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any, Final

from api.cli.terminal_text import aligned, printable
from domain.kernel.clock import iso, system_clock

Document = Mapping[str, Any]
TABLE, WIDE, JSON, NDJSON = FORMS = ("table", "wide", "json", "ndjson")
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_OLD: Final = 60 * _DAY
"""The distance in seconds from which a time is shown as a date."""
_COLOURS: Final = {
    "green": "completed delivered active live_published vod_public provisioned running yes ok applied",
    "red": "failed broken disabled provisioning_failed terminating_failed missing no",
    "yellow": "paused pending provisioning terminating suspended mp4_pending action",
    "cyan": "started queued scheduled live pre_live",
}
_GAP: Final = 2
"""The characters between two columns of a table."""
_SHORTEST: Final = 20
"""The width below which a long text is not folded."""
_STYLES: Final = {word: colour for colour, words in _COLOURS.items() for word in words.split()}


class Kind(Enum):
    """The formatting of a column's values. Only a LONG column may be wrapped on a terminal."""

    TEXT = auto()
    LONG = auto()
    NUMBER = auto()
    STATE = auto()
    TIME = auto()


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a list. `of` returns its value in a document. A `wide` column is shown by `-o wide` only. A column `is_id` if its
    values are given to other commands: it is shown on every terminal."""

    name: str
    of: Callable[[Document], Any]
    kind: Kind = Kind.TEXT
    wide: bool = False
    is_id: bool = False


def field(name: str, *path: str) -> Callable[[Document], Any]:
    """Return a function that reads the value at this path of a document; None if it does not exist."""

    def of(document: Document) -> Any:
        value: Any = document
        for each in (name, *path):
            value = value.get(each) if isinstance(value, Mapping) else None
        return value

    return of


def print_list(documents: Iterable[Document], columns: Sequence[TableColumn], *, form: str, none: str) -> None:
    """Print the documents. For an empty list, `none` is printed on stderr; the JSON form is an empty list."""
    if form == NDJSON:
        for document in documents:
            print(json_line(document), flush=True)
        return
    rows = list(documents)
    if form == JSON:
        print(json_text(rows))
    elif not rows:
        print(none, file=sys.stderr)
    else:
        _print_table(rows, [column for column in columns if form == WIDE or not column.wide], wide=form == WIDE)


def print_one(document: Document, facts: Iterable[tuple[str, Any]], *, form: str) -> None:
    """Print a single document. `facts` are the names and values of its text form."""
    if form in (JSON, NDJSON):
        print(json_text(document) if form == JSON else json_line(document))
        return
    shown = [(name, text(value, wide=form == WIDE)) for name, value in facts]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        print(f"{name:<{width}}  {printable(value)}")


def print_document(document: Document, shown: Callable[[Document], str], *, form: str) -> None:
    """Print a single document whose text form is made by `shown`."""
    if form in (JSON, NDJSON):
        print_one(document, (), form=form)
    else:
        print(shown(document))


def json_text(value: Any) -> str:
    """Return indented JSON. Characters that could control a terminal are escaped; other letters are not."""
    return _escape(json.dumps(value, indent=2, ensure_ascii=False))


def json_line(value: Any) -> str:
    return _escape(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def text(value: Any, *, wide: bool = False) -> str:
    """Return the text form of a value."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return iso(value) if wide else relative(value, now=system_clock())
        case list() | tuple():
            return ", ".join(text(part, wide=wide) for part in value) or "-"
        case Mapping():
            return json_line(value)
    return str(value)


def relative(moment: datetime, *, now: datetime) -> str:
    """Return the distance of a time from now, such as "5 min ago" or "in 2 h"."""
    seconds = (now - moment).total_seconds()
    if abs(seconds) >= _OLD:
        return f"{moment.astimezone(UTC):%Y-%m-%d}"
    if abs(seconds) < 1:
        return "now"
    length = duration(abs(seconds))
    return f"{length} ago" if seconds > 0 else f"in {length}"


def duration(seconds: float) -> str:
    """Return a length of time in its largest unit."""
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s" if seconds >= 1 else f"{seconds:.1f} s"


def moment(value: Any) -> Any:
    """Return the time that a text stands for; any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return value
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def _escape(shown: str) -> str:
    if shown.isprintable():
        return shown
    return "".join(
        character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1] for character in shown
    )


def _print_table(documents: Sequence[Document], columns: Sequence[TableColumn], *, wide: bool) -> None:
    rows = [[_cell(column, document, wide=wide) for column in columns] for document in documents]
    if sys.stdout.isatty():
        _print_rich(rows, columns, wide=wide)
        return
    head = [column.name.upper() for column in columns]
    widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = zip(row, columns, widths, strict=True)
        print("  ".join(cell.rjust(width) if of.kind is Kind.NUMBER else cell.ljust(width) for cell, of, width in cells).rstrip())


def _cell(column: TableColumn, document: Document, *, wide: bool) -> str:
    value = column.of(document)
    return printable(text(moment(value) if column.kind is Kind.TIME else value, wide=wide))


def _print_rich(rows: Sequence[Sequence[str]], columns: Sequence[TableColumn], *, wide: bool) -> None:
    """Print a table with rich, which omits colours if NO_COLOR is set. No value is cut. Where the terminal is too narrow, columns
    are hidden and named below the table; with `wide` the terminal breaks the lines instead."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, emoji=False, markup=False)
    head = [column.name.upper() for column in columns]
    widths = [max(map(cell_len, cells)) for cells in zip(head, *rows, strict=True)]
    shown = list(range(len(columns))) if wide else _fitting(columns, widths, console.width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place in shown:
        column, folds = columns[place], columns[place].kind is Kind.LONG and not wide
        justify: Any = "right" if column.kind is Kind.NUMBER else "left"
        least = _least_width(column, widths[place]) if folds else widths[place]
        table.add_column(Text(head[place]), justify=justify, no_wrap=not folds, overflow="fold", min_width=least)
    for row in rows:
        table.add_row(*(Text(row[place], style=_style(row[place], columns[place].kind)) for place in shown))
    needed = _table_width([widths[place] if wide else _least_width(columns[place], widths[place]) for place in shown])
    console.width = max(console.width, needed)
    console.print(table)
    if hidden := [column.name for place, column in enumerate(columns) if place not in shown]:
        console.print(f"hidden: {', '.join(hidden)}; -o wide shows all columns", style="dim", soft_wrap=True)


def _fitting(columns: Sequence[TableColumn], widths: Sequence[int], width: int) -> list[int]:
    """Return the places of the columns that fit into the width. Ids are always among them, and the first column if none is an id;
    then come states and long texts, then all others. Of equally important columns the later ones are hidden first."""
    first = 0 if not any(column.is_id for column in columns) else None
    ranks = [
        0 if column.is_id or place == first else 1 if column.kind in (Kind.STATE, Kind.LONG) else 2
        for place, column in enumerate(columns)
    ]
    shown = list(range(len(columns)))
    for place in sorted(shown, key=lambda place: (ranks[place], place), reverse=True):
        if not ranks[place] or _table_width([_least_width(columns[each], widths[each]) for each in shown]) <= width:
            break
        shown.remove(place)
    return shown


def _least_width(column: TableColumn, width: int) -> int:
    return min(width, _SHORTEST) if column.kind is Kind.LONG else width


def _table_width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _style(cell: str, kind: Kind) -> str:
    return _STYLES.get(cell.lower().replace(" ", "_"), "") if kind is Kind.STATE else ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. `attention` says what is wrong and what to do; it is empty if nothing is wrong."""

    name: str
    text: str
    attention: str = ""


def print_findings(findings: Sequence[Finding], *, form: str) -> None:
    """Print the findings. In the text form, a line that begins with ! says what needs attention."""
    if form == JSON:
        print(json_text(list(map(asdict, findings))))
        return
    if form == NDJSON:
        print("\n".join(json_line(asdict(finding)) for finding in findings))
        return
    for line, finding in zip(aligned([(finding.name, finding.text) for finding in findings]), findings, strict=True):
        print(line)
        for wrong in filter(None, finding.attention.split("; ")):
            print(f"  ! {printable(wrong)}")


def show_event_count(events: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{events} events", end="", file=sys.stderr, flush=True)


def show_bytes(done: str, size: int) -> None:
    if sys.stderr.isatty():
        from projections.kernel.sizes import shown

        print(f"\r{shown(size)} {done}   ", end="", file=sys.stderr, flush=True)


def end_line() -> None:
    if sys.stderr.isatty():
        print(file=sys.stderr)
