"""Steps in separate processes: whatever a step does, the worker receives its outcome, and no process of it remains."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from shutil import rmtree

import pytest

from domain.job.values import Output, Result, Severity
from tests.projections.log.helpers import until
from tests.support.descriptors import descriptors_left
from tests.support.step_hosts import RESULTS, TRIAL, Listener, order, plugin
from tests.workers.test_ffmpeg import alive
from workers.job.host.host import ReachablePlaces
from workers.job.protocol import Finished, StepFailure
from workers.job.step_process_pool import StepProcessPool
from workers.job.step_processes import step_fork_server
from workers.kernel import landlock
from workers.kernel.fork_client import ForkServer

SECRET = "S3cret"


@pytest.fixture(scope="module", autouse=True)
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    os.environ["MEDIALEDGER_MASTER_KEY"] = SECRET
    with plugin(tmp_path_factory.mktemp("installed"), trial=TRIAL):
        yield
    del os.environ["MEDIALEDGER_MASTER_KEY"]


@pytest.fixture(scope="module")
async def step_server(trial: None) -> AsyncIterator[ForkServer]:
    async with step_fork_server() as server:
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "media"


@pytest.fixture
async def hosts(root: Path, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    """Yield a pool for a single test, which may stop or drain it, or examine its files."""
    made = StepProcessPool(media_root=root, allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, step_server: ForkServer) -> AsyncIterator[StepProcessPool]:
    """Yield a pool for all tests that leave it unchanged."""
    made = StepProcessPool(media_root=tmp_path_factory.mktemp("shared"), allow=[], fork_server=step_server)
    await made.start()
    yield made
    await made.stop()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def pid_of(hosts: StepProcessPool) -> int:
    ended = await hosts.run(order("tells"), Listener())
    assert isinstance(ended, Finished)
    return int(ended.result.metadata["pid"])


# -- what a step is given and says ----------------------------------------------------------------------------------------


async def test_a_step_gets_its_order_and_reports(hosts: StepProcessPool, root: Path) -> None:
    listener = Listener()
    ended = await hosts.run(order("tells", run=3, previous_run=2, text="hello"), listener)
    assert isinstance(ended, Finished)
    metadata = ended.result.metadata
    assert ended.result.message == "told"
    assert (metadata["job"], metadata["run"], metadata["text"]) == ([17, "admin", "trial", "film"], [2, 3], "hello")
    assert metadata["results"] == RESULTS
    assert (metadata["workspace"], metadata["previous"]) == (str(root / ".jobs/17/2/3"), "None")
    assert listener.lines == [(Severity.DEBUG, "begins"), (Severity.INFO, "goes on")]
    assert listener.fractions == [(0.25, "a quarter"), (1.0, "all")]


async def test_a_step_without_files_leaves_no_folder(hosts: StepProcessPool, root: Path) -> None:
    assert await hosts.run(order("nothing"), Listener()) == Finished(Result())
    assert await asyncio.to_thread(os.listdir, root / ".jobs") == []


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
async def test_a_media_root_that_was_mounted_anew_is_open_to_the_next_process(hosts: StepProcessPool, root: Path) -> None:
    """A process keeps directories, not their names. A process that finds another directory in place of its own runs no step."""
    first = await pid_of(hosts)
    await asyncio.to_thread(root.rename, root.with_name("before"))
    await asyncio.to_thread(root.mkdir)
    assert isinstance(await hosts.run(order("makes_files"), Listener()), Finished)
    second = await pid_of(hosts)
    await asyncio.to_thread(rmtree, root / ".jobs")
    assert isinstance(await hosts.run(order("makes_files"), Listener()), Finished)
    assert len({first, second, await pid_of(hosts)}) == 3


@pytest.mark.parametrize("again", ["meanwhile", "afterwards"])
def test_a_place_that_is_replaced_while_a_process_is_confined_is_not_accessible(tmp_path: Path, again: str) -> None:
    """A file system may give the new directory the number of the old one."""
    kept, replaced = tmp_path / "kept", tmp_path / "replaced"
    for place in (kept, replaced):
        place.mkdir()
    with ReachablePlaces.recorded([str(kept), str(replaced)]) as places:
        replaced.rmdir()
        if again == "meanwhile":
            replaced.mkdir()
    if again == "afterwards":
        replaced.mkdir()
    assert not places.all_accessible()
    with ReachablePlaces.recorded([str(kept), str(replaced)]) as places:
        pass
    assert places.all_accessible()


async def test_a_process_is_reused_for_the_next_step(shared: StepProcessPool) -> None:
    first = await pid_of(shared)
    for _ in range(20):
        await shared.run(order("nothing"), Listener())
    assert await pid_of(shared) == first != os.getpid()


async def test_steps_at_one_time_are_in_processes_of_their_own(hosts: StepProcessPool) -> None:
    listeners = [Listener() for _ in range(3)]
    running = [asyncio.create_task(hosts.run(order("is_deaf"), listener)) for listener in listeners]
    await until(lambda: all(listener.lines for listener in listeners))
    assert len({listener.lines[0][1].split()[0] for listener in listeners}) == 3
    await hosts.stop()
    await asyncio.gather(*running)


async def test_short_concurrent_steps_share_a_process(shared: StepProcessPool) -> None:
    first = await pid_of(shared)
    assert {*await asyncio.gather(*(pid_of(shared) for _ in range(20)))} == {first}


async def test_outputs_are_declared_and_not_yet_published(hosts: StepProcessPool, root: Path) -> None:
    ended = await hosts.run(order("makes_files"), Listener())
    digest = {name: sha256(name.encode()).hexdigest() for name in ("one", "two")}
    assert ended == Finished(
        Result(files=("film/a/one.txt",)),
        (
            Output(path="one", name="film/a/one.txt", size=3, sha256=digest["one"]),
            Output(path="two", name=".jobs/17/files/two.txt", size=3, sha256=digest["two"]),
        ),
    )
    assert sorted(path.name for path in (root / ".jobs/17/2/1").iterdir()) == ["one", "two"]
    assert not (root / "film").exists()


async def test_settings_of_the_worker_do_not_reach_steps_or_programs(shared: StepProcessPool) -> None:
    ended = await shared.run(order("surroundings"), Listener())
    assert isinstance(ended, Finished)
    assert set(ended.result.metadata["ours"]) <= {"PATH", "LC_ALL", "PYTHONPATH"}
    assert set(ended.result.metadata["theirs"]) <= {"PATH", "LC_ALL", "HOME", "TMPDIR"}


async def test_a_process_has_no_descriptor_signal_handler_or_blocked_signal_of_others(hosts: StepProcessPool) -> None:
    """The fork server has those of each process that runs."""
    running = [asyncio.create_task(hosts.run(order("is_deaf"), listener := Listener()))]
    await until(lambda: listener.lines)
    ended = await hosts.run(order("surroundings"), Listener())
    assert isinstance(ended, Finished)
    first, _, _, *others = ended.result.metadata["descriptors"]
    assert first == "0 /dev/null"
    assert [each.split()[-1] for each in others] == ["socket", "closed"], "its channel, and the listing's own"
    assert set(ended.result.metadata["handled"]) <= {signal.SIGINT}, "Python's own, where an interrupt is not ignored"
    assert ended.result.metadata["blocked"] == []
    await hosts.stop()
    await asyncio.gather(*running)


def in_memory(pid: int, needle: bytes) -> bool:
    """Return True if the memory of a process contains these bytes."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end = (int(number, 16) for number in line.split()[0].split("-"))
            with suppress(OSError, OverflowError, ValueError):  # a mapping that cannot be read
                memory.seek(start)
                if needle in memory.read(end - start):
                    return True
    return False


async def test_neither_a_process_nor_its_fork_server_has_a_setting_of_the_worker_in_its_memory(shared: StepProcessPool) -> None:
    pid = await pid_of(shared)
    is_present = [await asyncio.to_thread(in_memory, each, SECRET.encode()) for each in (os.getpid(), parent(pid), pid)]
    assert is_present == [True, False, False]


async def test_printed_text_of_a_step_is_not_a_message(shared: StepProcessPool) -> None:
    assert await shared.run(order("prints"), Listener()) == Finished(Result())


# -- failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "failed"),
    [
        ("raises", StepFailure("ValueError: a\ufffdb")),
        ("reads_a_missing_film", StepFailure("FileNotFoundError: film/film.mp4: No such file or directory")),
        ("reads_a_file_of_the_machine", StepFailure("FileNotFoundError: No such file or directory")),
        ("gives_up", StepFailure("there is no such thing", final=True)),
        ("leaves", StepFailure("SystemExit: 3")),
        ("exits", StepFailure("The process of the step ended with status 7.")),
        ("crashes", StepFailure("The process of the step ended by signal SIGSEGV.")),
        ("boasts", StepFailure("The metadata of the step has more than 262144 bytes.", final=True)),
        ("is_odd", StepFailure("The metadata of the step is not JSON that can be stored.", final=True)),
        ("runs_too_long", StepFailure("The program sleep did not end within 0.2 s.")),
        ("runs_nothing", StepFailure("The program no-such-program is not installed on this machine.")),
    ],
)
async def test_a_failure_is_reported_and_the_next_step_runs(shared: StepProcessPool, step: str, failed: StepFailure) -> None:
    assert await shared.run(order(step, text="a\0b"), Listener()) == failed
    assert await shared.run(order("nothing"), Listener()) == Finished(Result())


async def test_a_long_reason_is_cut(shared: StepProcessPool) -> None:
    ended = await shared.run(order("raises", text="x" * 5_000), Listener())
    assert isinstance(ended, StepFailure)
    assert len(ended.reason) == 2_000
    assert ended.reason.startswith("ValueError: xxx")


async def test_an_unknown_workflow_is_not_a_final_failure(shared: StepProcessPool) -> None:
    ended = await shared.run(order("nothing", workflow="unheard_of"), Listener())
    assert isinstance(ended, StepFailure)
    assert ended.reason.startswith("This worker cannot run it: job.workflow: must be one of asset_gif, ")
    assert not ended.final


async def test_a_refused_parameter_is_not_repeated(shared: StepProcessPool) -> None:
    ended = await shared.run(order("nothing", secret=SECRET), Listener())
    assert isinstance(ended, StepFailure)
    assert SECRET not in ended.reason


# -- what steps leave behind ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["leaves_a_program", "leaves_an_orphan"])
async def test_a_program_left_running_is_killed_with_its_process(shared: StepProcessPool, step: str) -> None:
    ended = await shared.run(order(step), Listener())
    assert isinstance(ended, Finished)
    await until(lambda: not alive(ended.result.metadata["left"]))
    assert await pid_of(shared) != ended.result.metadata["pid"]


async def test_a_process_with_a_thread_left_running_is_not_reused(shared: StepProcessPool) -> None:
    ended = await shared.run(order("leaves_a_thread"), Listener())
    assert isinstance(ended, Finished)
    assert await pid_of(shared) != ended.result.metadata["pid"]


async def test_a_fork_of_the_process_sends_nothing(shared: StepProcessPool) -> None:
    assert await shared.run(order("leaves_a_copy"), Listener()) == Finished(Result(message="I am the first"))
    assert await shared.run(order("nothing"), Listener()) == Finished(Result())


# -- the end --------------------------------------------------------------------------------------------------------------


async def test_a_cancelled_run_kills_the_process_group(shared: StepProcessPool) -> None:
    listener = Listener()
    running = asyncio.create_task(shared.run(order("is_deaf"), listener))
    await until(lambda: listener.lines)
    pids = [int(pid) for pid in listener.lines[0][1].split()]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not any(map(alive, pids)))
    assert await shared.run(order("nothing"), Listener()) == Finished(Result())


async def test_stop_kills_running_steps(hosts: StepProcessPool) -> None:
    listener = Listener()
    running = asyncio.create_task(hosts.run(order("is_deaf"), listener))
    await until(lambda: listener.lines)
    await hosts.stop()
    assert await running == StepFailure("The worker was stopped.", interrupted=True)
    pids = [int(pid) for pid in listener.lines[0][1].split()]
    await until(lambda: not any(map(alive, pids)))  # what a step has started is killed, and gone a moment later
    assert await hosts.run(order("nothing"), Listener()) == StepFailure("The worker was stopped.", interrupted=True)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("listens", "The step was asked to end."),
        ("complains", "ValueError: I was not done"),
        ("runs_a_program", "The step was asked to end."),
    ],
)
async def test_drain_interrupts_a_step(hosts: StepProcessPool, root: Path, step: str, reason: str) -> None:
    listener = Listener()
    running = asyncio.create_task(hosts.run(order(step), listener))
    await until(lambda: listener.lines)
    pid = root / ".jobs/17/2/1/pid"
    if step == "runs_a_program":
        await until(lambda: pid.exists() and pid.read_text())
    hosts.drain()
    assert await running == StepFailure(reason, interrupted=True)
    if step == "runs_a_program":
        assert not alive(int(pid.read_text()))
    assert await hosts.run(order(step, run=2), Listener()) == StepFailure(reason, interrupted=True), "begun after that"


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[Process]:
    """Start a worker process with a step that does not end."""
    environment = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tests.workers.job.worker", str(tmp_path), "3.0"]
    made = await asyncio.create_subprocess_exec(*command, env=environment)
    await until((tmp_path / "pids").exists)
    yield made
    with suppress(ProcessLookupError):
        made.kill()
    await made.wait()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen past its lease"])
async def test_without_its_worker_a_process_kills_its_group(worker: Process, tmp_path: Path, how: signal.Signals) -> None:
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    server = parent(pids[0])
    assert all(map(alive, [*pids, server]))
    worker.send_signal(how)
    await until(lambda: not any(map(alive, pids)))
    with suppress(ProcessLookupError):
        worker.kill()
    await until(lambda: not alive(server))


async def test_the_end_of_a_fork_server_ends_no_step_and_another_one_is_started(root: Path, tmp_path: Path) -> None:
    """The programs of a killed process are killed too, though its fork server cannot do it."""
    hosts = StepProcessPool(media_root=root, allow=[])
    await hosts.start()
    deaf, talking = Listener(), Listener()
    running = [asyncio.create_task(hosts.run(order(step), heard)) for step, heard in (("is_deaf", deaf), ("listens", talking))]
    await until(lambda: deaf.lines and talking.lines)
    pid, program = (int(number) for number in deaf.lines[0][1].split())
    os.kill(server := parent(pid), signal.SIGKILL)
    await until(lambda: not alive(server))
    other = await pid_of(hosts)
    assert parent(other) != server
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)
    assert await running[0] == StepFailure("The process of the step ended by signal SIGKILL.")
    await until(lambda: not alive(program))
    hosts.drain()
    assert await running[1] == StepFailure("The step was asked to end.", interrupted=True)
    await hosts.stop()
    assert not alive(other)


async def test_processes_stay_while_their_worker_sends(root: Path, step_server: ForkServer) -> None:
    """The process outlives several times the patience of a host."""
    hosts = StepProcessPool(media_root=root, allow=[], lease_seconds=2.0, fork_server=step_server)
    await hosts.start()
    first = await pid_of(hosts)
    for _ in range(25):
        assert await hosts.run(order("runs_too_long"), Listener()) == StepFailure("The program sleep did not end within 0.2 s.")
    assert await pid_of(hosts) == first
    await hosts.stop()


def children() -> set[str]:
    """Return the child processes, including those that were not waited for."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


@pytest.mark.parametrize("free", [0, 2])
async def test_without_a_free_descriptor_a_step_waits_for_its_process(
    root: Path, free: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A host with two free descriptors has a channel and a process, which cannot be watched."""
    hosts, before = StepProcessPool(media_root=root, allow=[]), children()
    with descriptors_left(free):
        await hosts.start()
        running = asyncio.create_task(hosts.run(order("nothing"), Listener()))
        await until(lambda: running.done() or "Too many open files" in caplog.text)
        assert not running.done()
    assert await running == Finished(Result())
    await hosts.stop()
    assert children() == before


async def test_without_a_free_descriptor_in_the_fork_server_a_step_waits_for_its_process(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hosts = StepProcessPool(media_root=root, allow=[])
    await hosts.start()
    first = Listener()
    running = [asyncio.create_task(hosts.run(order("is_deaf"), first))]
    await until(lambda: first.lines)
    server = parent(int(first.lines[0][1].split()[0]))
    for free in range(3):  # for the status, for the channel, and to watch the process
        descriptors = {int(number) for number in await asyncio.to_thread(os.listdir, f"/proc/{server}/fd")}
        limit = [number for number in range(len(descriptors) + free + 1) if number not in descriptors][free]
        before = resource.prlimit(server, resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        caplog.clear()
        running.append(asyncio.create_task(hosts.run(order("is_deaf"), heard := Listener())))
        await until(lambda: "Too many open files" in caplog.text or running[-1].done())
        assert not running[-1].done()
        resource.prlimit(server, resource.RLIMIT_NOFILE, before)
        await until(lambda: heard.lines)
    await hosts.stop()
    assert [type(ended) for ended in await asyncio.gather(*running)] == [StepFailure] * 4
