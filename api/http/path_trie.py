"""A trie of paths: finds the route of a path at a cost that does not grow with the number of routes."""

from __future__ import annotations

from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

T = TypeVar("T")


class _Node(Generic[T]):
    __slots__ = ("any_case", "fixed", "leaf", "param", "rest")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node[T]] = {}
        self.any_case: dict[str, _Node[T]] = {}
        """The fixed segments that match in any case, in lower case."""
        self.param: _Node[T] | None = None
        self.rest: _Node[T] | None = None
        self.leaf: T | None = None


class PathTrie(Generic[T]):
    """A trie of path segments. At each step a fixed segment wins over a `{parameter}`; where that finds nothing, the
    parameter is tried, so `/event/reference` and `/event/{id}/state` live side by side; last `{parameter:path}`, which takes all
    remaining segments, with the slashes between them. Only a reserved first segment is never taken for a parameter.

    A fixed segment of a template that was added with `any_case` matches in any case."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._exact: dict[bytes, T] = {}
        self._reserved: set[str] = set()

    def add(self, template: str, leaf: T, *, any_case: bool = False) -> T:
        """Add a template, and return its leaf: the given leaf, or that of an earlier call."""
        node = self._root
        for segment in filter(None, template.split("/")):
            parent = node
            if segment.endswith(":path}"):
                node = parent.rest = parent.rest or _Node()
            elif segment.startswith("{"):
                node = parent.param = parent.param or _Node()
            else:
                node = parent.fixed.setdefault(segment, _Node())
                if any_case:
                    parent.any_case[segment.lower()] = node
        if node.leaf is None:
            node.leaf = leaf
            if "{" not in template:
                path = template.encode().rstrip(b"/")
                self._exact[path] = self._exact[path + b"/"] = leaf
        return node.leaf

    def reserve(self, segment: str) -> None:
        """Reserve a first segment: `/api/speke` then never matches `/{client_name}/speke`."""
        self._reserved.add(segment)

    def find(self, raw_path: bytes) -> tuple[T | None, list[str]]:
        """Return the leaf, and the values of its parameters, percent-decoded once. One trailing slash does not count."""
        leaf = self._exact.get(raw_path)
        if leaf is not None:
            return leaf, []
        segments = _split(raw_path)
        end = len(segments)
        pending: list[tuple[_Node[T], int, list[str]]] = [(self._root, 0, [])]
        while pending:
            node, depth, values = pending.pop()
            if depth == end:
                if node.leaf is not None:
                    return node.leaf, values
                continue
            segment = segments[depth]
            # The last addition is tried first. An escaped slash separates nothing.
            if depth or segment not in self._reserved:
                if node.rest is not None and not any("/" in each for each in segments[depth:]):
                    pending.append((node.rest, end, [*values, "/".join(segments[depth:])]))
                if node.param is not None and segment:
                    pending.append((node.param, depth + 1, [*values, segment]))
            child = node.fixed.get(segment) or node.any_case.get(segment.lower())
            if child is not None:
                pending.append((child, depth + 1, values))
        return None, []


def _split(raw_path: bytes) -> list[str]:
    """Split a path, and then decode its segments, so that an escaped slash belongs to its segment. Bytes that are not UTF-8 become
    lone surrogates, which the check of the parameter refuses."""
    if b"%" not in raw_path and raw_path.isascii():
        segments = raw_path.decode("ascii").split("/")
    else:
        segments = [unquote_to_bytes(part).decode("utf-8", "surrogateescape") for part in raw_path.split(b"/")]
    if segments[-1] == "":
        segments.pop()
    return segments[1:]
