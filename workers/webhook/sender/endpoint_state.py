"""The states of an endpoint: a pure function from a state and an event to the next state and to what must be done.

| state | event | next state | actions |
|---|---|---|---|
| SENDING, PAUSED | delivered | the same, no failures | health |
| RESTING, PROBING | delivered | SENDING, no failures | health, read again |
| SENDING | failed, fewer than 10 in a row | SENDING | health, when it is the first |
| SENDING | failed, the 10th in a row | RESTING for 30 s | read again |
| PROBING | failed | RESTING for 30 s | read again |
| PAUSED | failed | PAUSED; after the 10th in a row for at least 30 s | |
| RESTING | failed | RESTING, no longer | |
| any of these | failed with 410, or for five days | CLOSING, to be disabled | close |
| any of these | the receiver asked for a pause, or nothing can be sent | PAUSED until then | read again, if it is long |
| PAUSED, RESTING | its time has come, fewer than 10 failures in a row | SENDING | |
| PAUSED, RESTING | its time has come, 10 failures in a row or more | PROBING | read again |
| any of these | the webhook is deleted or disabled | CLOSING | close |
| CLOSING | any | CLOSING | |

RESTING and PROBING are an open and a half-open circuit breaker: deliveries that wait meanwhile lose no attempt. An endpoint in
PROBING makes one attempt at a time. In CLOSING all pending deliveries fail; then the endpoint is removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, Flag, auto
from typing import Final

FAILURES: Final = 10
"""The number of failures in a row after which the endpoint rests."""
RESTING_SECONDS: Final = 30.0
LONG: Final = 5.0
"""Seconds of a pause beyond which an endpoint keeps no rows in memory."""
LONGEST_FAILURE: Final = timedelta(days=5)
DISABLED: Final = "the webhook is disabled"
DELETED: Final = "the webhook was deleted"


class Phase(Enum):
    SENDING = auto()
    PAUSED = auto()
    RESTING = auto()
    PROBING = auto()
    CLOSING = auto()


class EndpointAction(Flag):
    """The actions that follow a transition."""

    NONE = 0
    READ_AGAIN = auto()
    """Forget the rows in memory, and read the table from the beginning."""
    WRITE_HEALTH = auto()
    """Write the health, because `failing_since` has changed."""
    CLOSE = auto()
    """Disable the webhook if there is a reason to, and let its pending deliveries fail."""


@dataclass(frozen=True, slots=True)
class EndpointState:
    """The state of an endpoint. `failures` is the number of failures in a row. `until` is the end of PAUSED or RESTING. `error` is
    the error of the deliveries of a CLOSING endpoint; `disable_reason` says why its webhook must be disabled."""

    phase: Phase = Phase.SENDING
    failures: int = 0
    until: float = float("-inf")
    failing_since: datetime | None = None
    error: str | None = None
    disable_reason: str | None = None

    def open_for(self, now: float) -> float | None:
        """Return the seconds until the open circuit breaker lets an attempt through, 0 while it is half-open; None if it is
        closed."""
        if self.phase is Phase.PROBING:
            return 0.0
        rests = self.phase is Phase.RESTING or (self.phase is Phase.PAUSED and self.failures >= FAILURES)
        return max(self.until - now, 0.0) if rests else None


@dataclass(frozen=True, slots=True)
class AttemptDelivered:
    """An attempt was answered with 2xx."""


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt failed, with 410 if `gone`. `pause` is the number of seconds that the receiver requested; 0 if none."""

    at: datetime
    gone: bool = False
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Unsendable:
    """Nothing can be sent for a reason that is not the receiver's: the configuration cannot be read, or no connection can be opened
    on this side. It is to be retried after some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Configured:
    """The webhook was read for the first time. `failing_since` was recorded by earlier owners of the shard."""

    failing_since: datetime | None


@dataclass(frozen=True, slots=True)
class WebhookWithdrawn:
    """The webhook is disabled or deleted."""

    error: str


@dataclass(frozen=True, slots=True)
class TimeCame:
    """The clock has moved on."""


Event = AttemptDelivered | AttemptFailed | Unsendable | Configured | WebhookWithdrawn | TimeCame
Transition = tuple[EndpointState, EndpointAction]


def next_state(state: EndpointState, event: Event, *, now: float) -> Transition:
    if state.phase is Phase.CLOSING:
        return state, EndpointAction.NONE
    match event:
        case AttemptDelivered():
            return _on_delivered(state)
        case AttemptFailed(at=at, gone=gone, pause=pause):
            return _on_failed(state, at, gone=gone, pause=pause, now=now)
        case Unsendable(seconds=seconds):
            return _pause(state, seconds, now=now)
        case Configured(failing_since=since):
            return replace(state, failing_since=since), EndpointAction.NONE
        case WebhookWithdrawn(error=error):
            return replace(state, phase=Phase.CLOSING, error=error), EndpointAction.CLOSE | EndpointAction.READ_AGAIN
        case TimeCame():
            return _time_came(state, now)


def _on_delivered(state: EndpointState) -> Transition:
    health = EndpointAction.NONE if state.failing_since is None else EndpointAction.WRITE_HEALTH
    healthy = replace(state, failures=0, failing_since=None)
    if state.phase in (Phase.RESTING, Phase.PROBING):
        return replace(healthy, phase=Phase.SENDING), health | EndpointAction.READ_AGAIN
    return healthy, health


def _on_failed(state: EndpointState, at: datetime, *, gone: bool, pause: float, now: float) -> Transition:
    since = state.failing_since or at
    actions = EndpointAction.NONE if since is state.failing_since else EndpointAction.WRITE_HEALTH
    failed = replace(state, failures=state.failures + 1, failing_since=since)
    if gone:
        return _closing(failed, "it answered 410 Gone", actions=actions)
    if at - since >= LONGEST_FAILURE:
        return _closing(failed, f"nothing but failures for {LONGEST_FAILURE.days} days", actions=actions)
    if pause > 0:
        failed, paused = _pause(failed, pause, now=now)
        actions |= paused
    opens = failed.failures == FAILURES or (state.phase is Phase.PROBING)
    if opens:
        phase = Phase.PAUSED if failed.phase is Phase.PAUSED else Phase.RESTING
        return replace(failed, phase=phase, until=max(failed.until, now + RESTING_SECONDS)), actions | EndpointAction.READ_AGAIN
    return failed, actions


def _pause(state: EndpointState, seconds: float, *, now: float) -> Transition:
    paused = replace(state, phase=Phase.PAUSED, until=max(state.until, now + seconds))
    return paused, EndpointAction.READ_AGAIN if seconds > LONG else EndpointAction.NONE


def _time_came(state: EndpointState, now: float) -> Transition:
    if state.phase not in (Phase.PAUSED, Phase.RESTING) or now < state.until:
        return state, EndpointAction.NONE
    if state.failures >= FAILURES:
        return replace(state, phase=Phase.PROBING), EndpointAction.READ_AGAIN
    return replace(state, phase=Phase.SENDING), EndpointAction.NONE


def _closing(state: EndpointState, reason: str, *, actions: EndpointAction) -> Transition:
    closing = replace(state, phase=Phase.CLOSING, error=DISABLED, disable_reason=reason)
    return closing, actions | EndpointAction.CLOSE | EndpointAction.READ_AGAIN
