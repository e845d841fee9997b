"""The REST API over HTTP, as commands call it: bounded, without redirects, with a plain sentence for each failure. It uses the
standard library's client: the product's guarded client refuses addresses in its own network, and its import takes a third of a
second."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, RemoteDisconnected
from typing import Final
from urllib.parse import urlsplit

from api.cli.remote.rest_api import MOST, Answer, ApiError, RestApi
from api.cli.terminal_text import printable
from api.kernel.version import product_version
from api.wiring.startup import StartError

_SECONDS: Final = 30.0
"""The timeout for a connection, and between two pieces of an answer."""
_WHOLE: Final = 120.0
"""The timeout in seconds for an answer that is read into memory."""
_PIECE: Final = 64 * 1024


def checked_url(url: str) -> str:
    """Return the address without trailing slashes. Raise `StartError` for an invalid one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise StartError("the address has no valid host or port") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not url.isprintable() or " " in url:
        raise StartError("the address must begin with http:// or https:// and have a host, such as https://media.example")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise StartError("the address must have no user, query or fragment")
    return url.rstrip("/")


class HttpApi(RestApi):
    """The API over one connection, which the first request opens. `key` is the API key; it is never shown."""

    def __init__(self, url: str, key: str | None, *, label: str | None = None, local: bool = False) -> None:
        self.label = label or url
        self.local = local
        self.running = True
        self.url = checked_url(url)
        self._parts = urlsplit(self.url)
        self._key = _checked_key(key)
        self._connection: HTTPConnection | None = None

    def __repr__(self) -> str:
        return f"HttpApi({self.url!r})"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def exchange(self, method: str, target: str, *, body: bytes | None, client: str | None = None) -> Answer:
        response = self._send(method, target, body=body, client=client)
        deadline, pieces, size = time.monotonic() + _WHOLE, list[bytes](), 0
        for piece in self._pieces(response):
            size += len(piece)
            if size > MOST:
                raise self._failed(f"an answer of more than {MOST // 1024 // 1024} MiB")
            if time.monotonic() > deadline:
                raise self._failed(f"an answer that took more than {_WHOLE:.0f} s")
            pieces.append(piece)
        response.close()  # the connection is free for the next request
        headers = {name.lower(): value for name, value in response.getheaders()}
        if response.will_close:
            self.close()
        return Answer(response.status, headers, b"".join(pieces))

    def download(self, target: str, write: Callable[[bytes], object]) -> None:
        """Write an answer of any length piece by piece. Nothing is written unless the status is 200."""
        response = self._send("GET", target)
        if response.status != 200:
            answer = Answer(response.status, {"content-type": response.getheader("content-type") or ""}, response.read(_PIECE))
            self.close()
            raise self._error(answer, target)
        for piece in self._pieces(response):
            write(piece)
        response.close()

    def text(self, target: str) -> str:
        """Return a text answer, such as a signed note."""
        answer = self.exchange("GET", target, body=None)
        if answer.status != 200:
            raise self._error(answer, target)
        return answer.body.decode(errors="replace")

    def _send(self, method: str, target: str, *, body: bytes | None = None, client: str | None = None) -> HTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": f"medialedger/{product_version()}"}
        if self._key is not None:
            headers["API-KEY"] = self._key
        if client is not None:
            headers["client"] = client
        if body is not None:
            headers["Content-Type"] = "application/json"
        for again in (True, False):
            reused = self._connection is not None
            try:
                connection = self._connection = self._connection or self._connect()
                connection.request(method, self._parts.path + target, body=body, headers=headers)
                return connection.getresponse()
            except (RemoteDisconnected, ConnectionError, BrokenPipeError) as error:
                self.close()
                if not (again and reused and method == "GET"):  # a connection that idled too long may be gone
                    raise ApiError(self._sentence(error)) from None
            except (OSError, HTTPException, ValueError) as error:
                self.close()
                raise ApiError(self._sentence(error)) from None
        raise AssertionError("the second pass returns or raises")

    def _connect(self) -> HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return HTTPSConnection(host, port, timeout=_SECONDS, context=ssl.create_default_context())
        return HTTPConnection(host, port, timeout=_SECONDS)

    def _pieces(self, response: HTTPResponse) -> Iterator[bytes]:
        """Yield the pieces of an answer. Raise `ApiError` if it is shorter than its head announces."""
        length, size = response.getheader("content-length"), 0
        try:
            while piece := response.read1(_PIECE):
                size += len(piece)
                yield piece
        except (OSError, HTTPException, ValueError) as error:
            self.close()
            raise ApiError(self._sentence(error)) from None
        if length is not None and length.isdigit() and size < int(length):
            raise self._failed("an answer that ended too early")

    def _failed(self, what: str) -> ApiError:
        self.close()
        return ApiError(f"{self.label} sent {what}")

    def _sentence(self, error: Exception) -> str:
        match error:
            case ssl.SSLCertVerificationError():
                certificate = f"the certificate of {self._parts.hostname} is not trusted: {error.verify_message}"
                return printable(f"{certificate}; set SSL_CERT_FILE to a file of trusted certificates")
            case ssl.SSLError():
                return f"{self.label} does not speak TLS"
            case socket.gaierror():
                return f"the host {self._parts.hostname} does not exist"
            case ConnectionRefusedError():
                return f"nothing listens at {self.label}"
            case TimeoutError():
                return f"{self.label} did not answer within {_SECONDS:.0f} s"
            case RemoteDisconnected() | ConnectionError():
                return f"{self.label} closed the connection without an answer"
            case OSError():
                return printable(f"{self.label} cannot be reached: {(error.strerror or str(error)).lower()}")
        return f"{self.label} does not speak HTTP"


def _checked_key(key: str | None) -> str | None:
    if key is not None and (not key.isascii() or not key.isprintable() or not key.strip()):
        raise StartError("the API key contains invalid characters")
    return key
