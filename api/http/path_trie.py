"""A trie of paths: finds the route of a path at a cost that does not grow with the number of routes."""

from __future__ import annotations

from typing import Final, Generic, TypeVar
from urllib.parse import unquote_to_bytes

T = TypeVar("T")
_NO_VALUES: Final[list[str]] = []


class _Node(Generic[T]):
    __slots__ = ("any_case", "fixed", "leaf", "longest", "param", "rest")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node[T]] = {}
        self.any_case: dict[str, _Node[T]] = {}
        """The fixed segments that match in any case, in lower case."""
        self.longest = -1
        """The length of the longest of them: an id is longer, and is not looked for among them."""
        self.param: _Node[T] | None = None
        self.rest: T | None = None
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
        segments = split_template(template)
        rest = segments.pop() if segments and segments[-1].endswith(":path}") else None
        for segment in segments:
            if segment.startswith("{"):
                node.param = node.param or _Node()
                node = node.param
            else:
                parent, node = node, node.fixed.setdefault(segment, _Node())
                if any_case:
                    parent.any_case[segment.lower()] = node
                    parent.longest = max(parent.longest, len(segment))
        if rest is not None:
            node.rest = node.rest or leaf
            return node.rest
        if node.leaf is None:
            node.leaf = leaf
            if "{" not in template:
                bare = ("/" + "/".join(segments)).encode()
                self._exact[bare] = self._exact[bare.rstrip(b"/") + b"/"] = leaf
        return node.leaf

    def reserve(self, segment: str) -> None:
        """Reserve a first segment: `/api/speke` then never matches `/{client_name}/speke`."""
        self._reserved.add(segment)

    def find(self, raw_path: bytes) -> tuple[T | None, list[str]]:
        """Return the leaf, and the values of its parameters, percent-decoded once. One trailing slash does not count."""
        leaf = self._exact.get(raw_path)
        if leaf is not None:
            return leaf, _NO_VALUES
        segments = _split(raw_path)
        values: list[str] = []
        if segments and segments[0] in self._reserved:
            below = self._root.fixed.get(segments[0])
            return None if below is None else _walk(below, segments, 1, values), values
        node = self._root  # most paths need no second try
        for segment in segments:
            child = node.fixed.get(segment)
            if child is None:
                if node.param is None or node.any_case or not segment:
                    break
                values.append(segment)
                child = node.param
            node = child
        else:
            if node.leaf is not None:
                return node.leaf, values
        values = []
        return _walk(self._root, segments, 0, values), values


def _walk(node: _Node[T], segments: list[str], depth: int, values: list[str]) -> T | None:
    if depth == len(segments):
        return node.leaf
    segment = segments[depth]
    child = node.fixed.get(segment)
    if child is None and len(segment) <= node.longest:
        child = node.any_case.get(segment.lower())
    if child is not None:
        leaf = _walk(child, segments, depth + 1, values)
        if leaf is not None:
            return leaf
    if node.param is not None and segment:
        values.append(segment)
        leaf = _walk(node.param, segments, depth + 1, values)
        if leaf is not None:
            return leaf
        values.pop()
    if node.rest is not None and not any("/" in segment for segment in segments[depth:]):  # an escaped slash separates nothing
        values.append("/".join(segments[depth:]))
        return node.rest
    return None


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


def split_template(template: str) -> list[str]:
    return [segment for segment in template.split("/") if segment]


def parameter_names(template: str) -> tuple[str, ...]:
    return tuple(segment[1:-1].removesuffix(":path") for segment in split_template(template) if segment.startswith("{"))
