"""Time stamps of checkpoints by an RFC 3161 server: it signs the hash of the checkpoint together with its own time."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from rfc3161_client import HashAlgorithm, PKIStatus, TimestampRequestBuilder, decode_timestamp_response

from domain.kernel.errors import Unavailable
from workers.ports.checkpoints import StoredNote
from workers.ports.outbound import Outbound, OutboundFailed, OutboundRefused

_HEADERS: Final = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
_MOST: Final = 64 * 1024
_OK: Final = 200


class TimeStamp:
    """A place that time stamps checkpoints. The evidence is the whole answer, which `openssl ts -verify` accepts. Its reader
    decides if the server's certificate is to be trusted."""

    kind = "timestamp"

    def __init__(self, url: str, outbound: Outbound) -> None:
        """User info in `url` is sent as basic authentication."""
        parts = urlsplit(url)
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        info = parts.netloc.rpartition("@")[0]
        self._headers = {**_HEADERS, **({"Authorization": f"Basic {b64encode(info.encode()).decode()}"} if info else {})}
        self._outbound = outbound

    async def keep(self, checkpoint: StoredNote) -> bytes:
        note = checkpoint.note.encode()
        request = TimestampRequestBuilder().data(note).hash_algorithm(HashAlgorithm.SHA256).build()
        try:
            reply = await self._outbound.request("POST", self._url, headers=self._headers, body=request.as_bytes(), most=_MOST)
        except (OutboundRefused, OutboundFailed) as fault:
            raise Unavailable(str(fault)) from None
        if reply.status != _OK:
            raise Unavailable(f"the server answered with status {reply.status}")
        _check(reply.body, digest=sha256(note).digest(), nonce=request.nonce)
        return reply.body


def _check(answer: bytes, *, digest: bytes, nonce: int | None) -> None:
    """Raise `Unavailable` unless the answer is a time stamp of this hash, made now."""
    try:
        response = decode_timestamp_response(answer)
        granted = PKIStatus(response.status) in (PKIStatus.GRANTED, PKIStatus.GRANTED_WITH_MODS)
        info = response.tst_info if granted else None
    except ValueError:
        raise Unavailable("the answer is not a time stamp") from None
    if info is None:
        raise Unavailable("the server refuses to time stamp")
    if info.message_imprint.message != digest or info.nonce != nonce:
        raise Unavailable("the time stamp is of something else")
