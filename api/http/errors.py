"""HTTP errors, and how an exception becomes a status code. The surface renders the body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple, Self

from starlette.exceptions import HTTPException

Headers = tuple[tuple[str, str], ...]


class FieldError(NamedTuple):
    """An error in one field of a request. The message never repeats the sent value: it may be a secret."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """An error ready to be rendered: a status, a stable slug (`None`: the status is enough) and a text for a person.

    `error` is set for an unexpected exception: it is logged, and the client does not see it."""

    status: int
    detail: str
    slug: str | None = None
    errors: Sequence[FieldError] = ()
    headers: Headers = ()
    error: Exception | None = None

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase


FailureOf = Callable[[Exception], Failure]
"""The failure that an exception of an endpoint means."""


class HttpError(HTTPException):
    """A request that fails by HTTP's own rules. A header may occur several times, which FastAPI's exception does not allow."""

    status = 400

    def __init__(self, detail: str, *, status: int | None = None, headers: Headers = ()) -> None:
        super().__init__(status or self.status, detail, dict(headers))
        self.pairs = headers

    def failure(self) -> Failure:
        return Failure(self.status_code, self.detail, headers=self.pairs)


class BadRequest(HttpError):
    """The request cannot be parsed or does not fit its model; `errors` name the fields."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors = errors

    @classmethod
    def at(cls, field: str, message: str) -> Self:
        return cls(FieldError(field, message))

    def failure(self) -> Failure:
        return bad_input(self.errors)


class Unauthenticated(HttpError):
    """No key, a wrong key, or a key that is not the named client's."""

    status = 401

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers=(("www-authenticate", "ApiKey"), ("www-authenticate", 'Bearer realm="api"')))


class Forbidden(HttpError):
    """A valid key without a role that the route requires."""

    status = 403


class BodyTooLarge(HttpError):
    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(f"The body may be {limit} bytes at most.")


class UnsupportedMediaType(HttpError):
    status = 415


class TooManyRequests(HttpError):
    status = 429

    def __init__(self, detail: str, *, retry_after: int) -> None:
        super().__init__(detail, headers=(("retry-after", str(retry_after)),))


def bad_input(errors: Sequence[FieldError]) -> Failure:
    return Failure(400, "The request cannot be understood; nothing was changed.", "bad-input", errors=errors)


def failure_of(error: Exception) -> Failure:
    """Return the failure that an exception of HTTP means. Any other exception is a fault of the server: 500."""
    if isinstance(error, HttpError):
        return error.failure()
    if isinstance(error, HTTPException):
        return Failure(error.status_code, str(error.detail), headers=tuple((error.headers or {}).items()))
    return Failure(500, "Something went wrong on our side. It is logged under the transaction id.", error=error)
