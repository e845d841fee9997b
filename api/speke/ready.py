"""Questions that were answered lately, understood once: packagers ask the same for each of their endpoints and for each start.

What is kept holds no key: those are read each time. Answers whose keys are encrypted are made anew each time and are not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from api.speke.cpix.answer import Template
from api.speke.cpix.signalling import Audience
from projections.content_keys.store import KeyAsked

Question = tuple[bytes, str | None, Audience]
_LARGEST: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ready:
    """What a question asks for, and its answer without the keys."""

    asked: Sequence[KeyAsked]
    version: str
    template: Template


class ReadyAnswers:
    """The latest ones, up to so many bytes. `audience` is part of the question: other settings, another answer."""

    def __init__(self, *, most: int = 32 * 1024 * 1024) -> None:
        self._most = most
        self._size = 0
        self._held: OrderedDict[Question, Ready] = OrderedDict()

    def question(self, body: bytes, version: str | None, *, audience: Audience) -> Question:
        return blake2b(body, digest_size=32).digest(), version, audience

    def get(self, question: Question) -> Ready | None:
        found = self._held.get(question)
        if found is not None:
            self._held.move_to_end(question)
        return found

    def put(self, question: Question, ready: Ready) -> None:
        if ready.template.size > _LARGEST or question in self._held:
            return
        self._held[question] = ready
        self._size += ready.template.size
        while self._size > self._most:
            _, oldest = self._held.popitem(last=False)
            self._size -= oldest.template.size
