"""What a look at an installation found, and what a person should do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from api.cli.output import JSON, NDJSON, json_line, json_text
from api.cli.printable import aligned, printable


@dataclass(frozen=True, slots=True)
class Finding:
    """`attention`: what is wrong and what to do; empty where nothing is."""

    name: str
    text: str
    attention: str = ""


def print_findings(found: Sequence[Finding], *, form: str) -> None:
    """As text, a line that begins with ! says what needs attention."""
    if form == JSON:
        print(json_text(list(map(asdict, found))))
        return
    if form == NDJSON:
        print("\n".join(json_line(asdict(one)) for one in found))
        return
    for line, one in zip(aligned([(one.name, one.text) for one in found]), found, strict=True):
        print(line)
        for wrong in filter(None, one.attention.split("; ")):
            print(f"  ! {printable(wrong)}")
