"""Every page sets the variables of its shell blocks, so that its commands work in a clean terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

_BLOCK = re.compile(r"^```(?:bash|sh)(?: [^\n]*)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(
    r"""\$\{?(?P<used>[A-Za-z_]\w*)(?P<default>:-|\[)?  # a use; one with a default needs no value, an array belongs to a shell
    |(?:^|[\s;(])(?P<assigned>[A-Za-z_]\w*)=
    |\bfor\ (?P<loop>[A-Za-z_]\w*)\ in""",
    re.MULTILINE | re.VERBOSE,
)
_OF_EVERY_SHELL = frozenset(("HOME", "PATH", "PWD", "TMPDIR"))
_PAGES = [*sorted(path for path in (ROOT / "docs").rglob("*.md") if "adr" not in path.parts), ROOT / "README.md"]


def unset(text: str) -> list[str]:
    """The variables that a page uses before it sets them."""
    assigned, missing = set(_OF_EVERY_SHELL), []
    for block in _BLOCK.findall(text):
        for match in _NAME.finditer(block):
            name = match["used"]
            if name is None:
                assigned.add(match["assigned"] or match["loop"])
            elif match["default"] is None and name not in assigned:
                missing.append(name)
    return missing


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("curl $BASE/api", ["BASE"]),
        ("BASE=x\ncurl ${BASE}/api", []),
        ("cat ${MEDIALEDGER_HOME:-.medialedger}/admin-api-key", []),
        ("export KEY=1; echo $KEY", []),
        ("for NAME in a b; do echo $NAME; done", []),
        ("EVENT=$(echo $ROOM)", ["ROOM"]),
    ],
)
def test_a_use_before_the_assignment_is_noticed(block: str, expected: list[str]) -> None:
    assert unset(f"```sh\n{block}\n```\n") == expected


def test_every_page_sets_what_it_uses() -> None:
    missing = {
        str(page.relative_to(ROOT)): variables for page in _PAGES if (variables := unset(Path(page).read_text(encoding="utf-8")))
    }
    assert missing == {}
