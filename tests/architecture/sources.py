"""The product's own source files, read and parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("domain", "projections", "workers", "api")


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders or PACKAGES for path in (ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def public(path: Path) -> Iterator[Named]:
    """The public classes and functions of a module."""
    for node in tree(path).body:
        if isinstance(node, Named) and not node.name.startswith("_"):
            yield node


@cache
def called(path: Path) -> list[tuple[int, str]]:
    """Every call in a file: its line and the dotted name that is called."""
    return [(node.lineno, ast.unparse(node.func)) for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
