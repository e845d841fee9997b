"""The ready tasks that a worker keeps in memory: pure state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from projections.job.queue import ReadyTask, Run
from workers.jobs.ready_tasks import OverdueKeys, ReadyTasks, urgency

HERE, ELSEWHERE = 3, 4


def ready(job: int, task: int = 1, *, run: int = 1, priority: int = 5, due_in: float = 0.0, shard: int = HERE) -> ReadyTask:
    return ReadyTask(Run(job, task, run), False, shard, priority, due_in, "studio", "")


def tasks(*found: ReadyTask, most: int = 100, now: float = 0.0) -> ReadyTasks:
    known = ReadyTasks(most=most)
    known.own({HERE})
    known.put(found, now=now)
    return known


def taken(known: ReadyTasks, now: float = 0.0) -> list[Run]:
    found = []
    while (one := known.take(now)) is not None:
        found.append(one.run)
    return found


def test_the_most_urgent_is_taken_first_then_the_oldest() -> None:
    known = tasks(ready(4), ready(1, 2), ready(9, priority=1), ready(1, 1), ready(2, priority=9))
    assert [run[:2] for run in taken(known)] == [(9, 1), (1, 1), (1, 2), (4, 1), (2, 1)]
    assert len(known) == 0


def test_a_task_is_taken_once() -> None:
    known = tasks(ready(1), ready(1))
    known.put([ready(1)], now=0.0)
    assert taken(known) == [Run(1, 1, 1)]


def test_the_most_urgent_task_of_another_client_is_taken() -> None:
    others = [ready(3)._replace(client="b"), ready(4, priority=1, due_in=9.0)._replace(client="b"), ready(5)._replace(client="c")]
    known = tasks(ready(1, priority=1), ready(2), *others)
    found = [known.take_of_others("studio", now) for now in (0.0, 0.0, 0.0, 9.0, 9.0)]
    assert [one and one.run.job for one in found] == [3, 5, None, 4, None]
    assert [run.job for run in taken(known)] == [1, 2]


def test_tasks_of_other_shards_are_not_kept() -> None:
    known = tasks(ready(1), ready(2, shard=ELSEWHERE))
    assert len(known) == 1
    known.own({ELSEWHERE})
    assert taken(known) == [], "the shard was handed over"
    known.put([ready(1), ready(2, shard=ELSEWHERE)], now=0.0)
    assert taken(known) == [Run(2, 1, 1)]


def test_a_retry_waits_until_it_is_due() -> None:
    known = tasks(ready(1, due_in=5.0), ready(2, priority=9), now=10.0)
    assert known.due_in(10.0) == 0.0
    assert taken(known, now=14.9) == [Run(2, 1, 1)]
    assert known.due_in(14.0) == 1.0
    assert taken(known, now=15.0) == [Run(1, 1, 1)]
    assert known.due_in(15.0) is None


def test_a_retry_that_is_due_sooner_than_was_known_is_not_waited_for() -> None:
    """Its job was broken, paused and resumed between two looks."""
    known = tasks(ready(1, due_in=3600.0))
    known.put([ready(1)], now=1.0)
    assert taken(known, now=1.0) == [Run(1, 1, 1)]
    assert len(known) == 0


def test_what_changed_replaces_what_was_known_of_the_job() -> None:
    known = tasks(ready(1), ready(1, 2), ready(2))
    known.replace([1], [ready(1, 2, priority=1)], now=0.0)
    assert taken(known) == [Run(1, 2, 1), Run(2, 1, 1)], "the first task is not ready any more"
    known.replace([1, 2], [], now=0.0)
    assert taken(known) == []


def test_a_new_priority_or_run_counts() -> None:
    known = tasks(ready(1), ready(2))
    known.put([ready(2, run=7, priority=2)], now=0.0)
    assert taken(known) == [Run(2, 1, 7), Run(1, 1, 1)]
    known.put([ready(1, priority=1), ready(2, priority=2)], now=0.0)
    known.put([ready(1, priority=9)], now=0.0)
    assert taken(known) == [Run(2, 1, 1), Run(1, 1, 1)]


def test_the_first_stays_until_it_is_taken() -> None:
    known = tasks(ready(1), ready(2))
    assert known.first(0.0) == known.first(0.0) == known.take(0.0) == ready(1)
    assert known.first(0.0) == ready(2)


def test_memory_is_bounded() -> None:
    known = tasks(*map(ready, range(50)), most=20)
    assert len(known) == 20
    assert len(taken(known)) == 20
    for _ in range(1000):
        known.put([ready(1)], now=0.0)
    assert len(known._later) + len(known._order) <= 60, "a task that is seen again and again is kept once"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(1, 5), st.integers(1, 3), st.integers(1, 10), st.sampled_from((0.0, 1.0, 3.0))),
            st.tuples(st.just("gone"), st.integers(1, 5)),
            st.tuples(st.just("take")),
            st.tuples(st.just("wait")),
        ),
        max_size=60,
    )
)
def test_it_always_gives_the_most_urgent_that_is_due(steps: list[tuple[object, ...]]) -> None:
    """Beside a dictionary that is searched from end to end."""
    known, plain, now = tasks(), dict[tuple[int, int], tuple[ReadyTask, float]](), 0.0
    for step in steps:
        match step:
            case ("put", int(job), int(run), int(priority), float(due_in)):
                one = ready(job, run=run, priority=priority, due_in=due_in)
                before = plain.get((job, 1))
                if before is None or before[0]._replace(due_in=due_in) != one:
                    plain[job, 1] = (one, now + due_in)
                known.put([one], now=now)
            case ("gone", int(job)):
                plain.pop((job, 1), None)
                known.replace([job], [], now=now)
            case ("take",):
                due = sorted((one for one, at in plain.values() if at <= now), key=urgency)
                assert known.take(now) == (due[0] if due else None)
                if due:
                    del plain[due[0].run[:2]]
            case _:
                now += 0.5
        assert len(known) == len(plain)


def test_what_waits_is_borrowed_only_when_it_was_seen_for_long_enough() -> None:
    waiting = OverdueKeys[int](0.05)
    assert waiting.update([1, 2], now=10.0) == set()
    assert waiting.update([1, 2, 3], now=10.04) == set()
    assert waiting.update([2, 3], now=10.06) == {2}
    assert waiting.update([1, 2], now=10.2) == {2}, "the first one had gone and come back"
