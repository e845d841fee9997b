"""The view of jobs for callers without a key: everything except credentials and internal addresses.

docs/reference/api/job-engine.md#without-a-key.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pydantic_core import from_json

from api.http.response import encode
from domain.kernel.inside import Inside
from domain.kernel.known_tokens import MASK
from domain.kernel.masking import masked_for_strangers

_LONG: Final = 32_768
"""Size of an answer in bytes above which it is masked in a thread, because masking takes some milliseconds."""
MOST_PARAMETERS: Final = 256 * 1024
"""Bytes of parameters in one list. Masking costs a hundred times as much as reading."""


class Strangers:
    """Masks answers for callers without a key."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside

    async def body(self, answer: Any, *, in_full: bool) -> Any:
        """Return the answer unchanged if `in_full`, otherwise masked."""
        if in_full:
            return answer
        text = encode(answer)
        return await asyncio.to_thread(self._masked, text) if len(text) > _LONG else self._masked(text)

    def _masked(self, text: bytes) -> Any:
        return masked_for_strangers(from_json(text), self._inside)


def machine(name: str, *, in_full: bool) -> str:
    """Return the name of the process that worked on a task, masked unless `in_full`: its host is internal."""
    return name if in_full or not name else MASK
