"""The arguments and help texts of most commands. The module with the name of a command runs it."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, BooleanOptionalAction
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from api.cli.argument_types import position, positive, schedule_time, seconds, title, utf8
from api.cli.output_arguments import add_consent, add_form

EXIT_CODES = """\
exit codes:
  0    done, or stopped after a signal
  1    failed or refused; one line on stderr gives the reason
  2    the command line is wrong
  3    the log or a view is wrong (audit, restore); the schema is not up to date (migrate --status)
  4    something needs attention (status, doctor)
  130  interrupted (Ctrl-C) before the product had started
"""
NOT_WHOLE = 3
NOT_UP_TO_DATE = 3
NEEDS_ATTENTION = 4
ROLES = ("viewer", "operator", "keys", "auditor", "admin")
PLACE = ("home", "host", "port")
"""The options that `add_place` adds; they are named like the fields of the settings."""
RUN, OPERATE, MEDIA_WORK, AUDIT_WORK, PERSON = GROUPS = (
    "run the product",
    "operate it",
    "media and jobs",
    "audit and data",
    "this shell",
)
"""The groups of commands in the help."""


def _no_arguments(parser: ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the console script. `serves` marks a command that runs until it is stopped, so it logs, and warns about unknown
    settings. The actions in `by_rest` always call the REST API, of this home or of another installation; the actions in `remote` do
    so only for another installation, and work on the database here. All other actions work on the database. `about_machine` marks a
    command that ignores contexts, `light` one whose `run(args)` needs no settings. See ADR 0076."""

    summary: str
    description: str
    examples: str
    arguments: Callable[[ArgumentParser], None] = _no_arguments
    serves: bool = False
    group: str = RUN
    by_rest: tuple[str, ...] = ()
    remote: tuple[str, ...] = ()
    about_machine: bool = False
    light: bool = False


def add_place(parser: ArgumentParser) -> None:
    """Add the options for settings that may also be given on the command line. Their values are validated together with the
    settings."""
    parser.add_argument("--home", metavar="DIR", help="data directory; overrides MEDIALEDGER_HOME")
    parser.add_argument("--host", metavar="ADDRESS", help="address that the API listens on; overrides MEDIALEDGER_HOST")
    parser.add_argument("--port", metavar="N", help="port that the API listens on, 0 for any free one; overrides MEDIALEDGER_PORT")


def _migrate(parser: ArgumentParser) -> None:
    parser.add_argument("--finish", action="store_true", help="wait until no older build is running, then finish the upgrade")
    parser.add_argument("--status", action="store_true", help="change nothing; show which migrations the database has and lacks")
    parser.add_argument("--parent", type=int, help=SUPPRESS)


def _archive(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="the archive; mode 0600")


def _restore(parser: ArgumentParser) -> None:
    _archive(parser)
    parser.add_argument("--drill", action="store_true", help="keep the copy quiet: nothing leaves it until `medialedger quiet off`")


def _quiet(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    on = actions.add_parser("on", help="stop everything that leaves the installation")
    on.add_argument("--reason", type=utf8, metavar="TEXT", help="the reason, shown wherever the quiet is")
    off = actions.add_parser("off", help="resume everything, including what has been waiting")
    show = actions.add_parser("show", help="show whether the installation is quiet, why, and since when")
    add_consent(off)
    for action_parser in (on, off, show):
        add_form(action_parser)


def _projections(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_form(actions.add_parser("list", help="list every view with its version and the time when it was built"))
    rebuild = actions.add_parser("rebuild", help="rebuild a view from the log, under live traffic")
    rebuild.add_argument("name", metavar="NAME", help="the view, as `medialedger projections list` names it")


def _consumers(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser(
        "list", help="list every consumer with its position, its processes and the number of parked records"
    )
    parked = actions.add_parser("parked", help="list the records that could not be processed, with their errors")
    for action_parser in (listed, parked):
        add_form(action_parser)
    parked.add_argument(
        "name", metavar="NAME", nargs="?", help="the consumer, as `medialedger consumers list` names it (default: all)"
    )
    replay = actions.add_parser("replay", help="process parked records again")
    replay.add_argument("name", metavar="NAME")
    replay.add_argument(
        "--stream", metavar="KIND:ID", help="only the records of one aggregate, such as event:1b671a64-… (default: all)"
    )
    forget = actions.add_parser(
        "forget", help="forget a consumer that is no longer run, such as the relay to a broker that was removed"
    )
    forget.add_argument("name", metavar="NAME", help="the consumer, as `medialedger consumers list` names it")
    add_consent(forget)


def _status(parser: ArgumentParser) -> None:
    add_form(parser)


def _restored(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since", type=position, metavar="POSITION", help="the last position that was not lost (default: the end of the log)"
    )
    parser.add_argument(
        "--reason", type=utf8, default="restored", metavar="TEXT", help="the reason, for the record (default: %(default)s)"
    )


def _media(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    ingest = actions.add_parser("ingest", help="create an Event from a file, package the file for players, and follow the job")
    ingest.add_argument("file", metavar="FILE", type=Path, help="any container and codec that ffmpeg reads")
    ingest.add_argument("--title", type=title, required=True, metavar="TEXT", help="the title of the Event")
    ingest.add_argument("--drm", action="store_true", help="encrypt the packages with a key of the key provider")
    ingest.add_argument("--publish", action="store_true", help="make the Event public when it is packaged")
    ingest.add_argument(
        "--client",
        type=utf8,
        default="admin",
        metavar="NAME",
        help="the client that owns the job and the content key (default: %(default)s)",
    )


def _client(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="create a client and show its key, once")
    add.add_argument("name", metavar="NAME", help="1 to 64 of A-Z a-z 0-9 . _ -")
    add.add_argument(
        "--role", action="append", dest="roles", choices=ROLES, required=True, help="a role; may be given several times"
    )
    add.add_argument("--trust-actor", action="store_true", help="allow the client to name its end user in the header X-Actor")
    trust = actions.add_parser("trust-actor", help="allow or forbid the client to name its end user in the header X-Actor")
    trust.add_argument("name", metavar="NAME")
    trust.add_argument("trusted", choices=("yes", "no"))
    add_form(actions.add_parser("list", help="list every client with its roles and keys (never the text of a key)"))
    rotate = actions.add_parser("rotate", help="create another key and show it, once")
    rotate.add_argument("name", metavar="NAME")
    rotate.add_argument(
        "--expire-others-after", type=seconds, metavar="SECONDS", help="how long the older keys remain valid (default: for ever)"
    )
    revoke = actions.add_parser("revoke", help="revoke one key, or delete the client with all its keys")
    revoke.add_argument("name", metavar="NAME")
    revoke.add_argument(
        "key_id",
        metavar="KEY_ID",
        nargs="?",
        help="the key's id, or its beginning, as `medialedger client list` shows it (default: the client)",
    )
    add_consent(revoke)
    drm = actions.add_parser("drm", help="show or change the client's DRM settings; an empty text restores a default")
    drm.add_argument("name", metavar="NAME")
    drm.add_argument("--playready-la-url", metavar="URL", help="LA_URL of PlayReady headers (default: none)")
    drm.add_argument("--widevine-provider", metavar="TEXT", help="provider in Widevine PSSH boxes (default: none)")
    drm.add_argument("--content-id-in-pssh", action=BooleanOptionalAction, help="content id in Widevine PSSH boxes (default: no)")
    drm.add_argument("--fairplay-uri-template", metavar="TEMPLATE", help="may contain {host} {client} {content_id} {kid} {iv}")
    drm.add_argument("--fairplay-key-format-versions", metavar="TEXT", help="such as 1, or 1/2 (default: 1)")
    drm.add_argument(
        "--fairplay-direct-plain-value",
        action=BooleanOptionalAction,
        help="also write a FairPlay key directly below its ContentKey (default: no)",
    )
    drm.add_argument(
        "--fairplay-hex-form",
        action=BooleanOptionalAction,
        help="write a FairPlay key and its IV as hexadecimal characters (default: no)",
    )


def _keys(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    bring = actions.add_parser(
        "import", help="import the keys of a CPIX document; a kid that is stored with another key is an error"
    )
    bring.add_argument(
        "file",
        metavar="FILE.xml",
        type=Path,
        help="the document; it contains keys in the clear, so only its owner may be able to read it",
    )
    bring.add_argument("--client", metavar="NAME", required=True, help="the client that owns the keys")
    export = actions.add_parser("export", help="write the keys of one content to a CPIX document, in the clear, mode 0600")
    export.add_argument("--client", metavar="NAME", required=True)
    export.add_argument("--content-id", metavar="ID", required=True)
    export.add_argument("--output", metavar="FILE.xml", type=Path, required=True)
    rotate = actions.add_parser("rotate", help="encrypt all secrets of the vault with a new master key")
    rotate.add_argument("--new-key-file", metavar="FILE", type=Path, required=True, help="created if it does not exist")
    lost = actions.add_parser("replace-lost", help="give the database a new master key when no copy of the old one exists any more")
    lost.add_argument("--new-key-file", metavar="FILE", type=Path, required=True, help="created if it does not exist")
    add_consent(lost)
    dry_run = actions.add_parser("dry-run", help="check a packager's CPIX request; no key is issued")
    dry_run.add_argument("file", metavar="FILE.xml", type=Path)


def _workers(parser: ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", type=_worker_role, help="a worker role such as webhooks (default: all)")


def _worker_role(text: str) -> str:
    from api.wiring.catalogue import WORKER_ROLES  # imports every aggregate: most commands do not need that

    if text not in WORKER_ROLES:
        raise ArgumentTypeError(f"{text!r} does not exist; choose from {', '.join(WORKER_ROLES)}")
    return text


def _form(parser: ArgumentParser) -> None:
    add_form(parser)


def _settings(parser: ArgumentParser) -> None:
    add_place(parser)
    add_form(parser)


def _load_sample(parser: ArgumentParser) -> None:
    parser.add_argument("--events", type=positive, default=10_000, metavar="N", help="how many Events (default: %(default)s)")
    parser.add_argument(
        "--around", type=schedule_time, metavar="ISO", help="begin on the day before this time (default: on a day of the year 2031)"
    )
    parser.add_argument("--remove", action="store_true", help="remove the sample, including what was changed in it since")
    add_consent(parser)


API = Command(
    "run only the API",
    "Runs only the API, on the database of MEDIALEDGER_DATABASE_URL, or next to `medialedger up` of the same home; in several "
    "processes with MEDIALEDGER_API_PROCESSES.",
    "MEDIALEDGER_DATABASE_URL=postgresql://user:password@db/medialedger medialedger api\n  MEDIALEDGER_PORT=8081 medialedger api",
    serves=True,
    about_machine=True,
)
WORKERS = Command(
    "run only the workers",
    "Runs all workers or the named roles, on the database of MEDIALEDGER_DATABASE_URL, or next to `medialedger up` of the same "
    "home: relay fills Kafka from the log, webhooks creates the deliveries of changes to Events, deliveries sends them; "
    "timekeeper starts and stops Events and their infrastructure by their schedule; "
    "encoding puts Events on the air on their channels, sessions runs the encoders for them; "
    "prober asks the publishing points of live Events for their state; "
    "provisioning creates and removes infrastructure; "
    "scheduler queues jobs whose time has come, controller starts them, work and windows_capture run their steps; "
    "callback creates the deliveries of job notices; "
    "outcomes notifies the owners of jobs how the jobs ended; "
    "assets deletes the files of removed assets; "
    "syndication removes publications with their destinations; "
    "sealer signs checkpoints of the log; "
    "lists adds up the totals of lists and fills the search indexes. "
    "Any number of processes may run on any number of machines; they share the work. "
    "MEDIALEDGER_WORKER_PROCESSES starts several at once.",
    "medialedger workers\n  medialedger workers webhooks deliveries",
    _workers,
    serves=True,
    about_machine=True,
)
SETTINGS = Command(
    "show every setting",
    "Shows every setting with its value, where the value comes from and what it means. Secrets are masked. With the options of "
    "`medialedger up` it shows the values that this command would use.",
    "medialedger settings\n  medialedger settings --port 9000 --json",
    _settings,
    about_machine=True,
)
PROJECTIONS = Command(
    "list or rebuild the views",
    "Lists the views that queries read, or rebuilds one from the log. Views are written together with the log, so no process "
    "has to run to maintain them.",
    "medialedger projections list\n  medialedger projections rebuild event",
    _projections,
    group=OPERATE,
)
CONSUMERS = Command(
    "list the consumers of the log, replay parked records, forget a consumer",
    "Lists the consumers of the log and the records that they could not process, and replays such records. A parked record does "
    "not stop the consumer; only later records of the same aggregate wait for it. `forget` is for a consumer that no process runs "
    "any more. A consumer that follows the log cannot be forgotten, except for the relay to Kafka.",
    "medialedger consumers list\n  medialedger consumers parked webhooks\n  medialedger consumers replay webhooks\n"
    "  medialedger consumers replay webhooks --stream event:1b671a64-40d5-491e-99b0-da01ff1f3341\n"
    "  medialedger consumers forget 'relay 4L6g3nShT-eMCtK--X86sw'",
    _consumers,
    group=OPERATE,
    by_rest=("list", "parked", "replay", "forget"),
)
BACKUP = Command(
    "write the database to one file",
    "Writes the database to one file, as of one moment, even while the product is running. It does not contain the master key: "
    "keep a copy "
    "elsewhere. It does not contain the media either, only a list of their names.",
    "medialedger backup /mnt/backups/monday.medialedger",
    _archive,
    group=AUDIT_WORK,
)
RESTORE = Command(
    "create a database from a back-up",
    "Creates a database from a back-up, in a home without one or in an empty database of MEDIALEDGER_DATABASE_URL; checks its "
    "log, and "
    "begins a new epoch as `medialedger restored` does. The master key of the back-up must be in its place. A damaged archive is "
    "refused before anything is created.",
    "medialedger restore /mnt/backups/monday.medialedger\n  medialedger restore --drill /mnt/backups/monday.medialedger",
    _restore,
    group=AUDIT_WORK,
)
QUIET = Command(
    "stop what leaves the installation, and resume it",
    "While the installation is quiet, nothing leaves it: no webhooks, callbacks, jobs, pushes, encoders, provisioning, records for "
    "Kafka or time stamps, and the schedule starts nothing. The API, the console and the audit continue. What has been waiting "
    "is sent "
    "when the quiet ends.",
    "medialedger quiet on --reason 'maintenance of the network'\n  medialedger quiet show\n  medialedger quiet off",
    _quiet,
    group=OPERATE,
    by_rest=("on", "off", "show"),
)
RESTORED = Command(
    "record in the log that its database was restored",
    "Begins a new epoch of the log. Run it once after every restore of the database, and after the promotion of a standby that "
    "may lack the latest commits, while no API and no worker is running: positions are then assigned again, and the records of "
    "the lost ones in Kafka become void. No consumer keeps a checkpoint after the position where the epoch begins.",
    "medialedger restored\n  medialedger restored --since 1200 --reason 'back-up of 2 May'",
    _restored,
    group=AUDIT_WORK,
)
MEDIA = Command(
    "bring media into the product",
    "Creates an Event from a file, has it packaged for HLS and DASH by the running workers, and follows the job. A file outside "
    "the "
    "media root is copied there for as long as the job lasts.",
    "medialedger media ingest film.mov --title 'The film' --publish\n  medialedger media ingest film.mov --title 'The film' --drm",
    _media,
    group=MEDIA_WORK,
)
MIGRATE = Command(
    "bring the database's schema up to date",
    "Brings the database's schema up to date. `up`, `api` and `workers` do the same when they start. Objects that older builds "
    "need stay "
    "until none is running any more; then a serving process completes the upgrade in the background, or this command with "
    "--finish.",
    "medialedger migrate\n  medialedger migrate --status\n  medialedger migrate --finish",
    _migrate,
    about_machine=True,
)
STATUS = Command(
    "show the state of the installation and what needs attention",
    "Shows the database, the log, free space, processes, consumers, jobs, deliveries and sessions. A line that begins with ! says "
    "what needs attention and what to do; the exit code is then 4.",
    "medialedger status\n  medialedger status --json",
    _status,
    group=OPERATE,
    remote=("",),
)
BUILDS = Command(
    "list the builds that run on the database",
    "Lists the processes that run on the database with the numbers of their builds, and the oldest build that may start.",
    "medialedger builds",
    _form,
    group=OPERATE,
)
CLIENT = Command(
    "create, list and revoke clients and API keys",
    "Creates, lists and revokes clients and API keys. A key is shown once, when it is created.",
    "medialedger client add playout --role operator --role keys\n  medialedger client list\n"
    "  medialedger client rotate playout --expire-others-after 86400\n  medialedger client revoke playout 3f0c2a\n"
    "  medialedger client drm packager --playready-la-url https://drm.example.com/rightsmanager.asmx",
    _client,
    group=OPERATE,
    remote=("add", "list", "rotate", "revoke"),
)
KEYS = Command(
    "import and export content keys, rotate or replace the master key",
    "Imports content keys from a CPIX document, exports them to one, encrypts the vault with a new master key, replaces a master "
    "key that "
    "is lost, and checks a packager's CPIX request. Documents with keys contain them in the clear: keep them on this machine.",
    "medialedger keys import keys.xml --client packager\n"
    "  medialedger keys export --client packager --content-id match-17 --output keys.xml\n"
    "  medialedger keys rotate --new-key-file /srv/medialedger/new-master.key\n  medialedger keys dry-run request.xml",
    _keys,
    group=OPERATE,
)
LOAD_SAMPLE = Command(
    "write a sample schedule",
    "Writes 40 rooms and a schedule of 10,000 Events, always the same, with the handlers of the API: 100 a day, from the "
    "year 2031 on, or around a time with --around. A second run changes nothing; existing Events keep their times. Webhooks get a "
    "notification of each Event: if there are any, you are asked first.",
    "medialedger load-sample\n  medialedger load-sample --events 500 --around 2026-11-25T12:00:00Z\n"
    "  medialedger load-sample --remove",
    _load_sample,
    group=RUN,
)
