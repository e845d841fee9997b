"""Scenarios of one media Event."""

from __future__ import annotations

from uuid import UUID

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Trigger
from tests.domain.scenario import Fact, Scenario, fact, given

KEY = UUID("11111111-1111-4111-8111-111111111111")
NIL = UUID(int=0)
HALL, PLAZA = UUID(int=1), UUID(int=2)


def nothing() -> Scenario[MediaEvent]:
    return given(MediaEvent, KEY)


def an_event(*since: Fact) -> Scenario[MediaEvent]:
    """An Event called Final, and its later events."""
    return given(MediaEvent, KEY, fact(events.EventRegistered, title="Final"), *since)


def moved(previous: EventState, state: EventState, **times: object) -> Fact:
    return fact(events.StateChanged, state=state, previous=previous, trigger=Trigger.OPERATOR, **times)


def in_state(state: EventState, *since: Fact) -> Scenario[MediaEvent]:
    """An Event that changed to a state without setting any time."""
    return an_event(moved(EventState.PRE_LIVE, state), *since) if state else an_event(*since)


def deleted(*before: Fact) -> Scenario[MediaEvent]:
    return an_event(*before, fact(events.EventDeleted))
