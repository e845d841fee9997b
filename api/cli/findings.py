"""The findings of a check of an installation, and what a person should do about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from api.cli.output import JSON, NDJSON, json_line, json_text
from api.cli.printable import aligned, printable


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
