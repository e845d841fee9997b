"""The states of an endpoint: given a state, when something happens, then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.clock import NOON
from workers.webhook.sender.endpoint_state import (
    DELETED,
    DISABLED,
    FAILURES,
    LONG,
    LONGEST_FAILURE,
    RESTING_SECONDS,
    AttemptDelivered,
    AttemptFailed,
    Configured,
    EndpointAction,
    EndpointState,
    Event,
    Phase,
    TimeCame,
    Unsendable,
    WebhookWithdrawn,
    next_state,
)

NOW = 1000.0
NEW = EndpointState()
FAILING = EndpointState(failures=3, failing_since=NOON)
NEARLY = EndpointState(failures=FAILURES - 1, failing_since=NOON)
RESTING = EndpointState(Phase.RESTING, failures=FAILURES, until=NOW + 20, failing_since=NOON)
PROBING = EndpointState(Phase.PROBING, failures=FAILURES, until=NOW - 1, failing_since=NOON)
PAUSED = EndpointState(Phase.PAUSED, failures=1, until=NOW + 20, failing_since=NOON)
PAUSED_PROBE = replace(PAUSED, failures=FAILURES, until=NOW)
CLOSING = EndpointState(Phase.CLOSING, error=DELETED)
REST, HEALTH, AGAIN, CLOSE = NOW + RESTING_SECONDS, EndpointAction.WRITE_HEALTH, EndpointAction.READ_AGAIN, EndpointAction.CLOSE
NONE = EndpointAction.NONE


@pytest.mark.parametrize(
    ("given", "when", "then", "actions"),
    [
        (NEW, AttemptDelivered(), NEW, NONE),
        (FAILING, AttemptDelivered(), NEW, HEALTH),
        (RESTING, AttemptDelivered(), replace(NEW, until=NOW + 20), HEALTH | AGAIN),
        (PROBING, AttemptDelivered(), replace(NEW, until=NOW - 1), HEALTH | AGAIN),
        (PAUSED, AttemptDelivered(), replace(PAUSED, failures=0, failing_since=None), HEALTH),
        (NEW, AttemptFailed(NOON), replace(NEW, failures=1, failing_since=NOON), HEALTH),
        (FAILING, AttemptFailed(NOON), replace(FAILING, failures=4), NONE),
        (NEARLY, AttemptFailed(NOON), replace(RESTING, until=REST), AGAIN),
        (RESTING, AttemptFailed(NOON), replace(RESTING, failures=FAILURES + 1), NONE),
        (PROBING, AttemptFailed(NOON), replace(RESTING, failures=FAILURES + 1, until=REST), AGAIN),
        (PAUSED, AttemptFailed(NOON), replace(PAUSED, failures=2), NONE),
        (replace(NEARLY, phase=Phase.PAUSED), AttemptFailed(NOON), replace(PAUSED, failures=FAILURES, until=REST), AGAIN),
        (FAILING, AttemptFailed(NOON, pause=2.0), replace(FAILING, phase=Phase.PAUSED, failures=4, until=NOW + 2), NONE),
        (FAILING, AttemptFailed(NOON, pause=60.0), replace(FAILING, phase=Phase.PAUSED, failures=4, until=NOW + 60), AGAIN),
        (PAUSED, AttemptFailed(NOON, pause=2.0), replace(PAUSED, failures=2), NONE),
        (RESTING, AttemptFailed(NOON, pause=2.0), replace(RESTING, phase=Phase.PAUSED, failures=FAILURES + 1), NONE),
        (NEW, Unsendable(LONG), EndpointState(Phase.PAUSED, until=NOW + LONG), NONE),
        (NEW, Unsendable(60.0), EndpointState(Phase.PAUSED, until=NOW + 60), AGAIN),
        (PAUSED, TimeCame(), PAUSED, NONE),
        (replace(PAUSED, until=NOW), TimeCame(), replace(PAUSED, phase=Phase.SENDING, until=NOW), NONE),
        (PAUSED_PROBE, TimeCame(), replace(PAUSED_PROBE, phase=Phase.PROBING), AGAIN),
        (RESTING, TimeCame(), RESTING, NONE),
        (replace(RESTING, until=NOW), TimeCame(), replace(PROBING, until=NOW), AGAIN),
        (NEW, TimeCame(), NEW, NONE),
        (NEW, Configured(NOON), replace(NEW, failing_since=NOON), NONE),
        (FAILING, Configured(None), replace(FAILING, failing_since=None), NONE),
    ],
)
def test_transition(given: EndpointState, when: Event, then: EndpointState, actions: EndpointAction) -> None:
    assert next_state(given, when, now=NOW) == (then, actions)


@pytest.mark.parametrize("given", [NEW, FAILING, PAUSED, RESTING, PROBING])
def test_an_endpoint_closes_from_every_state(given: EndpointState) -> None:
    for error in (DELETED, DISABLED):
        state, actions = next_state(given, WebhookWithdrawn(error), now=NOW)
        assert (state.phase, state.error, state.disable_reason) == (Phase.CLOSING, error, None)
        assert actions == CLOSE | AGAIN
    state, actions = next_state(given, AttemptFailed(NOON, gone=True), now=NOW)
    assert (state.phase, state.error, state.disable_reason) == (Phase.CLOSING, DISABLED, "it answered 410 Gone")
    assert CLOSE in actions


def test_five_days_of_nothing_but_failures_disable_the_webhook() -> None:
    almost, _ = next_state(FAILING, AttemptFailed(NOON + LONGEST_FAILURE - timedelta(seconds=1)), now=NOW)
    assert almost.phase is Phase.SENDING
    state, actions = next_state(FAILING, AttemptFailed(NOON + LONGEST_FAILURE), now=NOW)
    assert (state.phase, state.disable_reason) == (Phase.CLOSING, "nothing but failures for 5 days")
    assert CLOSE in actions


@pytest.mark.parametrize(
    "when",
    [AttemptDelivered(), AttemptFailed(NOON), AttemptFailed(NOON, gone=True), Unsendable(60.0), TimeCame(), Configured(NOON)],
)
def test_a_closing_endpoint_stays_closing(when: Event) -> None:
    assert next_state(CLOSING, when, now=NOW) == (CLOSING, NONE)
