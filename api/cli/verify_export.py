#!/usr/bin/env python3
"""Verifies the output of `medialedger audit export` without the product and its database: see docs/how-to/verify-the-log.md. It
needs Python 3.9 or newer and nothing else. If the package `cryptography` is installed, it checks the signatures, which is faster.
The formats are described in docs/explanation/the-log.md.

Exit codes: 0 the files fit, 3 they do not fit, 1 a file cannot be read or was not written by the product.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from base64 import b64decode
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256, sha512
from typing import Any, NamedTuple, NoReturn

FORMAT = "medialedger log export 1"
REDACTED = "log.redacted"
WITHHELD = "client.key_issued"
"""The only type of event whose content an export may withhold: it contains the hash of an API key."""
REDACTED_STATE = '{"timestamp":"*","redacted":true}'
REDACTED_METADATA = '{"actor":"redacted","correlation_id":"redacted","command_id":"00000000-0000-0000-0000-000000000000"}'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Damaged(Exception):
    """Raised when the export is damaged. `position` is the first damaged position."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"is damaged at position {position}: {reason}")
        self.position = position


class Unreadable(Exception):
    """Raised for an input that the product did not write."""


# --- hashes


def event_leaf(event: dict[str, Any]) -> bytes:
    stream, topic = event["originator_id"].encode(), event["topic"].encode()
    name = struct.pack(">i", len(stream)) + stream + struct.pack(">q", event["originator_version"])
    what = struct.pack(">i", len(topic)) + topic + bytes.fromhex(event["event_id"].replace("-", ""))
    metadata = event["metadata"].encode() if event.get("metadata") is not None else None
    return sha256(b"\0" + name + what + _part(event, metadata, b"\1") + _part(event, state_of(event), b"\2")).digest()


def _part(event: dict[str, Any], content: bytes | None, part: bytes) -> bytes:
    """Return the inner hash of metadata (1) or state (2). If the other part was erased, the salt is derived for this part."""
    name, other = ("metadata_hash", "state_hash") if part == b"\1" else ("state_hash", "metadata_hash")
    if event.get(name) is not None:
        return bytes.fromhex(event[name])
    if content is None or event["salt"] is None:
        raise ValueError("neither content nor hash")
    salt = bytes.fromhex(event["salt"])
    return sha256((salt if event.get(other) is not None else sha256(salt + part).digest()) + content).digest()


def state_of(event: dict[str, Any]) -> bytes | None:
    if event.get("state_base64") is not None:
        return b64decode(event["state_base64"], validate=True)
    return event["state"].encode() if event.get("state") is not None else None


def node(first: bytes, second: bytes) -> bytes:
    return sha256(b"\1" + first + second).digest()


def tree(leaves: list[bytes]) -> bytes:
    while len(leaves) > 1:
        pairs = [node(leaves[at], leaves[at + 1]) for at in range(0, len(leaves) - 1, 2)]
        leaves = pairs + leaves[len(pairs) * 2 :]
    return leaves[0]


def commit_leaf(first: int, count: int, micros: int, root: bytes) -> bytes:
    return sha256(b"\0" + struct.pack(">qqq", first, count, micros) + root).digest()


def genesis(log_id: str) -> bytes:
    return sha256(b"medialedger log 1" + bytes.fromhex(log_id.replace("-", ""))).digest()


class GrowingTree:
    """A Merkle tree to which leaves are added, as the roots of its complete subtrees, the largest first."""

    def __init__(self, size: int, roots: list[bytes]) -> None:
        self.size, self._roots = size, list(roots)
        if len(roots) != bin(size).count("1"):
            raise Unreadable("the header does not have the tree before its first commit")

    def add(self, leaf: bytes) -> None:
        at = self.size
        while at & 1:
            leaf, at = node(self._roots.pop(), leaf), at >> 1
        self._roots.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        result = self._roots[-1] if self._roots else sha256().digest()
        for subtree in reversed(self._roots[:-1]):
            result = node(subtree, result)
        return result


def root_by_path(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """Return the root of a tree from a leaf and the sibling hashes on its path (RFC 9162, 2.1.3.2); None if the path has a wrong
    length."""
    at, last = index, size - 1
    if not 0 <= index < size:
        return None
    for sibling in path:
        if last == 0:
            return None
        if at & 1 or at == last:
            leaf = node(sibling, leaf)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            leaf = node(leaf, sibling)
        at, last = at >> 1, last >> 1
    return leaf if last == 0 else None


def is_beginning(old: int, old_root: bytes, size: int, root: bytes, proof: list[bytes]) -> bool:
    """Return True if the tree of `old` leaves is the beginning of the other tree (RFC 9162, 2.1.4.2)."""
    if old == size:
        return old_root == root and not proof
    if not 0 < old < size:
        return False
    path = list(proof) if old & (old - 1) else [old_root, *proof]
    if not path:
        return False
    at, last = old - 1, size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = node(sibling, first), node(sibling, second)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            second = node(second, sibling)
        at, last = at >> 1, last >> 1
    return (first, second, last) == (old_root, root, 0)


def stream_key(name: str) -> bytes:
    return sha256(name.encode()).digest()


def first_stream_hash(name: str) -> bytes:
    return sha256(b"medialedger stream 1" + stream_key(name)).digest()


def next_stream_hash(before: bytes, leaf: bytes) -> bytes:
    return sha256(b"\3" + before + leaf).digest()


def head_hash(key: bytes, version: int, hash: bytes) -> bytes:
    return sha256(b"\4" + key + struct.pack(">q", version) + hash).digest()


def map_node(first: bytes, second: bytes) -> bytes:
    return sha256(b"\5" + first + second).digest()


def _bit(key: bytes, depth: int) -> int:
    return key[depth >> 3] >> (7 - (depth & 7)) & 1


def map_root(heads: list[tuple[bytes, bytes]], depth: int = 0) -> bytes:
    """Return the root of the map of all streams. `heads` are the keys in order, each with the hash of its head."""
    if len(heads) < 2:
        return heads[0][1] if heads else bytes(32)
    low, high = 0, len(heads)
    while low < high:
        middle = (low + high) // 2
        if _bit(heads[middle][0], depth):
            high = middle
        else:
            low = middle + 1
    return map_node(map_root(heads[:low], depth + 1), map_root(heads[low:], depth + 1))


def map_root_by_path(key: bytes, hash: bytes, siblings: list[bytes]) -> bytes:
    for depth in range(len(siblings) - 1, -1, -1):
        hash = map_node(siblings[depth], hash) if _bit(key, depth) else map_node(hash, siblings[depth])
    return hash


# --- signatures: Ed25519, RFC 8032

_P = 2**255 - 19
_Q = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_Point = tuple[int, int, int, int]


def _add(a: _Point, b: _Point) -> _Point:
    p, q = (a[1] - a[0]) * (b[1] - b[0]) % _P, (a[1] + a[0]) * (b[1] + b[0]) % _P
    r, s = 2 * a[3] * b[3] * _D % _P, 2 * a[2] * b[2] % _P
    e, f, g, h = q - p, s - r, s + r, q + p
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _multiply(number: int, point: _Point) -> _Point:
    total: _Point = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = _add(total, point)
        point, number = _add(point, point), number >> 1
    return total


def _point(encoded: bytes) -> _Point | None:
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return (x, y, 1, x * y % _P)


_BASE_Y = 4 * pow(5, _P - 2, _P) % _P


def ed25519_valid(public: bytes, signature: bytes, message: bytes) -> bool:
    if len(public) != 32 or len(signature) != 64:
        return False
    key, commitment, base = _point(public), _point(signature[:32]), _point(_BASE_Y.to_bytes(32, "little"))
    number = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or base is None or number >= _Q:
        return False
    challenge = int.from_bytes(sha512(signature[:32] + public + message).digest(), "little") % _Q
    actual, expected = _multiply(number, base), _add(commitment, _multiply(challenge, key))
    return (actual[0] * expected[2] - expected[0] * actual[2]) % _P == 0 and (
        actual[1] * expected[2] - expected[1] * actual[2]
    ) % _P == 0


def signature_valid(public: bytes, signature: bytes, message: bytes) -> bool:
    """Verify a signature with the package `cryptography` if it is installed, otherwise in Python."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return ed25519_valid(public, signature, message)
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


class Key(NamedTuple):
    """A public key. Its text is `name+id+key`."""

    name: str
    id: bytes
    public: bytes

    @classmethod
    def read(cls, text: str) -> Key:
        try:
            name, id, encoded = text.strip().split("+", 2)
            public = b64decode(encoded, validate=True)
            key = cls(name, bytes.fromhex(id), public[1:])
        except ValueError:
            raise Unreadable(f"{text[:100]!r} is not a public key") from None
        if public[:1] != b"\1" or sha256(name.encode() + b"\n" + public).digest()[:4] != key.id:
            raise Unreadable(f"{text[:100]!r} is not a public key")
        return key

    def has_signed(self, note: str) -> bool:
        text, separator, signatures = note.rpartition("\n\n")
        for line in signatures.splitlines() if separator else ():
            mark, name, encoded = [*line.split(" "), "", ""][:3]
            try:
                signed = b64decode(encoded, validate=True)
            except ValueError:
                continue
            if (mark, name, signed[:4]) == ("\u2014", self.name, self.id):
                return signature_valid(self.public, signed[4:], (text + "\n").encode())
        return False


class Checkpoint(NamedTuple):
    """A signed state of the log."""

    note: str
    origin: str
    commits: int
    root: bytes
    events: int
    epoch: int
    time: str
    chain: bytes
    streams: int
    streams_root: bytes
    next_key: str | None

    @classmethod
    def read(cls, note: str) -> Checkpoint:
        try:
            text, separator, _ = note.rpartition("\n\n")
            origin, commits, root, *rest = text.split("\n")
            named = dict(line.split(" ", 1) for line in rest)
            streams, streams_root = named["streams"].split(" ")
            hashes = [b64decode(hash, validate=True) for hash in (root, named["chain"], streams_root)]
            if not separator or not origin.startswith("medialedger/"):
                raise ValueError("no note")
            numbers = [int(number) for number in (commits, named["events"], named["epoch"], streams)]
        except (ValueError, KeyError):
            raise Unreadable("a checkpoint is not as the product writes it") from None
        (size, events, epoch, count), (root_hash, chain, streams_hash) = numbers, hashes
        return cls(note, origin, size, root_hash, events, epoch, named["time"], chain, count, streams_hash, named.get("key"))


class Trusted:
    """The keys of one log. The first is given; each next key is named by a checkpoint that both the previous key and the next one
    signed."""

    def __init__(self, first: Key) -> None:
        self.keys = [first]

    def check(self, checkpoint: Checkpoint, *, after: int) -> None:
        """Raise `Damaged` unless a trusted key signed the checkpoint. `after` is the last verified position."""
        if checkpoint.origin != self.keys[0].name:
            raise Damaged(after + 1, f"a checkpoint is of another log, {checkpoint.origin}")
        if not any(key.has_signed(checkpoint.note) for key in self.keys):
            ids = " or ".join(key.id.hex() for key in self.keys)
            raise Damaged(after + 1, f"the checkpoint of {checkpoint.events} events is not signed by {ids}")
        if checkpoint.next_key is not None and all(str_of(key) != checkpoint.next_key for key in self.keys):
            following = Key.read(checkpoint.next_key)
            if following.name != self.keys[0].name or not following.has_signed(checkpoint.note):
                raise Damaged(after + 1, f"the checkpoint of {checkpoint.events} events hands over to a key that has not signed it")
            if not self.keys[-1].has_signed(checkpoint.note):
                raise Damaged(after + 1, f"the checkpoint of {checkpoint.events} events hands over a key that was not in use")
            self.keys.append(following)


def str_of(key: Key) -> str:
    from base64 import b64encode

    return f"{key.name}+{key.id.hex()}+{b64encode(bytes([1]) + key.public).decode()}"


# --- files


def notes_in(path: str) -> list[Checkpoint]:
    """Return the checkpoints of a file, which may contain several one after the other."""
    checkpoints: list[Checkpoint] = []
    lines: list[str] = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in [*file.read().split("\n"), "medialedger/"]:
                if line.startswith("medialedger/") and any(lines):
                    checkpoints.append(Checkpoint.read("\n".join(lines).rstrip("\n") + "\n"))
                    lines = []
                lines.append(line)
    except (OSError, UnicodeDecodeError) as fault:
        raise Unreadable(f"{path} cannot be read: {fault}") from None
    return checkpoints


def lines_of(paths: list[str]) -> Iterator[dict[str, Any]]:
    for path in paths:
        try:
            with open(path, "rb") if path != "-" else sys.stdin.buffer as file:
                for number, line in enumerate(file, 1):
                    yield _object(line, f"{path}, line {number}")
        except OSError as fault:
            raise Unreadable(f"{path} cannot be read: {fault.strerror}") from None


def _object(line: bytes, place: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except ValueError:
        raise Unreadable(f"{place} is incomplete; an interrupted download can be resumed after its last position") from None
    if not isinstance(document, dict):
        raise Unreadable(f"{place} is not as the product writes it")
    return document


def _hashes(texts: Iterable[str]) -> list[bytes]:
    return [bytes.fromhex(text) for text in texts]


def _micros(time: str) -> int:
    arguments = datetime.fromisoformat(time.replace("Z", "+00:00"))
    return (arguments - _EPOCH) // timedelta(microseconds=1)


class Redactions:
    """The erased parts of an export, and the positions that its redaction events name."""

    def __init__(self) -> None:
        self._erased: dict[str, list[int]] = {"content": [], "cause": []}
        self._named: dict[str, list[tuple[int, int]]] = {"content": [], "cause": []}
        self.withheld = 0

    def add(self, event: dict[str, Any]) -> None:
        position = event["position"]
        if event.get("state_hash") is not None:
            if event.get("state_withheld") is not True:
                self._erased["content"].append(position)
            elif event["topic"] == WITHHELD:
                self.withheld += 1
            else:
                raise Damaged(position, f"the content of the event {position} is withheld, which only {WITHHELD} may be")
            if state_of(event) != REDACTED_STATE.replace("*", event["recorded_at"]).encode():
                raise Damaged(position, f"the event {position} has content in place of the erased part")
        if event.get("metadata_hash") is not None:
            self._erased["cause"].append(position)
            if event["metadata"] != REDACTED_METADATA:
                raise Damaged(position, f"the event {position} has a cause in place of the erased part")
        if event["topic"] == REDACTED and event.get("state_hash") is None:
            redaction = json.loads(state_of(event) or b"")
            for part in redaction["parts"]:
                self._named[part] += [(first, last) for first, last in redaction["positions"] if last < position]

    def check(self) -> int:
        """Return the number of erased parts. Raise `Damaged` if a redaction event does not name one of them."""
        unnamed = [erased for part in self._erased for erased in self._unnamed(part)]
        if unnamed:
            at, part = min(unnamed)
            raise Damaged(at, f"the {part} of the event {at} is gone, and no redaction is recorded for it")
        return sum(map(len, self._erased.values()))

    def show(self) -> None:
        if self.withheld:
            print(f"contents withheld, each with the hash of an API key: {self.withheld}; an export for an admin contains them")

    def _unnamed(self, part: str) -> Iterator[tuple[int, str]]:
        ranges, reach, at = sorted(self._named[part]), 0, 0
        for position in sorted(self._erased[part]):
            while at < len(ranges) and ranges[at][0] <= position:
                reach, at = max(reach, ranges[at][1]), at + 1
            if position > reach:
                yield position, part


class Anchors:
    """The anchors of the newest anchored checkpoint outside the database."""

    def __init__(self) -> None:
        self.events = 0
        self.places: list[str] = []

    def add(self, line: dict[str, Any], checkpoint: Checkpoint) -> None:
        for anchor in line.get("anchors", ()):
            evidence = b64decode(anchor["evidence"]) if anchor.get("evidence") else b""
            if anchor["kind"] == "timestamp" and sha256(checkpoint.note.encode()).digest() not in evidence:
                raise Damaged(checkpoint.events, f"the time stamp of {anchor['place']} is not of this checkpoint")
            if checkpoint.events > self.events:
                self.events, self.places = checkpoint.events, []
            self.places.append(f"{anchor['kind']} {anchor['place']}")

    def show(self, earlier: int) -> None:
        if self.places:
            print(f"anchored up to position {self.events}: {', '.join(self.places)} (as the export says; verify it there)")
        elif not earlier:
            print(
                "WARNING: these checkpoints have no anchor, and none was given with --kept: anyone with the database and the key of"
            )
            print("the log could have rewritten all of it.")


class Source:
    """The header of an export, and the keys that are trusted."""

    def __init__(self, header: dict[str, Any], key: str | None) -> None:
        if header.get("export") != FORMAT:
            raise Unreadable("it is not an export of the log")
        self.log_id = str(header["log_id"])
        self.has_given_key = key is not None
        first = key if key is not None else (header.get("keys") or [None])[0]
        self.trusted = None if first is None else Trusted(Key.read(first))
        if self.trusted is not None and self.trusted.keys[0].name != f"medialedger/{self.log_id}":
            raise Damaged(1, f"it is the log {self.log_id}, but the key is that of {self.trusted.keys[0].name}")

    def check(self, checkpoint: Checkpoint, *, after: int) -> None:
        if self.trusted is None:
            raise Damaged(after + 1, "there is a checkpoint, but no key of the log")
        self.trusted.check(checkpoint, after=after)

    def show(self) -> None:
        if self.trusted is not None and not self.has_given_key:
            print(
                "WARNING: the key comes from the export itself; compare it with your copy, and give it with --key: "
                f"{str_of(self.trusted.keys[0])}"
            )


# --- a whole export


class Replay:
    """Follows the lines of an export, which are in the order of the log."""

    def __init__(self, header: dict[str, Any], source: Source, earlier: list[Checkpoint]) -> None:
        if header.get("filter") is not None:
            raise Unreadable("an export with a filter has gaps; verify a complete export, or that of one stream")
        self.source, self.redactions, self.anchors = source, Redactions(), Anchors()
        self.position, self.number = header["after"], header["commit"]
        self.begun = self.position
        if header["commit_end"] != self.position:
            raise Unreadable(f"it begins within a commit; begin after position {header['commit_end']}")
        self.chain = bytes.fromhex(header["chain_hash"])
        if self.position == 0 and (self.number, self.chain) != (0, genesis(source.log_id)):
            raise Damaged(1, "the log does not begin with its identity")
        self.tree = GrowingTree(self.number, _hashes(header["tree"]))
        self.earlier = sorted(earlier, key=lambda checkpoint: checkpoint.commits)
        self.signed: Checkpoint | None = None
        self.fits = self.position  # the last position that a checkpoint confirms
        self.commit: dict[str, Any] | None = None
        self.leaves: list[bytes] = []
        self.micros = 0
        self.heads: dict[str, tuple[int, bytes]] = {}
        self.changed: dict[str, tuple[int, bytes] | None] = {}  # the heads before the changes since the last checkpoint
        self.checked: list[Checkpoint] = []
        self.end: dict[str, Any] | None = None
        self.redactions_found = 0
        self._compare_earlier()

    def follow(self, lines: Iterable[dict[str, Any]]) -> None:
        for line in lines:
            if "position" in line:
                self._event(line)
            elif "commit" in line and "root" in line:
                self._commit(line)
            elif "checkpoint" in line:
                self._checkpoint(line)
            elif "end" in line:
                self.end = line["end"]
            elif "export" in line:
                self._continue(line)
            else:
                raise Unreadable("a line is not as the product writes it")

    def _continue(self, header: dict[str, Any]) -> None:
        if header["log_id"] != self.source.log_id:
            raise Damaged(self.position + 1, f"the export continues with the log {header['log_id']}")
        if header["after"] != self.position:
            raise Damaged(self.position + 1, f"the export continues after position {header['after']}")
        self.end = None

    def _commit(self, line: dict[str, Any]) -> None:
        if line == self.commit and not self.leaves:
            return  # the export was resumed here
        if self.commit is not None:
            raise Damaged(self.position + 1, f"there is no event at position {self.position + 1}")
        if line["first"] != self.position + 1 or line["last"] < line["first"]:
            raise Damaged(self.position + 1, f"there is no commit with the event at position {self.position + 1}")
        if line["commit"] != self.number + 1:
            raise Damaged(line["first"], f"the commit is number {line['commit']}, after {self.number}")
        if line["recorded_micros"] < self.micros:
            raise Damaged(line["first"], "the commit is older than the one before it")
        self.commit, self.leaves, self.micros = line, [], line["recorded_micros"]

    def _event(self, event: dict[str, Any]) -> None:
        position, commit = event["position"], self.commit
        if position != self.position + 1:
            what = "is" if position <= self.position else "is no"
            at = min(position, self.position + 1)
            raise Damaged(at, f"there {what} event at position {at}" + (" again" if what == "is" else ""))
        if commit is None:
            raise Damaged(position, f"there is no commit with the event at position {position}")
        if _micros(event["recorded_at"]) != commit["recorded_micros"]:
            raise Damaged(position, f"the recorded time of the event {position} is not that of its commit")
        leaf, stream, version = event_leaf(event), event["originator_id"], event["originator_version"]
        if not self.begun:
            before, hash = self.heads.get(stream) or (0, first_stream_hash(stream))
            if version != before + 1:
                raise Damaged(position, f"the event {position} is version {version} of its stream, after {before}")
            self.changed.setdefault(stream, self.heads.get(stream))
            self.heads[stream] = (version, next_stream_hash(hash, leaf))
        self.leaves.append(leaf)
        self.redactions.add(event)
        self.position = position
        if position == commit["last"]:
            self._complete(commit)

    def _complete(self, commit: dict[str, Any]) -> None:
        first, last, root = commit["first"], commit["last"], bytes.fromhex(commit["root"])
        if tree(self.leaves) != root:
            raise Damaged(first, f"the bytes of the events {first} to {last} do not match the root of their commit")
        leaf = commit_leaf(first, last - first + 1, commit["recorded_micros"], root)
        self.chain = sha256(b"\2" + self.chain + leaf).digest()
        if self.chain.hex() != commit["chain_hash"]:
            raise Damaged(first, f"the commit of the events {first} to {last} does not match its chain hash")
        self.tree.add(leaf)
        self.number, self.commit = commit["commit"], None
        self._compare_earlier()

    def _compare_earlier(self) -> None:
        """Compare the kept checkpoints up to here. A key that signed one of them may be introduced only later, so the signatures of
        matching checkpoints are verified at the end."""
        while self.earlier and self.earlier[0].commits <= self.number:
            checkpoint = self.earlier.pop(0)
            if checkpoint.commits < self.number and self.begun:
                raise Unreadable(f"the given checkpoint of {checkpoint.events} events is older than this part of the log")
            try:
                self._compare(checkpoint, "the given checkpoint")
                self._compare_map(checkpoint)
            except Damaged:
                self.source.check(checkpoint, after=self.fits)
                raise
            self.checked.append(checkpoint)

    def _checkpoint(self, line: dict[str, Any]) -> None:
        checkpoint = Checkpoint.read(line["checkpoint"])
        self.source.check(checkpoint, after=self.fits)
        self._compare(checkpoint, "the checkpoint")
        self.signed, self.changed = checkpoint, {}
        self.anchors.add(line, checkpoint)

    def _compare(self, checkpoint: Checkpoint, name: str) -> None:
        """Raise `Damaged` unless a checkpoint is that of the log up to here."""
        if (checkpoint.commits, checkpoint.events) != (self.number, self.position) or self.commit is not None:
            raise Damaged(self.fits + 1, f"{name} of {checkpoint.events} events comes after position {self.position}")
        if (checkpoint.root, checkpoint.chain) != (self.tree.root(), self.chain):
            reason = f"{name} of {checkpoint.time} was signed for other events or commits up to position {checkpoint.events}"
            raise Damaged(self.fits + 1, f"{reason}; they are consistent with each other, so they were rewritten")
        self.fits = self.position

    def _compare_map(self, checkpoint: Checkpoint) -> None:
        if self.begun:
            return
        keyed = ((stream_key(name), head) for name, head in self.heads.items())
        heads = sorted((key, head_hash(key, version, hash)) for key, (version, hash) in keyed)
        if (checkpoint.streams, checkpoint.streams_root) != (len(heads), map_root(heads)):
            raise Damaged(checkpoint.events, f"the map of streams of the checkpoint of {checkpoint.time} is not that of the events")

    def finish(self) -> None:
        if self.commit is not None or self.end is None:
            raise Damaged(self.position + 1, f"the export ends after position {self.position}, before its own end")
        if (self.end["position"], self.end["chain_hash"]) != (self.position, self.chain.hex()):
            raise Damaged(self.position + 1, f"the log ended at position {self.end['position']}, the export at {self.position}")
        for checkpoint in self.earlier:
            self.source.check(checkpoint, after=self.position)
            reason = f"the log ends after position {self.position}, but a given checkpoint has {checkpoint.events} events"
            raise Damaged(self.position + 1, f"{reason}: its end was cut off, or this is an older state of it")
        for checkpoint in self.checked:
            self.source.check(checkpoint, after=checkpoint.events - 1)
        self.redactions_found = self.redactions.check()
        if self.signed is not None:
            for stream, before in self.changed.items():
                if before is None:
                    del self.heads[stream]
                else:
                    self.heads[stream] = before
            self._compare_map(self.signed)


def verify_log(args: argparse.Namespace) -> None:
    """Verify that every event and commit is in its place, and that the checkpoints match them."""
    lines = lines_of(args.files)
    header = next(lines, {})
    source = Source(header, args.key)
    replay = Replay(header, source, [note for path in args.earlier for note in notes_in(path)])
    replay.follow(lines)
    replay.finish()
    events = f"{replay.position - replay.begun} events, positions {replay.begun + 1} to {replay.position}"
    print(f"fits: {events} of the log {source.log_id}, each in its position; chain hash {replay.chain.hex()}")
    if replay.redactions_found:
        print(f"erased parts, as events of the log say: {replay.redactions_found}")
    replay.redactions.show()
    if replay.signed is None:
        print("WARNING: it contains no checkpoint, so no signature vouches for any of this.")
    else:
        print(f"signed up to position {replay.signed.events}, at {replay.signed.time}, epoch {replay.signed.epoch}")
        if replay.begun:
            print("the map of streams was not checked: that needs an export from position 1 on")
    if replay.checked:
        print(f"{len(replay.checked)} given checkpoints are of this log")
    source.show()
    replay.anchors.show(len(replay.checked))


# --- the events of one stream


class Proof:
    """The events of one stream with their proofs against one checkpoint."""

    def __init__(self, source: Source) -> None:
        self.source, self.anchors, self.redactions = source, Anchors(), Redactions()
        self.checkpoint: Checkpoint | None = None
        self.stream: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []
        self.hash = b""
        self.ended = False

    def follow(self, lines: Iterable[dict[str, Any]]) -> None:
        for line in lines:
            if "checkpoint" in line:
                self.checkpoint = Checkpoint.read(line["checkpoint"])
                self.source.check(self.checkpoint, after=0)
                self.anchors.add(line, self.checkpoint)
            elif "stream" in line:
                self.stream, self.hash = line, first_stream_hash(line["stream"])
            elif "redaction" in line:
                self._verify_inclusion(line["redaction"])
                self.redactions.add(line["redaction"])
            elif "position" in line:
                self._event(line)
            elif "end" in line:
                self.ended = True
            else:
                raise Unreadable("a line is not as the product writes it")

    def _event(self, event: dict[str, Any]) -> None:
        if self.stream is None:
            raise Unreadable("there is no proof of the stream")
        if event["originator_id"] != self.stream["stream"]:
            raise Damaged(event["position"], f"the event is of the stream {event['originator_id']}")
        if event["originator_version"] != len(self.events) + 1:
            gap = f"version {event['originator_version']} follows version {len(self.events)}"
            raise Damaged(event["position"], f"{gap}: an event of the stream is missing or repeated")
        self.hash = next_stream_hash(self.hash, self._verify_inclusion(event))
        self.redactions.add(event)
        self.events.append(event)

    def _verify_inclusion(self, event: dict[str, Any]) -> bytes:
        """Return the leaf of an event. Raise `Damaged` unless the log of the checkpoint has it at this position and time."""
        position, proof, checkpoint = event["position"], event["proof"], self.checkpoint
        if checkpoint is None:
            raise Unreadable("there is no checkpoint")
        first, count, micros = proof["first"], proof["count"], proof["recorded_micros"]
        leaf = event_leaf(event)
        root = root_by_path(leaf, position - first, count, _hashes(proof["path"]))
        computed = None
        if root is not None and _micros(event["recorded_at"]) == micros:
            place = commit_leaf(first, count, micros, root)
            computed = root_by_path(place, proof["commit"] - 1, checkpoint.commits, _hashes(proof["tree"]))
        if computed != checkpoint.root:
            raise Damaged(position, f"the event at position {position} is not in the signed log in this form")
        return leaf

    def finish(self, earlier: list[Checkpoint]) -> None:
        checkpoint, stream = self.checkpoint, self.stream
        if checkpoint is None or stream is None or not self.ended:
            raise Unreadable("it is incomplete")
        last = self.events[-1]["position"] if self.events else 0
        if (len(self.events), self.hash.hex()) != (stream["version"], stream["hash"]):
            raise Damaged(last + 1, f"the stream has {stream['version']} events, but the export has {len(self.events)}")
        head = head_hash(stream_key(stream["stream"]), stream["version"], self.hash)
        if map_root_by_path(stream_key(stream["stream"]), head, _hashes(stream["beside"])) != checkpoint.streams_root:
            raise Damaged(last + 1, "the signed map of streams does not have this stream with these events")
        self.redactions.check()
        for other in earlier:
            self.source.check(other, after=other.events - 1)
            if other.commits > checkpoint.commits:
                raise Damaged(checkpoint.events + 1, f"the checkpoint is older than a given one, of {other.events} events")
            if other.commits == checkpoint.commits and (other.root, other.streams_root) != (
                checkpoint.root,
                checkpoint.streams_root,
            ):
                raise Damaged(1, "a given checkpoint is of another history")

    def show(self) -> None:
        for event in self.events:
            metadata = json.loads(event["metadata"]) if event.get("metadata") else {"actor": "(erased)"}
            content = b"(withheld)" if event.get("state_withheld") is True else state_of(event)
            state = (content or b"(erased)").decode("utf-8", "replace")
            text = f"{event['position']}  {event['recorded_at']}  {event['topic']}  by {metadata.get('actor')}  {state}"
            print("".join(character if character.isprintable() else "?" for character in text))


def verify_stream(args: argparse.Namespace) -> None:
    """Verify that the events are in the log, and that they are all events of their stream."""
    lines = lines_of(args.files)
    header = next(lines, {})
    source = Source(header, args.key)
    earlier = [note for path in args.earlier for note in notes_in(path)]
    proof = Proof(source)
    proof.follow(lines)
    proof.finish(earlier)
    assert proof.checkpoint is not None
    assert proof.stream is not None
    print(
        f"fits: these are all {len(proof.events)} events of {proof.stream['stream']} in the log {source.log_id} up to position "
        f"{proof.checkpoint.events}, signed at {proof.checkpoint.time}; none is missing, changed or added"
    )
    proof.redactions.show()
    if args.show:
        proof.show()
    same = [checkpoint for checkpoint in earlier if checkpoint.commits == proof.checkpoint.commits]
    if earlier and not same:
        print("the given checkpoint is of another size: compare both with `verify.py checkpoints`")
    source.show()
    proof.anchors.show(len(same))


# --- two checkpoints


def verify_checkpoints(args: argparse.Namespace) -> None:
    """Verify that the log of the older checkpoint is the beginning of the log of the newer one."""
    old, new = (notes_in(path)[-1:] for path in (args.old, args.new))
    if not old or not new:
        raise Unreadable("there is no checkpoint in a file")
    trusted = Trusted(Key.read(args.key))
    for checkpoint in (*(note for path in args.earlier for note in notes_in(path)), *old, *new):
        trusted.check(checkpoint, after=checkpoint.events - 1)
    before, after = old[0], new[0]
    if after.commits < before.commits:
        raise Damaged(after.events + 1, f"it is older than the one already seen, which has {before.events} events")
    if args.proof is None and before.commits != after.commits:
        raise Unreadable("a PROOF is needed, since the checkpoints are of different sizes")
    path = consistency_path(args.proof, before, after) if args.proof is not None else []
    if not is_beginning(before.commits, before.root, after.commits, after.root, path):
        raise Damaged(1, "the older checkpoint is not the beginning of the newer one")
    same = before.commits == after.commits
    if same and (before.chain, before.streams_root) != (after.chain, after.streams_root):
        raise Damaged(1, "two checkpoints of one size are of different histories")
    print(f"fits: one history; position {before.events} at {before.time}, then position {after.events} at {after.time}")


def consistency_path(path: str, before: Checkpoint, after: Checkpoint) -> list[bytes]:
    """Return the hashes of the proof in a file. Raise `Unreadable` for an error message instead of a proof, and for the proof of
    other checkpoints: neither proves anything about these two."""
    proof = next(lines_of([path]), {})
    if not isinstance(proof.get("path"), list):
        raise Unreadable(f"{path} is not a proof of consistency{_problem(proof)}")
    sizes = (proof.get("from"), proof.get("to"))
    if sizes != (before.commits, after.commits):
        raise Unreadable(f"{path} is the proof for the sizes {sizes[0]} and {sizes[1]}, not {before.commits} and {after.commits}")
    return _hashes(proof["path"])


def _problem(body: dict[str, Any]) -> str:
    """Return the server's error message if the file contains one."""
    return f"; the server answered {body['status']} {body.get('detail', '')}".rstrip() if "status" in body else ""


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="verify.py", description="Verifies exports of a medialedger log. Exit codes: 3 it is damaged, 1 it cannot be read."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for name, run, text in (
        ("log", verify_log, "verify a complete export, or its parts in their order"),
        ("stream", verify_stream, "verify that exactly these events of one stream are in the log"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument(
            "files", nargs="+", metavar="FILE", help="the output of `medialedger audit export`; - is the standard input"
        )
        action.add_argument("--key", metavar="KEY", help="the public key of the log, as you received it: name+id+key")
        action.add_argument(
            "--kept", dest="earlier", metavar="FILE", action="append", default=[], help="checkpoints that you have stored"
        )
        action.set_defaults(run=run)
        if name == "stream":
            action.add_argument("--show", action="store_true", help="show the events, each with its time, its actor and its fields")
    action = actions.add_parser("checkpoints", help="verify that two checkpoints are of one history")
    action.add_argument("old", metavar="OLD")
    action.add_argument("new", metavar="NEW")
    action.add_argument(
        "proof", metavar="PROOF", nargs="?", help="the answer of /api/audit/proof/consistency; not needed for equal sizes"
    )
    action.add_argument("--key", metavar="KEY", required=True, help="the public key of the log")
    kept_help = "the checkpoints that replace this key by the current one, in their order"
    action.add_argument("--kept", dest="earlier", metavar="FILE", action="append", default=[], help=kept_help)
    action.set_defaults(run=verify_checkpoints)
    return parser.parse_args()


def fail(code: int, text: str) -> NoReturn:
    print("".join(character if character.isprintable() else "?" for character in text))
    sys.exit(code)


def main() -> None:
    sys.setrecursionlimit(10_000)
    args = arguments()
    try:
        args.run(args)
    except Damaged as damage:
        fail(3, str(damage))
    except Unreadable as fault:
        fail(1, f"cannot be read: {fault}")
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, struct.error, RecursionError) as fault:
        fail(1, f"cannot be read: it is not as the product writes it ({type(fault).__name__}: {fault})")


if __name__ == "__main__":
    main()
