"""The distribution of tests over processes in `make test`: a file stays together, and the longest files come first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import pytest

LONGEST_FIRST: Final = (
    "tests/console/",
    "tests/contract/feed/",
    "tests/workers/encoders/test_ffmpeg.py",
    "tests/api/test_schemathesis.py",
    "tests/docs/test_readme_tour.py",
    "tests/deploy/test_proxies.py",
    "tests/deploy/test_prometheus.py",
    "tests/api/cli/test_media_doctor.py",
    "tests/api/cli/test_backup.py",
    "tests/e2e/",
    "tests/budgets/",
    "tests/workers/encoders/",
    "tests/workers/playout/",
    "tests/workers/session/",
    "tests/docs/",
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
    "tests/console/test_connection.py": "browser alone",
    "tests/console/test_demo_journeys.py": "browser alone",
    "tests/console/test_dialogs.py": "browser alone",
    "tests/console/test_encrypted_playback.py": "browser alone",
    "tests/console/test_audit.py": "console with hostile texts",
    "tests/console/test_every_page.py": "console with hostile texts",
    "tests/console/test_frame.py": "console with hostile texts",
    "tests/console/test_on_air.py": "console with hostile texts",
    "tests/console/": "console",
}
"""Tests that share a process. Those that need the Kafka broker run in one, so that one broker is started. Tests that start, kill
or secure their own broker run in another. Tests of the console share a browser, and in two of three processes a product; in the
third each file starts its own. In one process they would take longer than all other tests in the others."""


START_PRODUCTS: Final = ("tests/api/cli/", "tests/console/", "tests/deploy/", "tests/docs/", "tests/e2e/")
"""Tests that start processes of the product, which are forks of one process that has imported it."""


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
