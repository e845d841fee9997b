"""The hashes of the log against computations of their own, and what can be erased without breaking them."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

import pytest

from projections.log.hash_chain import hidden, leaf, root

EVENT = UUID("0198c0de-0000-7000-8000-000000000001")
SALT = bytes(range(16))
ENVELOPE = (
    b"\0" + b"\0\0\0\7event:1" + b"\0\0\0\0\0\0\0\2" + b"\0\0\0\x0fmedia.event.new" + bytes.fromhex(EVENT.hex)
)  # lengths, version and topic as docs/explanation/the-log.md spells them


def of(metadata: str, state: bytes) -> bytes:
    return leaf(stream="event:1", version=2, topic="media.event.new", event_id=EVENT, metadata=metadata, state=state, salt=SALT)


def test_a_part_is_hidden_by_a_salt_derived_for_it() -> None:
    metadata = sha256(sha256(SALT + b"\1").digest() + b'{"actor":"a"}').digest()
    state = sha256(sha256(SALT + b"\2").digest() + b"{}").digest()
    assert of('{"actor":"a"}', b"{}") == sha256(ENVELOPE + metadata + state).digest()


def test_one_part_can_be_erased_and_the_other_still_be_proved() -> None:
    """After the state is erased, its inner hash, the metadata and the metadata's own salt remain."""
    kept_hash, kept_salt = hidden(b"private", salt=SALT, part=b"\2"), sha256(SALT + b"\1").digest()
    proved = sha256(ENVELOPE + sha256(kept_salt + b'{"actor":"a"}').digest() + kept_hash).digest()
    assert proved == of('{"actor":"a"}', b"private")


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_the_root_is_that_of_rfc_6962(count: int) -> None:
    leaves = [sha256(bytes([number])).digest() for number in range(count)]

    def tree(nodes: list[bytes]) -> bytes:
        if len(nodes) == 1:
            return nodes[0]
        half = 1 << (len(nodes) - 1).bit_length() - 1
        return sha256(b"\1" + tree(nodes[:half]) + tree(nodes[half:])).digest()

    assert root(leaves) == tree(leaves)
