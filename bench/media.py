"""The time that the engine adds to ffmpeg and Shaka Packager: jobs on a film and the commands of their steps run by hand, in
turns."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import psycopg

from bench.engine import CLIENT
from bench.ground import Ground, Served, in_turns, made
from bench.report import Result, Table, Target, middle
from workers.adapters.ffmpeg import find
from workers.kernel.confinement import NICE

_PROGRAMS = ("ffmpeg", "ffprobe", "packager")
_SECONDS = 10
_SPAN = {"start": "00:00:03.300", "end": "00:00:06.300"}
_ACCURATE = "clip, frame accurate"
_JOBS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "still": ("asset_image", {"name": "still.jpg", "time": "00:00:05.500"}),
    "GIF": ("asset_gif", {"name": "clip.gif", **_SPAN, "fps": 10, "width": 480}),
    "clip, copied": ("asset_video", {"name": "copied.mp4", **_SPAN}),
    _ACCURATE: ("asset_video", {"name": "accurate.mp4", **_SPAN, "frame_accurate": True}),
    "package": ("vod_package", {"renditions": [720, 360]}),
}
_LEAST_MS = 150.0
_SHARE = 0.05
_LOOK = 0.02
_PATIENCE = 300.0
_ENDED = "SELECT failed FROM job_view WHERE id = %s AND state = 2"
_RELEASED = """
SELECT true FROM events WHERE originator_id = %s
HAVING count(*) FILTER (WHERE topic = 'event.vod_job_started') = count(*) FILTER (WHERE topic = 'event.vod_job_ended')
"""
_TIMES = """
SELECT topic, array_agg(extract(epoch FROM recorded_at)::float8) FROM events WHERE originator_id = ANY(%s) GROUP BY topic
"""
_RECORDER = """#!/bin/sh
printf '%s\\0' "$PWD" {program} "$@" > {folder}/$(date +%s%N)
exec {program} "$@"
"""
_TIMER = """#!/bin/sh
begun=$(date +%s%N)
{program} "$@"
status=$?
case "$PWD" in */.jobs/*) echo "$(($(date +%s%N) - begun)) {name}" >> {folder}/times;; esac
exit $status
"""
_OF_JOBS = r"(?:{root}/\.jobs/\d+|\.\./\.\.)/(?:files|\d+/\d+)/"
"""The path before the names of a job's files. The files are all in one folder when the commands are run by hand."""

_Seconds = dict[str, float]


class _Recorder:
    """A wrapper of the programs, first on PATH until it is removed. It records how steps call them, and later how long they
    take."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = {name: find(name) for name in _PROGRAMS}
        folder.mkdir()
        folder.chmod(0o777)  # for the account of steps
        self._write(_RECORDER)

    def _write(self, script: str) -> None:
        for name, program in self._programs.items():
            draft = self._folder / f".{name}"
            draft.write_text(script.format(program=shlex.quote(str(program)), folder=shlex.quote(str(self._folder)), name=name))
            draft.chmod(0o755)
            draft.rename(self._folder / name)

    def measure(self) -> None:
        """Record times from now on."""
        times = self._folder / "times"
        times.touch()
        times.chmod(0o666)
        self._write(_TIMER)

    def spent(self) -> _Seconds:
        """Return the seconds that the programs of steps have taken since the last call."""
        took = {"ffprobe": 0.0, "others": 0.0}
        times = self._folder / "times"
        for line in times.read_text().splitlines():
            nanoseconds, name = line.split()
            took["ffprobe" if name == "ffprobe" else "others"] += int(nanoseconds) / 1e9
        os.truncate(times, 0)
        return took

    def taken(self) -> list[list[str]]:
        """Return the commands of steps since the last call, in order. The product's health check is not one of them."""
        commands = []
        for path in sorted(self._folder.glob("[0-9]*")):
            where, *command = path.read_text().split("\0")[:-1]
            path.unlink()
            if "/.jobs/" in where:
                commands.append(command)
        return commands

    def remove(self) -> None:
        for name in _PROGRAMS:
            (self._folder / name).unlink()


class _Film:
    """An Event with its film, in a running product."""

    def __init__(self, ground: Ground, server: Served, connection: psycopg.Connection) -> None:
        self._server, self._connection = server, connection
        self._key = made(server, "event", {"title": "Benchmark", "eventState": "VOD_PRIVATE"})
        self._root, self._home = ground.home / "media", ground.home
        film = self._root / self._key / f"{self._key}.mp4"
        film.parent.mkdir(mode=0o755)
        source = ("-f", "lavfi", "-i", f"testsrc2=size=1920x1080:rate=25:duration={_SECONDS}")
        sound = ("-f", "lavfi", "-i", f"sine=frequency=440:duration={_SECONDS}")
        coded = ("-c:v", "libx264", "-preset", "veryfast", "-g", "50", "-pix_fmt", "yuv420p", "-c:a", "aac")
        subprocess.run([str(find("ffmpeg")), "-v", "error", *source, *sound, *coded, film], check=True)

    def done(self, *names: str) -> _Seconds:
        """Run jobs at the same time. Return the seconds from the first acceptance to the last completion, and those of their
        steps, by the log."""
        jobs = [self._accepted(name) for name in names]
        for job in jobs:
            if self._awaited(_ENDED, job):
                raise RuntimeError(f"the job {job} ({', '.join(names)}) failed")
        self._awaited(_RELEASED, f"event:{self._key}")
        at: dict[str, list[float]] = dict(self._connection.execute(_TIMES, ([f"job:{job}" for job in jobs],)).fetchall())
        steps = sum(at["job.task_completed"]) - sum(at["job.task_started"])
        return {"job": max(at["job.completed"]) - min(at["job.accepted"]), "steps": steps}

    def by_hand(self, commands: Sequence[Sequence[str]], cores: Sequence[set[int]]) -> _Seconds:
        """Run the commands one after another, on each set of cores at the same time, with the priority of steps, so that other
        work on the machine takes as much from them. Return the seconds of the slowest run, for ffprobe and for the other
        programs."""
        with ThreadPoolExecutor(len(cores)) as threads:
            return max(threads.map(partial(self._one_by_one, commands), cores), key=lambda took: sum(took.values()))

    def _one_by_one(self, commands: Sequence[Sequence[str]], cores: set[int]) -> _Seconds:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)  # of this thread and what it starts, as the cores are
        os.sched_setaffinity(0, cores)
        of_jobs = re.compile(_OF_JOBS.format(root=re.escape(str(self._root))))
        took = {"ffprobe": 0.0, "others": 0.0}
        with tempfile.TemporaryDirectory(dir=self._home) as folder:
            (Path(folder) / "clear").mkdir()
            for program, *arguments in commands:
                command = [program, *(of_jobs.sub("", argument) for argument in arguments)]
                begun = time.perf_counter()
                subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
                took["ffprobe" if Path(program).name.startswith("ffprobe") else "others"] += time.perf_counter() - begun
        return took

    def _accepted(self, name: str) -> int:
        workflow, parameters = _JOBS[name]
        source = {} if workflow == "vod_package" else {"source": f"{self._key}.mp4"}
        body = json.dumps({"job": {"workflow": workflow}, "parameters": {"content_id": self._key, **source, **parameters}}).encode()
        headers = {"Content-Type": "application/json", "API-KEY": self._server.key or "", "client": CLIENT}
        with urlopen(Request(f"http://127.0.0.1:{self._server.port}/engine/job", data=body, headers=headers)) as answer:
            return int(json.load(answer)["id"])

    def _awaited(self, query: str, key: object) -> Any:
        end = time.monotonic() + _PATIENCE
        while (row := self._connection.execute(query.encode(), (key,)).fetchone()) is None:
            if time.monotonic() > end:
                raise RuntimeError(f"{key} did not end")
            time.sleep(_LOOK)
        return row[0]


def media(ground: Ground) -> Result:
    """(v) a still, a GIF, clips and a package of a film: jobs compared with their commands run by hand, and two clips at once."""
    url, cores = ground.database("bench_media"), os.sched_getaffinity(0)
    recorder = _Recorder(ground.home / "recorder")
    path = os.pathsep.join((str(ground.home / "recorder"), *os.get_exec_path()))
    with ground.server("working", url, environment={"PATH": path}) as server, psycopg.connect(url, autocommit=True) as connection:
        film, commands = _Film(ground, server, connection), dict[str, list[list[str]]]()
        cells: dict[str, Callable[[], _Seconds]] = {}
        for name in _JOBS:
            film.done(name)
            commands[name] = recorder.taken()
            by_hand = partial(film.by_hand, commands[name], [cores])
            cells |= {name: _after(by_hand, partial(_measured, film, recorder, name)), f"{name} by hand": _after(by_hand, by_hand)}
        recorder.measure()
        result = _overhead(in_turns(cells, rounds=ground.effort.rounds))
        recorder.remove()
        film.done(_ACCURATE, _ACCURATE)  # starts the second process for steps
        first, second = _pin_steps(ground.pids["working"])
        pairs: dict[str, Callable[[], _Seconds]] = {
            "one, job": partial(film.done, _ACCURATE),
            "two, job": partial(film.done, _ACCURATE, _ACCURATE),
            "one, by hand": partial(film.by_hand, commands[_ACCURATE], [first]),
            "two, by hand": partial(film.by_hand, commands[_ACCURATE], [first, second]),
        }
        pairs = {name: _after(pairs["two, by hand"], cell) for name, cell in pairs.items()}
        _add_throughput(result, in_turns(pairs, rounds=ground.effort.rounds))
    result.raw["commands"] = commands
    return result


def _measured(film: _Film, recorder: _Recorder, name: str) -> _Seconds:
    """Return the seconds of a job, and of the programs in it."""
    recorder.spent()
    took = film.done(name)
    return took | recorder.spent()


def _after(first: Callable[[], _Seconds], cell: Callable[[], _Seconds]) -> Callable[[], _Seconds]:
    """Return `cell`, measured directly after `first`.

    A virtual machine returns memory that is free for a while to its host, and the next program that needs memory waits for it: an
    encode waits for 0.7 to 1.3 s. So each encode is measured directly after another one.
    """

    def measured() -> _Seconds:
        first()
        return cell()

    return measured


def _overhead(seen: Mapping[str, Sequence[_Seconds]]) -> Result:
    """Return the table of the overhead. One run of an encoder differs from the next by more than the engine takes: so the
    overhead is the time of a job without its own programs, and the time of these is shown next to their time by hand."""
    columns = (
        "",
        "job s",
        "its programs s",
        "by hand s",
        "ffprobe ms",
        "engine ms",
        "of it before and after steps ms",
        "overhead ms",
    )
    table = Table(f"(v) Jobs on {_SECONDS} s of 1920 x 1080, accepted to completed; overhead: ffprobe and engine", columns)
    result = Result("media", [table], raw={"load": os.getloadavg(), "seconds": seen})
    for name in _JOBS:
        jobs = seen[name]
        programs = middle([job["others"] for job in jobs])
        hand = middle([run["others"] for run in seen[f"{name} by hand"]])
        probing = 1000 * middle([job["ffprobe"] for job in jobs])
        engine = 1000 * middle([job["job"] - job["others"] - job["ffprobe"] for job in jobs])
        outside = 1000 * middle([job["job"] - job["steps"] for job in jobs])
        over = 1000 * middle([job["job"] - job["others"] for job in jobs])
        table.add(name, middle([job["job"] for job in jobs]), programs, hand, probing, engine, outside, over)
        result.targets.append(Target(f"{name}, over its commands", over, max(_LEAST_MS, 1000 * _SHARE * hand), "ms", at_most=True))
    return result


def _pin_steps(server: int) -> list[set[int]]:
    """Give each process for steps a core of its own: one ffmpeg would use two cores."""
    servers = [pid for pid in _children(server) if b"\0workers.job.host\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    hosts = [pid for fork_server in servers for pid in _children(fork_server)]
    pinned = [{core} for core in sorted(os.sched_getaffinity(0))[:2]]
    if (len(hosts), len(pinned)) != (2, 2):
        raise RuntimeError(f"there are {len(hosts)} processes for steps and {len(pinned)} cores, and not two of each")
    for host, cores in zip(hosts, pinned, strict=True):
        os.sched_setaffinity(host, cores)
    return pinned


def _children(process: int) -> list[int]:
    return [int(pid) for path in Path(f"/proc/{process}/task").glob("*/children") for pid in path.read_text().split()]


def _add_throughput(result: Result, seen: Mapping[str, Sequence[_Seconds]]) -> None:
    table = Table("(v) Frame accurate clips, each on a core of its own", ("", "one s", "two at once s", "throughput"))
    for side, figure in (("job", "job"), ("by hand", "others")):
        first, two = ([took[figure] for took in seen[f"{many}, {side}"]] for many in ("one", "two"))
        ratio = middle([2 * alone / both for alone, both in zip(first, two, strict=True)])
        table.add(side, middle(first), middle(two), ratio)
        if side == "job":
            result.targets.append(Target("two clips at once on two cores, to one on one", ratio, 1.8))
    result.tables.append(table)
    result.raw["throughput"] = seen
