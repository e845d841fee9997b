"""The distribution of tests over processes in `make test`: a file stays together, and the longest files come first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import pytest

LONGEST_FIRST: Final = (
    "tests/workers/encoders/test_ffmpeg.py",
    "tests/contract/feed/",
    "tests/api/test_schemathesis.py",
    "tests/e2e/",
    "tests/console/",
    "tests/workers/encoders/",
    "tests/workers/playout/",
    "tests/workers/session/",
    "tests/docs/",
    "tests/deploy/",
    "tests/contract/",
    "tests/workers/job/",
    "tests/workers/event/timekeeper/",
    "tests/workers/provision/",
    "tests/platform/",
    "tests/api/cli/",
    "tests/projections/log/",
    "tests/properties/",
    "tests/api/",
    "tests/workers/",
    "tests/projections/",
)
"""A file that takes a minute and comes last is a minute in which the other processes have nothing to do."""

TOGETHER: Final = {
    "tests/contract/feed/test_kafka_": "kafka of its own",
    "tests/contract/feed/": "kafka",
    "tests/e2e/test_webhooks.py": "kafka",
    "tests/console/": "console",
}
"""Tests that share a process. Those that need the Kafka broker run in one, so that one broker is started. Tests that start, kill
or secure their own broker run in another. Tests of the console share a product and a browser."""


def groups(items: Sequence[pytest.Item]) -> list[list[int]]:
    """The places of tests that stay in one process, since the fixtures of a module are made once; in the order of the tests."""
    by_group: defaultdict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        file = item.nodeid.partition("::")[0]
        by_group[next((group for start, group in TOGETHER.items() if file.startswith(start)), file)].append(place)
    return list(by_group.values())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.nodeid))


def _place(nodeid: str) -> int:
    return next((place for place, start in enumerate(LONGEST_FIRST) if nodeid.startswith(start)), len(LONGEST_FIRST))
