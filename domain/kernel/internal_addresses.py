"""Internal addresses in texts for callers without a key: those of the internal network and of this server, and any that may grant
access.

A text is masked in doubt: readers without a key lose a word, and readers with a key see the full text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from domain.kernel.token_patterns import MASK

_LONGEST: Final = 255
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]{0,30}"
_END: Final = r"\s\"'<>`|"
_WORD: Final = rf"(?<![^{_END}])[^{_END}]*"
"""A whole word from its beginning. A pattern that may start anywhere would scan a long word again and again."""
_URL: Final = re.compile(rf"(?<![A-Za-z])(?P<scheme>{_SCHEME})(?P<mark>:(?:\\?/){{2}})(?P<rest>[^{_END}]*)")
_OPENING: Final = re.compile(rf"{_WORD}[?;#][\w.%~\[\]-]{{1,100}}=[^{_END}]*")
"""A word with parameters, such as a signed path."""
_ORIGIN: Final = re.compile(rf"{_WORD}/origin/+live\b[^{_END}]*", re.IGNORECASE)
_SHARE: Final = re.compile(
    rf"\\\\[\w.-]+\\[^{_END}]*|(?<![\w/:.-])(?:[\w.-]+@)?[\w.-]+:/(?!/)[^{_END}]+|(?<![\w:/])//[\w.-]+/[^{_END}]*"
)
"""A Windows, NFS or scp share, and an address without its scheme."""
_IPV4: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)(?P<port>:\d{1,5})?(?P<path>/[^\s\"'<>]*)?")
_IPV6: Final = re.compile(
    r"(?<![\w.:])\[?(?P<address>[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{0,40}(?:\d{1,3}\.[\d.]{5,11})?)(?:%[\w.-]+)?\]?(?![\w:])"
)
_NAMES: Final = (
    r"(?:arpa|cluster\.local|corp|docker|home|internal|intra|intranet|lan|local|localdomain|localhost|localtest\.me|lvh\.me"
    r"|nip\.io|private|sslip\.io|svc|traefik\.me|xip\.io)"
)
_INNER_NAME: Final = re.compile(rf"(?:[\w-]+\.)*{_NAMES}\.?", re.IGNORECASE)
_INNER_WORD: Final = re.compile(
    rf"(?<![\w.@-])(?:localhost|(?:[\w-]+\.)+{_NAMES})\b(?![\w-]|\.\w)(?::\d{{1,5}})?(?:/[^{_END}]*)?", re.IGNORECASE
)
_WITH_PORT: Final = re.compile(rf"(?<![\w.:/@-])(?=[\w-]*[A-Za-z])[\w-]+:\d{{2,5}}(?![\w:.])(?:/[^{_END}]*)?")
"""A host name without a domain, followed by a port."""
_HOST: Final = re.compile(r"(?:[^/\\?#]*@)?(?P<host>\[[^\]/]*\]?|[^:/\\?#]*)")
_NUMERIC: Final = re.compile(r"(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d*))*", re.IGNORECASE)


class InternalAddresses:
    """A filter for internal addresses. `own` holds the host names of this server, such as the host of its public address."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = frozenset(host.lower().rstrip(".") for host in own if host)
        dotted = sorted((host for host in self._own if "." in host), key=len, reverse=True)
        names = "|".join(map(re.escape, dotted))
        self._own_words = re.compile(rf"(?<![\w.@-])(?:{names})\b(?:[:/][^{_END}]*)?", re.IGNORECASE) if names else None

    def masked(self, text: str) -> str:
        """Return the text with `****` in place of each internal address."""
        if not _may_hold_address(text):
            return text
        text = _URL.sub(self._url, text)
        for pattern in (_OPENING, _ORIGIN, _SHARE, self._own_words, _INNER_WORD, _WITH_PORT):
            if pattern is not None:
                text = pattern.sub(MASK, text)
        return _IPV6.sub(_masked_ipv6, _IPV4.sub(_masked_ipv4, text))

    def _url(self, match: re.Match[str]) -> str:
        """Keep a URL only if it is the address of another server without parameters and user info."""
        rest = match["rest"].replace("\\/", "/")
        host = _HOST.match(rest)
        assert host is not None, "it matches the empty text too"
        opens = any(sign in rest for sign in "?#@") or "://" in rest or "/origin/" in rest.lower()
        return MASK if opens or self._is_inside(host["host"]) else match[0]

    def _is_inside(self, host: str) -> bool:
        name = host.lower().rstrip(".,;:)")
        if not name.isascii() or "%" in name or len(name) > _LONGEST:
            return True
        if name in self._own or "." not in name or _INNER_NAME.fullmatch(name):
            return True
        if not _NUMERIC.fullmatch(name):
            return False
        try:
            return not ipaddress.IPv4Address(name).is_global
        except ValueError:
            return True


def _may_hold_address(text: str) -> bool:
    """Return False for texts that cannot contain an address, which most texts are."""
    return any(sign in text for sign in ":.\\?#=/")


def _masked_ipv4(match: re.Match[str]) -> str:
    try:
        address = ipaddress.IPv4Address(match[0].partition(":")[0].partition("/")[0])
    except ValueError:
        return match[0]
    return match[0] if address.is_global else MASK


def _masked_ipv6(match: re.Match[str]) -> str:
    try:
        address = ipaddress.IPv6Address(match["address"])
    except ValueError:
        return match[0]
    mapped = address.ipv4_mapped
    return match[0] if (address if mapped is None else mapped).is_global else MASK
