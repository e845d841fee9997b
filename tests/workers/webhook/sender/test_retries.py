"""The schedule of retries of failed deliveries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.webhook.sender.retries import DELAYS, LONGEST_REQUESTED, RetrySchedule, retry_after

NOW = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
WAITS = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]


@pytest.mark.parametrize(("attempts_made", "wait"), list(enumerate(WAITS, start=1)))
def test_the_schedule(attempts_made: int, wait: int) -> None:
    assert RetrySchedule().wait(attempts_made, 0.5) == pytest.approx(wait)
    assert RetrySchedule().wait(attempts_made, 0.0) == pytest.approx(0.8 * wait)
    assert RetrySchedule().wait(attempts_made, 1.0) == pytest.approx(1.2 * wait)


def test_there_are_ten_tries_over_about_three_days() -> None:
    assert RetrySchedule().tries == 10
    assert RetrySchedule().wait(10, 0.5) is None
    assert timedelta(seconds=sum(DELAYS)) == timedelta(hours=75, minutes=35, seconds=5)


def test_retry_after_can_lengthen_a_wait_and_not_shorten_it() -> None:
    assert RetrySchedule().wait(1, 0.5, requested_wait=120) == 120
    assert RetrySchedule().wait(4, 0.5, requested_wait=120) == pytest.approx(7200)
    assert RetrySchedule().wait(10, 0.5, requested_wait=120) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("120", 120),
        (" 120 ", 120),
        ("0", 0),
        ("3600", 3600),
        ("3601", LONGEST_REQUESTED),
        ("999999999", LONGEST_REQUESTED),
        ("9" * 5000, 0),
        ("-5", 0),
        ("1.5", 0),
        ("soon", 0),
        ("١٢", 0),
        ("Thu, 02 Jan 2031 12:10:00 GMT", 600),
        ("Thu, 02 Jan 2031 11:00:00 GMT", 0),
        ("Fri, 03 Jan 2031 12:00:00 GMT", LONGEST_REQUESTED),
        ("Thu, 02 Jan 2031 12:10:00 -0000", 600),
        ("Mon, 01 Jan 2020 00:00:00 +99999999999999999999", 0),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 0),
    ],
)
def test_values_of_retry_after(value: str | None, seconds: float) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.text(alphabet=st.characters(codec="latin-1")))
def test_any_text_in_retry_after_is_accepted(value: str) -> None:
    assert 0 <= retry_after(value, NOW) <= LONGEST_REQUESTED
