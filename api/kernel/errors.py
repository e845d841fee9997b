"""From a refusal to its status code: the one table. How it is worded on the wire is the surface's affair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from domain.kernel.errors import Conflict, FieldError, Malformed, NotFound, Refused, StaleVersion, Unavailable

Headers = tuple[tuple[str, str], ...]


class HttpRefusal(Exception):
    """The request fails by HTTP's own rules, before the domain is asked."""

    status = 400

    def __init__(self, detail: str, *, headers: Headers = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers


class Unauthenticated(HttpRefusal):
    """No key, a wrong key, or a key that is not the named client's."""

    status = 401

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers=(("www-authenticate", "ApiKey"),))


class Forbidden(HttpRefusal):
    """A right key, but not for this."""

    status = 403


class NoSuchPath(HttpRefusal):
    status = 404

    def __init__(self) -> None:
        super().__init__("There is nothing at this path.")


class MethodNotAllowed(HttpRefusal):
    status = 405

    def __init__(self, allow: str) -> None:
        super().__init__(f"This path answers {allow}.", headers=(("allow", allow),))


class BodyTooLarge(HttpRefusal):
    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(f"The body may be {limit} bytes at most.")


class UnsupportedMediaType(HttpRefusal):
    status = 415


class TooManyRequests(HttpRefusal):
    status = 429

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail, headers=(("retry-after", str(retry_after)),))


class KeyInUse(HttpRefusal):
    """An Idempotency-Key that cannot be used now (its first request still runs) or not for this request."""

    status = 409


@dataclass(frozen=True, slots=True)
class Failure:
    """A refusal ready to be worded: a status, a stable slug (`None`: the status says it all) and words for a person."""

    status: int
    detail: str
    slug: str | None = None
    errors: Sequence[FieldError] = ()
    headers: Headers = ()
    error: Exception | None = None

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase


def _malformed(error: Malformed) -> Failure:
    return Failure(400, "The request cannot be understood; nothing was changed.", "bad-input", errors=error.errors)


def _not_found(error: NotFound) -> Failure:
    return Failure(404, f"There is no {error.kind.replace('_', ' ')} {error.key}.", "not-found")


def _unavailable(error: Unavailable) -> Failure:
    return Failure(503, error.what, "unavailable", headers=(("retry-after", str(error.retry_after)),))


_TABLE: dict[type[Exception], Callable[..., Failure]] = {
    Malformed: _malformed,
    NotFound: _not_found,
    Refused: lambda error: Failure(409, error.rule, "refused"),
    StaleVersion: lambda error: Failure(412, f"{error.reason[:1].upper()}{error.reason[1:]}.", "stale-version"),
    Conflict: lambda error: Failure(409, error.reason, "conflict"),
    Unavailable: _unavailable,
    HttpRefusal: lambda error: Failure(error.status, error.detail, headers=error.headers),
}


def failure_of(error: Exception) -> Failure:
    """The row of the nearest class. What is not in the table is our fault: 500, and the caller learns nothing of it."""
    for kind in type(error).__mro__:
        row = _TABLE.get(kind)
        if row is not None:
            failure: Failure = row(error)
            return failure
    return Failure(500, "Something went wrong on our side. It is logged under the transaction id.", error=error)
