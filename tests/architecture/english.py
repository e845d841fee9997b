"""Counts what makes code hard to read: docstrings and comments that open with a fragment, and pronouns or participles as names.

`python -m tests.architecture.english PATH…` lists them.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
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


def docstrings(module: ast.Module) -> Iterator[Finding]:
    """Yield the docstrings of a module, its classes, functions, constants and fields."""
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for before, statement in zip([None, *body], body, strict=False):
            text = _text(statement)
            if text is not None and (before is None or isinstance(before, ast.Assign | ast.AnnAssign)):
                yield Finding(statement.lineno, text)


def _text(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
        return statement.value.value
    return None


def comments(source: str) -> Iterator[Finding]:
    """Yield the first line of each comment."""
    last_line = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or not token.string.startswith("# ") or _CODE.match(token.string):
            continue
        continues = token.start[0] == last_line + 1 and token.line.strip().startswith("#")
        last_line = token.start[0]
        if not continues:
            yield Finding(token.start[0], token.string.removeprefix("# "))


def vague_names(source: str) -> Iterator[Finding]:
    """Yield each use of a vague name, but for those inside of f-strings."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.string.strip("_") in VAGUE_NAMES:
            yield Finding(token.start[0], token.string)


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
