"""What every command may be asked, in words for people. What it does then lies in the module of its name."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from domain.client.roles import Role

EXIT_CODES = """\
exit codes:
  0    done, or stopped in order
  1    refused or failed; one line on stderr says why
  2    the command line is wrong
  130  interrupted (Ctrl-C) before there was anything to stop in order
"""
ROLES = tuple(role.value for role in Role)
JOB_STATES = ("queued", "started", "completed", "pending", "broken", "scheduled", "paused")


def _nothing(parser: ArgumentParser) -> None:
    """For a command without arguments of its own."""


@dataclass(frozen=True, slots=True)
class Command:
    """`serves`: runs until it is stopped, so it logs and warns about settings it does not know."""

    summary: str
    description: str
    examples: str
    arguments: Callable[[ArgumentParser], None] = _nothing
    serves: bool = False


def _projections(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="every view, its version and when it was built")
    rebuild = actions.add_parser("rebuild", help="build a view anew from the log, under live traffic")
    rebuild.add_argument("name", metavar="NAME", help="the view, as `medialedger projections list` names it")


def _consumers(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="every consumer: how far it is behind the log, who runs it, how much is parked")
    parked = actions.add_parser("parked", help="the records that could not be taken in, and why")
    parked.add_argument("name", metavar="NAME", nargs="?", help="as `medialedger consumers list` names it (default: of all)")
    replay = actions.add_parser("replay", help="have parked records tried again by whoever runs the consumer")
    replay.add_argument("name", metavar="NAME")
    replay.add_argument("--stream", metavar="KIND:ID", help="of one aggregate only, such as event:1b671a64-… (default: all)")


def _jobs(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="jobs, the latest first")
    listed.add_argument("--client", type=_text, metavar="NAME", help="of one client (default: of all)")
    listed.add_argument("--state", choices=JOB_STATES)
    listed.add_argument("--failed", action="store_true", help="only those that were abandoned")
    listed.add_argument("--search", type=_text, metavar="TEXT", help="in content id, workflow and parameters that are texts")
    listed.add_argument("--items", type=_positive, default=10, metavar="N", help="how many, at most 1000 (default: %(default)s)")
    show = actions.add_parser("show", help="one job with its tasks: attempts, worker, progress, error")
    logs = actions.add_parser("logs", help="what happened to a job, and what its steps wrote")
    logs.add_argument("--follow", action="store_true", help="go on until the job has ended, or Ctrl-C")
    watch = actions.add_parser("watch", help="how far tasks are, live: bars on a terminal, lines on a pipe")
    watch.add_argument("ids", metavar="ID", nargs="*", type=_positive, help="until these have ended (default: all that run)")
    watch.add_argument("--client", type=_text, metavar="NAME", help="of one client (default: of all)")
    rerun = actions.add_parser("rerun", help="break a job off and hand in another with the same parameters")
    pause = actions.add_parser("pause", help="start no further task of a job; the one that runs goes on to its end")
    resume = actions.add_parser("resume", help="queue a paused job again; what failed or was broken off is tried anew")
    stop = actions.add_parser("break", help="end a job now, with the step that runs")
    for one in (show, logs, rerun, pause, resume, stop):
        one.add_argument("id", metavar="ID", type=_positive)


def _client(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="make a client and show its key, this once")
    add.add_argument("name", metavar="NAME", help="1 to 64 of A-Z a-z 0-9 . _ -")
    add.add_argument("--role", action="append", dest="roles", choices=ROLES, required=True, help="may be given several times")
    actions.add_parser("list", help="every client, its roles and its keys (never the keys' text)")
    rotate = actions.add_parser("rotate", help="make another key and show it, this once")
    rotate.add_argument("name", metavar="NAME")
    rotate.add_argument(
        "--expire-others-after", type=_seconds, metavar="SECONDS", help="how long the older keys still work (default: for good)"
    )
    revoke = actions.add_parser("revoke", help="end one key at once, or the client with all its keys")
    revoke.add_argument("name", metavar="NAME")
    revoke.add_argument("key_id", metavar="KEY_ID", nargs="?", help="as `medialedger client list` shows it (default: the client)")
    drm = actions.add_parser("drm", help="show or change what the client's content key answers say; an empty text is the default")
    drm.add_argument("name", metavar="NAME")
    drm.add_argument("--playready-la-url", metavar="URL", help="LA_URL of PlayReady headers (default: none)")
    drm.add_argument("--widevine-provider", metavar="TEXT", help="provider in Widevine PSSH boxes (default: none)")
    drm.add_argument("--content-id-in-pssh", action=BooleanOptionalAction, help="content id in Widevine PSSH boxes (default: no)")
    drm.add_argument("--fairplay-uri-template", metavar="TEMPLATE", help="may hold {host} {client} {content_id} {kid} {iv}")
    drm.add_argument("--fairplay-key-format-versions", metavar="TEXT", help="such as 1, or 1/2 (default: 1)")
    drm.add_argument(
        "--fairplay-direct-plain-value",
        action=BooleanOptionalAction,
        help="a FairPlay key directly below its ContentKey too (default: no)",
    )
    drm.add_argument(
        "--fairplay-hex-form",
        action=BooleanOptionalAction,
        help="a FairPlay key and its IV as hexadecimal characters (default: no)",
    )


def _keys(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    bring = actions.add_parser("import", help="take in the keys of a CPIX document; a kid that has another key is refused")
    bring.add_argument("file", metavar="FILE.xml", type=Path, help="keys in the clear, so readable by its owner only")
    bring.add_argument("--client", metavar="NAME", required=True, help="whose keys they are")
    export = actions.add_parser("export", help="write the keys of one content as a CPIX document, in the clear, mode 0600")
    export.add_argument("--client", metavar="NAME", required=True)
    export.add_argument("--content-id", metavar="ID", required=True)
    export.add_argument("--output", metavar="FILE.xml", type=Path, required=True)
    rotate = actions.add_parser("rotate", help="seal everything in the vault under a new master key")
    rotate.add_argument("--new-key-file", metavar="FILE", type=Path, required=True, help="made when it is not there")
    dry_run = actions.add_parser("dry-run", help="say what is wrong in a packager's CPIX request; nothing is issued")
    dry_run.add_argument("file", metavar="FILE.xml", type=Path)


def _audit(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="the history of one aggregate, or the newest entries of the log")
    show.add_argument("aggregate", metavar="AGGREGATE", nargs="?", help="its kind, such as event or room")
    show.add_argument("id", metavar="ID", nargs="?")
    show.add_argument("--limit", type=_positive, default=50, metavar="N", help="how many entries at most (default: %(default)s)")
    actions.add_parser("verify", help="recompute the log's hash chain; exit code 1 when it does not fit")


def _workers(parser: ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", type=_worker_role, help="a worker role such as webhooks (default: all)")


def _worker_role(text: str) -> str:
    from api.wiring.catalogue import WORKER_ROLES  # imports every aggregate: most commands do not need that

    if text not in WORKER_ROLES:
        raise ArgumentTypeError(f"there is no {text!r}; there are {', '.join(WORKER_ROLES)}")
    return text


def _load_sample(parser: ArgumentParser) -> None:
    parser.add_argument("--events", type=_positive, default=10_000, metavar="N", help="how many Events (default: %(default)s)")


def _text(text: str) -> str:
    """As the database takes it: bytes that are no text come as halves of characters, and have no encoding."""
    text.encode()
    return text


def _seconds(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


UP = Command(
    "run everything on this machine",
    "Runs everything on this machine: the embedded PostgreSQL (unless MEDIALEDGER_DATABASE_URL names another) and the API. "
    "SIGTERM or Ctrl-C stops it in order; a second Ctrl-C does not wait for requests under way.",
    "medialedger up\n  MEDIALEDGER_PORT=9000 MEDIALEDGER_HOME=/srv/medialedger medialedger up",
    serves=True,
)
API = Command(
    "run only the API",
    "Runs only the API, on the database of MEDIALEDGER_DATABASE_URL, or beside `medialedger up` of the same home.",
    "MEDIALEDGER_DATABASE_URL=postgresql://user:password@db/medialedger medialedger api\n  MEDIALEDGER_PORT=8081 medialedger api",
    serves=True,
)
WORKERS = Command(
    "run only the workers",
    "Runs what acts on the world, all of it or the named roles, on the database of MEDIALEDGER_DATABASE_URL, or beside "
    "`medialedger up` of the same home: relay fills Kafka from the log, webhooks makes a delivery of every change that a webhook "
    "is to hear of, deliveries sends them; scheduler queues jobs whose time has come, controller starts them, work and "
    "windows_capture run their steps, callback tells of them. Any number may run on any number of machines; they share the work.",
    "medialedger workers\n  medialedger workers webhooks deliveries",
    _workers,
    serves=True,
)
SETTINGS = Command(
    "show every setting",
    "Shows every setting with its value, where the value comes from and what it means. Secrets are masked.",
    "medialedger settings",
)
PROJECTIONS = Command(
    "list or rebuild the views",
    "Lists the views that queries read, or builds one anew from the log. Views are written together with the log, so there is "
    "no process that has to run for them.",
    "medialedger projections list\n  medialedger projections rebuild event",
    _projections,
)
CONSUMERS = Command(
    "look after those who read the log",
    "Lists the consumers of the log and the records that they could not take in, and has such records tried again. A parked record "
    "never stops the others; it waits, and what follows it of the same aggregate waits behind it.",
    "medialedger consumers list\n  medialedger consumers parked webhooks\n  medialedger consumers replay webhooks\n"
    "  medialedger consumers replay webhooks --stream event:1b671a64-40d5-491e-99b0-da01ff1f3341",
    _consumers,
)
JOBS = Command(
    "watch and steer jobs",
    "Lists, shows and follows the jobs of all clients, and pauses, resumes, breaks off or reruns one. It works on the database, "
    "also beside `medialedger up`; whoever runs the workers takes notice at once.",
    "medialedger jobs list --client playout --state started\n  medialedger jobs list --failed --search film-17 --items 50\n"
    "  medialedger jobs show 17\n  medialedger jobs logs 17 --follow\n  medialedger jobs watch\n  medialedger jobs watch 17 18\n"
    "  medialedger jobs pause 17\n  medialedger jobs resume 17\n  medialedger jobs break 17\n  medialedger jobs rerun 17",
    _jobs,
)
MIGRATE = Command(
    "bring the database's schema up to date",
    "Brings the database's schema up to date and ends. `up` and `api` do the same when they start.",
    "medialedger migrate",
)
CLIENT = Command(
    "make, list and end callers of the API",
    "Makes, lists and ends callers of the API. A key is shown once, when it is made.",
    "medialedger client add playout --role operator --role keys\n  medialedger client list\n"
    "  medialedger client rotate playout --expire-others-after 86400\n  medialedger client revoke playout 3f0c2a\n"
    "  medialedger client drm packager --playready-la-url https://drm.example.com/rightsmanager.asmx",
    _client,
)
KEYS = Command(
    "bring, take out, re-seal content keys; check a request",
    "Takes content keys in from a CPIX document or writes them to one, seals the vault under a new master key, and says what is "
    "wrong in a packager's CPIX request. Documents with keys hold them in the clear: they are for whoever runs the machine.",
    "medialedger keys import keys.xml --client packager\n"
    "  medialedger keys export --client packager --content-id match-17 --output keys.xml\n"
    "  medialedger keys rotate --new-key-file /srv/medialedger/new-master.key\n  medialedger keys dry-run request.xml",
    _keys,
)
AUDIT = Command(
    "read and check the log",
    "Reads the log, and checks that nobody has changed it.",
    "medialedger audit show room 1b671a64-40d5-491e-99b0-da01ff1f3341\n  medialedger audit show --limit 10\n"
    "  medialedger audit verify",
    _audit,
)
LOAD_SAMPLE = Command(
    "fill the system with a sample schedule",
    "Writes 40 rooms and a schedule of 10,000 Events, always the same, through the commands that the API sends. Loading it twice "
    "changes nothing.",
    "medialedger load-sample\n  medialedger load-sample --events 500",
    _load_sample,
)
