"""The messages of commands about servers that answer badly, or are not the product."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from api.cli.remote import http_api
from api.cli.remote.http_api import HttpApi, checked_url
from api.cli.remote.rest_api import ApiError
from api.wiring.startup import StartError

HEAD = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n"
ESCAPE = "\x1b[2J"


@contextmanager
def served(*answers: bytes | Callable[[socket.socket], None]) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server that gives its connections these answers one after the other. Yield its address and the received requests."""
    requests: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    requests.append(connection.recv(65536))
                    if callable(answer):
                        answer(connection)
                    else:
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests


def answer(status: str, body: bytes, *, kind: str = "application/json", more: str = "") -> bytes:
    return HEAD % (status.encode(), kind.encode(), len(body), more.encode()) + body


@pytest.mark.parametrize(
    ("answer_bytes", "expected", "status"),
    [
        (answer("200 OK", b"<html>", kind="text/html"), "answers with text/html: it is not a medialedger, or there is a proxy", 0),
        (answer("200 OK", b"{"), "answers with no JSON", 0),
        (answer("200 OK", b"[" * 100_000), "answers with no JSON", 0),
        (answer("200 OK", b'{"results": 7}'), "answers with no list of objects", 0),
        (answer("200 OK", b"[1]"), "answers with no list of objects", 0),
        (
            answer("302 Found", b"", more="Location: https://evil.example/\r\n"),
            "a redirect to https://evil.example/; use that address",
            302,
        ),
        (
            answer("401 No", b'{"detail": "The API key is not valid."}'),
            "rejected the API key: The API key is not valid (",
            401,
        ),
        (answer("403 No", b'{"detail": "This call needs the role admin."}'), "is not allowed to do that: This call needs", 403),
        (answer("404 No", b'{"type": "about:blank"}'), "has no /api/event/: it runs another version, or is not a medialedger", 404),
        (answer("404 No", b"<html>", kind="text/html"), "has no /api/event/: it runs another version", 404),
        (answer("404 No", b'{"type": "/problems/not-found", "detail": "There is no x."}'), "There is no x", 404),
        (answer("400 No", b'{"errors": [{"field": "a", "message": "b"}, {"field": "c", "message": "d"}]}'), "a: b; c: d", 400),
        (answer("400 No", b'{"error": "queue_state: no"}'), "queue_state: no", 400),
        (answer("503 Away", b"{}", more="Retry-After: 7\r\n"), "is not available; try again in 7 s", 503),
        (answer("503 Away", b"{}", more="Retry-After: soon\r\n"), "is not available", 503),
        (answer("500 Oh", b""), "answers 500", 500),
        (answer("409 No", f'{{"detail": "{ESCAPE}"}}'.encode().replace(b"\x1b", b"\\u001b")), r"\x1b[2J", 409),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP", 0),
        (b"", "closed the connection without an answer", 0),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[]", "sent an answer that ended too early", 0),
    ],
)
def test_an_unusable_answer_is_one_plain_sentence(answer_bytes: bytes, expected: str, status: int) -> None:
    with served(answer_bytes) as (url, _), pytest.raises(ApiError) as refusal:
        HttpApi(url, None).documents("/api/event/")
    assert expected in str(refusal.value)
    assert str(refusal.value).isprintable()
    assert refusal.value.status == status


def test_an_endless_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "MOST", 1024 * 1024)

    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        try:
            while True:
                connection.sendall(b" " * 65536)
        except OSError:
            return

    with served(endless) as (url, _), pytest.raises(ApiError, match="sent an answer of more than 1 MiB"):
        HttpApi(url, None).get("/api/event/")


def test_a_next_page_elsewhere_gets_no_key() -> None:
    first = answer("200 OK", b'{"results": [{"n": 1}], "next": "http://evil.example/steal?after=1"}')
    second = answer("200 OK", b'{"results": [{"n": 2}], "next": "/steal?after=1"}')
    with served(first, second) as (url, requests):
        pages = HttpApi(url, "the-key").pages("/api/audit/events/", {}, most=10)
        assert [next(pages), next(pages)] == [{"n": 1}, {"n": 2}]
        with pytest.raises(ApiError, match="a page that follows itself"):
            next(pages)
    assert [request.split(b" ")[1] for request in requests] == [b"/api/audit/events/?pageSize=10", b"/steal?after=1"]
    assert all(b"API-KEY: the-key\r\n" in request for request in requests)


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://a", "http://", "http://a:b@c", "http://a?b=c", "http://a#b", "http://a:99999", "http://a b", "http://\x1b"],
)
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(StartError, match="the address"):
        checked_url(url)


def test_the_key_is_not_shown_and_has_only_characters_of_keys() -> None:
    assert "the-key" not in repr(HttpApi("http://127.0.0.1:1", "the-key"))
    for key in ("a\nb", "ü", " "):
        with pytest.raises(StartError, match="contains invalid characters"):
            HttpApi("http://127.0.0.1:1", key)


def test_a_closed_port_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ApiError, match=f"nothing listens at http://127.0.0.1:{port}"):
        HttpApi(f"http://127.0.0.1:{port}", None).get("/livez")
