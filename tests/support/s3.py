"""S3 servers for tests: moto's, and versitygw where it is installed. Each test gets a bucket of its own."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import which
from time import monotonic, sleep
from uuid import uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.support.programs import not_run
from workers.ports.buckets import BucketAddress

KEY, SECRET = "test-key", "test-secret-0123456789"
REMEDY = "with Go: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0"


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def versitygw() -> Path | None:
    """Return the path of the server, or None if it is not installed: building it takes a minute and a half of processor time."""
    go = which("go") or which("/usr/local/go/bin/go")
    folder = subprocess.run([go, "env", "GOPATH"], capture_output=True, text=True, check=True).stdout.strip() if go else ""
    path = which("versitygw") or which(Path(folder) / "bin" / "versitygw")
    return Path(path) if path else None


@pytest.fixture(scope="session")
def versity_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = versitygw()
    if program is None:
        not_run("versitygw", REMEDY)
    with serving(program, tmp_path_factory.mktemp("versitygw")) as endpoint:
        yield endpoint


@contextmanager
def serving(program: Path, root: Path) -> Iterator[str]:
    """The address of a server that keeps its buckets below `root`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(program), "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(root)]
    keys = {**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}  # tests look for secrets among all arguments
    with subprocess.Popen(command, env=keys, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait(port, server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    until = monotonic() + 60
    while monotonic() < until and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        sleep(0.02)
    raise AssertionError("the S3 server does not listen")


def new_bucket(endpoint: str, *, prefix: str = "media/root") -> BucketAddress:
    address = BucketAddress(f"media-{uuid4().hex}", prefix, endpoint, access_key=KEY, secret_key=SECRET)
    client(address).create_bucket(Bucket=address.bucket)
    return address


def client(address: BucketAddress):  # type: ignore[no-untyped-def]
    return _client(address.endpoint, address.region)


@cache
def _client(endpoint: str | None, region: str):  # type: ignore[no-untyped-def]
    """Return a client. Making one takes longer than a test, because it reads the description of the service."""
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
