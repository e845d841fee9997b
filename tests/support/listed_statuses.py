"""The status codes that the API description lists, compared with every response that a test of the product gets."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from api.http.app import RequestLog
from api.http.openapi import statuses
from api.http.request import Request
from api.http.routing import routes_of
from api.wiring.services import ROUTES

LISTED: Final = {(spec.method, spec.documented_path): statuses(spec) for spec in routes_of(ROUTES)}

_NOBODYS: Final = (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.INTERNAL_SERVER_ERROR)
"""405 belongs to no operation, as an unknown path does, and 500 is `default`."""


class UnlistedStatus(AssertionError):
    """A response has a status that its operation does not list."""


class ListedStatuses:
    """A request log that refuses unlisted statuses."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log

    def wants(self, method: str, status: int, *, routine: bool) -> bool:
        return True

    def add(self, request: Request, *, status: int, seconds: float) -> None:
        method = "GET" if request.method == "HEAD" else request.method
        listed = LISTED.get((method, request.path))
        if listed is not None and status not in {*listed, *_NOBODYS}:
            raise UnlistedStatus(f"{method} {request.path} gives {status} and lists {sorted(listed)}")
        if self._log.wants(request.method, status, routine=False):
            self._log.add(request, status=status, seconds=seconds)
