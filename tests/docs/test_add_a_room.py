"""docs/how-to/add-a-room.md does what it says: its blocks are applied to a copy of the source tree and its commands are run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT

_PAGE = (ROOT / "docs" / "how-to" / "add-a-room.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COPIED = (*PACKAGES, "tests", "docs", "pyproject.toml")


def blocks(language: str) -> list[tuple[str, str]]:
    """The blocks of a language: the file that each is about, or `follow`, and its text."""
    return [(about.removeprefix("file="), text) for found, about, text in _BLOCK.findall(_PAGE) if found == language]


def changed(text: str, diff: str) -> str:
    """`text` with each hunk of a diff applied at the first place that fits."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        assert f"\n{old}" in f"\n{text}", f"not there: {old}"
        text = f"\n{text}".replace(f"\n{old}", "\n" + "".join(line[1:] for line in lines if line[0] in " +"), 1)[1:]
    return text


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The source tree with all that the page adds to it."""
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    for name, text in blocks("python"):
        path = tmp_path / name
        assert not path.exists(), name
        if not path.parent.exists():
            path.parent.mkdir()
            (path.parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")
    for name, text in blocks("diff"):
        path = tmp_path / name
        path.write_text(changed(path.read_text(encoding="utf-8"), text), encoding="utf-8")
    return tmp_path


def run(command: str, directory: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program == "python", command
    done = subprocess.run([sys.executable, *arguments], cwd=directory, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-5000:]}{done.stderr[-5000:]}"


def test_a_room_is_added_as_the_page_says(copy: Path) -> None:
    """No file of the product changes but the list of rooms; the import contracts hold."""
    assert [name for name, _ in blocks("diff") if name.startswith(PACKAGES)] == ["api/wiring/rooms/__init__.py"]
    for command in [line for about, text in blocks("bash") if about == "follow" for line in text.splitlines()]:
        run(command, copy)
    golden = {path.name for path in (copy / "tests/golden/events").glob("reservation.*")}
    assert golden == {"reservation.requested.v1.json", "reservation.confirmed.v1.json"}
    written = " ".join(name for name, _ in blocks("python"))
    run(f"python -m ruff check {written} api/wiring/rooms/__init__.py", copy)
    run(f"python -m ruff format --check {written} api/wiring/rooms/__init__.py", copy)
    run("python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-cache", copy)


def test_a_hunk_that_fits_nowhere_is_refused() -> None:
    assert changed("a\nb\nc\n", " b\n+x\n@@\n-a\n+y\n") == "y\nb\nx\nc\n"
    with pytest.raises(AssertionError, match="not there"):
        changed("ab\n", " b\n+x\n")


@pytest.mark.parametrize("page", ["add-a-room.md", "add-a-consumer.md", "change-an-event.md"])
def test_every_path_on_the_page_exists(page: str) -> None:
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:domain|projections|workers|api|tests|docs)/[\w./-]+)`", text)
    made = {"domain/reservation/handlers.py"}
    assert paths
    assert [path for path in paths if path not in made and not (ROOT / path).exists()] == []
