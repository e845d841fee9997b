"""Limits of open files: each connection is one, and so is each connection to the database."""

from __future__ import annotations

import asyncio
import json
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.product import Product, Products, migrated_home
from tests.support.waiting import until

CONNECTIONS = 1000
LOW = 1024


@contextmanager
def files(soft: int) -> Iterator[None]:
    """Set the limit of this process while the context is open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def status(product: Product, path: str) -> int:
    """Return the status of an answer; 0 if there is none."""
    try:
        return httpx.get(product.address + path, timeout=60, verify=False).status_code
    except httpx.TransportError:
        return 0


def open_files(product: Product) -> int:
    return len(list(Path(f"/proc/{product.process.pid}/fd").iterdir()))


@pytest.fixture
def many_files() -> Iterator[None]:
    """Raise the limit of open files for the clients."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert hard == resource.RLIM_INFINITY or hard >= 2 * LOW, "the tests need a hard limit of 2,048 open files"
    with files(2 * LOW):
        yield


async def all_at_once(product: Product) -> tuple[Counter[str], int, int]:
    """Return the answers to a request on each of a thousand connections that are open at the same time.

    The other results are the status of a write on one of them meanwhile, and the number of files that the process had open.
    """
    host, _, port = product.address.removeprefix("http://").partition(":")
    request = f"GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    key, body = (product.home / "admin-api-key").read_text().strip(), b'{"title": "x"}'
    head = ["POST /api/event/ HTTP/1.1", f"Host: {host}", f"API-KEY: {key}", "Content-Type: application/json"]
    write = "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""])

    async def ask(number: int) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as fault:
            return type(fault).__name__, reader, writer
        status = head.split(b" ")[1].decode()
        if status == "200":
            await reader.readexactly(len(b'{"status":"ok"}'))
        return status, reader, writer

    asked = await asyncio.gather(*map(ask, range(CONNECTIONS)))
    opened = open_files(product)
    reader, writer = next((reader, writer) for status, reader, writer in asked if status == "200")
    writer.write(write.encode() + body)
    written = int((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
    for _, _, each in asked:
        each.close()
    return Counter(status for status, _, _ in asked), written, opened


@pytest.mark.long
async def test_a_thousand_connections_are_served_under_the_usual_soft_limit(
    started: Products, tmp_path: Path, many_files: None
) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    product = started.start_with_files(migrated_home(tmp_path / "home"), LOW, hard).until_ready()
    assert resource.prlimit(product.process.pid, resource.RLIMIT_NOFILE)[0] > LOW
    answers, written, _ = await all_at_once(product)
    assert (answers, written) == ({"200": CONNECTIONS}, 200)
    assert "Too many open files" not in product.errors


@pytest.mark.long
async def test_under_a_hard_limit_connections_are_refused_before_files_run_out(
    started: Products, tmp_path: Path, many_files: None
) -> None:
    product = started.start_with_files(migrated_home(tmp_path / "home"), LOW, LOW).until_ready()
    warnings = [
        line["message"] for line in map(json.loads, product.errors.splitlines()) if "MEDIALEDGER_CONNECTIONS" in line["message"]
    ]
    most = LOW - 256
    assert warnings == [
        f"MEDIALEDGER_CONNECTIONS is 10000, but the process may have only {LOW} open files: at most {most} connections are "
        "accepted; "
        "raise the hard limit"
    ]
    answers, written, opened = await all_at_once(product)
    assert opened < LOW - 64
    assert (answers["200"], answers["503"] > 0, written) == (most, True, 200), answers
    assert set(answers) <= {"200", "503", "IncompleteReadError", "ConnectionResetError"}
    until(lambda: status(product, "/readyz") == 200)
    assert status(product, "/metrics") == 200
    assert "Too many open files" not in product.errors
