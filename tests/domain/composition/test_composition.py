"""The playlists of a composition, and the jobs that make its film."""

from __future__ import annotations

import random
from typing import Any

import pytest

from domain.composition import events
from domain.composition.aggregate import EVENT as SCOPE
from domain.composition.aggregate import Composition
from domain.composition.values import CompositionKind, CompositionState, FirstStep, Playlist
from domain.kernel.command import Command
from domain.kernel.errors import DomainError, NotFound, PlanOutdated, Refused
from tests.domain.composition.compositions_given import (
    ANOTHER,
    EVENT,
    JOB,
    KEY,
    LATER,
    NEXT_JOB,
    OTHER,
    PLAYLIST,
    REMOVED,
    a_composition,
    cloned,
    composed,
    failed,
    generated,
    item,
    playlist,
    replaced,
    started,
)
from tests.domain.scenario import NOW, Fact, collected, facts_of, folded, given

ENCODER = composed(kind=CompositionKind.ENCODER)
WAITING = composed(live_stream_start=LATER)
WANTED: dict[str, Any] = {
    "event_id": EVENT,
    "kind": CompositionKind.STANDARD,
    "playlist": PLAYLIST,
    "client": "studio",
}


def replacement(new: Playlist = ANOTHER, *, seen: int, job: int | None = None, **more: Any) -> Command[Composition]:
    return Composition.replace.on(KEY, new, client="studio", step=FirstStep(job=job), **more).as_planned(seen)


class TestBeginning:
    def test_a_film_is_made_at_once(self) -> None:
        made = (
            given(Composition, KEY).when(Composition.compose.on(KEY, step=FirstStep(job=JOB), **WANTED)).then(composed(), started())
        )
        assert (made.state, made.job, made.running_job, made.generation) == (CompositionState.GENERATING, JOB, JOB, 1)
        assert {(claim.scope, claim.value, claim.owner) for claim in made.claims()} == {(SCOPE, str(EVENT), f"composition:{KEY}")}

    def test_or_later(self) -> None:
        made = given(Composition, KEY).when(Composition.compose.on(KEY, live_stream_start=LATER, **WANTED)).then(WAITING)
        assert (made.state, made.running_job) == (CompositionState.WAITING, None)

    def test_an_encoder_plays_it_at_any_time(self) -> None:
        wanted = {**WANTED, "kind": CompositionKind.ENCODER}
        assert given(Composition, KEY).when(Composition.compose.on(KEY, **wanted)).then(ENCODER).state is CompositionState.READY

    def test_numbers_of_films_go_on_after_a_deletion(self) -> None:
        command = Composition.compose.on(KEY, generation=4, step=FirstStep(job=JOB), **WANTED)
        assert given(Composition, KEY).when(command).then(composed(generation=4), started(generation=5)).generation == 5

    def test_a_repeat_makes_nothing(self) -> None:
        a_composition().when(Composition.compose.on(KEY, step=FirstStep(job=JOB), **WANTED)).then_nothing()


class TestPlaylists:
    @pytest.mark.parametrize("since", [(), (generated(),), (failed(),)])
    def test_another_one_has_a_job_of_its_own(self, since: tuple[Fact, ...]) -> None:
        made = a_composition(*since).when(replacement(seen=2 + len(since), job=NEXT_JOB)).then(replaced(), started(NEXT_JOB, 2))
        assert (made.playlist, made.running_job) == (ANOTHER, NEXT_JOB)

    def test_one_that_waits_goes_on_waiting(self) -> None:
        made = a_composition(first=WAITING).when(replacement(seen=1)).then(replaced())
        assert (made.state, made.live_stream_start) == (CompositionState.WAITING, LATER)

    def test_the_same_one_changes_nothing(self) -> None:
        a_composition().when(replacement(PLAYLIST, seen=2)).then_nothing()

    def test_a_copy_waits_for_no_time(self) -> None:
        command = replacement(seen=1, job=JOB, cloned_from=OTHER)
        made = a_composition(first=WAITING).when(command).then(cloned(), started())
        assert (made.live_stream_start, made.state) == (None, CompositionState.GENERATING)

    def test_an_encoder_gets_another_one_without_a_job(self) -> None:
        assert a_composition(first=ENCODER).when(replacement(seen=1)).then(replaced()).state is CompositionState.READY
        a_composition(first=ENCODER).when(replacement(seen=1, job=JOB)).then_refused(Refused)

    @pytest.mark.parametrize(
        "command",
        [
            replacement(seen=1, job=NEXT_JOB),
            Composition.take_step.on(KEY, FirstStep(job=NEXT_JOB)).as_planned(1),
            Composition.give_up.on(KEY, "no").as_planned(1),
            Composition.remove.on(KEY).as_planned(1),
        ],
    )
    def test_a_plan_from_another_state_is_made_again(self, command: Command[Composition]) -> None:
        a_composition().when(command).then_refused(PlanOutdated)

    def test_a_removed_one_has_no_event_and_no_playlist(self) -> None:
        removed = a_composition().when(Composition.remove.on(KEY).as_planned(2)).then(REMOVED)
        assert not removed.claims()
        for command in (replacement(seen=3), Composition.remove.on(KEY).as_planned(3), Composition.check_standard.on(KEY)):
            a_composition(REMOVED).when(command).then_refused(NotFound)

    def test_only_films_have_drm_of_their_own(self) -> None:
        a_composition().when(Composition.check_standard.on(KEY)).then_nothing()
        a_composition(first=ENCODER).when(Composition.check_standard.on(KEY)).then_refused(Refused)


COMPLETE = Composition.complete.on(KEY, JOB, job_version=5)
FAIL = Composition.fail.on(KEY, JOB, job_version=5, reason="no")


class TestJobs:
    def test_the_film_is_made_or_not(self) -> None:
        assert a_composition().when(COMPLETE).then(generated()).state is CompositionState.GENERATED
        made = a_composition().when(FAIL).then(failed())
        assert (made.state, made.reason, made.running_job) == (CompositionState.FAILED, "no", None)

    @pytest.mark.parametrize("command", [COMPLETE, FAIL, Composition.restart.on(KEY, JOB, job_version=9)])
    @pytest.mark.parametrize("since", [(replaced(), started(NEXT_JOB, 2)), (REMOVED,)])
    def test_the_job_of_an_earlier_playlist_means_nothing(self, command: Command[Composition], since: tuple[Fact, ...]) -> None:
        a_composition(*since).when(command).then_nothing()

    @pytest.mark.parametrize("command", [COMPLETE, FAIL])
    @pytest.mark.parametrize("since", [generated(), failed()])
    def test_an_outcome_is_followed_once(self, command: Command[Composition], since: Fact) -> None:
        a_composition(since).when(command).then_nothing()

    def test_a_film_stays_whatever_becomes_of_its_job(self) -> None:
        a_composition(generated()).when(Composition.fail.on(KEY, JOB, job_version=9, reason="broken")).then_nothing()

    def test_the_job_goes_on_or_is_repeated(self) -> None:
        resumed = Composition.restart.on(KEY, JOB, job_version=6)
        a_composition(failed()).when(resumed).then(started(job_version=6))
        again = Composition.restart.on(KEY, NEXT_JOB, job_version=1, rerun_of=JOB)
        made = a_composition(failed()).when(again).then(started(NEXT_JOB, job_version=1))
        assert made.generation == 1, "the same film"
        itself = Composition.restart.on(KEY, JOB, job_version=9, rerun_of=JOB)
        a_composition(failed()).when(itself).then_nothing()
        a_composition().when(resumed).then_nothing()

    def test_a_client_cannot_have_an_earlier_film_made(self) -> None:
        resumed = Composition.resume.on(KEY, JOB, job_version=6)
        a_composition(failed()).when(resumed).then(started(job_version=6))
        repeated = Composition.resume.on(KEY, NEXT_JOB, job_version=1, rerun_of=JOB)
        a_composition(failed()).when(repeated).then(started(NEXT_JOB, job_version=1))
        for since in ((replaced(), started(19, 2)), (REMOVED,)):
            for command in (resumed, repeated):
                a_composition(*since).when(command).then_refused(Refused)

    def test_what_waits_starts_at_its_time(self) -> None:
        a_composition(first=WAITING).when(Composition.take_step.on(KEY, FirstStep(job=JOB)).as_planned(1)).then(started())

    @pytest.mark.parametrize(("first", "since"), [(WAITING, ()), (composed(), (started(),))])
    def test_nothing_waits_or_runs_after_it_is_given_up(self, first: Fact, since: tuple[Fact, ...]) -> None:
        command = Composition.give_up.on(KEY, "gone").as_planned(1 + len(since))
        made = a_composition(*since, first=first).when(command).then(failed(0, "gone"))
        assert (made.state, made.running_job) == (CompositionState.FAILED, None)

    @pytest.mark.parametrize("since", [generated(), failed(), REMOVED])
    def test_there_is_nothing_to_give_up(self, since: Fact) -> None:
        a_composition(since).when(Composition.give_up.on(KEY, "gone").as_planned(3)).then_nothing()


def test_a_get_shows_playlists_and_not_their_films() -> None:
    root = a_composition(generated()).root
    assert root is not None
    assert (root.version, root.shown_version) == (3, 1)
    after = a_composition(generated(), replaced()).root
    assert after is not None
    assert after.shown_version == 4


@pytest.mark.parametrize("since", [(), (failed(),), (generated(), replaced(), started(NEXT_JOB, 2)), (cloned(),), (REMOVED,)])
@pytest.mark.parametrize("first", [composed(private=True, live_stream_start=LATER), ENCODER])
def test_a_snapshot_is_the_whole_state(first: Fact, since: tuple[Fact, ...]) -> None:
    root = a_composition(*since, first=first).root
    assert root is not None
    again = Composition.from_snapshot(stream=root.id, version=root.version, state=root.snapshot())
    assert {**vars(again), "_version": 0} == {**vars(root), "_version": 0}
    assert again.claims() == root.claims()


def _random_command(draw: random.Random, root: Composition, *, drawn: int) -> Command[Composition]:
    """Return a command of a client or of the timekeeper, or an outcome of any earlier job: in time, late or repeated."""
    job, version, seen = draw.randint(1, drawn), draw.randint(1, 4), root.version - draw.choice((0, 0, 0, 1))
    new = playlist(item(name=str(draw.randint(1, 3))))
    submits = root.state is not CompositionState.WAITING
    step = FirstStep(job=drawn + 1 if submits and new != root.playlist else None)
    return draw.choice(
        (
            Composition.replace.on(KEY, new, client="a", step=step).as_planned(seen),
            Composition.take_step.on(KEY, FirstStep(job=drawn + 1)).as_planned(seen),
            Composition.complete.on(KEY, job, job_version=version),
            Composition.fail.on(KEY, job, job_version=version, reason="no"),
            Composition.restart.on(KEY, job, job_version=version),
            Composition.resume.on(KEY, drawn + 1, job_version=1, rerun_of=job),
            Composition.give_up.on(KEY, "gone").as_planned(seen),
            Composition.remove.on(KEY).as_planned(seen) if draw.random() < 0.1 else Composition.check_standard.on(KEY),
        )
    )


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_beside_each_other_the_newest_playlist_wins(seed: int) -> None:
    """A model of what must hold: the film that is made is that of the last playlist, by the last job that was submitted for it; a
    number of a film never comes back for another playlist; and nothing happens after a removal."""
    draw, root, drawn, made_of = random.Random(seed), None, 1, {1: PLAYLIST}
    root = Composition.compose.on(KEY, step=FirstStep(job=1), **WANTED).decide(None, at=NOW)
    history = collected(root)
    for _ in range(60):
        command = _random_command(draw, root, drawn=drawn)
        before, tried = root, root.copy()
        try:
            root = command.decide(tried, at=NOW)
        except DomainError:
            assert not facts_of(collected(before))
            continue
        happened = collected(root)
        history += happened
        assert not (before.removed and happened), "nothing after a removal"
        for event in happened:
            if isinstance(event, events.GenerationStarted):
                drawn = max(drawn, event.job)
                assert event.generation in (before.generation, before.generation + 1)
                assert made_of.setdefault(event.generation, root.playlist) == root.playlist
        if root.state is CompositionState.GENERATED:
            assert made_of[root.generation] == root.playlist
        again = folded(history)
        assert again is not None
        assert vars(again) == vars(root)
