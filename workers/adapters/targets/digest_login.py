"""Logins of HTTP by Digest (RFC 7616) or Basic (RFC 7617), as a server asks for them."""

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
    "MD5": lambda text: hashlib.md5(text, usedforsecurity=False).hexdigest(),  # what streaming servers ask for
}


class Login:
    """The answers to the challenges of one server. A nonce is used again, with the next count, until the server wants another."""

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password
        self._challenge: Mapping[str, str] | None = None
        self._basic = False
        self._count = 0

    def challenged(self, header: str) -> bool:
        """Takes the challenge of a refusal; whether it can be answered. Digest is preferred: it does not send the password."""
        found = list(_SCHEME.finditer(header))
        ends = [one.start() for one in found[1:]] + [len(header)]
        schemes = {one[1].lower(): header[one.end() : end] for one, end in zip(found, ends, strict=True)}
        self._count = 0
        self._challenge = {name.lower(): quoted or plain for name, quoted, plain in _PAIR.findall(schemes.get("digest", ""))}
        self._basic = not self._known and "basic" in schemes
        return self._known or self._basic

    def header(self, method: str, url: str) -> Mapping[str, str]:
        """Empty before the first challenge."""
        if self._basic:
            return {"Authorization": "Basic " + b64encode(f"{self._user}:{self._password}".encode()).decode()}
        return {"Authorization": self._digest(method, url)} if self._known else {}

    @property
    def _known(self) -> bool:
        given = self._challenge or {}
        plain = "qop" not in given or "auth" in [one.strip() for one in given["qop"].split(",")]
        return plain and given.get("algorithm", "MD5").upper() in _HASHES and bool(given.get("nonce")) and "realm" in given

    def _digest(self, method: str, url: str) -> str:
        given = self._challenge or {}
        algorithm, nonce, realm = given.get("algorithm", "MD5"), given["nonce"], given["realm"]
        parts = urlsplit(url)
        uri = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self._count += 1
        count, own = f"{self._count:08x}", token_hex(16)

        def hashed(*texts: str) -> str:
            return _HASHES[algorithm.upper()](":".join(texts).encode())

        user, request = hashed(self._user, realm, self._password), hashed(method, uri)
        members = {"username": self._user, "realm": realm, "nonce": nonce, "uri": uri}
        bare = {"algorithm": algorithm}
        if "qop" in given:
            members |= {"cnonce": own, "response": hashed(user, nonce, count, own, "auth", request)}
            bare |= {"qop": "auth", "nc": count}
        else:
            members["response"] = hashed(user, nonce, request)
        if "opaque" in given:
            members["opaque"] = given["opaque"]
        quoted = [f'{name}="{value}"' for name, value in members.items()]
        return "Digest " + ", ".join(quoted + [f"{name}={value}" for name, value in bare.items()])
