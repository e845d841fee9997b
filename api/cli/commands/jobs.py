"""`medialedger jobs`: lists, shows and follows jobs; submits, pauses, resumes, breaks and reruns them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import click

from api.cli.command import PARAMETER, POSITIVE, TEXT, calls_api, consent_option, form_option, group, items_option
from api.cli.output import TABLE, WIDE, Document, Kind, TableColumn, duration, field, moment, print_list, print_one, text
from api.cli.remote.jobs import INTERVAL, available, job_state, submit, watch
from api.cli.remote.rest_api import RestApi
from api.cli.shell import confirm, secret_text
from api.cli.terminal_text import printable
from api.wiring.startup import StartError
from domain.kernel.clock import iso

JOB_STATES: Final = ("queued", "started", "completed", "pending", "broken", "scheduled", "paused")
_LARGEST: Final = 1000
_INDENT: Final = " " * 10
_REASONS: Final = 20
"""The maximum number of failed jobs in a list whose reasons are requested."""
_ENDED: Final = ("completed", "broken")
_NUMBER: Final = click.argument("number", type=POSITIVE, metavar="ID", help="The number of the job.")
_OF_CLIENT: Final = click.option("--client", type=TEXT, metavar="NAME", help="Only jobs of this client (default: all).")


@group(
    "jobs",
    examples="""
    medialedger jobs list --client playout --state started
    medialedger jobs list --failed --search film-17 --items 50
    medialedger jobs list -o ndjson --context studio
    medialedger jobs show 17
    medialedger jobs logs 17 --follow
    medialedger jobs watch
    medialedger jobs watch 17 18
    medialedger jobs submit probe_media content_id=film-17 file=film-17.mp4 --wait
    medialedger jobs pause 17
    medialedger jobs resume 17
    medialedger jobs break 17 --yes
    medialedger jobs rerun 17
    """,
)
def jobs() -> None:
    """Submit jobs, list, show and follow the jobs of all clients, and pause, resume, break or rerun a job. Running workers react at
    once. Parameters are checked before a job is accepted."""


# --- queries


@jobs.command("list")
@_OF_CLIENT
@click.option("--state", type=click.Choice(JOB_STATES), help="Only jobs in this state.")
@click.option("--failed", is_flag=True, help="Only jobs that have failed.")
@click.option(
    "--search", type=TEXT, metavar="TEXT", help="Only jobs with this text in their content id, workflow or text parameters."
)
@items_option(10, what="rows, up to 1000")
@form_option
@calls_api
def list_jobs(
    api: RestApi, *, client: str | None, state: str | None, failed: bool, search: str | None, items: int, form: str
) -> None:
    """List jobs, the latest first. A failed job that was broken or rerun since is not listed as failed."""
    rows = api.documents(
        "/engine/jobs",
        items=min(items, _LARGEST),
        search=search,
        client=client,
        state="completed" if failed and state is None else state,
        failed=True if failed else None,
    )
    reasons = _reasons(rows, api) if form in (TABLE, WIDE) else {}
    columns = (
        TableColumn("id", field("id"), Kind.NUMBER),
        TableColumn("state", job_state, Kind.STATE),
        TableColumn("workflow", field("workflow")),
        TableColumn("content", _content),
        TableColumn("client", field("client")),
        TableColumn("priority", field("priority"), Kind.NUMBER),
        TableColumn("position", lambda job: job.get("position") or None, Kind.NUMBER, wide=True),
        TableColumn("age", field("created_at"), Kind.TIME),
        TableColumn("lasted", _time_taken),
        TableColumn("run at", field("run_at"), Kind.TIME, wide=True),
        TableColumn("changed", field("updated_at"), Kind.TIME, wide=True),
        TableColumn("reason", lambda job: job.get("reason") or reasons.get(job.get("id")), Kind.LONG),
    )
    print_list(rows, columns, form=form, none="no jobs")


def _reasons(jobs: Sequence[Document], api: RestApi) -> Mapping[Any, Any]:
    failed = [job["id"] for job in jobs if job_state(job) == "failed" and "reason" not in job][:_REASONS]
    return {number: api.document(f"/engine/jobs/{number}/tasks").get("reason") for number in failed}


def _content(job: Document) -> Any:
    parameters = job.get("parameters")
    return job.get("content_id") or (parameters.get("content_id") if isinstance(parameters, dict) else None)


def _time_taken(job: Document) -> str | None:
    """Return the time from the acceptance of a job to its end."""
    begin, end = moment(job.get("created_at")), moment(job.get("updated_at"))
    if job.get("queue_state") not in _ENDED or not (isinstance(begin, datetime) and isinstance(end, datetime)):
        return None
    return duration(max((end - begin).total_seconds(), 0.0))


@jobs.command("show")
@_NUMBER
@form_option
@calls_api
def show_job(api: RestApi, *, number: int, form: str) -> None:
    """Show one job with its tasks: attempts, worker, progress, error."""
    job, more = _job(api, number), api.document(f"/engine/jobs/{number}/tasks")
    document = {**job, **more}
    if form not in (TABLE, WIDE):
        print_one(document, (), form=form)
        return
    print(f"job {number}  {job_state(job)}  {printable(text(job.get('workflow')))} of {printable(text(job.get('client')))}")
    position = f", position {job['position']}" if job.get("position") else ""
    facts: dict[str, Any] = {
        "content": more.get("content_id"),
        "priority": f"{job.get('priority')}{position}",
        "accepted": moment(job.get("created_at")),
        "changed": moment(job.get("updated_at")),
        "lasted": _time_taken(job),
        "run at": moment(job.get("run_at")),
        "semaphore": more.get("semaphore_url"),
        "parameters": job.get("parameters"),
        "reason": more.get("reason"),
    }
    for name, value in facts.items():
        if value is not None:
            print(f"  {name:<12}{printable(_absolute_and_relative(value))}")
    for task in [row for row in more.get("tasks", ()) if isinstance(row, dict)]:
        print(f"  task {text(task.get('task_id')):<7}{'  '.join(map(printable, _task(task)))}")
        if task.get("error"):
            print(f"{_INDENT}    {printable(text(task['error']))}")


def _absolute_and_relative(value: Any) -> str:
    """Return a time with its distance from now; any other value as text."""
    return f"{iso(value)} ({text(value)})" if isinstance(value, datetime) else text(value)


def _task(task: Document) -> Sequence[str]:
    parts = [text(task.get("name")), text(task.get("state"))]
    if task.get("attempts"):
        parts.append(f"attempt {task['attempts']}")
    if task.get("worker"):
        parts.append(f"on {task['worker']}")
    if task.get("due_at"):
        parts.append(f"not before {task['due_at']}")
    if task.get("state") in ("running", "publishing"):
        parts += [f"{float(task.get('fraction') or 0):.0%}", *filter(None, [task.get("message")])]
    return parts


@jobs.command("logs")
@_NUMBER
@click.option("--follow", is_flag=True, help="Continue until the job has ended, or until Ctrl-C.")
@calls_api
def print_job_log(api: RestApi, *, number: int, follow: bool) -> None:
    """Print the log of a job: its events, and the lines that its steps wrote."""
    _job(api, number)
    try:
        _print_logs(number, api, follow=follow)
    except KeyboardInterrupt:
        if not follow:
            raise


def _print_logs(number: int, api: RestApi, *, follow: bool) -> None:
    """Print the log page by page; with `follow`, until the job has ended and there are no new records. The last page is read again
    until there is a next one, and its printed records are recognized by their content."""
    after: str | None = None
    printed = set[tuple[Any, ...]]()
    while True:
        ended = not follow or job_state(available(lambda: _job(api, number))) in ("failed", *_ENDED)
        answer = available(partial(api.call, "GET", f"/engine/logs/{number}", query={"after": after}))
        news = [row for row in answer.document or [] if _key(row) not in printed]
        for record in news:
            printed.add(_key(record))
            _print_record(record)
        if (following := _cursor(answer.headers.get("link", ""))) not in (None, after):
            after, printed = following, set()
        elif ended and not (follow and news):
            return
        elif not news:
            time.sleep(INTERVAL)


def _key(record: Document) -> tuple[Any, ...]:
    return (record.get("id"), record.get("created_at"), record.get("progname"), record.get("message"))


def _cursor(link: str) -> str | None:
    """Return the position after a page from its header Link; None at the end."""
    _, parameter, rest = link.partition("after=")
    return rest.partition(">")[0].partition("&")[0] if parameter else None


def _print_record(record: Document) -> None:
    task = f"  task {record['task_id']}" if record.get("task_id") is not None else ""
    head = f"{record.get('created_at')}  {text(record.get('severity_description')):<5}  {record.get('progname')}{task}"
    first, *more = map(printable, str(record.get("message", "")).splitlines() or [""])
    print("\n".join([f"{printable(head)}  {first}", *(f"{_INDENT}{line}" for line in more)]), flush=True)


@jobs.command("watch")
@click.argument(
    "numbers",
    type=POSITIVE,
    metavar="[ID]...",
    nargs=-1,
    help="Watch these jobs until they have ended (default: all running jobs).",
)
@_OF_CLIENT
@calls_api
def watch_jobs(api: RestApi, *, numbers: tuple[int, ...], client: str | None) -> None:
    """Show the live progress of tasks: bars on a terminal, lines on a pipe."""
    for number in numbers:
        if client not in (None, _job(api, number).get("client")):
            raise StartError(f"the client {client} has no job {number}")
    try:
        watch(api, numbers, client=client)
    except KeyboardInterrupt:
        return


def _job(api: RestApi, number: int) -> dict[str, Any]:
    return api.document(f"/engine/jobs/{number}")


# --- commands


@jobs.command("submit")
@click.argument("workflow", type=TEXT, metavar="WORKFLOW", help="The workflow, as `medialedger workflows list` names it.")
@click.argument(
    "parameters",
    type=PARAMETER,
    metavar="[NAME=VALUE]...",
    nargs=-1,
    help="A parameter: NAME=text, or NAME:=JSON, such as frames:=10; put secrets into a file, as other users can read arguments.",
)
@click.option("--file", type=TEXT, metavar="FILE", help="More parameters as a JSON object (-: standard input).")
@click.option(
    "--client",
    type=TEXT,
    metavar="NAME",
    help="The client that owns the job; only an admin may name another (default: admin at the machine of the product, elsewhere "
    "the API key's client).",
)
@click.option("--priority", type=click.IntRange(1, 10), default=5, metavar="N", help="1 to 10, the highest first (default: 5).")
@click.option("--wait", is_flag=True, help="Follow the job; the exit code is 0 only if it completes.")
@calls_api
def submit_job(
    api: RestApi,
    *,
    workflow: str,
    parameters: tuple[tuple[str, Any], ...],
    file: str | None,
    client: str | None,
    priority: int,
    wait: bool,
) -> int:
    """Submit a job, and with --wait follow it until it has ended."""
    job = {"workflow": workflow, "priority": priority}
    values = {**_file_parameters(file), **dict(parameters)}
    number = submit(api, job, values, client=client)
    print(f"job {number}", flush=True)
    return wait_for_job(api, number) if wait else 0


def _file_parameters(file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        values = json.loads(secret_text(file))
    except ValueError:
        raise StartError("the parameters are not JSON") from None
    if not isinstance(values, dict):
        raise StartError("the parameters are not a JSON object")
    return values


def wait_for_job(api: RestApi, number: int) -> int:
    """Follow the job to its end and return the exit code. On an interruption the workers continue the job."""
    try:
        watch(api, [number], client=None)
    except KeyboardInterrupt:
        raise StartError(f"the job continues; `medialedger jobs watch {number}` shows its progress") from None
    state = job_state(_job(api, number))
    if state != "completed":
        details = api.document(f"/engine/jobs/{number}/tasks")
        reasons = [task["error"] for task in details.get("tasks", ()) if isinstance(task, dict) and task.get("error")]
        raise StartError(f"job {number} is {state}" + "".join(f": {reason}" for reason in reasons[-1:]))
    return 0


@jobs.command("pause")
@_NUMBER
@calls_api
def pause_job(api: RestApi, number: int) -> None:
    """Start no further task of a job; a running task continues to its end."""
    _change(api, number, "paused")


@jobs.command("resume")
@_NUMBER
@calls_api
def resume_job(api: RestApi, number: int) -> None:
    """Queue a paused or broken job again; failed and cancelled tasks are tried again."""
    if job_state(_job(api, number)) == "broken":
        _put(api, number, "paused")  # only a paused job can be queued, and its owner may refuse
    _change(api, number, "queued")


@jobs.command("break")
@_NUMBER
@consent_option
@calls_api
def break_job(api: RestApi, *, number: int, yes: bool) -> None:
    """End a job now and kill its running step."""
    _job(api, number)
    confirm(yes, f"break job {number} at {api.label}")
    _change(api, number, "broken")


@jobs.command("rerun")
@_NUMBER
@consent_option
@calls_api
def rerun_job(api: RestApi, *, number: int, yes: bool) -> None:
    """Break a job and submit a new one with the same parameters."""
    _job(api, number)
    confirm(yes, f"break job {number} at {api.label}, and run it again")
    job = api.call("POST", f"/engine/jobs/{number}/rerun", named=True).document
    print(f"job {number} is rerun as job {job['id']}")


def _change(api: RestApi, number: int, state: str) -> None:
    _put(api, number, state)
    print(f"job {number} is {job_state(_job(api, number))}")


def _put(api: RestApi, number: int, state: str) -> None:
    api.call("PUT", f"/engine/job/{number}", body={"queue_state": state}, named=True)
