"""A second signal to `medialedger workers`: it ends at once, and reports that in a line."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.support.product import Products
from tests.support.waiting import until


def test_workers_that_get_a_second_signal_do_not_wait(own_database: str, started: Products, tmp_path: Path) -> None:
    workers = started.start(tmp_path / "home", "workers", database_url=own_database)
    workers.until_printed("SIGTERM", seconds=120)

    def ended() -> bool:
        workers.signal(signal.SIGINT)
        return workers.process.poll() is not None

    until(ended)
    workers.until_printed("stopped by force", seconds=60)
    assert workers.ended() in (1, -signal.SIGINT), "the interpreter has no handler in its last moment"
    assert "Traceback" not in workers.errors
