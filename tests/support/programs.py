"""Programs that some tests need and that are not installed with the product. Where one is missing, its tests are not run, and the
last lines of the run say so."""

from __future__ import annotations

from shutil import which
from typing import Final, NoReturn

import pytest

_PACKAGES: Final = {
    "nginx": "nginx-light",
    "caddy": "caddy",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "node": "nodejs",
    "chromium": "chromium",
}
"""Packages of Debian and Ubuntu, by program."""
_REMEDIES: Final = {
    "helm": "go install helm.sh/helm/v3/cmd/helm@v3.17.3",
    "terraform": "from developer.hashicorp.com, or OpenTofu as a link of this name",
}
"""Instructions for programs that are in no package."""
_MISSING: Final = "not found: "


def program(name: str) -> str:
    """Return the path of a program. Ends the test if it is not installed."""
    executable = which(name, path="/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin") or which(name)
    if executable is None:
        not_run(name, _REMEDIES.get(name) or f"apt-get install {_PACKAGES.get(name, name)}")
    return executable


def not_run(name: str, remedy: str) -> NoReturn:
    """End a test for which something is missing."""
    pytest.skip(f"{_MISSING}{name} ({remedy})")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    missing = [str(each.longrepr[2]).removeprefix("Skipped: ") for each in reports if isinstance(each.longrepr, tuple)]
    for reason in sorted({reason for reason in missing if reason.startswith(_MISSING)}):
        terminalreporter.write_line(f"tests not run: {missing.count(reason)}. {reason}", yellow=True)
