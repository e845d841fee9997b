"""Lists of a million entries: the first page compared with a small system, and search compared with a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from random import Random
from time import monotonic
from uuid import UUID

import psycopg
import uvloop

from bench import schedule
from bench.ground import Ground, Served, driven, in_turns
from bench.load import Seen
from bench.report import Result, Table, Target, middle
from projections.event.view import EVENT_SEARCH
from projections.job.counts import COUNTED, TOTALS
from projections.job.view import JOB_SEARCH
from projections.kernel.database.database import Database
from projections.kernel.sql.search import CONSUMER, grams
from projections.kernel.sql.tallies import Tallies

_FEW = 10_000
_REQUESTS = 200
_LISTS = ("first page, no filter", "one state", "a year", "deleted")
_JOB_LISTS = ("jobs, first page", "jobs, a page in the middle", "jobs, failed", "jobs, completed of one workflow", "jobs, counts")
_COUNTS = ("totals", "counted")
_TURNS = 20
_SEARCHES = ("search of Events", "search of Events, nothing found", "search of jobs")

_EVENTS = """
INSERT INTO event_view
    (id, version, deleted, state, title, ref_id, room_id, category_ids, scheduled_start, scheduled_end, display_start,
    date_created, date_modified, shown_version, search_text, document)
SELECT id, 1, n %% 50 = 0, n %% 12, title, 'ref' || n, md5('room' || n %% 200)::uuid, ARRAY[md5('category' || n %% 40)::uuid],
    start, start + interval '1 hour', start, now(), now(), 1, lower(title) || E'\\x1fref' || n || E'\\x1f' || id::text,
    json_build_object('title', title, 'ref_id', 'ref' || n, 'state', n %% 12, 'scheduled_start', start)::text
FROM (
    SELECT n, md5(n::text)::uuid AS id, 'Match ' || to_char(n, 'FM0000000') || ' ' || left(md5('club' || n), 12) AS title,
        timestamptz '2028-01-01Z' + n * interval '86.4 s' AS start
    FROM generate_series(%s::bigint, %s::bigint) AS n
) AS made
"""
_JOBS = """
INSERT INTO job_view
    (id, version, client, workflow, content_id, state, failed, priority, created_at, updated_at, parameters, search_text)
SELECT n, 1, 'bench' || n %% 7, CASE n %% 3 WHEN 0 THEN 'noop' ELSE 'other' END, 'match-' || to_char(n, 'FM0000000'),
    CASE WHEN n %% 20 = 0 THEN 5 ELSE 2 END, n %% 1000 = 1, 5, now(), now(), '{}',
    'match-' || to_char(n, 'FM0000000') || E'\\x1fnoop'
FROM generate_series(%s::bigint, %s::bigint) AS n
"""


def lists(ground: Ground) -> Result:
    """(t) Lists and searches of a million Events and jobs (a hundred thousand when quick), compared with 10 000 and with a scan."""
    many = ground.effort.many
    result = Result("lists")
    urls = {total: _filled(ground, total) for total in (_FEW, many)}
    with ground.server("product", urls[_FEW]) as small, ground.server("product", urls[many]) as large:
        ground.settle()
        cells: dict[str, Callable[[], Seen]] = {}
        for total, server in ((_FEW, small), (many, large)):
            for name in (*_LISTS, *_JOB_LISTS):
                cells[f"{name}/{total}"] = partial(driven, server, _requests(server, name, total), clients=1, effort=ground.effort)
        for name in _SEARCHES:
            for how in ("index", "scan"):
                cells[f"{name}/{how}"] = partial(_search, ground, large, urls[many], name=name, total=many, how=how)
        seen = in_turns(cells, rounds=max(ground.effort.rounds // 2, 2))
    _tell(result, seen, many)
    result.raw["lists"] = seen
    _tell_counts(result, urls[many], many)
    return result


def _tell_counts(result: Result, url: str, many: int) -> None:
    """Compare the totals that the view stores with a count of its rows, in turns, in the database alone."""
    seen: dict[str, list[float]] = {name: [] for name in _COUNTS}
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(_TURNS):
            for name, question in zip(_COUNTS, (TOTALS, COUNTED), strict=True):
                begun = monotonic()
                connection.execute(question.encode(), {"deleted": False}).fetchall()
                seen[name].append((monotonic() - begun) * 1000)
    stored, counted = (middle(seen[name]) for name in _COUNTS)
    table = Table(f"(t) Counts of {many:,} jobs, by the database alone", ("", "ms, totals", "ms, counted", "times as fast"))
    table.add("by client, workflow and state", stored, counted, counted / stored)
    result.tables.append(table)
    result.targets.append(Target("count over totals of jobs", counted / stored, 20.0))
    result.raw["counts"] = seen


def _tell(result: Result, seen: dict[str, list[Seen]], many: int) -> None:
    table = Table("(t) Lists, one client, 20 a page", ("", f"p50 ms, {_FEW:,}", f"p50 ms, {many:,}", "ratio"))
    for name in (*_LISTS, *_JOB_LISTS):
        small, large = seen[f"{name}/{_FEW}"], seen[f"{name}/{many}"]
        grown = middle([run.p50 / base.p50 for run, base in zip(large, small, strict=True)])
        table.add(name, middle([run.p50 for run in small]), middle([run.p50 for run in large]), grown)
        result.targets.append(Target(f"list p50, {many:,} over {_FEW:,}: {name}", grown, 2.0, at_most=True))
    result.tables.append(table)
    table = Table(f"(t) Searches of {many:,}, one client", ("", "p50 ms, scan", "p50 ms, index", "times as fast"))
    for name in _SEARCHES:
        scan, index = seen[f"{name}/scan"], seen[f"{name}/index"]
        faster = middle([run.p50 / base.p50 for run, base in zip(scan, index, strict=True)])
        table.add(name, middle([run.p50 for run in scan]), middle([run.p50 for run in index]), faster)
        result.targets.append(Target(f"scan over index: {name}", faster, 20.0))
    result.tables.append(table)


def _search(ground: Ground, server: Served, url: str, *, name: str, total: int, how: str) -> Seen:
    """Measure a search. It is a scan if its consumer is far behind."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE consumer_shards SET position = %s WHERE consumer = %s", (0 if how == "index" else -(10**9), CONSUMER)
        )
    return driven(server, _requests(server, name, total), clients=1, effort=ground.effort)


def _requests(server: Served, name: str, total: int) -> list[str]:
    random = Random(schedule.SEED)
    return [server.request("GET", _path(name, random.randrange(total))) for _ in range(_REQUESTS)]


def _path(name: str, number: int) -> str:
    match name:
        case "one state":
            return f"/api/event/?eventState={number % 12}"
        case "a year":
            begin = schedule.BEGIN + timedelta(hours=number % 5000)
            return f"/api/event/?from={schedule.wire(begin)}&to={schedule.wire(begin + timedelta(days=365))}"
        case "deleted":
            return "/api/event/deleted/"
        case "search of Events":
            return f"/api/event/?search=MATCH%20{number:07d}"
        case "search of Events, nothing found":
            return f"/api/event/?search=goal%20{number:07d}"
        case "jobs, first page":
            return "/engine/jobs?items=20"
        case "jobs, a page in the middle":
            return f"/engine/jobs?items=20&after={number}"
        case "jobs, failed":
            return "/engine/jobs?items=20&failed=true"
        case "jobs, completed of one workflow":
            return "/engine/jobs?items=20&state=completed&workflow=noop"
        case "jobs, counts":
            return "/engine/jobs/counts"
        case "search of jobs":
            return f"/engine/jobs?search=MATCH-{number:07d}"
        case _:
            return "/api/event/"


def _filled(ground: Ground, total: int) -> str:
    """Return a database whose views, totals and search indexes hold `total` Events and jobs; its log is empty."""
    url = ground.database(f"bench_lists_{total}")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in (_EVENTS, _JOBS):
            connection.execute(statement.encode(), (1, total))
        for index in (EVENT_SEARCH, JOB_SEARCH):
            connection.execute(f"DROP INDEX {index.table}_grams".encode())  # made at once it takes less time than row by row
            with connection.cursor() as cursor, psycopg.connect(url) as other, other.cursor("texts") as texts:
                texts.itersize = 10_000
                texts.execute(f"SELECT id, search_text FROM {index.view}".encode())
                with cursor.copy(f"COPY {index.table} (id, grams) FROM STDIN".encode()) as copy:
                    for row in _rows(texts):
                        copy.write_row(row)
            connection.execute(f"CREATE INDEX {index.table}_grams ON {index.table} USING gin (grams)".encode())
        connection.execute("INSERT INTO consumer_shards (consumer, shard) VALUES (%s, 0) ON CONFLICT DO NOTHING", (CONSUMER,))
        uvloop.run(_add_up(url))
        connection.execute("VACUUM (ANALYZE)")
    print(f"  {total:,} Events and jobs", flush=True)
    return url


def _rows(texts: psycopg.Cursor[tuple[UUID | int, str]]) -> Iterator[tuple[UUID | int, list[int]]]:
    for key, text in texts:
        yield key, sorted(grams(text))


async def _add_up(url: str) -> None:
    async with Database(url, size=2) as database:
        tallies = Tallies(database)
        while await tallies.add_up():
            pass
