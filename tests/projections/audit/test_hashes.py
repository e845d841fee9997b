"""The tree, the map of streams and the signatures, against what their definitions say, and the verifier against the product."""

from __future__ import annotations

from hashlib import sha256
from random import Random

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from api.cli import verify_export
from projections.audit.signed_note import NoteInvalid, PublicKey, SigningKey, sign
from projections.audit.stream_map import StreamHead, empty_head, part_of, stream_key
from projections.audit.tree import WIDTH, Edge, Tile, consistency, inclusion, node_of, tiles_of, tree_root
from projections.log.hash_chain import root


def grown(*sizes: int) -> tuple[dict[Tile, bytes], list[bytes]]:
    """All tiles of a tree that grew to these sizes, one after the other, each time from what was stored."""
    leaves = [sha256(b"%d" % number).digest() for number in range(sizes[-1])]
    stored: dict[Tile, bytes] = {}
    before = 0
    for size in sizes:
        edge = Edge(before, {tile: stored[tile] for tile in Edge.places(before)})
        edge.add(leaves[before:size])
        stored |= edge.changed
        assert edge.root() == root(leaves[:size])
        before = size
    return stored, leaves


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (255, 256, 257), (100, 256, 700), (513,), (WIDTH * 3,)])
def test_every_proof_of_a_tree_is_accepted(sizes: tuple[int, ...]) -> None:
    stored, leaves = grown(*sizes)
    size, node = sizes[-1], node_of(stored)
    assert tree_root(size, node) == root(leaves)
    for index in {0, 1 % size, size // 2, size - 1}:
        path = inclusion(index, size, node=node)
        assert verify_export.root_by_path(leaves[index], index, size, path) == root(leaves)
        assert verify_export.root_by_path(leaves[index], index ^ 1, size, path) != root(leaves)
    for old in {1, size // 3 or 1, size - 1 or 1, size}:
        proof = consistency(old, size, node=node)
        assert verify_export.is_beginning(old, root(leaves[:old]), size, root(leaves), proof)
        assert not verify_export.is_beginning(old, bytes(32), size, root(leaves), proof)


def test_a_proof_reads_few_tiles() -> None:
    assert len(tiles_of(lambda node: inclusion(12_345, 10_000_000, node=node))) <= 6
    assert len(tiles_of(lambda node: consistency(12_345, 10_000_000, node=node))) <= 8


@given(st.integers(1, 300), st.integers(0, 300))
def test_small_trees_of_every_size(size: int, index: int) -> None:
    stored, leaves = grown(size)
    index %= size
    assert verify_export.root_by_path(leaves[index], index, size, inclusion(index, size, node=node_of(stored))) == root(leaves)


def heads_of(count: int) -> list[StreamHead]:
    return [empty_head(stream_key(f"event:{number}")).followed_by(sha256(b"%d" % number).digest()) for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 17, 300])
def test_the_map_has_one_root_whoever_computes_it(count: int) -> None:
    heads = heads_of(count)
    hashed = sorted((head.key, verify_export.head_hash(head.key, head.version, head.hash)) for head in heads)
    assert verify_export.map_root(hashed) == part_of(heads, 0).hash


def test_signatures_of_the_verifier_are_those_of_cryptography() -> None:
    random = Random(25519)
    for size in (0, 1, 100):
        key, message = Ed25519PrivateKey.from_private_bytes(random.randbytes(32)), random.randbytes(size)
        public, signature = key.public_key().public_bytes_raw(), key.sign(message)
        assert verify_export.ed25519_valid(public, signature, message)
        assert not verify_export.ed25519_valid(public, signature, message + b"x")
        broken = bytearray(signature)
        broken[random.randrange(64)] ^= 1
        assert not verify_export.ed25519_valid(public, bytes(broken), message)
        higher = int.from_bytes(signature[32:], "little") + 2**252 + 27742317777372353535851937790883648493
        assert not verify_export.ed25519_valid(public, signature[:32] + higher.to_bytes(32, "little"), message), "malleable"
    assert not verify_export.ed25519_valid(b"\xff" * 32, bytes(64), b"")


def test_a_note_is_signed_by_its_keys_and_by_no_other() -> None:
    first, second = (SigningKey("medialedger/x", bytes([number]) * 32) for number in (1, 2))
    note = sign("medialedger/x\n1\n", [first, second])
    for key in (first, second):
        assert key.public.check(note) == "medialedger/x\n1\n"
        assert verify_export.Key.read(str(key.public)).has_signed(note)
    for wrong in (PublicKey("medialedger/y", first.public.public), SigningKey("medialedger/x", bytes(32)).public):
        with pytest.raises(NoteInvalid):
            wrong.check(note)
    with pytest.raises(NoteInvalid):
        first.public.check(note.replace("\n1\n", "\n2\n"))
    assert "01" * 32 not in repr(first)
