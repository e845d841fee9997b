"""The examples in deploy/proxy, as nginx and Caddy parse them, in front of a running product."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.processes import children
from tests.support.product import Product, migrated_home, products
from tests.support.programs import program
from tests.support.waiting import ROOT, until

NAME = "media.example"
EXAMPLES = ROOT / "deploy" / "proxy"
PER_ADDRESS = 3


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with products() as started:
        home = tmp_path_factory.mktemp("behind a proxy") / "home"
        yield started.start(
            migrated_home(home), public_url=f"https://{NAME}", trusted_proxies="127.0.0.1", connections_per_address=str(PER_ADDRESS)
        ).until_ready()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with fullchain.pem and privkey.pem."""
    folder = tmp_path_factory.mktemp("certificate")
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
    signed = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False).sign(key, hashes.SHA256())
    (folder / "fullchain.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    encoded = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "privkey.pem").write_bytes(key.private_bytes(*encoded))
    return folder


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def adapted(name: str, **changes: str) -> str:
    """Return the example with the places of this machine. Each replaced text must occur in it."""
    text = (EXAMPLES / name).read_text()
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def nginx(product: Product, certificate: Path, folder: Path, port: int) -> list[str]:
    changes = {
        "listen 443": f"listen 127.0.0.1:{port}",
        "127.0.0.1:8080": product.address.removeprefix("http://"),
        "/etc/ssl/medialedger": str(certificate),
        "client_header_timeout 10s": "client_header_timeout 1s",
    }
    (folder / "medialedger.conf").write_text(adapted("nginx.conf", **changes))
    own = "".join(f"{each}_temp_path {folder}/{each};\n" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;\n" if os.geteuid() == 0 else ""  # the folder is closed to others
    (folder / "nginx.conf").write_text(
        f"{user}pid {folder}/pid;\ndaemon off;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{own}include {folder}/medialedger.conf;\n}}\n"
    )
    return [program("nginx"), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(product: Product, certificate: Path, folder: Path, port: int) -> list[str]:
    files = (f"{certificate}/fullchain.pem", f"{certificate}/privkey.pem")
    changes = {
        "{\n\tservers {": "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers {",
        f"\n{NAME} {{\n": f"\nhttps://{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {' '.join(files)}\n",
        "127.0.0.1:8080": product.address.removeprefix("http://"),
        "read_header 10s": "read_header 1s",
    }
    (folder / "Caddyfile").write_text(adapted("Caddyfile", **changes))
    return [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@dataclass
class Front:
    """A listening proxy with the product behind it."""

    port: int
    key: str

    def client(self, *, address: str = "127.0.0.1", name: str = NAME) -> httpx.Client:
        """Return a client that connects from an address of this machine."""
        transport = httpx.HTTPTransport(verify=False, local_address=address)
        base = f"https://127.0.0.1:{self.port}"
        return httpx.Client(transport=transport, base_url=base, headers={"Host": name, "API-KEY": self.key}, timeout=60)

    def connect(self) -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=60), server_hostname=NAME)


SNI: dict[str, Any] = {"extensions": {"sni_hostname": NAME}}
Prepared = Callable[[Product, Path, Path, int], list[str]]


@contextmanager
def running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:

        def listens() -> bool:
            assert process.poll() is None, (folder / "output").read_text()
            with socket.socket() as sock:
                return sock.connect_ex(("127.0.0.1", port)) == 0

        until(listens)
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def test_a_restart_one_by_one_fails_no_request_of_nginx(certificate: Path, tmp_path: Path) -> None:
    """nginx keeps idle connections, and sends the next request on one of them; a POST is sent only once."""
    port, answers, done = free_port(), Counter[object](), Event()
    with products() as started, ThreadPoolExecutor() as threads:
        product = started.start(
            migrated_home(tmp_path / "home"), public_url=f"https://{NAME}", trusted_proxies="127.0.0.1", api_processes="2"
        ).until_ready()
        front = Front(port, (product.home / "admin-api-key").read_text().strip())

        def calls(number: int) -> None:
            with front.client(address=f"127.0.0.{number + 2}") as client:
                while not done.wait(0.05 * (number + 1)):  # without a pause they would take the time of the restart
                    answers[client.get("/api/event/?pageSize=1", **SNI).status_code] += 1
                    answers[client.post("/api/event/", json={"title": "on the way"}, **SNI).status_code] += 1

        command = nginx(product, certificate, tmp_path, port)
        example = tmp_path / "medialedger.conf"
        example.write_text(example.read_text().replace("keepalive_timeout 60s;", "keepalive_timeout 2s;"))
        with running(command, tmp_path, port):
            callers = [threads.submit(calls, number) for number in range(6)]
            try:
                before = children(product, "api")
                product.signal(signal.SIGUSR1)
                until(lambda: "all processes were restarted" in product.errors)
            finally:
                done.set()
            for each in callers:
                each.result()
            assert not {*before} & {*children(product, "api")}
        output = (tmp_path / "output").read_text()
    assert (set(answers), answers[200] > 100) == ({200}, True), answers
    assert "upstream" not in output, output


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def front(
    product: Product, certificate: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Front]:
    prepared: Prepared = request.param
    folder, port = tmp_path_factory.mktemp(prepared.__name__), free_port()
    command = prepared(product, certificate, folder, port)
    with running(command, folder, port):
        yield Front(port, (product.home / "admin-api-key").read_text().strip())


def test_a_write_and_a_read_pass_with_their_path_as_sent(front: Front) -> None:
    with front.client() as client:
        made = client.post("/api/event/", json={"title": "behind a proxy"}, **SNI)
        assert (made.status_code, made.headers["strict-transport-security"]) == (200, "max-age=31536000")
        seen = client.get(f"/api/event/{made.json()['id']}", **SNI)
        assert (seen.status_code, seen.json()["title"]) == (200, "behind a proxy")
        assert seen.headers["etag"]
        odd = client.get("/api/audit/setting/a%2Fb%3Ac/?pageSize=1", **SNI)
        assert (odd.status_code, odd.json()["detail"]) == (404, "There is no setting a/b:c."), "the escaped slash stays escaped"


def test_an_event_stream_arrives_while_it_goes_on(front: Front) -> None:
    with front.client() as client, client.stream("GET", "/engine/dashboard/stream", **SNI) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert next(stream.iter_bytes()).startswith(b"data: ")


def test_a_body_that_is_too_large_is_refused(front: Front) -> None:
    with front.client() as client:
        assert client.post("/api/event/", content=b" " * (2**20 + 1), **SNI).status_code == 413
        assert client.post("/api/event/", json={"title": "x", "description": "x" * 900_000}, **SNI).status_code == 200
    with front.connect() as connection:
        connection.sendall(f"POST /api/event/ HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 10000000\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_host_that_is_wrong_does_not_reach_the_product(front: Front) -> None:
    for name in ("attacker.example", "127.0.0.1"):
        with front.client(name=name) as client:
            answer = client.get("/api/event/", **SNI)
            assert (answer.status_code, "x-transaction-id" in answer.headers) == (421, False)


def test_a_head_that_does_not_end_is_given_up(front: Front) -> None:
    with front.connect() as connection:
        connection.sendall(f"GET /livez HTTP/1.1\r\nHost: {NAME}\r\n".encode())
        assert b" 200 " not in connection.recv(4096)


def test_metrics_are_not_public(front: Front) -> None:
    with front.client() as client:
        for path in ("/metrics", "/metrics/", "/%6Detrics", "//metrics", "/./metrics"):
            as_it_is = {**SNI["extensions"], "target": path.encode()}  # httpx would ask for / and /metrics in place of the last two
            answer = client.get("/metrics", extensions=as_it_is)
            assert (answer.status_code, b"medialedger_" in answer.content) == (404, False), path


def test_each_client_of_the_proxy_has_a_limit_of_its_own(front: Front) -> None:
    """The limit applies whatever the client sends in X-Forwarded-For."""
    with ExitStack() as stack:
        first = stack.enter_context(front.client(address="127.0.0.2"))
        for _ in range(PER_ADDRESS):
            assert stack.enter_context(first.stream("GET", "/engine/dashboard/stream", **SNI)).status_code == 200
        for claim in ({}, {"X-Forwarded-For": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}):
            answer = first.get("/api/event/?pageSize=1", headers=claim, **SNI)
            assert (answer.status_code, "retry-after" in answer.headers) == (503, True), claim
        other = stack.enter_context(front.client(address="127.0.0.3"))
        assert other.get("/api/event/?pageSize=1", **SNI).status_code == 200
    with front.client(address="127.0.0.2") as again:
        until(lambda: again.get("/api/event/?pageSize=1", **SNI).status_code == 200)
