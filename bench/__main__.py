"""`python -m bench [NAME…] [--quick]`: run the named benchmarks, or all of them."""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable, Mapping

from bench import (
    append,
    append_contention,
    composing,
    consoles,
    consumers,
    cores,
    deliveries,
    feeds,
    first_picture,
    framework,
    jobs,
    links,
    lists,
    media,
    playout,
    prober,
    proof,
    provisioning,
    reads,
    replays,
    size,
    speke,
    targets,
    timekeeper,
    webhooks,
    writes,
)
from bench.ground import Effort, Ground, ground
from bench.report import Result, show_targets, write

BENCHMARKS: Mapping[str, Callable[[Ground], Result]] = {
    "http": writes.http,
    "append": append.append,
    "snapshot": append_contention.snapshot,
    "losers": append_contention.losers,
    "reads": reads.reads,
    "links": links.links,
    "lists": lists.lists,
    "rebuild": replays.rebuilds,
    "twin": writes.twin,
    "verify": replays.verification,
    "deliveries": deliveries.deliveries,
    "feeds": feeds.feeds,
    "webhooks": webhooks.webhooks,
    "consumers": consumers.consumers,
    "latency": consumers.latency,
    "speke": speke.speke,
    "jobs": jobs.jobs,
    "job-starts": jobs.job_starts,
    "job-queue": jobs.job_queue,
    "timekeeper": timekeeper.timekeeper,
    "framework": framework.framework,
    "cores": cores.cores,
    "media": media.media,
    "composing": composing.composing,
    "playout": playout.playout,
    "prober": prober.prober,
    "proof": proof.proof,
    "targets": targets.targets,
    "provisioning": provisioning.provisioning,
    "size": size.size,
    "consoles": consoles.consoles,
    "console": first_picture.console,
    "first-picture": first_picture.first_picture,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure ratios in turns on this machine. Names: "
        + "; ".join(f"{name} {(run.__doc__ or '').strip()}" for name, run in BENCHMARKS.items()),
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument(
        "--quick", action="store_true", help="shorter rounds, fewer of them, and 100 000 Events instead of a million"
    )
    parser.add_argument(
        "--events", type=int, metavar="N", help="the number of events in the large log of `size` (10 000 000; when quick 100 000)"
    )
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    results: list[Result] = []
    broken: list[str] = []
    events = given.events or (100_000 if given.quick else 10_000_000)
    with ground(Effort(given.quick, events)) as stood_on:
        for name in given.names or BENCHMARKS:
            print(f"\n{name}: {(BENCHMARKS[name].__doc__ or '').strip()}", flush=True)
            since = time.perf_counter()
            try:
                result = BENCHMARKS[name](stood_on)
            except Exception:
                traceback.print_exc()
                broken.append(name)
                continue
            result.raw["took"] = time.perf_counter() - since
            result.show()
            results.append(result)
    show_targets(results)
    print(f"\nall figures: {write(results, quick=given.quick)}")
    if broken:
        raise SystemExit(f"could not be measured: {', '.join(broken)}")


if __name__ == "__main__":
    main()
