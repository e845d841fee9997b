"""The state table of the infrastructure of an Event."""

from __future__ import annotations

from typing import Any

import pytest

from domain.kernel.command import DecisionCommand
from domain.kernel.errors import PlanOutdated, Refused
from domain.provision import events
from domain.provision.aggregate import ProvisionInfo
from domain.provision.commands import OpeningCommand
from domain.provision.values import Deployment, ProvisionPlan, ProvisionState, RunEnd, Work
from tests.domain.provision.provisions_given import (
    ENCODER,
    EVENT,
    FULL,
    KEY,
    ORIGIN,
    PLAN,
    REQUEST,
    STATES,
    UP_ENCODER,
    UP_ORIGIN,
    an_info,
    ending,
    failed,
    in_state,
    opened,
    provisioned,
    requested,
    terminated,
)
from tests.domain.scenario import NOW, THEN, Fact, Outcome, Scenario, fact, given

State = ProvisionState
RESTING = [state for state in State if state not in (State.PROVISIONING, State.TERMINATING)]
TERMINATE = ProvisionInfo.terminate.on(KEY, moment=NOW)
UP = RunEnd(resources=(UP_ORIGIN, UP_ENCODER))
GONE = RunEnd()


def opening(decision: DecisionCommand[ProvisionInfo], *, version: int) -> OpeningCommand:
    return OpeningCommand(key=KEY, decision=decision.as_planned(version), event_id=EVENT, infrastructure_key="k", moment=NOW)


def when(scenario: Scenario[ProvisionInfo], decision: DecisionCommand[ProvisionInfo]) -> Outcome[ProvisionInfo]:
    return scenario.when(opening(decision, version=0 if scenario.root is None else scenario.root.version), at=NOW)


def ask(scenario: Scenario[ProvisionInfo], plan: ProvisionPlan = PLAN) -> Outcome[ProvisionInfo]:
    return when(scenario, ProvisionInfo.provision.on(KEY, plan, allow_updates=False, client="me", moment=NOW))


def terminate(scenario: Scenario[ProvisionInfo]) -> Outcome[ProvisionInfo]:
    return when(scenario, TERMINATE)


def reset(scenario: Scenario[ProvisionInfo]) -> Outcome[ProvisionInfo]:
    return when(scenario, ProvisionInfo.reset.on(KEY))


def end(scenario: Scenario[ProvisionInfo], run: int, how: RunEnd) -> Outcome[ProvisionInfo]:
    return when(scenario, ProvisionInfo.end_run.on(KEY, run, how, moment=NOW))


def end_selected(scenario: Scenario[ProvisionInfo], *select: str, request: int = 1) -> Outcome[ProvisionInfo]:
    return when(scenario, ProvisionInfo.end_selected.on(KEY, frozenset(select), request=request))


def provisioned_now(resources: tuple[dict[str, Any], ...], *, partial: bool, reason: str) -> Fact:
    facts: dict[str, Any] = {"resources": resources, "partial": partial, "provisioned_at": NOW, "reason": reason}
    return fact(events.Provisioned, run=1, **facts)


NOTHING = given(ProvisionInfo, KEY)


class TestFromNothing:
    def test_a_request_begins_provisioning(self) -> None:
        root = ask(NOTHING).then(
            fact(events.Opened, event_id=EVENT, infrastructure_key="k", opened_at=NOW), requested(requested_at=NOW)
        )
        assert (root.state, root.work, root.provisioned_at, root.needed) == (
            State.PROVISIONING,
            Work.PROVISION,
            NOW,
            [ORIGIN, ENCODER],
        )

    def test_a_termination_ends_where_it_begins(self) -> None:
        root = terminate(NOTHING).then(
            fact(events.Opened, event_id=EVENT, infrastructure_key="k", opened_at=NOW),
            fact(events.Terminated, run=1, terminated_at=NOW),
        )
        assert (root.state, root.work, root.summary.terminated_at) == (State.TERMINATED, None, NOW)

    def test_a_reset_leaves_it_scheduled(self) -> None:
        root = reset(NOTHING).then(fact(events.Opened, event_id=EVENT, infrastructure_key="k", opened_at=NOW))
        assert (root.state, root.work) == (State.SCHEDULED, None)


class TestRequests:
    @pytest.mark.parametrize("state", RESTING)
    def test_provisioning_begins_from_every_resting_state(self, state: State) -> None:
        root = ask(in_state(state)).after
        assert root is not None
        assert (root.state, root.work, root.terminated_at, root.request) == (
            State.PROVISIONING,
            Work.PROVISION,
            None,
            root.run,
        )

    def test_nothing_begins_anew_while_provisioning(self) -> None:
        ask(in_state(State.PROVISIONING)).then_nothing()

    def test_no_request_is_taken_while_terminating(self) -> None:
        ask(in_state(State.TERMINATING)).then_refused(Refused)

    @pytest.mark.parametrize("state", RESTING)
    @pytest.mark.parametrize(
        ("name", "value"), [("infrastructure_key", "other"), ("template", "other"), ("deployment", Deployment.STATIC)]
    )
    def test_infrastructure_is_not_made_in_another_way_while_it_exists(self, state: State, name: str, value: str) -> None:
        scenario = in_state(state)
        assert scenario.root is not None
        outcome = ask(scenario, PLAN.model_copy(update={name: value}))
        if scenario.root.exists:
            assert "terminate it first" in outcome.then_refused(Refused).rule
        else:
            assert outcome.after is not None
            assert outcome.after.plan is not None
            assert getattr(outcome.after.plan, name) == value

    def test_a_plan_made_from_another_version_is_made_again(self) -> None:
        command = opening(TERMINATE, version=7)
        an_info(REQUEST).when(command).then_refused(PlanOutdated)
        NOTHING.when(command).then_refused(PlanOutdated)


class TestTermination:
    @pytest.mark.parametrize("state", [State.PROVISIONING, State.PROVISIONED, State.PROVISIONED_PARTIAL, State.TERMINATING_FAILED])
    def test_what_there_is_is_terminated(self, state: State) -> None:
        scenario = in_state(state)
        assert scenario.root is not None
        root = terminate(scenario).then(ending(scenario.root.run + 1))
        assert (root.state, root.work, root.needed) == (State.TERMINATING, Work.TERMINATE, ())

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.PROVISIONING_FAILED])
    def test_without_infrastructure_it_is_over_at_once(self, state: State) -> None:
        root = terminate(in_state(state)).after
        assert root is not None
        assert (root.state, root.work) == (State.TERMINATED, None)

    def test_what_a_failed_run_left_is_terminated(self) -> None:
        assert terminate(an_info(REQUEST, failed(left=True))).then(ending(2)).state is State.TERMINATING

    @pytest.mark.parametrize("state", [State.TERMINATING, State.TERMINATED])
    def test_it_is_not_asked_for_twice(self, state: State) -> None:
        terminate(in_state(state)).then_nothing()


class TestReset:
    @pytest.mark.parametrize("state", [State.PROVISIONING, State.TERMINATING])
    def test_it_is_refused_while_something_is_under_way(self, state: State) -> None:
        reset(in_state(state)).then_refused(Refused)

    @pytest.mark.parametrize("state", [state for state in RESTING if state is not State.SCHEDULED])
    def test_every_other_state_is_scheduled_again_and_what_there_is_released(self, state: State) -> None:
        scenario = in_state(state)
        assert scenario.root is not None
        exists = scenario.root.exists
        root = reset(scenario).then(fact(events.Reset, run=scenario.root.run + 1, release=exists))
        assert (root.state, root.work, root.resources, root.needed, root.summary.terminated_at) == (
            State.SCHEDULED,
            Work.RELEASE if exists else None,
            (),
            (),
            None,
        )

    def test_nothing_is_scheduled_twice(self) -> None:
        reset(in_state(State.SCHEDULED)).then_nothing()

    def test_a_late_end_does_not_overwrite_it(self) -> None:
        scenario = an_info(REQUEST, FULL, fact(events.Reset, run=2, release=True))
        end(scenario, 1, UP).then_nothing()
        root = end(scenario, 2, GONE).then(fact(events.ReleaseEnded, run=2, left=False, reason=""))
        assert (root.state, root.exists, root.work) == (State.SCHEDULED, False, None)

    def test_a_failed_release_can_be_tried_again(self) -> None:
        ended = fact(events.ReleaseEnded, run=2, left=True, reason="no")
        scenario = an_info(REQUEST, FULL, fact(events.Reset, run=2, release=True), ended)
        assert reset(scenario).then(fact(events.Reset, run=3, release=True)).work is Work.RELEASE
        assert terminate(scenario).then(ending(3)).state is State.TERMINATING


class TestEnds:
    @pytest.mark.parametrize(
        ("how", "state", "expected"),
        [
            (UP, State.PROVISIONED, provisioned_now(UP.resources, partial=False, reason="")),
            (
                RunEnd(resources=(UP_ORIGIN,), left=True, reason="encoder-1 failed"),
                State.PROVISIONED_PARTIAL,
                provisioned_now((UP_ORIGIN,), partial=True, reason="encoder-1 failed"),
            ),
            (
                RunEnd(left=True, reason="no host"),
                State.PROVISIONING_FAILED,
                fact(events.ProvisionFailed, run=1, reason="no host", left=True, provisioned_at=NOW),
            ),
        ],
        ids=["all", "some", "none"],
    )
    def test_of_provisioning(self, how: RunEnd, state: State, expected: Fact) -> None:
        root = end(in_state(State.PROVISIONING), 1, how).then(expected)
        assert (root.state, root.work, root.resources) == (state, None, how.resources)

    def test_of_termination(self) -> None:
        root = end(in_state(State.TERMINATING), 2, GONE).then(fact(events.Terminated, run=2, terminated_at=NOW))
        assert (root.state, root.work, root.exists, root.resources) == (State.TERMINATED, None, False, ())
        failure = end(in_state(State.TERMINATING), 2, RunEnd(left=True, reason="no"))
        root = failure.then(fact(events.TerminationFailed, run=2, reason="no"))
        assert (root.state, root.exists) == (State.TERMINATING_FAILED, True)

    @pytest.mark.parametrize("state", State)
    @pytest.mark.parametrize("how", [UP, GONE, RunEnd(left=True)], ids=["up", "gone", "left"])
    def test_of_an_earlier_run_change_nothing(self, state: State, how: RunEnd) -> None:
        scenario = in_state(state)
        assert scenario.root is not None
        end(scenario, scenario.root.run - 1, how).then_nothing()
        end(scenario, scenario.root.run + 1, how).then_nothing()

    @pytest.mark.parametrize("state", RESTING)
    def test_are_told_once(self, state: State) -> None:
        scenario = in_state(state)
        assert scenario.root is not None
        end(scenario, scenario.root.run, UP).then_nothing()

    def test_of_a_cancelled_run_do_not_win(self) -> None:
        end(an_info(REQUEST, ending(2)), 1, UP).then_nothing()

    def test_a_long_reason_is_cut(self) -> None:
        root = end(in_state(State.PROVISIONING), 1, RunEnd(reason="x" * 5000)).after
        assert root is not None
        assert len(root.reason) == 1000


class TestSelectedResources:
    def test_are_terminated_and_the_others_stay(self) -> None:
        scenario = in_state(State.PROVISIONED)
        root = end_selected(scenario, "origin").then(ending(2, "origin"))
        assert (root.state, root.needed) == (State.TERMINATING, [ENCODER])
        scenario = an_info(REQUEST, FULL, ending(2, "origin"))
        root = end(scenario, 2, RunEnd(resources=(UP_ENCODER,))).then(fact(events.PartlyTerminated, run=2, resources=(UP_ENCODER,)))
        assert (root.state, root.needed, root.resources) == (State.PROVISIONED_PARTIAL, [ENCODER], (UP_ENCODER,))

    def test_when_none_is_left_it_is_terminated(self) -> None:
        partly = (REQUEST, FULL, ending(2, "origin"), fact(events.PartlyTerminated, run=2, resources=(UP_ENCODER,)))
        root = end_selected(an_info(*partly), "encoder").then(ending(3, "encoder", "origin"))
        assert root.needed == []
        done = end(an_info(*partly, ending(3, "encoder", "origin")), 3, GONE)
        assert done.then(fact(events.Terminated, run=3, terminated_at=NOW)).state is State.TERMINATED

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.PROVISIONING_FAILED, State.TERMINATED, State.TERMINATING])
    def test_nothing_is_to_go_where_nothing_is_wanted(self, state: State) -> None:
        end_selected(in_state(state), "origin").then_nothing()

    def test_types_that_are_not_there_change_nothing(self) -> None:
        end_selected(in_state(State.PROVISIONED), "router").then_nothing()
        end_selected(an_info(REQUEST, FULL, ending(2, "origin")), "origin").then_nothing()

    def test_a_state_from_before_the_request_counts_no_more(self) -> None:
        again = (*STATES[State.TERMINATED], requested(3), provisioned(3))
        end_selected(an_info(*again), "origin", request=1).then_nothing()
        end_selected(an_info(*again), "origin", request=3).then(ending(4, "origin"))

    def test_a_failure_keeps_what_is_wanted(self) -> None:
        failure = end(an_info(REQUEST, FULL, ending(2, "origin")), 2, RunEnd(resources=(UP_ENCODER,), left=True, reason="no"))
        root = failure.then(fact(events.TerminationFailed, run=2, reason="no"))
        assert (root.state, root.needed) == (State.TERMINATING_FAILED, [ENCODER])

    def test_all_goes_although_a_part_is_going(self) -> None:
        root = terminate(an_info(REQUEST, FULL, ending(2, "origin"))).then(ending(3))
        assert (root.state, root.needed) == (State.TERMINATING, ())

    def test_a_request_wants_everything_again(self) -> None:
        partly = fact(events.PartlyTerminated, run=2, resources=(UP_ENCODER,))
        root = ask(an_info(REQUEST, FULL, ending(2, "origin"), partly)).after
        assert root is not None
        assert list(root.needed) == [ORIGIN, ENCODER]


@pytest.mark.parametrize("state", State)
def test_a_snapshot_is_the_whole_state(state: State) -> None:
    root = in_state(state).root
    assert root is not None
    again = ProvisionInfo.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert {name: value for name, value in vars(again).items() if name != "_pending_events"} == {
        name: value for name, value in vars(root).items() if name != "_pending_events"
    }


def test_times_are_those_of_the_command() -> None:
    assert (NOW, THEN) != (THEN, NOW)
    root = end(in_state(State.PROVISIONING), 1, UP).after
    assert root is not None
    assert (root.provisioned_at, root.requested_at) == (NOW, THEN)


def test_opening_is_an_event_of_its_own() -> None:
    assert given(ProvisionInfo, KEY, opened()).root is not None
    assert terminated(1).event is events.Terminated
