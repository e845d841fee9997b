"""Counts what makes code hard to read: docstrings and comments that open with a fragment, and pronouns or participles as names.

`python -m tests.architecture.english PATH…` lists them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

VAGUE_NAMES: Final = frozenset({"one", "those", "told", "found", "said", "held", "kept", "left", "beside", "known"})
"""Names that say nothing of what they name. Leading and trailing underscores are ignored."""

_OPENING: Final = re.compile(
    r"(?:Of|By|Those|The same|Whether|What|How|And|But|As|From|On|At|To|Into|With|Without|Unless|Than|That|Which|Who|"
    r"Whose|Where|When|While|Until|Since|Because|So|Or|Nor|It|Its|They|Them|These|One|None|Nothing|Nobody|In|For|"
    r"Before|After|Also|Only|Not|Never|Like|Over|Under|Between|Through|Up|Out|Upon|Within|Beside|Besides|If|Both|"
    r"Each|Neither|Either|Still|Even|Once|Then|Here|There|Such|Why|Too|More|Less|Most|Least|Else|Whatever|Whoever|"
    r"Wherever)\b"
)
_SUBORDINATE: Final = frozenset(
    {
        "When",
        "While",
        "Where",
        "If",
        "Until",
        "Once",
        "Unless",
        "Before",
        "After",
        "In",
        "For",
        "On",
        "At",
        "Because",
        "Since",
        "As",
    }
    | {"Without", "With", "Within", "To", "Under"}
)
"""Openings of a clause or phrase. The main clause follows a comma."""
_SUBJECTS: Final = frozenset(("There", "Nothing", "Nobody", "Each", "Both", "Neither", "Most"))
"""Openings that may be the subject of a sentence, if a verb follows."""
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|does|do|can|may|must|reads?|holds?|returns?|runs?|waits?|needs?|gets?|stays?|ends?|comes?|writes?)\b"
)
_CODE: Final = re.compile(r"# (?:noqa|type:|fmt:|pragma)")
_STRINGS: Final = "|".join(rf"{quote}(?:\\.|[^\\])*?{quote}" for quote in ('"""', "'''", '"', "'"))
"""Strings are matched so that nothing inside of them is taken for a comment or a name."""
_COMMENT: Final = re.compile(rf"{_STRINGS}|(?P<token>#[^\n]*)", re.DOTALL)
_VAGUE: Final = re.compile(rf"{_STRINGS}|#[^\n]*|(?P<token>\b_*(?:{'|'.join(sorted(VAGUE_NAMES))})_*\b)", re.DOTALL)
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a node that hold statements, or parts of statements that hold others."""


class Finding(NamedTuple):
    """A place that should be rewritten."""

    line: int
    text: str


def is_fragment(text: str) -> bool:
    """Return True if the first sentence of a text opens without its subject or verb."""
    sentence = re.split(r"(?<=[.:;!?])\s", " ".join(text.split()), maxsplit=1)[0]
    match = _OPENING.match(sentence)
    if match is None or (match.group() in _SUBORDINATE and "," in sentence):
        return False
    return not (match.group() in _SUBJECTS and _VERB.search(sentence))


def docstrings(node: ast.AST) -> Iterator[Finding]:
    """Yield the docstrings of a module, its classes, functions, constants and fields."""
    body = getattr(node, "body", [])
    for before, statement in zip([None, *body], body, strict=False):
        text = _text(statement)
        if text is not None and (before is None or isinstance(before, ast.Assign | ast.AnnAssign)):
            yield Finding(statement.lineno, text)
    for block in _BLOCKS:
        for child in getattr(node, block, []):
            if not isinstance(child, ast.Expr):
                yield from docstrings(child)


def _text(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
        return statement.value.value
    return None


def comments(source: str) -> Iterator[Finding]:
    """Yield the first line of each comment."""
    last_line = 0
    for line, start, text in _matches(_COMMENT, source):
        if not text.startswith("# ") or _CODE.match(text):
            continue
        stands_alone = not source[source.rfind("\n", 0, start) + 1 : start].strip()
        continues = line == last_line + 1 and stands_alone
        last_line = line
        if not continues:
            yield Finding(line, text.removeprefix("# "))


def vague_names(source: str) -> Iterator[Finding]:
    """Yield each use of a vague name, but for those inside of f-strings."""
    for line, _, text in _matches(_VAGUE, source):
        yield Finding(line, text)


def _matches(pattern: re.Pattern[str], source: str) -> Iterator[tuple[int, int, str]]:
    """Yield line, offset and text of what a pattern finds outside of strings."""
    line = 1
    end = 0
    for match in pattern.finditer(source):
        if match["token"]:
            line += source.count("\n", end, match.start())
            end = match.start()
            yield line, end, match["token"]


def main(paths: list[str]) -> None:
    """Print the findings below the paths, one per line."""
    for path in sorted(file for root in map(Path, paths) for file in ([root] if root.is_file() else root.rglob("*.py"))):
        source = path.read_text(encoding="utf-8")
        texts = [*docstrings(ast.parse(source)), *comments(source)]
        findings = [finding for finding in texts if is_fragment(finding.text)] + list(vague_names(source))
        for finding in sorted(findings):
            sys.stdout.write(f"{path}:{finding.line}: {' '.join(finding.text.split())[:100]}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
