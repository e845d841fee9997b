"""docs/how-to/add-a-room.md does what it says: its blocks are applied to a copy of the source tree and its commands are run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT
from tests.docs.following import Page, run, source_copy

PAGE = Page("add-a-room.md")


def test_a_room_is_added_as_the_page_says(tmp_path: Path) -> None:
    """No file of the product changes except the list of rooms; the import contracts hold."""
    assert [name for name, _ in PAGE.blocks("diff") if name.startswith(PACKAGES)] == ["api/wiring/rooms/__init__.py"]
    source_copy(tmp_path)
    PAGE.apply(tmp_path)
    for command in PAGE.commands():
        run(command, tmp_path)
    golden = {path.name for path in (tmp_path / "tests/golden/events").glob("reservation.*")}
    assert golden == {"reservation.requested.v1.json", "reservation.confirmed.v1.json"}
    written = " ".join(name for name, _ in PAGE.blocks("python"))
    run(f"python -m ruff check {written} api/wiring/rooms/__init__.py", tmp_path)
    run(f"python -m ruff format --check {written} api/wiring/rooms/__init__.py", tmp_path)
    run("python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-cache", tmp_path)


@pytest.mark.parametrize("page", ["add-a-room.md", "add-a-consumer.md", "change-an-event.md"])
def test_every_path_on_the_page_exists(page: str) -> None:
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:domain|projections|workers|api|tests|docs)/[\w./-]+)`", text)
    made = {"domain/reservation/commands.py", "domain/reservation/handlers.py"}
    assert paths
    assert [path for path in paths if path not in made and not (ROOT / path).exists()] == []
