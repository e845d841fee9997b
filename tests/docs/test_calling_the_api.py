"""The programs in the pages about clients in Python and JavaScript, and about the migration of a schedule, are correct: they are
run unchanged against a real `medialedger up`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.npm_packages import npm_packages
from tests.support.product import Product, client, migrated_home, products
from tests.support.programs import program
from tests.support.waiting import ROOT

_PRINTED = """\
found Cup final
renamed Cup final, replay
notified of true metadata changed true
change 1 event.registered
change 2 event.described
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, dict[str, str]]]:
    """The product, and the environment of its clients."""
    with products() as started:
        product = started.start(migrated_home(tmp_path_factory.mktemp("calls") / "home"), outbound_allow="127.0.0.0/8")
        product.until_ready()
        key = (product.home / "admin-api-key").read_text().strip()
        yield product, {**os.environ, "MEDIALEDGER_URL": product.address, "MEDIALEDGER_API_KEY": key}


def page(name: str) -> str:
    return (ROOT / "docs" / "how-to" / name).read_text(encoding="utf-8")


def program_of(name: str, language: str) -> str:
    return "\n".join(re.findall(rf"^```{language} run\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL))


def run(*command: str | Path, folder: Path, environment: Mapping[str, str], code: int = 0) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    return done.stdout


def test_the_python_client_does_what_its_page_says(served: tuple[Product, dict[str, str]], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program_of("call-the-api-from-python.md", "python"), encoding="utf-8")
    printed = run(sys.executable, "program.py", folder=tmp_path, environment=served[1])
    assert "created Cup final PRE_LIVE - repeated: true\n400 {'scheduledStart': 'must be" in printed
    assert printed.endswith(_PRINTED.replace("true", "True").replace("found Cup final", "found ['Cup final']"))


def test_the_javascript_client_does_what_its_page_says(served: tuple[Product, dict[str, str]], tmp_path: Path) -> None:
    (tmp_path / "program.mjs").write_text(program_of("call-the-api-from-javascript.md", "js"), encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(npm_packages())
    printed = run(program("node"), "program.mjs", folder=tmp_path, environment=served[1])
    assert printed.startswith("created Cup final PRE_LIVE - repeated: true\n400 {")
    assert printed.endswith(f"unknown: null\nfound by reference: true\n{_PRINTED}")


def test_a_schedule_is_imported_once_however_often_it_is_tried(served: tuple[Product, dict[str, str]], tmp_path: Path) -> None:
    product, environment = served
    for name, text in re.findall(
        r"^```\w+ file=(\S+)\n(.*?)^```$", page("migrate-from-a-crud-schedule.md"), re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    table = tmp_path / "schedule.csv"

    def migrate(command: str, *, code: int = 0) -> str:
        return run(sys.executable, "migrate.py", command, table.name, folder=tmp_path, environment=environment, code=code)

    with client(product, environment["MEDIALEDGER_API_KEY"]) as http:
        assert migrate("import") == "imported 3 Events in 2 rooms\n"
        head = http.get("/readyz").json()["logHead"]
        assert migrate("import") == "imported 3 Events in 2 rooms\n"
        assert http.get("/readyz").json()["logHead"] == head, "a second import has added something"
        assert migrate("verify") == "3 rows compared, 0 differences\n"

        changed = table.read_text().replace("Late show", "Later show").replace("2020-05-02T00:00:00Z", "2026-11-03T09:00:00Z")
        table.write_text(changed)
        assert migrate("verify", code=1) == "programme/19: another title\n3 rows compared, 1 differences\n"
        migrate("import")
        assert http.get("/readyz").json()["logHead"] == head + 1
        event = http.get("/api/event/reference", params={"id": "programme/19"}).json()
        assert (event["title"], event["stateString"], event["autoStart"]) == ("Later show", "STOPPED", False)

        table.write_text("".join(changed.splitlines(keepends=True)[:-1]))
        assert migrate("verify", code=1) == "not in the table: programme/19\n2 rows compared, 1 differences\n"
