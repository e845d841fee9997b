"""A download that continues after an interruption, in the same run or in a later one. RFC 9110, 13.1.5.

Only a version that the host can name again is continued: by a strong entity tag, or by a date that is old enough to be strong. The
file of an earlier run is copied, not used in place, since a worker that was thought dead may still write to it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from re import compile as regex
from typing import Any, Final

from domain.job.values import Severity
from workers.job.context import StepContext, StepFailed
from workers.kernel.http_dates import http_date
from workers.ports.outbound import Downloaded, DownloadStart, OutboundFailed, OutboundRefused

MOST_BREAKS: Final = 20
_PART: Final = "download.part"
_VERSION: Final = "download.json"
_STRONG: Final = timedelta(seconds=60)
_STRONG_TAG: Final = regex(r'"[\x21\x23-\x7e]*"')
_PIECE: Final = 1_048_576
_AGAIN: Final = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Version:
    """The version that a partial file belongs to. `validator` is None if the host sent none."""

    validator: str | None
    total: int | None
    content_type: str


class ResumableDownload:
    """A download of one file into the workspace of one run. `size` is the expected size, if known."""

    def __init__(self, context: StepContext[Any], url: str, *, size: int | None) -> None:
        self._context = context
        self._url = url
        self._expected = size
        self.path = context.workspace / _PART
        self._hash = sha256()
        self._got = 0
        self._version = Version(None, None, "")

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    @property
    def size(self) -> int:
        return self._got

    @property
    def content_type(self) -> str:
        return self._version.content_type

    def run(self) -> None:
        """Download the whole file. Raises `StepFailed`."""
        self._take_over()
        for _ in range(MOST_BREAKS):
            before = self._got
            try:
                answer = self._ask()
            except OutboundRefused as refused:
                raise StepFailed(str(refused), final=True) from None
            except OutboundFailed as failed:
                self._check_failure(failed, before)
                continue
            if answer.status in (200, 206):
                return
            if not before or answer.status != 416:
                raise StepFailed(f"The host answered {answer.status}.", final=_is_final(answer.status))
            self._restart("The host no longer has this part of the file")
        raise StepFailed(f"The host interrupted the download {MOST_BREAKS} times.")

    def discard(self) -> None:
        """Delete the file, so that no later run continues it."""
        (self._context.workspace / _VERSION).unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def _ask(self) -> Downloaded:
        return self._context.download(
            self._url,
            self.path,
            offset=self._got,
            if_range=self._version.validator,
            most=self._expected,
            began=self._on_start,
            seen=self._count,
        )

    def _check_failure(self, failed: OutboundFailed, before: int) -> None:
        """Return to continue the download, or raise `StepFailed`.

        It continues after an attempt that received data, and after one that failed because the rest of the file cannot be fetched
        separately.
        """
        if failed.kind == "size":
            self.discard()
            raise StepFailed(f"The file is larger than the {self._expected} bytes that were expected.")
        if before and failed.kind == "protocol":
            self._restart("The rest of the file cannot be fetched separately")
        elif self._got > before and self._version.validator is not None:
            self._context.log(f"{failed} Continuing at {self._got} bytes.", Severity.WARN)
        else:
            raise StepFailed(str(failed)) from None

    def _restart(self, why: str) -> None:
        self._context.log(f"{why}; starting again.", Severity.WARN)
        self._forget()

    def _forget(self) -> None:
        self._got, self._hash, self._version = 0, sha256(), Version(None, None, "")

    def _on_start(self, began: DownloadStart) -> None:
        """Note the version of the file before its first byte: a run that copies the file in between must see that it is another
        version."""
        if self._expected is not None and began.total is not None and began.total != self._expected:
            self.discard()
            raise StepFailed(f"Expected {self._expected} bytes, the host has {began.total}.")
        if began.offset:
            return
        if self._got:
            self._context.log("The file has changed, or the host sends it from the start only.", Severity.WARN)
        self._forget()
        self.path.unlink(missing_ok=True)
        self._version = Version(validator(began), began.total, began.headers.get("content-type", ""))
        self._note()

    def _note(self) -> None:
        made = self._context.workspace / f"{_VERSION}.new"
        made.write_text(json.dumps(asdict(self._version)))
        os.replace(made, self._context.workspace / _VERSION)

    def _count(self, piece: bytes) -> None:
        self._hash.update(piece)
        self._got += len(piece)
        total = self._version.total
        fraction = self._got / total if total else 0.0
        self._context.progress(fraction, f"{self._got} of {total} bytes" if total else f"{self._got} bytes")

    def _take_over(self) -> None:
        """Continue with the file of the previous run."""
        previous = self._context.previous
        version = None if previous is None else _version_in(previous)
        if previous is None or version is None or version.validator is None:
            return
        self._version = version
        try:
            with (previous / _PART).open("rb") as old, self.path.open("wb") as new:
                while not self._context.cancelled and (piece := old.read(_PIECE)):
                    new.write(piece)
                    self._count(piece)
        except FileNotFoundError:
            self._forget()
        if _version_in(previous) != version:
            self._forget()
        self._note()
        if self._got:
            self._context.log(f"Continuing at {self._got} bytes, which the previous run had.")


def validator(began: DownloadStart) -> str | None:
    """Return the validator that identifies this version of the file; None if the host sent no strong one."""
    tag = began.headers.get("etag", "")
    if _STRONG_TAG.fullmatch(tag):
        return tag
    changed = began.headers.get("last-modified", "")
    sent_at, changed_at = http_date(began.headers.get("date", "")), http_date(changed)
    return changed if sent_at is not None and changed_at is not None and sent_at - changed_at >= _STRONG else None


def _version_in(folder: Path) -> Version | None:
    try:
        return Version(**json.loads((folder / _VERSION).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _is_final(status: int) -> bool:
    """Return True if the status means that the request is wrong, so that another attempt would fail too."""
    return 400 <= status < 500 and status not in _AGAIN
