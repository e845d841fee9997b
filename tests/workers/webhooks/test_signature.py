"""Standard Webhooks signatures, against the specification's own example and its own library. contract.md, "Webhook delivery"."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Receiving

from domain.webhook.secret import key_of
from workers.webhooks.signature import signatures


def test_the_example_of_the_specification() -> None:
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signatures([key], b'{"test": 2432232314}', message="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_two_keys_give_two_signatures_with_a_space_between() -> None:
    keys = [bytes(32), bytes(range(32))]
    one, two = (signatures([key], b"{}", message="m", timestamp=1) for key in keys)
    assert signatures(keys, b"{}", message="m", timestamp=1) == f"{one} {two}"


@given(st.binary(min_size=24, max_size=64), st.text(), st.integers(0, 2**33))
def test_whatever_is_signed_its_library_signs_the_same(key: bytes, body: str, timestamp: int) -> None:
    theirs = Receiving(b64encode(key).decode()).sign("msg_1", datetime.fromtimestamp(timestamp, UTC), body)
    assert signatures([key], body.encode(errors="surrogatepass"), message="msg_1", timestamp=timestamp) == theirs


def test_its_library_accepts_what_was_signed_now() -> None:
    now, key, body = int(datetime.now(UTC).timestamp()), bytes(32), '{"a":1}'
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": signatures([bytes(range(32)), key], body.encode(), message="msg_1", timestamp=now),
    }
    assert Receiving(b64encode(key).decode()).verify(body, headers) == {"a": 1}
