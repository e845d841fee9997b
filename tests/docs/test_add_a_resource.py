"""docs/how-to/add-a-resource.md does what it says: its blocks are applied to a copy of the source tree and its commands are run."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from api.wiring.catalogue import catalogue
from tests.architecture.sources import ROOT, files, tree

_PAGE = (ROOT / "docs" / "how-to" / "add-a-resource.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".medialedger", ".*_cache", ".hypothesis", ".schemathesis")


def blocks(language: str) -> list[tuple[str, str]]:
    """The blocks of a language: what stands beside it, and the text."""
    return [(told.removeprefix("file="), text) for found, told, text in _BLOCK.findall(_PAGE) if found == language]


def commands() -> list[str]:
    return [line for told, text in blocks("bash") if told == "follow" for line in text.splitlines()]


def changed(text: str, diff: str) -> str:
    """`text` with the lines of a diff inserted, each at the first place that has the lines around it."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        assert {line[0] for line in lines} == {" ", "+"}, "a block adds lines and shows where"
        old = "".join(line[1:] for line in lines if line[0] == " ")
        assert f"\n{old}" in f"\n{text}", f"not there: {old}"
        before, found, after = f"\n{text}".partition(f"\n{old}")
        text = (before + found[:1]).removeprefix("\n") + "".join(line[1:] for line in lines) + after
    return text


def sources(root: Path) -> dict[str, str]:
    """The product's own files, by path."""
    packages = ("domain", "projections", "workers", "api")
    paths = [path for package in packages for path in (root / package).rglob("*") if path.suffix in (".py", ".sql")]
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The source tree, with all that the page adds to it."""
    made = tmp_path / "medialedger"
    shutil.copytree(ROOT, made, ignore=_NOT_COPIED)
    for name, text in blocks("python"):
        assert not (made / name).exists(), name
        (made / name).write_text(text, encoding="utf-8")
    for name, text in blocks("diff"):
        path = made / name
        path.write_text(changed(path.read_text(encoding="utf-8"), text), encoding="utf-8")
    return made


def run(command: str, directory: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program == "python", command
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEDIALEDGER_", "PYTEST_"))}
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout[-5000:]}{ran.stderr[-5000:]}"


def test_a_resource_is_added_as_the_page_says_and_costs_what_it_says(copy: Path) -> None:
    before, after = sources(ROOT), sources(copy)
    added = sorted(after.keys() - before.keys())
    assert [Path(name).parent.as_posix() for name in added] == ["api/media", "domain/records/kinds"]
    more = sum(len(after[name].splitlines()) - len(before[name].splitlines()) for name in before)
    assert f"**{more} lines**" in _PAGE

    for command in commands():
        run(command, copy)
    golden = "tests/golden/events"
    written = {path.name for path in (copy / golden).iterdir()} - {path.name for path in (ROOT / golden).iterdir()}
    assert written == {f"sponsor.{verb}.v1.json" for verb in ("registered", "amended", "deleted", "restored")}
    touched = " ".join(name for language in ("python", "diff") for name, _ in blocks(language) if name.endswith(".py"))
    run(f"python -m ruff check {touched}", copy)
    run(f"python -m ruff format --check {touched}", copy)
    assert "/api/sponsor/reference" in (copy / "docs" / "reference" / "routes.md").read_text(encoding="utf-8")


def test_a_block_that_fits_nowhere_is_told() -> None:
    assert changed("a\nb\nc\n", " b\n+x\n@@\n a\n+y\n") == "a\ny\nb\nx\nc\n"
    with pytest.raises(AssertionError, match="not there"):
        changed("ab\n", " b\n+x\n")


@cache
def defined() -> frozenset[str]:
    """Every name that the product or the page defines."""
    trees = [tree(path) for path in files()]
    trees += [ast.parse(text) for _, text in blocks("python")]
    return frozenset(name for one in trees for node in ast.walk(one) for name in _names(node)) | catalogue().aggregates.keys()


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value  # a kind, a topic, a view


def _spans() -> list[str]:
    return sorted(set(re.findall(r"`([^`\n]+)`", _FENCED.sub("", _PAGE))))


def _unknown(spans: Iterable[str]) -> Iterator[str]:
    made = {name for name, _ in blocks("python")} | {"sponsor", *(f"sponsor.{verb}" for verb in ("registered",))}
    for span in spans:
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|[\w-]+\.(md|py|toml)", span):
            if not (ROOT / span).exists() and span not in made:
                yield span
        elif re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", span) and span not in made:
            yield from (name for name in ([span] if span in defined() else span.split(".")) if name not in defined())


def test_every_path_and_name_on_the_page_exists() -> None:
    assert list(_unknown(_spans())) == []


def test_a_name_that_is_gone_would_be_told() -> None:
    gone = ["api/media/gone.py", "GoneQueries", "Record.never_defined"]
    assert list(_unknown([*gone, "Record.settled", "api/media/room.py", "make check"])) == [*gone[:2], "never_defined"]
