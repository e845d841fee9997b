"""The ready tasks that a worker keeps in memory: pure state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from projections.job.queue import QueuedRun, ReadyTask
from workers.job.ready_tasks import OverdueKeys, ReadyTasks, urgency

HERE, ELSEWHERE = 3, 4


def ready(job: int, task: int = 1, *, run: int = 1, priority: int = 5, due_in: float = 0.0, shard: int = HERE) -> ReadyTask:
    return ReadyTask(QueuedRun(job, task, run), False, shard, priority, due_in, "studio", "")


def tasks(*added: ReadyTask, most: int = 100, now: float = 0.0) -> ReadyTasks:
    in_memory = ReadyTasks(most=most)
    in_memory.own({HERE})
    in_memory.put(added, now=now)
    return in_memory


def taken(in_memory: ReadyTasks, now: float = 0.0) -> list[QueuedRun]:
    runs = []
    while (task := in_memory.take(now)) is not None:
        runs.append(task.run)
    return runs


def test_the_most_urgent_is_taken_first_then_the_oldest() -> None:
    in_memory = tasks(ready(4), ready(1, 2), ready(9, priority=1), ready(1, 1), ready(2, priority=9))
    assert [run[:2] for run in taken(in_memory)] == [(9, 1), (1, 1), (1, 2), (4, 1), (2, 1)]
    assert len(in_memory) == 0


def test_a_task_is_taken_once() -> None:
    in_memory = tasks(ready(1), ready(1))
    in_memory.put([ready(1)], now=0.0)
    assert taken(in_memory) == [QueuedRun(1, 1, 1)]


def test_the_most_urgent_task_of_another_client_is_taken() -> None:
    others = [ready(3)._replace(client="b"), ready(4, priority=1, due_in=9.0)._replace(client="b"), ready(5)._replace(client="c")]
    in_memory = tasks(ready(1, priority=1), ready(2), *others)
    taken_tasks = [in_memory.take_of_others("studio", now) for now in (0.0, 0.0, 0.0, 9.0, 9.0)]
    assert [task and task.run.job for task in taken_tasks] == [3, 5, None, 4, None]
    assert [run.job for run in taken(in_memory)] == [1, 2]


def test_tasks_of_other_shards_are_not_kept() -> None:
    in_memory = tasks(ready(1), ready(2, shard=ELSEWHERE))
    assert len(in_memory) == 1
    in_memory.own({ELSEWHERE})
    assert taken(in_memory) == [], "the shard was handed over"
    in_memory.put([ready(1), ready(2, shard=ELSEWHERE)], now=0.0)
    assert taken(in_memory) == [QueuedRun(2, 1, 1)]


def test_a_retry_waits_until_it_is_due() -> None:
    in_memory = tasks(ready(1, due_in=5.0), ready(2, priority=9), now=10.0)
    assert in_memory.due_in(10.0) == 0.0
    assert taken(in_memory, now=14.9) == [QueuedRun(2, 1, 1)]
    assert in_memory.due_in(14.0) == 1.0
    assert taken(in_memory, now=15.0) == [QueuedRun(1, 1, 1)]
    assert in_memory.due_in(15.0) is None


def test_a_retry_that_is_due_sooner_than_was_known_is_not_waited_for() -> None:
    """The job was broken, paused and resumed between two looks."""
    in_memory = tasks(ready(1, due_in=3600.0))
    in_memory.put([ready(1)], now=1.0)
    assert taken(in_memory, now=1.0) == [QueuedRun(1, 1, 1)]
    assert len(in_memory) == 0


def test_what_changed_replaces_what_was_known_of_the_job() -> None:
    in_memory = tasks(ready(1), ready(1, 2), ready(2))
    in_memory.replace([1], [ready(1, 2, priority=1)], now=0.0)
    assert taken(in_memory) == [QueuedRun(1, 2, 1), QueuedRun(2, 1, 1)], "the first task is not ready any more"
    in_memory.replace([1, 2], [], now=0.0)
    assert taken(in_memory) == []


def test_a_new_priority_or_run_counts() -> None:
    in_memory = tasks(ready(1), ready(2))
    in_memory.put([ready(2, run=7, priority=2)], now=0.0)
    assert taken(in_memory) == [QueuedRun(2, 1, 7), QueuedRun(1, 1, 1)]
    in_memory.put([ready(1, priority=1), ready(2, priority=2)], now=0.0)
    in_memory.put([ready(1, priority=9)], now=0.0)
    assert taken(in_memory) == [QueuedRun(2, 1, 1), QueuedRun(1, 1, 1)]


def test_the_first_stays_until_it_is_taken() -> None:
    in_memory = tasks(ready(1), ready(2))
    assert in_memory.first(0.0) == in_memory.first(0.0) == in_memory.take(0.0) == ready(1)
    assert in_memory.first(0.0) == ready(2)


def test_memory_is_bounded() -> None:
    in_memory = tasks(*map(ready, range(50)), most=20)
    assert len(in_memory) == 20
    assert len(taken(in_memory)) == 20
    for _ in range(1000):
        in_memory.put([ready(1)], now=0.0)
    assert len(in_memory._later) + len(in_memory._order) <= 60, "a task that is seen again and again is kept once"


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
    """The result is compared with that of a dictionary that is searched from end to end."""
    in_memory, plain, now = tasks(), dict[tuple[int, int], tuple[ReadyTask, float]](), 0.0
    for step in steps:
        match step:
            case ("put", int(job), int(run), int(priority), float(due_in)):
                task = ready(job, run=run, priority=priority, due_in=due_in)
                before = plain.get((job, 1))
                if before is None or before[0]._replace(due_in=due_in) != task:
                    plain[job, 1] = (task, now + due_in)
                in_memory.put([task], now=now)
            case ("gone", int(job)):
                plain.pop((job, 1), None)
                in_memory.replace([job], [], now=now)
            case ("take",):
                due = sorted((task for task, at in plain.values() if at <= now), key=urgency)
                assert in_memory.take(now) == (due[0] if due else None)
                if due:
                    del plain[due[0].run[:2]]
            case _:
                now += 0.5
        assert len(in_memory) == len(plain)


def test_what_waits_is_borrowed_only_when_it_was_seen_for_long_enough() -> None:
    waiting = OverdueKeys[int](0.05)
    assert waiting.update([1, 2], now=10.0) == set()
    assert waiting.update([1, 2, 3], now=10.04) == set()
    assert waiting.update([2, 3], now=10.06) == {2}
    assert waiting.update([1, 2], now=10.2) == {2}, "the first one had gone and come back"
