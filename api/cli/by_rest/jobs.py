"""`medialedger jobs` over the REST API: lists, shows and follows jobs; submits, pauses, resumes, breaks and reruns them."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from api.cli.job_parameters import parameters
from api.cli.output import TABLE, WIDE, Column, Document, Kind, duration, field, moment, print_list, print_one, text
from api.cli.printable import printable
from api.cli.remote.progress import INTERVAL, available, job_state, watch
from api.cli.remote.rest_api import RestApi
from api.cli.shell import confirm
from api.wiring.startup import StartError
from domain.kernel.clock import iso

_LARGEST: Final = 1000
_INDENT: Final = " " * 10
_REASONS: Final = 20
"""The maximum number of failed jobs in a list whose reasons are requested."""
_ENDED: Final = ("completed", "broken")


def run(args: Namespace, api: RestApi) -> int:
    return _ACTIONS[args.action](args, api) or 0


# --- queries


def _list(args: Namespace, api: RestApi) -> None:
    """Print the jobs. A failed job that was broken or rerun since is not listed as failed, because an operator has handled it."""
    state = "completed" if args.failed and args.state is None else args.state
    rows = api.documents(
        "/engine/jobs",
        items=min(args.items, _LARGEST),
        search=args.search,
        client=args.client,
        state=state,
        failed=True if args.failed else None,
    )
    reasons = _reasons(rows, api) if args.form in (TABLE, WIDE) else {}
    columns = (
        Column("id", field("id"), Kind.NUMBER),
        Column("state", job_state, Kind.STATE),
        Column("workflow", field("workflow")),
        Column("content", _content),
        Column("client", field("client")),
        Column("priority", field("priority"), Kind.NUMBER),
        Column("position", lambda job: job.get("position") or None, Kind.NUMBER, wide=True),
        Column("age", field("created_at"), Kind.TIME),
        Column("lasted", _time_taken),
        Column("run at", field("run_at"), Kind.TIME, wide=True),
        Column("changed", field("updated_at"), Kind.TIME, wide=True),
        Column("reason", lambda job: job.get("reason") or reasons.get(job.get("id")), Kind.LONG),
    )
    print_list(rows, columns, form=args.form, none="no jobs")


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


def _show(args: Namespace, api: RestApi) -> None:
    job, more = _job(api, args.id), api.document(f"/engine/jobs/{args.id}/tasks")
    document = {**job, **more}
    if args.form not in (TABLE, WIDE):
        print_one(document, (), form=args.form)
        return
    print(f"job {args.id}  {job_state(job)}  {printable(text(job.get('workflow')))} of {printable(text(job.get('client')))}")
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


def _logs(args: Namespace, api: RestApi) -> None:
    _job(api, args.id)
    try:
        _print_logs(args.id, api, follow=args.follow)
    except KeyboardInterrupt:
        if not args.follow:
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


def _watch(args: Namespace, api: RestApi) -> None:
    for number in args.ids:
        job = _job(api, number)
        if args.client not in (None, job.get("client")):
            raise StartError(f"the client {args.client} has no job {number}")
    try:
        watch(api, args.ids, client=args.client)
    except KeyboardInterrupt:
        return


def _job(api: RestApi, number: int) -> dict[str, Any]:
    return api.document(f"/engine/jobs/{number}")


# --- commands


def _submit(args: Namespace, api: RestApi) -> int:
    if args.client is not None:
        raise StartError("through the REST API a job belongs to the client of the API key: omit --client")
    body = {"workflow": args.workflow, "priority": args.priority}
    accepted = api.call("POST", "/engine/job", body={"job": body, "parameters": parameters(args)}, named=True).document
    print(f"job {accepted['id']}", flush=True)
    return wait_for_job(api, accepted["id"]) if args.wait else 0


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


def _pause(args: Namespace, api: RestApi) -> None:
    _change(api, args.id, "paused")


def _break(args: Namespace, api: RestApi) -> None:
    _job(api, args.id)
    confirm(args, f"break job {args.id} at {api.label}")
    _change(api, args.id, "broken")


def _resume(args: Namespace, api: RestApi) -> None:
    """Queue a paused or broken job again. A broken job is paused first, because only a paused job can be queued. Its owner may
    refuse."""
    if job_state(_job(api, args.id)) == "broken":
        _put(api, args.id, "paused")
    _change(api, args.id, "queued")


def _change(api: RestApi, number: int, state: str) -> None:
    _put(api, number, state)
    print(f"job {number} is {job_state(_job(api, number))}")


def _put(api: RestApi, number: int, state: str) -> None:
    api.call("PUT", f"/engine/job/{number}", body={"queue_state": state}, named=True)


def _rerun(args: Namespace, api: RestApi) -> None:
    _job(api, args.id)
    confirm(args, f"break job {args.id} at {api.label}, and run it again")
    job = api.call("POST", f"/engine/jobs/{args.id}/rerun", named=True).document
    print(f"job {args.id} is rerun as job {job['id']}")


_ACTIONS: Final[Mapping[str, Callable[[Namespace, RestApi], int | None]]] = {
    "list": _list,
    "show": _show,
    "logs": _logs,
    "watch": _watch,
    "submit": _submit,
    "pause": _pause,
    "break": _break,
    "resume": _resume,
    "rerun": _rerun,
}
