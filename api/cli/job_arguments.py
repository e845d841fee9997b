"""The arguments and help texts of the commands about jobs: `jobs` and `workflows`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from api.cli.argument_types import parameter, positive, utf8
from api.cli.arguments import MEDIA_WORK, Command
from api.cli.output_arguments import add_consent, add_form

JOB_STATES = ("queued", "started", "completed", "pending", "broken", "scheduled", "paused")


def _jobs(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list jobs, the latest first")
    listed.add_argument("--client", type=utf8, metavar="NAME", help="only jobs of this client (default: all)")
    listed.add_argument("--state", choices=JOB_STATES)
    listed.add_argument("--failed", action="store_true", help="only jobs that have failed")
    listed.add_argument(
        "--search", type=utf8, metavar="TEXT", help="only jobs with this text in their content id, workflow or text parameters"
    )
    listed.add_argument(
        "--items", type=positive, default=10, metavar="N", help="the maximum number of rows, up to 1000 (default: %(default)s)"
    )
    show = actions.add_parser("show", help="show one job with its tasks: attempts, worker, progress, error")
    logs = actions.add_parser("logs", help="print the log of a job: its events, and the lines that its steps wrote")
    logs.add_argument("--follow", action="store_true", help="continue until the job has ended, or until Ctrl-C")
    watch = actions.add_parser("watch", help="show the live progress of tasks: bars on a terminal, lines on a pipe")
    watch.add_argument(
        "ids", metavar="ID", nargs="*", type=positive, help="watch these jobs until they have ended (default: all running jobs)"
    )
    watch.add_argument("--client", type=utf8, metavar="NAME", help="only jobs of this client (default: all)")
    _submit(actions)
    rerun = actions.add_parser("rerun", help="break a job and submit a new one with the same parameters")
    pause = actions.add_parser("pause", help="start no further task of a job; a running task continues to its end")
    resume = actions.add_parser("resume", help="queue a paused or broken job again; failed and cancelled tasks are tried again")
    stop = actions.add_parser("break", help="end a job now and kill its running step")
    for action_parser in (show, logs, rerun, pause, resume, stop):
        action_parser.add_argument("id", metavar="ID", type=positive)
    for action_parser in (listed, show):
        add_form(action_parser)
    for action_parser in (rerun, stop):
        add_consent(action_parser)


def _submit(actions: Any) -> None:
    submit = actions.add_parser("submit", help="submit a job, and with --wait follow it until it has ended")
    submit.add_argument("workflow", metavar="WORKFLOW", type=utf8, help="the workflow, as `medialedger workflows list` names it")
    submit.add_argument(
        "parameters",
        metavar="NAME=VALUE",
        nargs="*",
        type=parameter,
        help="a parameter: NAME=text, or NAME:=JSON, such as frames:=10; put secrets into a file, because other users can read "
        "arguments",
    )
    submit.add_argument("--file", type=utf8, metavar="FILE", help="more parameters as a JSON object (-: standard input)")
    submit.add_argument(
        "--client",
        type=utf8,
        metavar="NAME",
        help="the client that owns the job (default: admin; through the REST API, the API key's client)",
    )
    submit.add_argument(
        "--priority",
        type=int,
        choices=range(1, 11),
        default=5,
        metavar="N",
        help="1 to 10, the highest first (default: %(default)s)",
    )
    submit.add_argument("--wait", action="store_true", help="follow the job; the exit code is 0 only if it completes")


def _workflows(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list every workflow with a description")
    show = actions.add_parser("show", help="show one workflow with its parameters: types, defaults, meanings")
    show.add_argument("name", metavar="NAME", type=utf8)
    for action_parser in (listed, show):
        add_form(action_parser)


JOBS = Command(
    "submit, watch and control jobs",
    "Submits jobs, lists, shows and follows the jobs of all clients, and pauses, resumes, breaks or reruns a job. Running "
    "workers react "
    "at once. Parameters are checked before a job is accepted.",
    "medialedger jobs list --client playout --state started\n  medialedger jobs list --failed --search film-17 --items 50\n"
    "  medialedger jobs list -o ndjson --context studio\n  medialedger jobs show 17\n  medialedger jobs logs 17 --follow\n"
    "  medialedger jobs watch\n  medialedger jobs watch 17 18\n"
    "  medialedger jobs submit probe_media content_id=film-17 file=film-17.mp4 --wait\n"
    "  medialedger jobs pause 17\n  medialedger jobs resume 17\n  medialedger jobs break 17 --yes\n  medialedger jobs rerun 17",
    _jobs,
    group=MEDIA_WORK,
    by_rest=("list", "show", "logs", "watch", "rerun", "pause", "resume", "break"),
    remote=("submit",),
)
WORKFLOWS = Command(
    "list the workflows that jobs run, with their parameters",
    "Lists the workflows, including those of installed packages, and shows the parameters that `medialedger jobs submit` takes.",
    "medialedger workflows list\n  medialedger workflows show vod_ingest\n  medialedger workflows show vod_ingest --json",
    _workflows,
    group=MEDIA_WORK,
    remote=("list", "show"),
)
