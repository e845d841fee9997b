"""The rhythm of the prober, the cost of a sample, and the response times of the calls that show samples."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from bench.ground import Ground, Served, driven, in_turns, made
from bench.report import Result, Table, Target, middle
from workers.health.prober import INTERVAL

_EVENTS = 1000
_POINTS = 2 * _EVENTS


def prober(ground: Ground) -> Result:
    """(w) 1 000 live Events with two publishing points each: samples, and health calls."""
    url = ground.database("bench_prober")
    with (
        ground.process("points", ["bench.points"]) as port,
        ground.server("probing", url) as probing,
        ground.server("product", url) as apart,
    ):
        address = f"http://127.0.0.1:{int(port)}"
        idle = _busy(ground, seconds=ground.effort.seconds)
        with ThreadPoolExecutor(8) as threads:
            events = list(threads.map(partial(_live, probing, address), range(_EVENTS)))
        time.sleep(4 * INTERVAL)  # the first samples, and the second ones
        _asked(f"{address}/gaps")
        before, seconds = _cpu(ground), max(5 * ground.effort.seconds, 4 * INTERVAL)  # each point several times
        time.sleep(seconds)
        cpu = (_cpu(ground) - before) / seconds - idle
        seen = json.loads(_asked(f"{address}/gaps"))
        calls = _calls(ground, {"during probing": probing, "in a separate process": apart}, events)
    return _result(seen, cpu=cpu, seconds=seconds, calls=calls)


def _calls(ground: Ground, servers: Mapping[str, Served], events: list[tuple[str, str]]) -> dict[str, list[Any]]:
    asked = {
        "all": ["/api/health/live/stream/"],
        "a channel": [f"/api/health/live/stream/{channel}" for channel, _ in events],
        "an Event": [f"/api/health/live/stream/event/{event}" for _, event in events],
    }
    cells = {
        f"{what}, {where}": partial(
            driven, server, [server.request("GET", path) for path in paths], clients=1, effort=ground.effort
        )
        for where, server in servers.items()
        for what, paths in asked.items()
    }
    return in_turns(cells, rounds=ground.effort.rounds)


def _result(seen: Mapping[str, Any], *, cpu: float, seconds: float, calls: Mapping[str, list[Any]]) -> Result:
    gaps, rate = seen["gaps"], seen["samples"] / seconds
    samples = Table(f"(w) Samples of {_POINTS} points", ("", "a second", "gap p50 s", "gap p99 s", "longest s", "cpu us each"))
    each = cpu / rate * 1e6
    middle_gap, long_gap = gaps[len(gaps) // 2], gaps[len(gaps) * 99 // 100]
    samples.add("one prober", rate, middle_gap, long_gap, gaps[-1], each)
    table = Table("(w) Health calls, one client", ("", "req/s", "p50 ms", "p99 ms"))
    for name, values in calls.items():
        table.add(name, *(middle([getattr(value, figure) for value in values]) for figure in ("rate", "p50", "p99")))
    slowest = max(middle([value.p50 for value in values]) for values in calls.values())
    targets = [
        Target("health call with 1 000 live Events, p50", slowest, 100, "ms", at_most=True),
        Target("points sampled", float(seen["points"]), _POINTS, "points"),
        Target("time between two samples of a point, p99", long_gap, 1.5 * INTERVAL, "s", at_most=True),
    ]
    return Result("prober", [samples, table], targets, raw={"samples": dict(seen), "cpu_us": each, **calls})


def _live(server: Served, address: str, number: int) -> tuple[str, str]:
    """Create a channel with two points and a live Event on it."""
    points = {
        f"{place}PublishingPoint": {"publishingPointUrl": f"{address}/{number}{place}.isml"} for place in ("primary", "secondary")
    }
    text = json.dumps({"encoders": [{"name": "enc", "streamingServer": {"streamingServerSpecific": points}}]})
    channel = made(server, "channel", {"name": f"Channel {number}", "configurationJson": text})
    event = made(server, "event", {"title": f"Event {number}", "channelId": channel, "eventState": "LIVE_PUBLISHED"})
    return channel, event


def _cpu(ground: Ground) -> float:
    """Return the seconds of processor time that the process with the prober has used."""
    fields = Path(f"/proc/{ground.pids['probing']}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _busy(ground: Ground, *, seconds: float) -> float:
    before = _cpu(ground)
    time.sleep(seconds)
    return (_cpu(ground) - before) / seconds


def _asked(url: str) -> bytes:
    with urlopen(Request(url)) as answer:
        body: bytes = answer.read()
    return body
