"""Values of settings; see docs/reference/api/job-engine.md#settings."""

from __future__ import annotations

from typing import Any

import pytest

from domain.kernel.errors import Malformed
from domain.record.kinds.setting import EngineSettings, Setting
from domain.record.record import RegisterRecord
from tests.domain.scenario import Scenario, fact, given

REGISTERED, AMENDED, _, _ = Setting.EVENTS


def put(name: str, value: Any) -> RegisterRecord:
    return RegisterRecord(Setting.key_of("admin", name), Setting, {"client": "admin", "name": name, "setting": value})


def new() -> Scenario[Any]:
    return given(Setting, "admin:x")


def existing(name: str, value: Any) -> Scenario[Any]:
    return given(Setting, Setting.key_of("admin", name), fact(REGISTERED, client="admin", name=name, setting=value))


def stored_value(name: str, value: Any) -> Any:
    after = new().when(put(name, value)).after
    assert after is not None
    return after.details.setting


def test_what_was_never_set_has_its_default() -> None:
    assert EngineSettings() == EngineSettings(2, 0, 5, 60, 5, 3)
    assert EngineSettings.of({"max_jobs": 7, "retry_delay": 0.5, "mine": "x"}) == EngineSettings(max_jobs=7, retry_delay=0.5)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("max_jobs", 0, 10_000),
        ("priority_slots", 0, 10_000),
        ("priority_threshold", 1, 11),
        ("schedule_interval", 1, 86_400),
        ("retry_delay", 0, 86_400),
        ("retry_limit", 0, 100),
    ],
)
def test_the_settings_of_the_engine_have_bounds(name: str, least: int, most: int) -> None:
    for value in (least, most, float(most), str(most)):
        after = stored_value(name, value)
        assert (after, type(after)) == (int(value), int)
    wrong: list[Any] = [least - 1, most + 1, least - 0.5, "", "x", "1_0", "１", "-0", "1e1", " 1", True, False, None, [1], {}]
    for value in (*wrong, 10**400, float("nan"), float("inf"), "9" * 5000):
        refused = new().when(put(name, value)).then_refused(Malformed)
        assert [error.field for error in refused.errors] == ["setting"]


def test_only_a_delay_may_be_a_fraction() -> None:
    assert (stored_value("retry_delay", 0.25), stored_value("retry_delay", "0.25")) == (0.25, 0.25)
    new().when(put("max_jobs", 1.5)).then_refused(Malformed)
    new().when(put("schedule_interval", "1.5")).then_refused(Malformed)


@pytest.mark.parametrize("value", [0, -7, 2**63 - 1, 1.5, -1e300, "", "text", "é" * 998, True, False])
def test_other_names_take_any_scalar_as_it_is(value: Any) -> None:
    after = stored_value("mine", value)
    assert (after, type(after)) == (value, type(value))


@pytest.mark.parametrize("value", [None, [], {}, [1], float("nan"), float("-inf"), 2**63, -(2**64), "x" * 999, "\n" * 500])
def test_what_is_no_scalar_or_too_much_is_refused(value: Any) -> None:
    refused = new().when(put("mine", value)).then_refused(Malformed)
    assert [error.field for error in refused.errors] == ["setting"]


@pytest.mark.parametrize("name", ["password", "s3.secret", "ftp-token", "api_key", "storageKey"])
def test_settings_are_not_a_place_for_secrets(name: str) -> None:
    refused = new().when(put(name, "x")).then_refused(Malformed)
    assert [(error.field, error.message) for error in refused.errors] == [("name", "settings are not a place for secrets")]
    assert stored_value("keyframe_interval", 2) == 2


def test_the_same_value_again_changes_nothing() -> None:
    for name, value, again in (("max_jobs", 3, "3"), ("max_jobs", 3, 3.0), ("retry_delay", 0.5, "0.5"), ("mine", True, True)):
        existing(name, value).when(put(name, again)).then_nothing()


def test_a_flag_is_not_a_number() -> None:
    for before, after in ((1, True), (True, 1), (0, False), (1, 1.0), (1, "1")):
        existing("mine", before).when(put("mine", after)).then(fact(AMENDED, setting=after))
