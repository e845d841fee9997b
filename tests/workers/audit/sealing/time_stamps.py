"""A time stamp server for tests, based on openssl."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import which

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.programs import not_run

_CONFIG = """
[tsa]
serial = {folder}/serial
signer_cert = {folder}/cert.pem
signer_key = {folder}/key.pem
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
"""
_CERTIFICATE = """
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = test
[extensions]
extendedKeyUsage = critical,timeStamping
basicConstraints = critical,CA:true
"""


def openssl() -> str:
    result = which("openssl")
    if result is None:
        not_run("openssl", "apt-get install openssl")
    return result


def made(folder: Path) -> None:
    """Make a key and a certificate."""
    (folder / "req.conf").write_text(_CERTIFICATE)
    (folder / "tsa.conf").write_text(_CONFIG.format(folder=folder))
    (folder / "serial").write_text("01\n")
    keys = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
    _run(folder, "req", "-x509", "-config", "req.conf", "-days", "2", *keys)


def stamped(folder: Path, query: bytes) -> bytes:
    (folder / "query").write_bytes(query)
    _run(folder, "ts", "-reply", "-config", "tsa.conf", "-section", "tsa", "-queryfile", "query", "-out", "reply")
    return (folder / "reply").read_bytes()


def verified(folder: Path, reply: bytes, data: bytes) -> bool:
    """Verify a time stamp with openssl, as an auditor does."""
    (folder / "reply").write_bytes(reply)
    (folder / "data").write_bytes(data)
    command = [openssl(), "ts", "-verify", "-in", "reply", "-data", "data", "-CAfile", "cert.pem"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def _run(folder: Path, *arguments: str) -> None:
    subprocess.run([openssl(), *arguments], cwd=folder, capture_output=True, check=True)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[TestServer]:
    """Serve `/`, which stamps, `/other`, which stamps something else, and `/broken`, whose answer is no time stamp."""
    await asyncio.to_thread(made, folder)

    async def stamp(request: web.Request) -> web.Response:
        query = await request.read()
        if request.path == "/broken":
            return web.Response(body=b"no")
        if request.path == "/other":
            query = (folder / "query").read_bytes()
        return web.Response(body=await asyncio.to_thread(stamped, folder, query), content_type="application/timestamp-reply")

    app = web.Application()
    app.router.add_post("/{any:.*}", stamp)
    server = TestServer(app)
    async with server:
        yield server
