"""Imports run in one direction: the contracts of pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from importlinter.api import read_configuration

from tests.architecture.sources import ROOT, files, name, tree


def test_the_import_contracts_hold() -> None:
    """In a process of its own: `lint-imports` sets up logging for itself, and would take it from the tests that follow."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_contracts_are_about_every_package_of_the_product() -> None:
    options = read_configuration(str(ROOT / "pyproject.toml"))
    assert options["session_options"]["root_packages"] == ["domain", "projections", "workers", "api", "medialedger"]
    layers = [contract for contract in options["contracts_options"] if contract["type"] == "layers"]
    assert [each["layers"] for each in layers if "containers" not in each] == [["api", "workers", "projections", "domain"]]
    inside = [each for each in layers if "containers" in each]
    assert {name for each in inside for name in each["containers"]} == {"domain", "projections", "workers"}
    assert all(each["exhaustive"] == "True" for each in inside), "a new room has its place in a contract"


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_benchmarks_faults_and_helpers_import_nothing_of_the_tests_but_the_helpers() -> None:
    used = [(name(path), each) for path in files("bench", "faults", "tests/support") for each in _imports(path)]
    of_tests = [(path, each) for path, each in used if each.startswith("tests.")]
    assert of_tests, "the helpers are used"
    assert [entry for entry in of_tests if not entry[1].startswith("tests.support.")] == []
