"""Captions of a composed film: those of its items, each cut and moved like its picture, and joined by language and kind."""

from __future__ import annotations

from typing import Any

from domain.asset.values import CaptionKind
from workers.jobs.context import StepContext
from workers.jobs.workflows.compose.plan import Plan
from workers.jobs.workflows.vod.texts import Text, published_texts
from workers.media.captions.cues import Cue
from workers.media.captions.cuts import cut

_Key = tuple[str, CaptionKind, int]


def composed_texts(context: StepContext[Any], plan: Plan) -> list[Text]:
    """Join the texts of the items, in the order in which the film has them first.

    An item with two tracks of a language and kind has two in the film.
    """
    numbered: dict[str, list[tuple[_Key, Text]]] = {}
    names: dict[_Key, str] = {}
    joined: dict[_Key, list[Cue]] = {}
    for item in plan.items:
        source = item.part.source
        if source not in numbered:
            numbered[source] = _number_texts(published_texts(context, source))
        for key, text in numbered[source]:
            names.setdefault(key, text.name)
            begin = item.begin
            cues = cut(text.cues, begin=begin, end=begin + plan.time(item.frames), to=plan.time(item.first))
            joined.setdefault(key, []).extend(cues)
    return [Text(key[0], key[1], names[key], cues) for key, cues in joined.items() if cues]


def _number_texts(texts: list[Text]) -> list[tuple[_Key, Text]]:
    count: dict[tuple[str, CaptionKind], int] = {}
    numbered = []
    for text in texts:
        number = count[text.language, text.kind] = count.get((text.language, text.kind), 0) + 1
        numbered.append(((text.language, text.kind, number), text))
    return numbered
