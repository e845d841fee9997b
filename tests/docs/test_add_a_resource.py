"""docs/how-to/add-a-resource.md does what it says: its blocks are applied to a copy of the source tree and its commands are run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from api.wiring.catalogue import catalogue
from tests.architecture.sources import ROOT, files, tree
from tests.docs.following import Page, run, source_copy

PAGE = Page("add-a-resource.md")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def sources(root: Path) -> dict[str, str]:
    """The product's own files, by path."""
    packages = ("domain", "projections", "workers", "api")
    paths = [path for package in packages for path in (root / package).rglob("*") if path.suffix in (".py", ".sql")]
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def test_the_blocks_of_the_page_fit_the_sources_and_cost_what_it_says(tmp_path: Path) -> None:
    source_copy(tmp_path)
    PAGE.apply(tmp_path)
    before, after = sources(ROOT), sources(tmp_path)
    added = sorted(after.keys() - before.keys())
    assert [Path(name).parent.as_posix() for name in added] == ["api/media", "domain/record/kinds"]
    more = sum(len(after[name].splitlines()) - len(before[name].splitlines()) for name in before)
    assert f"**{more} lines**" in PAGE.text


@pytest.mark.long
def test_a_resource_is_added_as_the_page_says(tmp_path: Path) -> None:
    source_copy(tmp_path)
    PAGE.apply(tmp_path)
    for command in PAGE.commands():
        run(command, tmp_path)
    golden = "tests/golden/events"
    written = {path.name for path in (tmp_path / golden).iterdir()} - {path.name for path in (ROOT / golden).iterdir()}
    assert written == {f"sponsor.{verb}.v1.json" for verb in ("registered", "amended", "deleted", "restored")}
    touched = " ".join(name for language in ("python", "diff") for name, _ in PAGE.blocks(language) if name.endswith(".py"))
    run(f"python -m ruff check {touched}", tmp_path)
    run(f"python -m ruff format --check {touched}", tmp_path)
    assert "/api/sponsor/reference" in (tmp_path / "docs" / "reference" / "routes.md").read_text(encoding="utf-8")


@cache
def defined() -> frozenset[str]:
    """Every name that the product or the page defines."""
    trees = [tree(path) for path in files()]
    trees += [ast.parse(text) for _, text in PAGE.blocks("python")]
    return frozenset(name for row in trees for node in ast.walk(row) for name in _names(node)) | catalogue().aggregates.keys()


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
    return sorted(set(re.findall(r"`([^`\n]+)`", _FENCED.sub("", PAGE.text))))


def _unknown(spans: Iterable[str]) -> Iterator[str]:
    made = {name for name, _ in PAGE.blocks("python")} | {"sponsor", *(f"sponsor.{verb}" for verb in ("registered",))}
    for span in spans:
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|[\w-]+\.(md|py|toml)", span):
            if not (ROOT / span).exists() and span not in made:
                yield span
        elif re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", span) and span not in made:
            yield from (name for name in ([span] if span in defined() else span.split(".")) if name not in defined())


def test_every_path_and_name_on_the_page_exists() -> None:
    assert list(_unknown(_spans())) == []


def test_a_missing_name_would_be_reported() -> None:
    gone = ["api/media/gone.py", "GoneQueries", "Record.never_defined"]
    assert list(_unknown([*gone, "Record.settled", "api/media/room.py", "make check"])) == [*gone[:2], "never_defined"]
