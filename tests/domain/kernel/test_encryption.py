"""Sealing: what is sealed opens with the same key for the same owner only, and shows nothing of itself."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from domain.kernel.encryption import EncryptedSecret, KeyedHash, SecretCipher
from domain.kernel.errors import DecryptionFailed

CIPHER = SecretCipher(bytes(range(32)))
SECRET = "s3cret ä 😀"


def sealed(secret: str = SECRET, *, owner: str = "channel:1", number: int = 1) -> EncryptedSecret:
    return CIPHER.encrypt(secret, owner=owner, reference=UUID(int=number), nonce=number.to_bytes(12))


@pytest.mark.parametrize("secret", [SECRET, "", "x" * 100_000])
def test_what_is_sealed_opens(secret: str) -> None:
    assert CIPHER.decrypt(sealed(secret)) == secret


@pytest.mark.parametrize(
    "spoilt",
    [
        replace(sealed(), owner="channel:2"),
        replace(sealed(), reference=UUID(int=2)),
        replace(sealed(), nonce=bytes(12)),
        replace(sealed(), ciphertext=sealed().ciphertext[:-1] + bytes([sealed().ciphertext[-1] ^ 1])),
        replace(sealed(), ciphertext=sealed(number=2).ciphertext),
    ],
)
def test_a_box_that_was_moved_or_changed_does_not_open(spoilt: EncryptedSecret) -> None:
    with pytest.raises(DecryptionFailed):
        CIPHER.decrypt(spoilt)


def test_another_key_does_not_open_it_and_has_another_name() -> None:
    other = SecretCipher(bytes(32))
    assert other.key_id != CIPHER.key_id
    with pytest.raises(DecryptionFailed):
        other.decrypt(sealed())


def test_a_fingerprint_knows_the_same_secret_of_the_same_owner_again() -> None:
    mark = sealed().fingerprint
    assert mark == sealed(number=2).fingerprint
    others = [
        sealed("other"),
        sealed(owner="channel:2"),
        SecretCipher(bytes(32)).encrypt(SECRET, owner="channel:1", reference=UUID(int=1), nonce=bytes(12)),
    ]
    assert mark not in {other.fingerprint for other in others}


def test_nothing_that_is_printed_or_stored_in_an_event_holds_the_secret_or_its_box() -> None:
    text = sealed()
    for shown in (repr(text), str(text), text.ref.model_dump_json(), repr(text.ref)):
        assert SECRET not in shown
        assert repr(text.ciphertext)[2:20] not in shown


def test_a_hash_under_the_previous_master_key_is_recognized() -> None:
    old, new = KeyedHash(bytes(32)), KeyedHash(bytes(range(32)), previous=bytes(32))
    assert new(b"body") == KeyedHash(bytes(range(32)))(b"body")
    assert new.matches(old(b"body"), b"body")
    assert new.matches(new(b"body"), b"body")
    assert not new.matches(old(b"body"), b"other")
    assert not old.matches(new(b"body"), b"body")
