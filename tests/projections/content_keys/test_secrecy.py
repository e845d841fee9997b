"""A content key is nowhere in the clear: not in a table in any spelling, not in a log line, not in what is printed of it."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode

import pytest

from api.core import Core
from domain.kernel.cause import Cause
from projections.content_keys.answers import Answered, AnswerRecorder
from projections.content_keys.store import KeyBrought
from tests.api.media.test_configuration_secrecy import tables
from tests.conftest import HandClock
from tests.projections.content_keys.keys_given import KID, asked, given, keys_on


def spellings(key: bytes) -> list[str]:
    """Bytes show as hexadecimal in `tables`, so a spelling that lies in bytes is looked for in hexadecimal too."""
    little_endian = key[3::-1] + key[5:3:-1] + key[7:5:-1] + key[8:]  # as a GUID of PlayReady
    texts = {
        spelt for one in (key, little_endian) for spelt in (one.hex(), b64encode(one).decode(), urlsafe_b64encode(one).decode())
    }
    plain = {one.rstrip("=") for one in texts} | {f"{key.hex()[:8]}-{key.hex()[8:12]}", repr(key)[2:-1], str(list(key))}
    return [*plain, *(one.encode().hex() for one in plain), *(one.upper() for one in plain if set(one) <= set("0123456789abcdef-"))]


async def test_no_table_and_no_log_line_holds_a_key(
    inner: Core, clock: HandClock, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    keys = keys_on(inner)
    brought = KeyBrought(asked("brought").purpose, b"an imported key\1")
    await keys.take_in([brought], cause=Cause.by("system"))
    found = await given(keys, asked(), asked(kid=KID, iv=bytes(16)), asked(client="other", kid=KID), asked("brought"))
    recorder = AnswerRecorder(inner.ledger, clock)
    for _ in range(120):  # past a snapshot
        for key in found:
            recorder.add(Answered(key.id, "studio", ("WIDEVINE",), "1", "t-1"))
        await recorder.flush()
    await inner.ledger.stop()

    dumped = tables(database_url)
    assert {"events", "vault", "content_key_view", "snapshots", "claims", "answers"} <= dumped.keys()
    for place in ("events", "snapshots"):
        assert b"movie-1".hex() in dumped[place], "the search looks at what it should"
    places = [*dumped.items(), ("log", caplog.text), ("shown", f"{found} {brought} {keys}")]
    assert brought.key == found[3].key
    for key in found:
        assert len(key.key) == 16
        for spelling in spellings(key.key):
            assert [place for place, text in places if spelling in text] == []
