"""HTTP logins by Digest (RFC 7616) or Basic (RFC 7617), as the server demands."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from re import compile as regex
from secrets import token_hex
from typing import Final
from urllib.parse import urlsplit

_SCHEME: Final = regex(r"(?:^|,)\s*(Digest|Basic)\b", flags=2)
_PAIR: Final = regex(r'(\w+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))')
_HASHES: Final[Mapping[str, Callable[[bytes], str]]] = {
    "SHA-256": lambda text: hashlib.sha256(text).hexdigest(),
    "MD5": lambda text: hashlib.md5(text, usedforsecurity=False).hexdigest(),  # required by streaming servers
}


class Login:
    """Answers the challenges of one server. A nonce is used again with the next count until the server demands another."""

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password
        self._challenge: Mapping[str, str] | None = None
        self._basic = False
        self._count = 0

    def accept_challenge(self, header: str) -> bool:
        """Store the challenge of a refusal. Return True if it can be answered. Digest is preferred, because it does not send the
        password."""
        matches = list(_SCHEME.finditer(header))
        ends = [match.start() for match in matches[1:]] + [len(header)]
        schemes = {match[1].lower(): header[match.end() : end] for match, end in zip(matches, ends, strict=True)}
        self._count = 0
        self._challenge = {name.lower(): quoted or plain for name, quoted, plain in _PAIR.findall(schemes.get("digest", ""))}
        self._basic = not self._can_digest and "basic" in schemes
        return self._can_digest or self._basic

    def header(self, method: str, url: str) -> Mapping[str, str]:
        """Return the headers for a request; empty before the first challenge."""
        if self._basic:
            return {"Authorization": "Basic " + b64encode(f"{self._user}:{self._password}".encode()).decode()}
        return {"Authorization": self._digest(method, url)} if self._can_digest else {}

    @property
    def _can_digest(self) -> bool:
        challenge = self._challenge or {}
        plain = "qop" not in challenge or "auth" in [option.strip() for option in challenge["qop"].split(",")]
        return (
            plain and challenge.get("algorithm", "MD5").upper() in _HASHES and bool(challenge.get("nonce")) and "realm" in challenge
        )

    def _digest(self, method: str, url: str) -> str:
        challenge = self._challenge or {}
        algorithm, nonce, realm = challenge.get("algorithm", "MD5"), challenge["nonce"], challenge["realm"]
        parts = urlsplit(url)
        uri = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self._count += 1
        count, own = f"{self._count:08x}", token_hex(16)

        def hashed(*texts: str) -> str:
            return _HASHES[algorithm.upper()](":".join(texts).encode())

        user, request = hashed(self._user, realm, self._password), hashed(method, uri)
        members = {"username": self._user, "realm": realm, "nonce": nonce, "uri": uri}
        bare = {"algorithm": algorithm}
        if "qop" in challenge:
            members |= {"cnonce": own, "response": hashed(user, nonce, count, own, "auth", request)}
            bare |= {"qop": "auth", "nc": count}
        else:
            members["response"] = hashed(user, nonce, request)
        if "opaque" in challenge:
            members["opaque"] = challenge["opaque"]
        quoted = [f'{name}="{value}"' for name, value in members.items()]
        return "Digest " + ", ".join(quoted + [f"{name}={value}" for name, value in bare.items()])
