"""The cost of proofs: sealing, exports compared with COPY, the offline verifier, one stream, and POST while a sealer runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from psycopg import sql

from api.cli import verify_export
from bench.ground import Ground, Served, driven, event_posts, in_turns
from bench.large_log import fill, stream
from bench.replays import verified
from bench.report import Result, Table, Target, middle
from domain.kernel.encryption import SecretCipher
from projections.audit.log_export import ExportSelection, export_log, export_stream
from projections.audit.sealing import seal
from projections.audit.stored_log import StoredLog
from projections.kernel.database.database import Database
from projections.vault.vault import Vault
from workers.ports.checkpoints import CheckpointPlaces

_SAME = sql.SQL(
    "SELECT position, originator_id, originator_version, topic, event_id, recorded_at, metadata, salt, state FROM events "
    "WHERE position > {} AND position <= {} ORDER BY position"
)
_SLICE = 5_000
_CLIENTS = 32
_PRODUCT = "each minute or 10,000 events, as the product does"
_RHYTHMS = {_PRODUCT: CheckpointPlaces().seconds, "each second": 1.0}
_TICKS = os.sysconf("SC_CLK_TCK")


def proof(ground: Ground) -> Result:
    """(p) Sealing, export / COPY, verify.py, one stream's proof, POST with / without a sealer; --events as `size`."""
    url, events = ground.database("bench_proof"), ground.effort.events
    fill(url, events=events, partition=max(events, 1000))
    ground.settle()
    sealing, core = _seal_all(url)
    table = Table(
        f"(p) Proofs of a log of {events:,} events; load of the machine {os.getloadavg()[0]:.1f}", ("", "events/s", "seconds")
    )
    table.add("sealing it for the first time, in checkpoints of 10,000", events / sealing, sealing)
    cells: dict[str, Callable[[], float]] = {
        "export": partial(_timed, partial(_export, url)),
        "COPY … TO STDOUT of the same rows": partial(_timed, partial(_copy, url, events)),
        "audit verify": partial(_timed, partial(verified, url)),
    }
    ground.settle()
    seen = in_turns(cells, rounds=3)
    for name, took in seen.items():
        table.add(name, events / middle(took), middle(took))
    offline = _offline(url, ground.home / "export.ndjson")
    table.add("verify.py", events / offline, offline)
    seconds = middle([_timed(partial(_stream, url)) for _ in range(5)])
    table.add("the proof of one stream of 10 events", 10 / seconds, seconds)
    ratio = middle([copy / export for export, copy in zip(seen["export"], seen["COPY … TO STDOUT of the same rows"], strict=True)])
    posts, shares = _posts(ground)
    rates = Table(
        "(p) POST while the log is sealed; ratio: of POST without sealing",
        ("the sealer signs", "ratio", "its share of a core at 1,000 events/s"),
    )
    for name in _RHYTHMS:
        rates.add(name, posts[name], shares[name])
    targets = [
        Target("export / COPY", ratio, 0.5),
        Target("POST with sealing / without", posts[_PRODUCT], 0.97),
        Target("a sealer's share of a core at 1,000 events/s", core, 0.02, at_most=True),
        Target("the share of a core during POST", shares[_PRODUCT], 0.02, at_most=True),
    ]
    raw = {"sealing": sealing, **seen, "offline": offline, "stream": seconds, "posts": posts, "load": os.getloadavg()}
    return Result("proof", [table, rates], targets, raw=raw)


def _timed(what: Callable[[], object]) -> float:
    since = time.perf_counter()
    what()
    return time.perf_counter() - since


def _seal_all(url: str) -> tuple[float, float]:
    """Return the seconds, and the share of a core that this process would need for 1,000 events per second."""
    vault = Vault(Database(url), SecretCipher(bytes(32)))
    since, used, events = time.perf_counter(), time.process_time(), 0
    with StoredLog.connected(url, purpose="bench") as stored:
        while (sealed := seal(stored, vault)) is not None:
            events += sealed.events
    return time.perf_counter() - since, (time.process_time() - used) / events * 1_000


def _export(url: str) -> None:
    with StoredLog.connected(url, purpose="bench") as stored:
        for _ in export_log(stored, ExportSelection()):
            pass


def _copy(url: str, events: int) -> None:
    """Copy the rows in slices of the size that the export uses."""
    with StoredLog.connected(url, purpose="bench") as stored:
        for after in range(0, events, _SLICE):
            with stored.copying(_SAME.format(after, after + _SLICE)) as copy:
                for _ in copy:
                    pass


def _offline(url: str, path: Path) -> float:
    with StoredLog.connected(url, purpose="bench") as stored, path.open("wb") as file:
        file.writelines(export_log(stored, ExportSelection()))
    command = [sys.executable, verify_export.__file__, "log", str(path)]
    return _timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _stream(url: str) -> None:
    with StoredLog.connected(url, purpose="bench") as stored:
        for _ in export_stream(stored, stream(1)):
            pass


def _posts(ground: Ground) -> tuple[dict[str, float], dict[str, float]]:
    """Return, by rhythm, the rate of requests with a sealer divided by the rate without one, and the sealer's share of a core at
    1,000 events per second."""
    url = ground.database("bench_sealed_posts")
    shares: dict[str, list[float]] = {name: [] for name in _RHYTHMS}
    with ground.server("product", url) as server:
        requests = event_posts(server)
        driven(server, requests, clients=_CLIENTS, effort=ground.effort)

        def sealed(name: str) -> float:
            with _sealer(ground, url, seconds=_RHYTHMS[name]) as pid:
                before = _cpu(pid)
                rate = _rate(ground, server, requests)
                shares[name].append((_cpu(pid) - before) / ground.effort.seconds / rate * 1_000)
            return rate

        cells = {"without": partial(_rate, ground, server, requests), **{name: partial(sealed, name) for name in _RHYTHMS}}
        seen = in_turns(cells, rounds=ground.effort.rounds)
    ratios = {name: middle([run / base for run, base in zip(seen[name], seen["without"], strict=True)]) for name in _RHYTHMS}
    return ratios, {name: middle(values) for name, values in shares.items()}


def _rate(ground: Ground, server: Served, requests: list[str]) -> float:
    return driven(server, requests, clients=_CLIENTS, effort=ground.effort).rate


@contextmanager
def _sealer(ground: Ground, url: str, *, seconds: float) -> Iterator[int]:
    with ground.process("sealer", ["bench.sealer", str(seconds)], input_line=url):
        yield ground.pids["sealer"]


def _cpu(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
