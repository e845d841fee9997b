"""Write-only members of a configuration: removed from the text before it is stored, and matched with the stored secrets later.

A secret is identified by its path, a compact JSON array of steps: `["encoders",{"name":"enc-1"},"streamingServer","apiKey"]`. The
step of an array entry is its name if no other entry has the same one, otherwise its index. A secret therefore stays with its object
when entries change places.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from domain.kernel.credentials import hints_at_credential, speaks_of_credential
from domain.kernel.errors import Malformed
from domain.kernel.json_document import MEMBER, json_object
from domain.kernel.strict_json import path_inside
from domain.kernel.urls import origin

T = TypeVar("T")
Step: TypeAlias = str | int | dict[str, str]
Entries: TypeAlias = Mapping[str, Sequence[Step]]
Origins: TypeAlias = frozenset[str]
Holders: TypeAlias = Mapping[str, Origins]

_SPELLINGS: Final = {"srvaapikey": "srvaApiKey", "apikey": "apiKey", "password": "password"}
WRITE_ONLY: Final = frozenset(_SPELLINGS)

_ADDRESS: Final = re.compile(r".*(?:url|uri|address|host|server|endpoint|api)|ip|port", re.IGNORECASE)
_IDENTITY: Final = re.compile(r".*(?:host_?key|known_?hosts|fingerprint|thumbprint|certificate)", re.IGNORECASE)
"""Names of members that authenticate the server at an address. With a different value, another server could take its place."""
_NAMING: Final = ("name", "id", "serverAddress")
_LONGEST_NAME: Final = 200
_LONGEST_PATH: Final = 600  # a path must fit an index entry of PostgreSQL, in any script
_ROOT: Final = "[]"
_FLAT: Final = re.compile(r'(?P<object>\{(?:[^{}\[\]"]|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+\})|"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
"""Finds the objects of a text that contain no other objects and no arrays, and skips strings."""


@dataclass(frozen=True, slots=True)
class SecretMembers:
    """The write-only members of a configuration. `spellings` maps their names in lower case to their spelling.

    With `wide`, members whose names denote a credential are write-only too, unless they are `public` (names in lower case), and so
    are the values of headers whose names do. A secret then belongs to the addresses of all objects around it, and a key may occur
    only once in an object.
    """

    spellings: Mapping[str, str]
    public: frozenset[str] = frozenset()
    wide: bool = False

    def spelling(self, key: str) -> str | None:
        """Return the spelling of a write-only member; None for another member."""
        folded = key.casefold()
        if folded in self.spellings:
            return self.spellings[folded]
        return key if self.wide and folded not in self.public and speaks_of_credential(key) else None

    def must_be_text(self, key: str, value: object) -> bool:
        """Return True if the value must be a string. A member that is write-only because of its name alone may also be a flag,
        or an object that is searched in turn."""
        return key.casefold() in self.spellings or not isinstance(value, bool | dict)

    def is_header(self, node: Mapping[str, object]) -> bool:
        name = node.get("name")
        return self.wide and "value" in node and isinstance(name, str) and hints_at_credential(name)


CONFIGURATION: Final = SecretMembers(_SPELLINGS)
"""The write-only members of channels and flows."""


@dataclass(frozen=True, slots=True)
class Split:
    """A configuration text and its secrets, separated.

    `text` has null in place of each secret. `sent` holds the secrets by path; `""` clears one. `nulls` are the paths of secrets
    that are null in the text. `holders` are the paths of all objects in it, each of which may hold a secret, with the origins of
    the addresses in the object.
    """

    text: str
    sent: Mapping[str, str] = field(repr=False)
    nulls: frozenset[str]
    holders: Holders


def split(text: str, *, field: str = "configurationJson", members: SecretMembers = CONFIGURATION) -> Split:
    """Separate a text from its secrets. The rest stays unchanged, character for character. If a key is repeated, the last one
    counts, or the text is refused."""
    json_object(text, field=field)
    finder = _Finder(members)
    finder.visit(json.loads(text, object_pairs_hook=_reader(members, field)), _ROOT, field)
    return Split(_masked(text, field, members), finder.sent, frozenset(finder.nulls), finder.holders)


def opened(text: str, stored: Mapping[str, str], *, members: SecretMembers = CONFIGURATION) -> object:
    """Return the parsed text with its secrets in their places, or None if it is not JSON. A secret whose place does not exist is
    left out."""
    try:
        document = json.loads(text, object_pairs_hook=_reader(members))
    except (ValueError, RecursionError):
        return None
    for path, secret in stored.items():
        *steps, member = json.loads(path)
        holder = _at(document, steps)
        if isinstance(holder, dict) and isinstance(member, str):
            holder[member] = secret
    return document


def _at(node: Any, steps: Sequence[Step]) -> object:
    """Return the node that the steps lead to, or None if there is none."""
    for step in steps:
        if isinstance(step, str):
            node = node.get(step) if isinstance(node, dict) else None
        elif isinstance(node, list):
            node = next((entry for entry, entry_step in zip(node, entry_steps(node), strict=True) if entry_step == step), None)
        else:
            return None
    return node


def merge_secrets(stored: Mapping[str, T], sent: Mapping[str, T | None], *, holders: Container[str]) -> dict[str, T]:
    """Return the secrets of a record after a write: those that were sent, and the stored ones whose object still exists. None
    clears a secret."""
    retained = {path: secret for path, secret in stored.items() if path not in sent and holder_of(path) in holders}
    return retained | {path: secret for path, secret in sent.items() if secret is not None}


def holder_of(path: str) -> str:
    """Return the path of the object that a secret belongs to."""
    return path_of(json.loads(path)[:-1])


def entries_of(holders: Iterable[str]) -> Entries:
    """Return the named entries of all arrays of a text, by the array's path."""
    named: dict[str, list[Step]] = {}
    for holder in holders:
        *array, last = json.loads(holder) or [None]
        if isinstance(last, dict):
            named.setdefault(path_of(array), []).append(last)
    return named


def after_renaming(path: str, *, old: Entries, new: Entries) -> str:
    """Translate a path of the old text into the new one. If exactly one entry of an array is missing and exactly one is new, the
    entry was renamed."""
    before: list[Step] = []
    after: list[Step] = []
    for step in json.loads(path):
        old_entries, new_entries = old.get(path_of(before), ()), new.get(path_of(after), ())
        removed = [entry for entry in old_entries if entry not in new_entries]
        added = [entry for entry in new_entries if entry not in old_entries]
        after.append(added[0] if removed == [step] and len(added) == 1 else step)
        before.append(step)
    return path_of(after)


def path_of(steps: Iterable[Step]) -> str:
    return _compact(list(steps))


def entry_steps(entries: Sequence[object]) -> list[Step]:
    """Return the steps of the entries of an array: a name that no other entry has, else the index."""
    names = [_names(entry) for entry in entries]
    shared = Counter(pair for pairs in names for pair in pairs)
    return [_unique_name(pairs, shared) or index for index, pairs in enumerate(names)]


def _names(entry: object) -> list[tuple[str, str]]:
    if not isinstance(entry, dict):
        return []
    pairs = [(key, entry.get(key)) for key in _NAMING]
    return [(key, name) for key, name in pairs if isinstance(name, str) and name and len(_compact(name)) <= _LONGEST_NAME]


def _unique_name(pairs: Iterable[tuple[str, str]], shared: Mapping[tuple[str, str], int]) -> dict[str, str] | None:
    return next(({key: name} for key, name in pairs if shared[key, name] == 1), None)


class _Finder:
    """Collects secrets from a parsed text. The path of a node that is too deep to be stored is None."""

    def __init__(self, members: SecretMembers) -> None:
        self._members = members
        self.sent: dict[str, str] = {}
        self.nulls: set[str] = set()
        self.holders: dict[str, Origins] = {}

    def visit(self, node: object, path: str | None, place: str, *, above: Origins = frozenset()) -> None:
        if isinstance(node, dict):
            origins = _origins(node, self._members) | above
            if path is not None:
                self.holders[path] = origins
            is_header = self._members.is_header(node)
            for key, value in node.items():
                below, inside = _below(path, key), path_inside(place, [key])
                if (is_header and key == "value") or self._is_secret(key, value):
                    self._take(value, below, inside)
                elif is_header and isinstance(value, dict | list):
                    raise Malformed.at(inside, "must be a string")
                else:
                    self.visit(value, below, inside, above=origins if self._members.wide else frozenset())
        elif isinstance(node, list):
            for index, (step, value) in enumerate(zip(entry_steps(node), node, strict=True)):
                self.visit(value, _below(path, step), path_inside(place, [index]), above=above)

    def _is_secret(self, key: str, value: object) -> bool:
        return self._members.spelling(key) is not None and self._members.must_be_text(key, value)

    def _take(self, value: object, path: str | None, place: str) -> None:
        if value is None:
            self.nulls.update(() if path is None else (path,))
            return
        if not isinstance(value, str):
            raise Malformed.at(place, "must be a string")
        if path is None:
            raise Malformed.at(place, "the names above a key or password are too long")
        self.sent[path] = value


def _origins(holder: Mapping[str, object], members: SecretMembers) -> Origins:
    """Return the origins of the addresses in an object: whole URLs, members that are named as an address, and members that
    authenticate its server."""
    members_of_holder = {
        key: str(value) for key, value in holder.items() if isinstance(value, str | int) and members.spelling(key) is None
    }
    return frozenset(
        f"{key}={value.strip() if _IDENTITY.fullmatch(key) else origin(value)}"
        for key, value in members_of_holder.items()
        if "://" in value or _ADDRESS.fullmatch(key) or _IDENTITY.fullmatch(key)
    )


def _reader(members: SecretMembers, field: str = "") -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    """Return a hook for the JSON parser that treats two spellings of a write-only key as one key."""

    def read(pairs: list[tuple[str, object]]) -> dict[str, object]:
        members_read = {members.spelling(key) or key: value for key, value in pairs}
        if members.wide and len(members_read) < len(pairs):
            raise Malformed.at(field, "has an object with the same key twice")
        return members_read

    return read


def _masked(text: str, field: str, members: SecretMembers) -> str:
    def mask(match: re.Match[str]) -> str:
        key = json.loads(match["key"]) if match["key"] is not None else ""
        spelling = members.spelling(key) if key else None
        if spelling is None:
            return match[0]
        if match["value"] is not None:
            return f"{match['key']}{match['colon']}null"
        if members.wide:  # a key comes once, so the parsed text has what this is
            return match[0]
        # of a repeated key, or below one: the parsed text does not have it
        raise Malformed.at(field, f"must have a string wherever it has {spelling}")

    masked = MEMBER.sub(mask, text)
    return _FLAT.sub(lambda object_match: _header_masked(object_match, members), masked) if members.wide else masked


def _header_masked(match: re.Match[str], members: SecretMembers) -> str:
    if match["object"] is None or not members.is_header(json.loads(match["object"])):
        return match[0]
    return MEMBER.sub(
        lambda member: (
            f"{member['key']}{member['colon']}null" if member["value"] and json.loads(member["key"]) == "value" else member[0]
        ),
        match[0],
    )


def _below(path: str | None, step: Step) -> str | None:
    if path is None:
        return None
    longer = f"{path[:-1]}{'' if path == _ROOT else ','}{_compact(step)}]"
    return longer if len(longer) <= _LONGEST_PATH else None


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
