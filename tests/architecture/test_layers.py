"""Imports run in one direction: the contracts of pyproject.toml."""

from __future__ import annotations

import subprocess
import sys

from importlinter.api import read_configuration

from tests.architecture.sources import ROOT


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
