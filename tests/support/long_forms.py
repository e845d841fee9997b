"""Tests that run with `--thorough` only, and tests that do more with it.

A long test takes seconds of processor time, and a shorter one finds most of what it would find. `make faults` runs both kinds in
their long form; the last lines of a run say how many it left out.
"""

from __future__ import annotations

from typing import Final

import pytest

LONG: Final = "long"
THOROUGH: Final = "thorough"
_LEFT_OUT: Final = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="run long tests, kill more often and try more requests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`-m "long or thorough"` chooses all that `--thorough` changes."""
    for item in items:
        if THOROUGH in getattr(item, "fixturenames", ()):
            item.add_marker(THOROUGH)
    if config.getoption(THOROUGH):
        return
    long = [item for item in items if item.get_closest_marker(LONG)]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker(LONG)]
    config.stash[_LEFT_OUT] = len(long)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left_out := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"long tests not run: {left_out}. `make faults` runs them, and so does --thorough", yellow=True)
