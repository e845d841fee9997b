"""The REST API as commands call it: requests, and sentences for answers that are errors or not from the product."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from api.cli.terminal_text import printable
from api.wiring.startup import StartError

Query = Mapping[str, Any]
MOST: Final = 64 * 1024 * 1024
"""The maximum bytes of an answer that is read into memory."""
_LONGEST: Final = 500
"""The maximum characters of a server's sentence that are shown."""
_JSON: Final = ("application/json", "application/problem+json")
_PAGE: Final = 1000


class ApiError(StartError):
    """Raised when a call has no usable answer; its message is one line. `status` is 0 if there was no answer at all."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a server. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """The JSON document; None for an empty answer. Raise `ValueError` if the body is not JSON."""
        return json.loads(self.body) if self.body else None


class RestApi(ABC):
    """Calls the REST API. `label` names the destination for people; `local` is True if it is the product of this home,
    and `running` if the product runs outside of this process."""

    label: str
    local: bool
    running: bool

    @abstractmethod
    def exchange(self, method: str, target: str, *, body: bytes | None, client: str | None = None) -> Answer:
        """Send one request; `client` is its header of that name. Raise `ApiError` if there is no answer."""

    @abstractmethod
    def close(self) -> None: ...

    def get(self, path: str, *, named: bool = False, **query: Any) -> Any:
        """Return the document at this path; None for 204."""
        return self.call("GET", path, query=query, named=named).document

    def documents(self, path: str, *, named: bool = False, **query: Any) -> list[dict[str, Any]]:
        """Return a list of objects, which the answer holds directly or in `results`."""
        return self._objects(self.get(path, named=named, **query))

    def document(self, path: str, *, named: bool = False, **query: Any) -> dict[str, Any]:
        value = self.get(path, named=named, **query)
        if not isinstance(value, dict):
            raise ApiError(f"{self.label} has no answer for {path}" if value is None else self._unexpected("no object"))
        return value

    def pages(self, path: str, query: Query, *, most: int) -> Iterator[dict[str, Any]]:
        """Yield at most `most` objects of a list, following the links to its next pages."""
        remaining, target = most, _target(path, {**query, "pageSize": min(most, _PAGE)})
        visited = set[str]()
        while remaining > 0:
            visited.add(target)
            document = self._call("GET", target).document
            for row in self._objects(document)[:remaining]:
                remaining -= 1
                yield row
            following = document.get("next") if isinstance(document, dict) else None
            if following is None or not remaining:
                return
            target = self._path_of(following)
            if target in visited:
                raise ApiError(self._unexpected("a page that follows itself"))

    def call(self, method: str, path: str, *, query: Query | None = None, body: Any = None, named: bool = False) -> Answer:
        """Send a request and return its successful answer. Raise `ApiError` for any other answer. `named` adds the header `client`,
        which the job engine requires."""
        client = self.client if named else None
        sent = None if body is None else json.dumps(body).encode()
        return self._call(method, _target(path, query or {}), body=sent, client=client)

    @cached_property
    def client(self) -> str:
        """The client of the API key."""
        return str(self.document("/api/health/version").get("client"))

    def _call(self, method: str, target: str, *, body: bytes | None = None, client: str | None = None) -> Answer:
        answer = self.exchange(method, target, body=body, client=client)
        if not 200 <= answer.status < 300:
            raise self._error(answer, target)
        self._check_json(answer)
        return answer

    def _check_json(self, answer: Answer) -> None:
        if not answer.body:
            return
        if answer.headers.get("content-type", "").partition(";")[0].strip().lower() not in _JSON:
            raise ApiError(self._unexpected(answer.headers.get("content-type", "no content type")))
        try:
            answer.document  # noqa: B018 - parsed once to check that it is valid
        except (ValueError, RecursionError):
            raise ApiError(self._unexpected("no JSON")) from None

    def _objects(self, document: Any) -> list[dict[str, Any]]:
        listed = document.get("results") if isinstance(document, dict) else [] if document is None else document
        if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
            raise ApiError(self._unexpected("no list of objects"))
        return listed

    def _path_of(self, address: Any) -> str:
        """Return the path of the next page. The server of its address is ignored, so the key is never sent elsewhere."""
        if not isinstance(address, str) or not (parts := urlsplit(address)).path.startswith("/"):
            raise ApiError(self._unexpected("a next page without an address"))
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def _unexpected(self, what: str) -> str:
        return (
            f"{self.label} answers with {printable(what)[:_LONGEST]}: it is not a medialedger, or there is a proxy in front of it"
        )

    def _error(self, answer: Answer, target: str) -> ApiError:
        reason = sentence(answer)
        match answer.status:
            case status if 300 <= status < 400:
                to = printable(answer.headers.get("location", "nowhere"))[:_LONGEST]
                message = f"{self.label} answers with a redirect to {to}; use that address"
            case 401:
                message = f"{self.label} rejected the API key: {reason or 'it is not valid'} (--key-file, MEDIALEDGER_API_KEY or "
                "a context)"
            case 403:
                message = f"the client of this API key is not allowed to do that{reason and f': {reason}'}"
            case 404 if _is_no_such_path(answer):
                message = f"{self.label} has no {target.partition('?')[0]}: it runs another version, or is not a medialedger"
            case 429 | 503:
                after = answer.headers.get("retry-after", "")
                again = f"; try again in {after} s" if after.isdigit() else ""
                message = f"{self.label} is not available{reason and f': {reason}'}{again}"
            case status:
                message = reason or f"{self.label} answers {status}"
        return ApiError(message, status=answer.status)


def segment(text: object) -> str:
    """Return a text as one segment of a path."""
    return quote(str(text), safe="")


def sentence(answer: Answer) -> str:
    """Return the sentence of a problem document or of the engine's error; an empty text if the answer has neither."""
    try:
        document = answer.document
    except (ValueError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return ""
    errors = (
        [error for error in document.get("errors") or [] if isinstance(error, dict)]
        if isinstance(document.get("errors"), list)
        else []
    )
    parts = [f"{error.get('field')}: {error.get('message')}" for error in errors]
    spoken = "; ".join(parts) or document.get("detail") or document.get("error") or document.get("title") or ""
    return printable(str(spoken).rstrip("."))[:_LONGEST]


def _is_no_such_path(answer: Answer) -> bool:
    """Return True if the server does not know the path, as opposed to a resource that does not exist."""
    try:
        document = answer.document
    except (ValueError, RecursionError):
        return True
    return not isinstance(document, dict) or document.get("type") == "about:blank"


def _target(path: str, query: Query) -> str:
    parameters = {
        name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items() if value is not None
    }
    return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path
