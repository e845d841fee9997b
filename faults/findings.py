"""The findings of a judge, counted by kind, and tables of results for docs/reference/guarantees.md."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

_MOST_SHOWN: Final = 10

K = TypeVar("K", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Verdict(Generic[K]):
    """The counts of findings by kind. `messages` describes the first findings of each kind."""

    counts: Counter[K]
    messages: Sequence[str]

    @classmethod
    def of(cls, findings: Iterable[tuple[K, str]]) -> Verdict[K]:
        """Return the verdict of findings, each a kind and a sentence."""
        faults: defaultdict[K, list[str]] = defaultdict(list)
        for kind, sentence in findings:
            faults[kind].append(sentence)
        shown = [f"{kind}: {sentence}" for kind, sentences in faults.items() for sentence in sentences[:_MOST_SHOWN]]
        return cls(Counter({kind: len(sentences) for kind, sentences in faults.items()}), shown)


def markdown(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, ["---"] * len(columns), *lines))
