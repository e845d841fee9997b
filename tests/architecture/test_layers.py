"""Imports run in one direction: the contracts of pyproject.toml."""

from __future__ import annotations

from importlinter.api import read_configuration
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.architecture.sources import ROOT


def test_the_import_contracts_hold() -> None:
    """`lint-imports` prints which import breaks which contract."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS


def test_the_contracts_are_about_every_package_of_the_product() -> None:
    options = read_configuration(str(ROOT / "pyproject.toml"))
    assert options["session_options"]["root_packages"] == ["domain", "projections", "workers", "api"]
    [layers] = [contract for contract in options["contracts_options"] if contract["type"] == "layers"]
    assert layers["layers"] == ["api", "workers", "projections", "domain"]
