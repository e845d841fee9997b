"""The cost of requests, events, jobs and idleness stays within the budgets, and what became cheaper lowers them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.budgets.budgets import COUNTERS, PYTHON, Counter, budgets
from tests.budgets.counting import Counts
from tests.budgets.measures import measure
from tests.support.postgres import migrated_server
from tests.support.postgres_homes import copied, made_once

_ALL = budgets()
_CASES = [(name, counter) for name, given in _ALL.items() for counter in COUNTERS if counter.name in given]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Counts]:
    home = tmp_path_factory.mktemp("budgets")
    return measure(copied(made_once(tmp_path_factory.getbasetemp(), "migrated", make=migrated_server), home))


@pytest.mark.parametrize(("name", "counter"), _CASES, ids=[f"{name}-{counter.name}" for name, counter in _CASES])
def test_the_cost_is_within_its_budget(name: str, counter: Counter, counted: Mapping[str, Counts]) -> None:
    if not counter.is_comparable:
        pytest.skip(f"the budgets of {counter.unit} are those of Python {'.'.join(map(str, PYTHON))}")
    verdict = counter.verdict(_ALL[name][counter.name], counted[name], tolerance=_ALL[name].get("tolerance", 0))
    assert not verdict, f"{_ALL[name]['what']}\n{verdict}"


def test_everything_that_is_counted_has_a_budget(counted: Mapping[str, Counts]) -> None:
    assert _ALL.keys() == counted.keys()
    assert all(given["what"].endswith(".") for given in _ALL.values())


def _with(calls: int) -> Counts:
    return Counts({"domain.a": calls - 1, "domain.b": 1}, {}, 0, 0, 0)


def test_a_cost_that_grew_names_its_largest_parts() -> None:
    verdict = COUNTERS[0].verdict(100, _with(120))
    assert "100 calls of Python functions before, 120 now: that is more" in verdict
    assert "119  domain.a\n" in verdict


def test_a_cost_that_fell_asks_for_a_lower_budget() -> None:
    assert "Lower the budget" in COUNTERS[0].verdict(100, _with(59))
    assert not COUNTERS[0].verdict(100, _with(61))
    assert not COUNTERS[0].verdict(100, _with(110))
