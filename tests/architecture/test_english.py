"""The English of the code is counted, and its numbers only go down."""

from __future__ import annotations

import pytest

from tests.architecture.english import comments, docstrings, is_fragment, vague_names
from tests.architecture.sources import PACKAGES, files, tree

PRODUCT = (*PACKAGES, "medialedger")
FRAGMENTS = {PRODUCT: 0.004, ("tests", "bench", "faults", "deploy"): 0.004}
"""The largest share of docstrings that open with a fragment."""
VAGUE = {PRODUCT: 0.8, ("tests", "bench", "faults", "deploy"): 0.7}
"""The most uses of vague names in a thousand lines."""


@pytest.mark.parametrize("folders", FRAGMENTS)
def test_docstrings_are_sentences(folders: tuple[str, ...]) -> None:
    texts = [text for path in files(*folders) for text in docstrings(tree(path))]
    fragments = [text for text in texts if is_fragment(text.text)]
    assert len(fragments) <= FRAGMENTS[folders] * len(texts), f"{len(fragments)} of {len(texts)} docstrings are fragments"


@pytest.mark.parametrize("folders", VAGUE)
def test_names_say_what_they_name(folders: tuple[str, ...]) -> None:
    sources = [path.read_text() for path in files(*folders)]
    uses = sum(sum(1 for _ in vague_names(source)) for source in sources)
    lines = sum(source.count("\n") for source in sources)
    assert uses <= VAGUE[folders] * lines / 1000, f"{uses} vague names in {lines} lines"


@pytest.mark.parametrize("folders", FRAGMENTS)
def test_comments_are_sentences(folders: tuple[str, ...]) -> None:
    fragments = [
        f"{path}:{comment.line}: {comment.text}"
        for path in files(*folders)
        for comment in comments(path.read_text())
        if is_fragment(comment.text)
    ]
    assert fragments == []


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("Of an Event that was stopped.", True),
        ("Whether the Event is due.", True),
        ("The same for its termination.", True),
        ("When nothing is left.", True),
        ("When a lease ends, another process takes the shard.", False),
        ("Return the Events that are due.", False),
        ("A lease on a group of shards.", False),
        ("Nothing is written before the lease is held.", False),
    ],
)
def test_a_fragment_is_recognised(text: str, fragment: bool) -> None:
    assert is_fragment(text) == fragment
