"""The permission of a session to send, by a clock that the test moves."""

from __future__ import annotations

from tests.workers.session.ticking import Ticking

LEASE = 6.0


def test_nothing_is_sent_before_the_database_has_answered() -> None:
    assert not Ticking(LEASE).permit.valid


def test_within_the_lease_it_may_send_until_shortly_before_its_end() -> None:
    renewed = Ticking(LEASE).renewed(alone=False)
    assert renewed.after(4.9).valid
    assert not renewed.after(0.2).valid
    assert renewed.renewed(alone=False).permit.valid


def test_who_was_alone_goes_on_while_the_database_is_away() -> None:
    renewed = Ticking(LEASE).renewed(alone=True)
    assert renewed.after(3600).valid


def test_who_was_not_alone_does_not() -> None:
    assert not Ticking(LEASE).renewed(alone=False).after(3600).valid


def test_a_worker_frozen_past_its_lease_may_not_send() -> None:
    renewed = Ticking(LEASE).renewed(alone=True)
    assert not renewed.frozen(30).valid
    assert not renewed.after(30).valid, "until the database answers"
    assert renewed.renewed(alone=True).after(30).valid


def test_who_is_frozen_while_the_database_is_away_falls_silent_at_once() -> None:
    renewed = Ticking(LEASE).renewed(alone=True)
    assert renewed.after(60).valid
    assert not renewed.frozen(3).valid


def test_a_short_pause_within_the_lease_does_no_harm() -> None:
    assert Ticking(LEASE).renewed(alone=False).frozen(3).valid
