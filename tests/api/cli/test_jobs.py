"""`medialedger jobs`, as a person calls it, on jobs whose engine is played by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic_core import from_json

from api.cli import shell
from api.cli.commands.jobs import JOB_STATES
from api.cli.main import main
from api.cli.remote.jobs import available
from api.cli.remote.rest_api import ApiError
from api.cli.terminal_text import printable
from api.wiring.core import Core
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.event.values import VodWorkflow
from domain.job.aggregate import Job
from domain.job.handlers import JobSecrets
from domain.job.values import JobState, Result, Submission, TaskPlan
from domain.kernel.command import Command
from domain.kernel.encryption import SecretCipher
from domain.kernel.ports import Invocation
from projections.job.log_lines import JobLogLine, Progress, write
from projections.job.queue import JobNumberSequence, QueuedRun
from projections.vault.vault import Vault
from tests.api.asking import logged
from tests.api.engine.jobs_given import NEVER, complete, do, fail, start
from tests.projections.log.helpers import rows, until
from tests.support.clock import NOON
from tests.support.engine import Engine
from workers.adapters.keyfiles import master_key
from workers.job.registry import builtin

Said = tuple[int, str, str]
Call = Callable[..., Awaitable[Said]]
FETCH = "http_fetch_verify"
URL = "https://origin.test/a.mp4"
ALL = ("list", "show", "logs", "watch", "rerun", "pause", "resume", "break")


@pytest.fixture
def call(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setenv("MEDIALEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("MEDIALEDGER_HOME", str(tmp_path))

    async def called(*words: object) -> Said:
        code = await asyncio.to_thread(main, ["jobs", *map(str, words)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return called


@pytest.fixture
def engine(inner: Core) -> Engine:
    return Engine(inner, JobNumberSequence(inner.database))


async def fetching(engine: Engine, **more: Any) -> int:
    return await engine.accept(FETCH, url=URL, **more)


async def progressed(inner: Core, job: int, fraction: float, message: str, *, task: int = 1) -> None:
    await write(inner.database, lines=[], progress=[Progress(QueuedRun(job, task, 1), fraction, message)])


async def wrote(inner: Core, job: int, message: str, *, severity: int = 1) -> None:
    await write(inner.database, lines=[JobLogLine(job, 1, severity, message, NOON)], progress=[])


def test_the_command_line_knows_every_state() -> None:
    assert tuple(state.name.lower() for state in JobState) == JOB_STATES


def test_control_characters_are_escaped() -> None:
    assert printable("日程 #7") == "日程 #7"
    assert printable("\x1b[2J\u202eevil\n") == r"\x1b[2J\u202eevil\n"


# --- list


async def test_jobs_are_listed_the_latest_first(call: Call, engine: Engine) -> None:
    assert await call("list") == (0, "", "no jobs\n")
    first, second = await fetching(engine), await fetching(engine, client="playout", priority=1)
    failed = await fetching(engine)
    await fail(engine.inner, failed)
    code, shown, _ = await call("list")
    reason = "the task fetch failed: no such host"
    assert (code, [line.split(None, 6)[:7] for line in shown.splitlines()]) == (
        0,
        [
            ["ID", "STATE", "WORKFLOW", "CONTENT", "CLIENT", "PRIORITY", "AGE         LASTED  REASON"],
            [str(failed), "failed", FETCH, "match", "admin", "5", f"2031-01-02  0.0 s   {reason}"],
            [str(second), "queued", FETCH, "match", "playout", "1", "2031-01-02  -       -"],
            [str(first), "queued", FETCH, "match", "admin", "5", "2031-01-02  -       -"],
        ],
    )


async def test_jobs_are_listed_as_documents_of_the_api(call: Call, engine: Engine) -> None:
    job = await fetching(engine)
    documents = from_json((await call("list", "--json"))[1])
    assert [(job_document["id"], job_document["queue_state"]) for job_document in documents] == [(job, "queued")]
    assert [from_json(line)["id"] for line in (await call("list", "-o", "ndjson"))[1].splitlines()] == [job]
    _, shown, _ = await call("list", "-o", "wide")
    assert "2031-01-02T12:00:00.000Z" in shown


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("--client playout", {2}),
        ("--client nobody", set()),
        ("--state queued", {1, 2}),
        ("--state completed", {3}),
        ("--failed", {3}),
        ("--failed --state queued", set()),
        ("--search MATCH", {1, 2, 3}),
        ("--search origin.test", {1, 2, 3}),
        ("--search %", set()),
        ("--items 2", {2, 3}),
        ("--items 99999999999999999999999", {1, 2, 3}),
        ("--search ';DROP", set()),
    ],
)
async def test_filters(call: Call, engine: Engine, line: str, result: set[int]) -> None:
    numbers = [await fetching(engine), await fetching(engine, client="playout"), await fetching(engine)]
    await fail(engine.inner, numbers[2])
    code, shown, err = await call("list", *line.split())
    assert (code, err) == (0, "" if result else "no jobs\n")
    assert {numbers.index(int(row.split()[0])) + 1 for row in shown.splitlines()[1:]} == result


async def test_a_handled_failure_is_no_longer_listed(call: Call, engine: Engine) -> None:
    job = await fetching(engine)
    await fail(engine.inner, job)
    assert (await call("list", "--failed"))[1].splitlines()[1].split()[:2] == [str(job), "failed"]
    await call("break", job, "--yes")
    assert await call("list", "--failed") == (0, "", "no jobs\n")
    assert (await call("list"))[1].splitlines()[1].split()[:2] == [str(job), "broken"]


# --- show


async def test_a_job_is_shown_with_its_tasks(call: Call, engine: Engine) -> None:
    job = await fetching(engine, priority=3)
    await start(engine.inner, job)
    await do(engine.inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await progressed(engine.inner, job, 0.42, "8 of 20 MB")
    code, shown, err = await call("show", job)
    assert (code, err) == (0, "")
    assert shown.splitlines() == [
        f"job {job}  started  {FETCH} of admin",
        "  content     match",
        "  priority    3",
        "  accepted    2031-01-02T12:00:00.000Z (2031-01-02)",
        "  changed     2031-01-02T12:00:00.000Z (2031-01-02)",
        f'  parameters  {{"content_id": "match", "url": "{URL}"}}',
        "  task 1      fetch  running  attempt 1  on host 1  42%  8 of 20 MB",
        "  task 2      store  waiting",
    ]


async def test_a_failed_job_is_shown_with_its_reason(call: Call, engine: Engine) -> None:
    job = await fetching(engine)
    await start(engine.inner, job)
    await do(engine.inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await do(engine.inner, Job.fail_task.on(job, 1, run=1, error="no such\x1b[31m host", retries=NEVER))
    _, shown, _ = await call("show", job)
    assert shown.splitlines()[0] == f"job {job}  failed  {FETCH} of admin"
    assert r"  reason      the task fetch failed: no such\x1b[31m host" in shown.splitlines()
    assert shown.splitlines()[-3:] == [
        "  task 1      fetch  failed  attempt 1  on host 1",
        r"              no such\x1b[31m host",
        "  task 2      store  cancelled",
    ]


# --- logs


async def test_the_log_of_a_job(call: Call, engine: Engine) -> None:
    job = await fetching(engine)
    await start(engine.inner, job)
    await do(engine.inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await wrote(engine.inner, job, "two lines\nof a \x1b[2Jstep", severity=2)
    code, shown, err = await call("logs", job)
    assert (code, err) == (0, "")
    lines = [line.partition("Z  ")[2] or line for line in shown.splitlines()]
    assert sorted(lines) == sorted(
        [
            *(line for line in lines if line.startswith('INFO   api  {"client":"admin"')),
            "INFO   controller  The job is started in slot 1",
            "INFO   worker  task 1  host 1 started the task fetch, attempt 1",
            "WARN   worker  task 1  two lines",
            r"          of a \x1b[2Jstep",
        ]
    )
    assert len(lines) == 5


async def test_the_log_is_followed_until_the_job_has_ended(call: Call, engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    job = await fetching(engine)
    following = asyncio.ensure_future(call("logs", job, "--follow"))
    shown = await output_with(capsys, '{"client":"admin"')
    await start(engine.inner, job)
    shown += await output_with(capsys, "started in slot 1")
    for task in (1, 2):
        await do(engine.inner, Job.start_task.on(job, task, run=1, worker="host 1"))
        await wrote(engine.inner, job, f"the step {task} speaks")
        shown += await output_with(capsys, f"the step {task} speaks")
        assert not following.done()
        await do(engine.inner, Job.complete_task.on(job, task, run=1, result=Result(message="done")))
    code, rest, err = await following
    assert (code, err) == (0, "")
    assert (shown + rest).splitlines()[-1].endswith("INFO   worker  The job is completed")
    assert (shown + rest).count("started in slot") == 1


async def output_with(capsys: pytest.CaptureFixture[str], expected: str) -> str:
    """Return the output once it contains the expected text."""
    shown = ""
    async with asyncio.timeout(60):
        while expected not in shown:
            await asyncio.sleep(0.01)
            shown += capsys.readouterr().out
    return shown


# --- watch


async def test_jobs_are_watched_until_they_have_ended(call: Call, engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    job, broken = await fetching(engine), await fetching(engine)
    watching = asyncio.ensure_future(call("watch", job, broken))
    shown = await output_with(capsys, f"{broken}  {FETCH} of admin is queued\n")
    await start(engine.inner, job)
    await do(engine.inner, Job.start_task.on(job, 1, run=1, worker="host 1"))
    await progressed(engine.inner, job, 0.25, "5 of 20 MB\x07")
    shown += await output_with(capsys, f"{job}  fetch is running, attempt 1  25%  5 of 20 MB\\x07\n")
    await progressed(engine.inner, job, 0.5, "10 of 20 MB")
    shown += await output_with(capsys, "50%  10 of 20 MB\n")
    assert (await call_beside(broken)) == 0
    shown += await output_with(capsys, f"{broken}  {FETCH} of admin is broken\n")
    await do(engine.inner, Job.complete_task.on(job, 1, run=1, result=Result()))
    await do(engine.inner, Job.start_task.on(job, 2, run=1, worker="host 1"))
    assert not watching.done()
    await do(engine.inner, Job.complete_task.on(job, 2, run=1, result=Result()))
    code, rest, err = await watching
    assert (code, err) == (0, "")
    assert rest.splitlines()[-2:] == [
        f"{job}  store is completed, attempt 1",
        f"{job}  {FETCH} of admin is completed",
    ]
    assert f"{job}  fetch is completed, attempt 1\n" in shown + rest
    assert f"{job}  {FETCH} of admin is queued\n" in shown
    assert f"{job}  {FETCH} of admin is started\n" in shown


async def call_beside(job: int) -> int:
    """Run the command as if from another process."""
    return await asyncio.to_thread(main, ["jobs", "break", str(job), "--yes"])


async def test_an_ended_job_is_not_waited_for(call: Call, engine: Engine) -> None:
    job = await fetching(engine)
    await complete(engine.inner, job)
    code, shown, _ = await call("watch", job)
    assert (code, shown.splitlines()[-1]) == (0, f"{job}  {FETCH} of admin is completed")


# --- steering


async def test_a_job_is_paused_resumed_and_broken_off(call: Call, engine: Engine) -> None:
    job = await fetching(engine)
    assert await call("pause", job) == (0, f"job {job} is paused\n", "")
    assert await call("pause", job) == (0, f"job {job} is paused\n", "")
    assert await call("resume", job) == (0, f"job {job} is queued\n", "")
    assert await call("resume", job) == (
        1,
        "",
        "medialedger: queue_state: only a paused job can be queued; this one is queued\n",
    )
    assert await call("break", job, "--yes") == (0, f"job {job} is broken\n", "")
    assert await engine.topics(job) == ["accepted", "paused", "queued", "broken"]
    assert f"{shell.invocation().cause.actor} broke the job" in (await call("logs", job))[1]


async def test_a_job_is_not_resumed_while_its_event_has_another_job(call: Call, engine: Engine) -> None:
    event = UUID(int=1)
    old, present = await engine.numbers.draw(), await engine.numbers.draw()
    submission = Submission(
        client="admin",
        workflow="vod_package",
        content_id=str(event),
        parameters={"content_id": str(event)},
        tasks=(TaskPlan(id=1, name="package"),),
        owner=MediaEvent.stream(event),
    )
    commands: tuple[Command[Any], ...] = (
        Job.accept.on(old, submission),
        AddOrUpdateEvent(event, {}, new=True),
        MediaEvent.start_vod_job.on(event, present, VodWorkflow.PACKAGE),
    )
    for command in commands:
        await engine.inner.executor.execute(command, invocation=Invocation.by("admin"))
    await call("pause", old)
    refused = f"medialedger: job {present} (vod_package) is still producing files for this Event\n"
    assert await call("resume", old) == (1, "", refused)
    assert await engine.topics(old) == ["accepted", "paused"]


async def test_a_job_is_run_again_with_its_secrets(call: Call, engine: Engine, tmp_path: Path) -> None:
    await call("list")
    vault = Vault(engine.inner.database, SecretCipher(master_key(tmp_path / "master.key")))
    old = await engine.numbers.draw()
    secrets = JobSecrets(vault, old)
    url = f"{URL}?token=hidden-word"
    checked = builtin().checked_job(FETCH, {"content_id": "match", "url": url})
    submission = secrets.submission("playout", checked)
    assert submission.sealed_parameters is not None
    await engine.do(Job.accept.on(old, submission, priority=2).with_secrets(tuple(secrets.encrypted)))

    code, shown, err = await call("rerun", old, "--yes")
    new = int(shown.split()[-1])
    assert (code, shown, err) == (0, f"job {old} is rerun as job {new}\n", "")
    assert (await engine.job(old)).state is JobState.BROKEN
    job = await engine.job(new)
    assert (job.state, job.priority, job.submission.client, job.submission.tasks) == (
        JobState.QUEUED,
        2,
        "playout",
        submission.tasks,
    )
    assert job.submission.parameters == {"content_id": "match", "url": URL}
    assert job.submission.sealed_parameters is not None
    opened = await vault.read(job.submission.sealed_parameters.reference, owner=job.id)
    assert from_json(opened or "null") == {"content_id": "match", "url": url}
    assert "hidden-word" not in "".join([*map(str, await logged(engine.inner)), (await call("show", new))[1]])


@pytest.mark.parametrize("action", [action for action in ALL if action != "list"])
@pytest.mark.parametrize("number", ["999999", "9" * 40])
async def test_an_unknown_job_is_one_line_and_1(call: Call, inner: Core, action: str, number: str) -> None:
    before = await logged(inner)
    code, shown, err = await call(action, number)
    assert (code, shown, err) in [
        (1, "", f"medialedger: There is no job {number}\n"),
        (1, "", "medialedger: job_id: must be a whole number\n"),
    ]
    assert await logged(inner) == before


@pytest.mark.parametrize(
    "line",
    [
        "",
        "show",
        "show x",
        "show 0",
        "show -1",
        "show 1 2",
        "list --state 9",
        "list --items 0",
        "list --client \udcff",
        "logs 1 -f",
    ],
)
async def test_a_wrong_command_line_ends_with_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", *line.split()]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_api_that_is_away_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    faults = [ApiError("the database does not answer", status=503), ApiError("the database does not answer", status=503)]

    def look() -> str:
        if faults:
            raise faults.pop()
        return "seen"

    assert available(look) == "seen"
    assert capsys.readouterr().err == "medialedger: the database does not answer; waiting for it\n"


# --- submit


async def test_a_job_is_submitted_with_parameters_of_the_line_over_those_of_a_file(
    call: Call, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "parameters.json"
    file.write_text('{"content_id": "of the file", "url": "https://origin.test/a.mp4?token=secret", "size": 1}')
    file.chmod(0o600)
    line = ("content_id=match", "size:=2", "--file", file, "--client", "playout", "--priority", "9")
    code, shown, err = await call("submit", FETCH, *line)
    assert (code, err) == (0, "")
    job = await engine.job(int(shown.removeprefix("job ")))
    assert (job.state, job.priority, job.submission.client, job.submission.workflow) == (JobState.QUEUED, 9, "playout", FETCH)
    assert job.submission.parameters["content_id"] == "match"
    assert job.submission.parameters["size"] == 2
    assert "secret" not in str(job.submission.parameters)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (("no_such",), "job.workflow: must be one of"),
        ((FETCH, "content_id=match"), "parameters.url: is required"),
        ((FETCH, "content_id=match", f"url={URL}", "colour=red"), "parameters.colour: is not a parameter of this workflow"),
        ((FETCH, "content_id=../match", f"url={URL}"), "parameters.content_id"),
        ((FETCH, "--file", "missing.json"), "missing.json"),
    ],
)
async def test_an_invalid_job_is_refused_in_one_line(call: Call, engine: Engine, line: tuple[str, ...], reason: str) -> None:
    code, shown, err = await call("submit", *line)
    assert (code, shown, err.count("\n")) == (1, "", 1)
    assert reason in err
    assert await call("list") == (0, "", "no jobs\n")


async def test_parameters_that_are_no_object_are_refused(call: Call, tmp_path: Path) -> None:
    for text in ("[]", "{", ""):
        file = tmp_path / "parameters.json"
        file.write_text(text)
        file.chmod(0o600)
        code, _, err = await call("submit", FETCH, "--file", file)
        assert code == 1
        assert "the parameters are not" in err


@pytest.mark.parametrize("failed", [False, True])
async def test_waiting_tells_how_it_ended_by_the_exit_code(call: Call, engine: Engine, failed: bool) -> None:
    waiting = asyncio.ensure_future(call("submit", FETCH, "content_id=match", f"url={URL}", "--wait"))
    await until(lambda: rows(engine.inner.database.conninfo, "SELECT FROM job_view"))
    [(job,)] = rows(engine.inner.database.conninfo, "SELECT id FROM job_view")
    await (fail if failed else complete)(engine.inner, job)
    code, shown, err = await waiting
    assert (code, shown.splitlines()[0]) == (int(failed), f"job {job}")
    assert (f"medialedger: job {job} is failed" in err) == failed


@pytest.mark.parametrize("word", ["size", "=1", ":=1", "size:=", "size:={"])
def test_an_invalid_parameter_is_a_wrong_command_line(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "submit", FETCH, word]) == 2
