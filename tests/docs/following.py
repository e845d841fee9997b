"""Follows a how-to page: its blocks are applied to a copy of the source tree, and its commands are run there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from tests.architecture.sources import PACKAGES, ROOT

_BLOCK = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FOLDERS = (*PACKAGES, "tests", "docs", "deploy", "faults", "bench", "console/src")
_FILES = ("pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "LICENSE", "Makefile")


@dataclass(frozen=True)
class Page:
    """A how-to page, by its file name."""

    name: str

    @property
    def text(self) -> str:
        return (ROOT / "docs" / "how-to" / self.name).read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[tuple[str, str]]:
        """Return the blocks of a language as pairs of the file that a block is about, or `follow`, and its text."""
        return [
            (about.removeprefix("file="), text)
            for block_language, about, text in _BLOCK.findall(self.text)
            if block_language == language
        ]

    def commands(self) -> list[str]:
        return [line for about, text in self.blocks("bash") if about == "follow" for line in text.splitlines()]

    def apply(self, root: Path) -> None:
        """Write the page's new files, and make its changes."""
        for name, text in self.blocks("python"):
            path = root / name
            assert not path.exists(), name
            if not path.parent.exists():
                path.parent.mkdir()
                (path.parent / "__init__.py").touch()
            path.write_text(text, encoding="utf-8")
        for name, text in self.blocks("diff"):
            path = root / name
            path.write_text(changed(path.read_text(encoding="utf-8"), text), encoding="utf-8")


def changed(text: str, diff: str) -> str:
    """`text` with each hunk of a diff applied at the first place that fits."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        assert {line[0] for line in lines} <= set(" +-"), "a block adds and removes lines, and shows where"
        old = "".join(line[1:] for line in lines if line[0] in " -")
        assert f"\n{old}" in f"\n{text}", f"not there: {old}"
        text = f"\n{text}".replace(f"\n{old}", "\n" + "".join(line[1:] for line in lines if line[0] in " +"), 1)[1:]
    return text


def source_copy(destination: Path) -> None:
    """Copy the source tree with its compiled modules, since the commands of a page would otherwise compile them all again."""
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, destination / name, ignore=shutil.ignore_patterns("__pycache__"))
        for folder in (ROOT / name, *(path for path in (ROOT / name).rglob("*") if path.is_dir())):
            compiled = Path(cache_from_source(str(folder / "any.py"))).parent
            copy = destination / folder.relative_to(ROOT)
            if copy.is_dir() and compiled.is_dir():
                shutil.copytree(compiled, copy / "__pycache__")
    for name in _FILES:
        shutil.copy2(ROOT / name, destination)


def run(command: str, directory: Path) -> None:
    """Run a command in a copy of the source tree. It must succeed."""
    program, *arguments = shlex.split(command)
    assert program == "python", command
    ours = ("MEDIALEDGER_", "PYTEST_", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-5000:]}{done.stderr[-5000:]}"
