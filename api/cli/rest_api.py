"""The REST API as commands call it: what they ask, and what an answer that is none means to a person."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from api.cli.printable import printable
from api.wiring.startup import StartError

Query = Mapping[str, Any]
MOST: Final = 64 * 1024 * 1024
"""Bytes of an answer that is read at once."""
_LONGEST: Final = 500
"""Characters of a server's sentence that are shown."""
_JSON: Final = ("application/json", "application/problem+json")
_PAGE: Final = 1000


class ApiError(StartError):
    """An answer that is none, as one line. `status` is 0 where there was no answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """None for an empty answer. Raises ValueError for what is not JSON."""
        return json.loads(self.body) if self.body else None


class RestApi(ABC):
    """Calls the REST API. `label` says to people where that is; `local`: it is the product of this home."""

    label: str
    local: bool

    @abstractmethod
    def exchange(self, method: str, target: str, *, body: bytes | None, client: str | None = None) -> Answer:
        """Send one request; `client` is its header of that name. Raises `ApiError` where there is no answer."""

    @abstractmethod
    def close(self) -> None: ...

    def get(self, path: str, **query: Any) -> Any:
        """The document at this path; None for 204."""
        return self.call("GET", path, query=query).document

    def documents(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """A list of objects, plain or in `results`."""
        return self._objects(self.get(path, **query))

    def document(self, path: str, **query: Any) -> dict[str, Any]:
        found = self.get(path, **query)
        if not isinstance(found, dict):
            raise ApiError(f"{self.label} has no answer for {path}" if found is None else self._odd("no object"))
        return found

    def pages(self, path: str, query: Query, *, most: int) -> Iterator[dict[str, Any]]:
        """The objects of a list that names its next page, at most so many."""
        left, target = most, _target(path, {**query, "pageSize": min(most, _PAGE)})
        seen = set[str]()
        while left > 0:
            seen.add(target)
            found = self._called("GET", target).document
            for one in self._objects(found)[:left]:
                left -= 1
                yield one
            following = found.get("next") if isinstance(found, dict) else None
            if following is None or not left:
                return
            target = self._path_of(following)
            if target in seen:
                raise ApiError(self._odd("a page that follows itself"))

    def call(self, method: str, path: str, *, query: Query | None = None, body: Any = None, named: bool = False) -> Answer:
        """Raises `ApiError` for every answer that is no success. `named`: the client must be named, as the job engine wants it."""
        client = self.client if named else None
        sent = None if body is None else json.dumps(body).encode()
        return self._called(method, _target(path, query or {}), body=sent, client=client)

    @cached_property
    def client(self) -> str:
        """The client of the API key."""
        return str(self.document("/api/health/version").get("client"))

    def _called(self, method: str, target: str, *, body: bytes | None = None, client: str | None = None) -> Answer:
        answer = self.exchange(method, target, body=body, client=client)
        if not 200 <= answer.status < 300:
            raise self._error(answer, target)
        self._check_json(answer)
        return answer

    def _check_json(self, answer: Answer) -> None:
        if not answer.body:
            return
        if answer.headers.get("content-type", "").partition(";")[0].strip().lower() not in _JSON:
            raise ApiError(self._odd(answer.headers.get("content-type", "no content type")))
        try:
            answer.document  # noqa: B018 - read once to see that it can be
        except (ValueError, RecursionError):
            raise ApiError(self._odd("no JSON")) from None

    def _objects(self, found: Any) -> list[dict[str, Any]]:
        listed = found.get("results") if isinstance(found, dict) else [] if found is None else found
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise ApiError(self._odd("no list of objects"))
        return listed

    def _path_of(self, address: Any) -> str:
        """Of the next page: only its path counts, so that a server cannot send the key elsewhere."""
        if not isinstance(address, str) or not (parts := urlsplit(address)).path.startswith("/"):
            raise ApiError(self._odd("a next page without an address"))
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def _odd(self, what: str) -> str:
        return f"{self.label} answers with {printable(what)[:_LONGEST]}: it is no medialedger, or something stands in front of it"

    def _error(self, answer: Answer, target: str) -> ApiError:
        said = sentence(answer)
        match answer.status:
            case status if 300 <= status < 400:
                to = printable(answer.headers.get("location", "nowhere"))[:_LONGEST]
                message = f"{self.label} answers with a redirect to {to}; name the address itself"
            case 401:
                message = (
                    f"{self.label} refuses this caller: {said or 'no valid API key'} (--key-file, MEDIALEDGER_API_KEY or a context)"
                )
            case 403:
                message = f"the client of this API key may not do that{said and f': {said}'}"
            case 404 if _is_no_such_path(answer):
                message = f"{self.label} has no {target.partition('?')[0]}: it runs another version, or is no medialedger"
            case 429 | 503:
                after = answer.headers.get("retry-after", "")
                again = f"; try again in {after} s" if after.isdigit() else ""
                message = f"{self.label} is not available{said and f': {said}'}{again}"
            case status:
                message = said or f"{self.label} answers {status}"
        return ApiError(message, status=answer.status)


def segment(text: object) -> str:
    """A text as one segment of a path."""
    return quote(str(text), safe="")


def sentence(answer: Answer) -> str:
    """What a problem document says, or the engine's error; empty where the answer has neither."""
    try:
        found = answer.document
    except (ValueError, RecursionError):
        return ""
    if not isinstance(found, dict):
        return ""
    errors = [one for one in found.get("errors") or [] if isinstance(one, dict)] if isinstance(found.get("errors"), list) else []
    said = [f"{one.get('field')}: {one.get('message')}" for one in errors]
    spoken = "; ".join(said) or found.get("detail") or found.get("error") or found.get("title") or ""
    return printable(str(spoken).rstrip("."))[:_LONGEST]


def _is_no_such_path(answer: Answer) -> bool:
    """Of a path that the server does not know, in difference to a resource that does not exist."""
    try:
        found = answer.document
    except (ValueError, RecursionError):
        return True
    return not isinstance(found, dict) or found.get("type") == "about:blank"


def _target(path: str, query: Query) -> str:
    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
