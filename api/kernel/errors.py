"""The status codes of domain errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from api.http import errors as http
from api.http.errors import Failure, FieldError, bad_input
from domain.kernel.errors import (
    Conflict,
    DecryptionFailed,
    Malformed,
    NotFound,
    OutcomeUnknown,
    PreconditionFailed,
    Refused,
    Unavailable,
)
from domain.kernel.mapper import UnknownTopic
from projections.kernel.database.page import LARGEST_CONTENT, PageTooLarge
from projections.kernel.sizes import MIB


def _malformed(error: Malformed) -> Failure:
    return bad_input([FieldError(each.field, each.message) for each in error.errors])


def _page_too_large(error: PageTooLarge) -> Failure:
    size, most = -(-error.size // MIB), LARGEST_CONTENT // MIB
    return bad_input([FieldError("pageSize", f"the page has {size} MiB, the limit is {most} MiB; request fewer entries")])


def _not_found(error: NotFound) -> Failure:
    return Failure(404, error.sentence or f"There is no {error.kind.replace('_', ' ')} {error.key}.", "not-found")


def _unavailable(error: Unavailable) -> Failure:
    problem = "outcome-unknown" if isinstance(error, OutcomeUnknown) else "unavailable"
    return Failure(503, error.what, problem, headers=(("retry-after", str(error.retry_after)),))


def _too_old(error: UnknownTopic) -> Failure:
    """Return a 503: a newer build wrote the event, so a process of that build can answer."""
    return Failure(503, "A newer build of the product has written this; try again.", "unavailable", headers=(("retry-after", "1"),))


def _not_decrypted(_: DecryptionFailed) -> Failure:
    """Return a 503: another process may have the key, and an operator may restore it."""
    what = "A secret cannot be decrypted: this process does not have its master key."
    return Failure(503, what, "unavailable", headers=(("retry-after", "5"),))


_TABLE: dict[type[Any], Callable[..., Failure]] = {
    Malformed: _malformed,
    NotFound: _not_found,
    PageTooLarge: _page_too_large,
    Refused: lambda error: Failure(409, error.rule, "refused"),
    PreconditionFailed: lambda error: Failure(412, f"{error.reason[:1].upper()}{error.reason[1:]}.", "stale-version"),
    Conflict: lambda error: Failure(409, error.reason, "conflict"),
    Unavailable: _unavailable,
    UnknownTopic: _too_old,
    DecryptionFailed: _not_decrypted,
}


def failure_of(error: Exception) -> Failure:
    """Return the failure of the nearest class in the table. An error without an entry is an error of HTTP or a fault of the
    product."""
    for kind in type(error).__mro__:
        row = _TABLE.get(kind)
        if row is not None:
            return row(error)
    return http.failure_of(error)
