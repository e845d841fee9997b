"""`medialedger doctor`: looks for problems of this installation, whether or not the product runs. It changes nothing, except that
`--media` stores a verdict on the media programs that it tries."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

import psycopg

from api.cli.local.media_trials import TRIALS, Stage, Trial, TrialFailed, extras
from api.cli.output import Finding
from api.cli.run.database import NEW_DATABASE, OLDEST, first_line
from api.kernel.shell_access import running_product
from api.wiring.catalogue import migrations
from api.wiring.settings import Settings
from api.wiring.settings_checks import cookie_problem
from api.wiring.startup import LOST_KEY
from domain.kernel.clock import system_clock
from projections.kernel.database.connection import Connection, with_limits
from projections.kernel.sizes import shown
from projections.vault.master_keys import UNREADABLE
from workers.adapters.embedded_postgres import EmbeddedPostgres
from workers.adapters.ffmpeg import find, version
from workers.adapters.free_space import LOW, free_bytes
from workers.adapters.program_verdicts import Verdicts
from workers.kernel.confinement import OPEN_FILES, OPEN_NETWORK
from workers.kernel.media_programs import missing

_OPEN: Final = 0o077
_MOST_APART: Final = 2.0
"""The largest acceptable difference in seconds between the clocks of this machine and of the database."""
_SECONDS: Final = 5.0
_LONG: Final = 60.0
_SHOWN: Final = 100
_PROGRAMS: Final = {"ffmpeg": "-version", "ffprobe": "-version", "packager": "--version"}
_PACKAGES: Final = ("api", "domain", "projections", "workers", "medialedger")
_CONFINED: Final = "from workers.kernel.confinement import *; print(*confine(Confinement(network=False)), sep='\\n')"
_REMEDIES: Final = {
    OPEN_NETWORK: "steps of jobs still have network access: allow user namespaces, or run as root "
    "(sysctl user.max_user_namespaces; in Docker its seccomp profile)",
    OPEN_FILES: "steps of jobs can read every file that their user can: use a kernel with Landlock, 5.13 or newer "
    "(landlock in its parameter lsm=; in Docker its seccomp profile)",
}
_STATE: Final = (
    "SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('fsync'), "
    "current_setting('synchronous_commit'), current_setting('full_page_writes'), clock_timestamp()"
)
_VAULT: Final = "0050 named master keys"
_SAFE: Final = ("fsync", "synchronous_commit", "full_page_writes")


async def findings(settings: Settings) -> AsyncIterator[Finding]:
    running = running_product(settings.home)
    yield _settings(settings)
    yield _home(settings.home)
    yield _secret("master key", settings.master_key_file, needed=EmbeddedPostgres(settings.home).exists)
    yield _disk("disk of the home", settings.home)
    if isinstance(settings.media_root, Path):
        yield _disk("disk of media", settings.media_root)
    where = "nothing runs on this home" if running is None else f"runs as process {running.pid} at {running.url}"
    yield Finding("product", where)
    yield await asyncio.to_thread(_port, settings, running is not None)
    async for finding in _database(settings):
        yield finding
    for name, option in _PROGRAMS.items():
        yield await _program(name, option, home=settings.home)
    yield await asyncio.to_thread(_sandbox)
    yield await asyncio.to_thread(_packages, packages_distributions())
    yield _tracing(settings)
    yield _console(settings)
    if settings.kafka_bootstrap_servers is not None:
        yield await _kafka(settings.kafka_bootstrap_servers)


def _settings(settings: Settings) -> Finding:
    unknown = "; ".join(f"the setting {name} does not exist: unset it" for name in settings.unknown)
    return Finding("settings", f"{len(settings.model_fields_set)} set", unknown)


def _tracing(settings: Settings) -> Finding:
    tracing = settings.tracing
    if not tracing.collector:
        return Finding("traces", "off; OTEL_EXPORTER_OTLP_ENDPOINT turns them on")
    return Finding("traces", f"are sent to {tracing.collector}" if tracing.on else "are not sent", tracing.problem)


def _console(settings: Settings) -> Finding:
    place = settings.public_url or f"http://{settings.host}:{settings.port}"
    return Finding("console", f"is reached at {place}", cookie_problem(host=settings.host, public_url=settings.public_url))


def _home(home: Path) -> Finding:
    if not home.exists():
        return Finding("home", f"{home} does not exist yet; `medialedger up` creates it")
    if not home.is_dir():
        return Finding("home", str(home), f"it is not a directory: set MEDIALEDGER_HOME to another one, or move {home} away")
    status, wrong = home.stat(), []
    if status.st_uid != os.geteuid():
        wrong.append(f"it belongs to the user {status.st_uid}: work as that user, or with sudo")
    if stat.S_IMODE(status.st_mode) & 0o007:
        wrong.append(f"other users may enter it: chmod 700 {home}")
    return Finding("home", f"{home}, mode {stat.S_IMODE(status.st_mode):04o}", "; ".join(wrong))


def _secret(name: str, path: Path, *, needed: bool) -> Finding:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        wrong = f"the database's key is missing: put a copy of it at {path}" if needed else ""
        return Finding(name, f"{path} does not exist yet", wrong)
    except OSError as error:
        return Finding(name, str(path), f"it cannot be read: {error.strerror}")
    return Finding(name, f"{path}, mode {mode:04o}", f"other users may read it: chmod 600 {path}" if mode & _OPEN else "")


def _disk(name: str, path: Path) -> Finding:
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    free = free_bytes(existing)
    least = max(LOW, NEW_DATABASE)
    return Finding(name, f"{shown(free)} free at {existing}", f"free some space: {shown(least)} are needed" if free < least else "")


def _port(settings: Settings, runs: bool) -> Finding:
    """Check that the port can be taken, unless the product of this home already uses it."""
    place = f"{settings.host}:{settings.port}"
    if runs or settings.port == 0:
        return Finding("port", f"{place} is used by this product" if runs else "any free port")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            return Finding(
                "port", place, f"it cannot be used ({reason}): stop the process that uses it, or choose another MEDIALEDGER_PORT"
            )
    return Finding("port", f"{place} is free")


async def _database(settings: Settings) -> AsyncIterator[Finding]:
    """Yield the findings about the database. An embedded database that does not run is not started."""
    url = None if settings.database_url is None else settings.database_url.get_secret_value()
    embedded = EmbeddedPostgres(settings.home)
    if url is None and not embedded.running:
        state = "embedded; it is not running" if embedded.exists else "embedded; it does not exist yet"
        yield Finding("database", f"{state}, `medialedger up` starts it")
        return
    try:
        address = with_limits(url or embedded.logins()[0])
        async with asyncio.timeout(_SECONDS), await Connection.connect(address, autocommit=True) as connection:
            row = await (await connection.execute(_STATE)).fetchone()
            applied = await _applied_migrations(connection)
            unreadable = await _unreadable(connection) if applied is not None and _VAULT in applied else None
    except (psycopg.Error, TimeoutError, UnicodeError) as error:
        reason = first_line(error) if str(error) else "it does not answer"
        yield Finding("database", "cannot be reached", f"{reason}: start it, or correct MEDIALEDGER_DATABASE_URL")
        return
    assert row is not None, "the statement has a row"
    yield _version(row[0], row[1])
    yield _safety(dict(zip(_SAFE, row[2:5], strict=True)))
    yield _clock(row[5])
    yield _schema(applied)
    if unreadable is not None:
        yield _secrets(unreadable)


async def _applied_migrations(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> set[str] | None:
    """Return the names of the applied migrations; None if the database holds no medialedger."""
    row = await (await connection.execute("SELECT to_regclass('public.migrations')")).fetchone()
    if row is None or row[0] is None:
        return None
    return {str(name) for (name,) in await (await connection.execute("SELECT name FROM migrations")).fetchall()}


async def _unreadable(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> int:
    row = await (await connection.execute(UNREADABLE.encode())).fetchone()
    return int(str(row[0])) if row is not None else 0


def _secrets(unreadable: int) -> Finding:
    if not unreadable:
        return Finding("secrets", "all can be decrypted with the master key")
    return Finding("secrets", f"{unreadable} are encrypted with another master key", f"they cannot be decrypted: {LOST_KEY}")


def _version(number: int, name: str) -> Finding:
    wrong = f"{OLDEST} or newer is needed: upgrade the server" if number < OLDEST * 10_000 else ""
    return Finding("database", f"PostgreSQL {name.partition(' ')[0]}", wrong)


def _safety(values: dict[str, str]) -> Finding:
    off = [name for name, value in values.items() if value == "off"]
    wrong = "; ".join(f"{name} is off, so a crash may lose acknowledged writes: set it to on" for name in off)
    return Finding("durability", ", ".join(f"{name} {value}" for name, value in values.items()), wrong)


def _clock(there: datetime) -> Finding:
    apart = abs((system_clock() - there).total_seconds())
    wrong = "synchronize both with NTP: `timedatectl set-ntp true`" if apart > _MOST_APART else ""
    return Finding("clock", f"{apart:.1f} s off the database's clock", wrong)


def _schema(applied: set[str] | None) -> Finding:
    if applied is None:
        return Finding("schema", "the database holds no medialedger yet; `medialedger up` or `medialedger migrate` creates one")
    needed = {step.name for step in migrations()}
    wrong = []
    if missing := sorted(needed - applied):
        wrong.append(f"{len(missing)} migrations are missing: run `medialedger migrate`, or start the product")
    if newer := sorted(applied - needed):
        wrong.append(f"a newer build applied {', '.join(newer)}: run that build")
    return Finding("schema", f"{len(needed & applied)} of {len(needed)} migrations", "; ".join(wrong))


async def _program(name: str, option: str, *, home: Path) -> Finding:
    """Check that the program is installed and runs."""
    path = find(name, verdicts=Verdicts(home))
    if path is None:
        return Finding(name, "not found", missing(name))
    try:
        process = await asyncio.create_subprocess_exec(
            path, option, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(_LONG):
            output, _ = await process.communicate()
    except (OSError, TimeoutError) as error:
        return Finding(name, str(path), f"it cannot be run ({error or 'it does not end'}): install it again")
    first = output.decode(errors="replace").strip().partition("\n")[0][:_SHOWN]
    wrong = "" if process.returncode == 0 else f"it ends with status {process.returncode}: install it again"
    own = shutil.which(name)
    aside = "" if own is None or Path(own) == path else f"; {own} is not used until `medialedger doctor --media` has tried it"
    return Finding(name, f"{path}: {first}{aside}", wrong)


def _sandbox() -> Finding:
    """Check which privileges a process of steps can give up here, by trying it in a process that ends at once."""
    command = [sys.executable, "-c", _CONFINED]
    try:
        tried = subprocess.run(command, timeout=_LONG, check=False, capture_output=True, text=True)  # noqa: S603
        lacks = list(filter(None, tried.stdout.splitlines())) if tried.returncode == 0 else list(_REMEDIES)
    except (OSError, subprocess.TimeoutExpired):
        lacks = list(_REMEDIES)
    wrong = "; ".join(_REMEDIES[lack] for lack in lacks)
    return Finding(
        "steps of jobs", "are less isolated than they could be" if wrong else "have no network and no secret files", wrong
    )


def _packages(distributions: Mapping[str, Sequence[str]]) -> Finding:
    """Check that no other distribution has modules under a name of ours: removing either of them deletes files of the other.
    `distributions` holds the distributions that provide each name."""
    wrong = []
    for name in _PACKAGES:
        others = sorted({other for other in distributions.get(name, ()) if other.lower() != "medialedger"})
        if others:
            wrong.append(
                f"{', '.join(others)} also contains a package {name}: install it in another environment, and medialedger again"
            )
        elif getattr(import_module(name), "__file__", None) is None:
            wrong.append(f"files of the package {name} are missing: install medialedger again")
    return Finding("packages", f"{', '.join(_PACKAGES)} belong to the product", "; ".join(wrong))


async def _kafka(servers: str) -> Finding:
    """Check that one of the brokers accepts connections."""
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            async with asyncio.timeout(_SECONDS):
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
            writer.close()
        except (OSError, ValueError, TimeoutError):
            continue
        return Finding("Kafka", f"{server.strip()} accepts connections")
    return Finding("Kafka", servers, "no broker accepts connections: start one, or correct MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS")


_TRIED: Final = ("ffmpeg", "ffprobe")
_NOWHERE: Final = "/nonexistent"


def try_programs(home: Path, *, trials: Sequence[Trial] = TRIALS) -> list[Finding]:
    """Return a finding for each program and each trial. Programs on PATH are preferred over those of the product."""
    own = {name: Path(path) for name in _TRIED if (path := shutil.which(name)) is not None}
    programs = {name: own.get(name) or find(name, path=_NOWHERE) for name in _TRIED}
    findings = [_tried_program(name, path) for name, path in programs.items()]
    ffmpeg, ffprobe = programs.values()
    if ffmpeg is None or ffprobe is None:
        return findings
    with TemporaryDirectory(prefix="medialedger-media-") as folder:
        stage = Stage(ffmpeg, ffprobe, Path(folder).resolve())
        results = list(_results(stage, trials))
        can = extras(stage)
    faults = [f"{result.name}: {result.attention}" for result in results if result.attention]
    return [*findings, *results, Finding("further abilities", ", ".join(can) or "none"), _store_verdict(home, own, faults)]


def _tried_program(name: str, path: Path | None) -> Finding:
    if path is None:
        return Finding(name, "not found", missing(name))
    return Finding(name, f"{path}: {version(path).partition(chr(10))[0][:_SHOWN]}")


def _results(stage: Stage, trials: Sequence[Trial]) -> Iterator[Finding]:
    for trial in trials:
        begun = monotonic()
        try:
            trial.run(stage)
        except TrialFailed as fault:
            yield Finding(trial.name, "failed", str(fault).replace(";", ","))
        except Exception as fault:  # the output of a program is not trusted
            yield Finding(trial.name, "failed", f"its result cannot be read ({type(fault).__name__})")
        else:
            yield Finding(trial.name, f"passed in {monotonic() - begun:.1f} s")


def _store_verdict(home: Path, own: dict[str, Path], faults: Sequence[str]) -> Finding:
    """Store the verdict for the operator's programs. The product's own programs are used whatever the result is."""
    if not own:
        return Finding("verdict", "the programs that came with the product " + ("do not pass" if faults else "pass"))
    names = " and ".join(str(path) for path in own.values())
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in own.values():
            Verdicts(home).note(path, version=version(path), faults=faults)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Finding("verdict", "cannot be stored", f"{reason}: work as the user of the product, whose home is {home}")
    if faults:
        wheel = "the programs of medialedger[media] are used" if find("ffmpeg", path=_NOWHERE) else "install medialedger[media]"
        return Finding("verdict", f"{names} are not used: {len(faults)} of {len(TRIALS)} trials failed", wheel)
    return Finding("verdict", f"{names} are used from the next start of the product on")
