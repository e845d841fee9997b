"""Write-only members of a configuration text (decisions.md, "Everywhere"): taken out before anything is kept, and found again.

A secret is known by its path, a compact JSON array of steps such as `["encoders",{"name":"enc-1"},"streamingServer","apiKey"]`.
An entry of an array goes by its name where it has one of its own, so that a secret follows its owner when entries change places.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from domain.configuration.schema import json_object
from domain.kernel.errors import Malformed
from domain.kernel.strict_json import path_inside

T = TypeVar("T")
Step: TypeAlias = str | int | dict[str, str]
Entries: TypeAlias = Mapping[str, Sequence[Step]]

_SPELLINGS: Final = {"srvaapikey": "srvaApiKey", "apikey": "apiKey", "password": "password"}
WRITE_ONLY: Final = frozenset(_SPELLINGS)

_NAMING: Final = ("name", "id", "serverAddress")
_LONGEST_NAME: Final = 200
_LONGEST_PATH: Final = 600  # like every text that is looked up by: it must fit an index entry of PostgreSQL, in any script
_ROOT: Final = "[]"

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
MEMBER: Final = re.compile(rf"(?P<key>{_STRING})(?P<colon>\s*+:\s*+)(?P<value>{_STRING}|null)?|{_STRING}", re.DOTALL)
"""Finds the members of every object in a checked text, in order, and passes over all other strings. `value` is that of a string or
null, and None of all else."""


@dataclass(frozen=True, slots=True)
class Split:
    """A text without its secrets, the secrets that were sent (`""` to clear one), by path, the paths of those that are null, and
    the paths of all objects that are there, each of which may hold one."""

    text: str
    sent: Mapping[str, str] = field(repr=False)
    nulls: frozenset[str]
    holders: frozenset[str]


def split(text: str, *, field: str = "configurationJson") -> Split:
    """Character for character the same text, with null for each secret. Of a key that is repeated the last counts."""
    json_object(text, field=field)
    found = _Finder()
    found.visit(json.loads(text, object_pairs_hook=_members), _ROOT, field)
    return Split(_masked(text, field), found.sent, frozenset(found.nulls), frozenset(found.holders))


def settled(stored: Mapping[str, T], sent: Mapping[str, T | None], *, holders: AbstractSet[str]) -> dict[str, T]:
    """The secrets that a record has after a write: those sent, and those stored of holders that are still there. None clears."""
    kept = {path: secret for path, secret in stored.items() if path not in sent and holder_of(path) in holders}
    return kept | {path: secret for path, secret in sent.items() if secret is not None}


def holder_of(path: str) -> str:
    return path_of(json.loads(path)[:-1])


def entries_of(holders: Iterable[str]) -> Entries:
    """The named entries of every array of a text, by the array's path."""
    found: dict[str, list[Step]] = {}
    for holder in holders:
        *array, last = json.loads(holder) or [None]
        if isinstance(last, dict):
            found.setdefault(path_of(array), []).append(last)
    return found


def after_renaming(path: str, *, old: Entries, new: Entries) -> str:
    """Where something of an old text lies in a new one: an entry that is the only one gone from its array has become the only one
    that has come there."""
    before: list[Step] = []
    after: list[Step] = []
    for step in json.loads(path):
        there, here = old.get(path_of(before), ()), new.get(path_of(after), ())
        gone, come = [one for one in there if one not in here], [one for one in here if one not in there]
        after.append(come[0] if gone == [step] and len(come) == 1 else step)
        before.append(step)
    return path_of(after)


def path_of(steps: Iterable[Step]) -> str:
    return _compact(list(steps))


def entry_steps(entries: Sequence[object]) -> list[Step]:
    """How the entries of an array are addressed: by a name that no other has, else by the index."""
    names = [_names(entry) for entry in entries]
    shared = Counter(pair for pairs in names for pair in pairs)
    return [_first_own(pairs, shared) or index for index, pairs in enumerate(names)]


def _names(entry: object) -> list[tuple[str, str]]:
    if not isinstance(entry, dict):
        return []
    pairs = [(key, entry.get(key)) for key in _NAMING]
    return [(key, name) for key, name in pairs if isinstance(name, str) and name and len(_compact(name)) <= _LONGEST_NAME]


def _first_own(pairs: Iterable[tuple[str, str]], shared: Mapping[tuple[str, str], int]) -> dict[str, str] | None:
    return next(({key: name} for key, name in pairs if shared[key, name] == 1), None)


class _Finder:
    """Walks a parsed text. A path that has grown too long is None: nothing below it can be addressed."""

    def __init__(self) -> None:
        self.sent: dict[str, str] = {}
        self.nulls: set[str] = set()
        self.holders: set[str] = set()

    def visit(self, node: object, path: str | None, place: str) -> None:
        if isinstance(node, dict):
            if path is not None:
                self.holders.add(path)
            for key, value in node.items():
                below, inside = _below(path, key), path_inside(place, [key])
                if key.casefold() in WRITE_ONLY:
                    self._take(value, below, inside)
                else:
                    self.visit(value, below, inside)
        elif isinstance(node, list):
            for index, (step, value) in enumerate(zip(entry_steps(node), node, strict=True)):
                self.visit(value, _below(path, step), path_inside(place, [index]))

    def _take(self, value: object, path: str | None, place: str) -> None:
        if value is None:
            self.nulls.update(() if path is None else (path,))
            return
        if not isinstance(value, str):
            raise Malformed.at(place, "must be a string")
        if path is None:
            raise Malformed.at(place, "lies below too long names for a key or password")
        self.sent[path] = value


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Two spellings of a write-only key are one key."""
    return {_SPELLINGS.get(key.casefold(), key): value for key, value in pairs}


def _masked(text: str, field: str) -> str:
    def mask(found: re.Match[str]) -> str:
        key = found["key"]
        if key is None or json.loads(key).casefold() not in WRITE_ONLY:
            return found[0]
        if found["value"] is None:  # of a repeated key, or below one: the walk through the parsed text does not see it
            raise Malformed.at(field, f"must have a string wherever it has {_SPELLINGS[json.loads(key).casefold()]}")
        return f"{key}{found['colon']}null"

    return MEMBER.sub(mask, text)


def _below(path: str | None, step: Step) -> str | None:
    if path is None:
        return None
    longer = f"{path[:-1]}{'' if path == _ROOT else ','}{_compact(step)}]"
    return longer if len(longer) <= _LONGEST_PATH else None


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
