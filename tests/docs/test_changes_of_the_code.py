"""The pages about changes of the code do what they say: their blocks are applied to one copy of the source tree, and their commands
are run there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from api.wiring.catalogue import catalogue
from tests.architecture.sources import PACKAGES, ROOT, files, tree
from tests.docs.following import Page, run, source_copy

FIELD, COMMAND = Page("add-a-field-to-an-event.md"), Page("add-a-command.md")
RESOURCE, ROOM = Page("add-a-resource.md"), Page("add-a-room.md")
PAGES = (FIELD, COMMAND, RESOURCE, ROOM)
WRITTEN = {
    "event.reviewed.v1.json",
    *(f"reservation.{verb}.v1.json" for verb in ("requested", "confirmed")),
    *(f"sponsor.{verb}.v1.json" for verb in ("registered", "amended", "deleted", "restored")),
}
"""The golden files of the events that the pages add."""
_GOLDEN = "tests/golden/events"
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def changed_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree with the changes of all pages, and with the files that their commands write."""
    root = tmp_path_factory.mktemp("changed")
    source_copy(root)
    for page in PAGES:
        page.apply(root)
    for command in dict.fromkeys(command for page in PAGES for command in page.commands() if " pytest " not in command):
        run(command, root)
    return root


def touched(page: Page) -> list[str]:
    """Return the files that a page adds or changes by hand."""
    return sorted({name for language in ("python", "diff") for name, _ in page.blocks(language)})


@pytest.mark.parametrize(("page", "most"), [(RESOURCE, 7), (FIELD, 9)], ids=["resource", "field"])
def test_a_change_touches_few_files(page: Page, most: int) -> None:
    assert len(touched(page)) <= most


def test_the_pages_say_how_many_files_they_touch() -> None:
    assert f"**{len(touched(RESOURCE))} files**" in RESOURCE.text
    assert f"**{len(touched(FIELD)) - 1} files** by hand and add one test" in FIELD.text
    lines = [line for name, text in RESOURCE.blocks("diff") if name.startswith(PACKAGES) for line in text.splitlines()]
    assert f"**{sum(line.startswith('+') for line in lines)} lines**" in RESOURCE.text


def test_a_room_changes_only_lists_of_the_product() -> None:
    changed = [name for name, _ in ROOM.blocks("diff") if name.startswith(PACKAGES)]
    assert changed == ["api/wiring/rooms/__init__.py", "api/kernel/description.py"]


def test_the_pages_write_golden_files_and_reference_pages(changed_tree: Path) -> None:
    before = {path.name for path in (ROOT / _GOLDEN).iterdir()}
    assert {path.name for path in (changed_tree / _GOLDEN).iterdir()} - before == WRITTEN
    routes = (changed_tree / "docs" / "reference" / "routes.md").read_text(encoding="utf-8")
    for path in ("/api/sponsor/reference", "/api/reservation/{id}/confirm", "/api/event/review/{id}", "`rightsHolder`"):
        assert path in routes


def test_the_tests_of_the_pages_pass(changed_tree: Path) -> None:
    tests = [name for page in PAGES for name, _ in page.blocks("python") if name.startswith("tests/")]
    others = (
        "tests/golden/test_events.py",
        "tests/architecture/test_names.py",
        "tests/api/test_api_description.py::test_nothing_is_left_without_a_description",
        "tests/domain/event/test_amending.py",
    )
    run(f"python -m pytest -q {' '.join([*tests, *others])}", changed_tree)


def test_the_code_of_the_pages_is_in_order(changed_tree: Path) -> None:
    """Check the style of the changed files, and the direction of imports."""
    names = " ".join(sorted({name for page in PAGES for name in touched(page) if name.endswith(".py")}))
    run(f"python -m ruff check {names}", changed_tree)
    run(f"python -m ruff format --check {names}", changed_tree)
    run("python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-cache", changed_tree)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name.removesuffix(".md"))
def test_the_checks_of_a_page_pass(changed_tree: Path, page: Page) -> None:
    commands = [command for command in page.commands() if " pytest " in command]
    assert commands
    for command in commands:
        run(command, changed_tree)


@pytest.mark.parametrize("name", [*(page.name for page in (FIELD, COMMAND, ROOM)), "add-a-consumer.md", "change-an-event.md"])
def test_every_path_on_the_page_exists(name: str) -> None:
    page = Page(name)
    paths = re.findall(r"`((?:domain|projections|workers|api|tests|docs)/[\w./-]+)`", page.text)
    made = {"domain/reservation/commands.py", "domain/reservation/handlers.py", *touched(page)}
    assert paths
    assert [path for path in paths if path not in made and not (ROOT / path).exists()] == []


@cache
def defined() -> frozenset[str]:
    """Return every name that the product, the tests over all routes or the page defines."""
    trees = [tree(path) for path in (*files(), *(ROOT / "tests" / "api").glob("*.py"))]
    trees += [ast.parse(text) for _, text in RESOURCE.blocks("python")]
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
    return sorted(set(re.findall(r"`([^`\n]+)`", _FENCED.sub("", RESOURCE.text))))


def _unknown(spans: Iterable[str]) -> Iterator[str]:
    made = {name for name, _ in RESOURCE.blocks("python")} | {"sponsor", *(f"sponsor.{verb}" for verb in ("registered",))}
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
    assert list(_unknown([*gone, "Record.prepare_values", "api/media/room.py", "make check"])) == [*gone[:2], "never_defined"]
