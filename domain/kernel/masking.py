"""Masking of credentials in job parameters, before they are shown or stored in an event.

`****` replaces values under names that may denote a credential. Of a URL, the parts before its host and after its path are removed.
In doubt a text is masked: the original is encrypted in the vault, and only the worker of the step reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, unquote

from domain.kernel.credentials import hints_at_credential, may_be_credential
from domain.kernel.internal_addresses import InternalAddresses
from domain.kernel.token_patterns import MASK, SCHEME, TOKEN, without_tokens

_SHORTEST: Final = 4
"""The length in characters below which a text is ignored, because it occurs inside many words of a log."""
_DISTINCT: Final = 12
"""The length from which a part of a secret is unlikely to occur anywhere else, in characters."""

_TELLING: Final = 8
"""The length from which a value in a query may be a credential, whatever its name, in characters."""

_DEEPEST: Final = 300
_DECODED: Final = 3
"""The number of nested percent-encodings that are decoded. A word with more of them is masked."""
_DEEPEST_DECODED: Final = 24
"""The number of levels that are read of a percent-encoded document. Deeper levels are masked."""
_WITHOUT_TEXT: Final = frozenset((int, float, bool, type(None)))
_RECORDED: Final = frozenset(
    ("accept", "client", "content-length", "content-type", "idempotency-key", "referer", "user-agent", "x-transaction-id")
)
_BLANKS: Final = " \t\n\r\v\f\ufeff"
_SURROUNDING: Final = " \t\"'-"
_ORDINARY: Final = re.compile(r"[\w./+*-]*")
"""A text in which no name is given a value, such as a media type or a file name. Most texts match."""
_ESCAPED: Final = re.compile(r"""[^\x20-\x7e]|[\\"]""")
"""A character that JSON writes as more than one."""
_BRACKETS: Final = "[]{}()<>/,;"
_MASKED: Final = re.compile(rf"""{re.escape(MASK)}[ \t"'-]*(?:[\[\]{{}}()<>/,;][\[\]{{}}()<>/,; \t"'-]*\Z|[\])}}]|\Z)""")
_MASKED_AHEAD: Final = re.compile(rf"""[ \t"'\[\]{{}}()<>/,;-]*+{re.escape(MASK)}[ \t"'-]*+[\])}}]""")
"""The beginning of a value that is already masked. Names inside it are recognised without searching for its end, which may be far
away."""
_LABELS: Final = ("name", "key", "header")
_PIECE: Final = re.compile(r"\S+")
_AUTHORITY: Final = re.compile(r"[^/\\]*")
_HOST: Final = re.compile(r"(?:\[[^\[\]@]*\]|[^:@\[\]]*)(?::\d{0,5})?")
_NEXT_URL: Final = re.compile(r"(?P<host>.*?)(?P<scheme>[,;|][A-Za-z][A-Za-z0-9+.-]*)?")
_QUERY: Final = re.compile(r"[?#]")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
_TOKEN: Final = re.compile(r"(?<![\w-])(?P<prefix>(?:(?!\beyJ[\w-]{8})[\w-])*+)(?P<secret>eyJ[\w-]++(?:\.[\w-]*+){1,4}+)")
"""A JSON web token, with the part of its word before it. A word is therefore scanned once, however often a token seems to begin in
it."""
_NAMED: Final = tuple(
    (re.compile(name), re.compile(value))
    for name, value in (
        # name: and lines below that are indented further, or entries of a list (YAML)
        (
            r"(?m)^(?P<indent>[ \t]*+)(?:- )?(?P<name>[\w.-]++)[ \t]*+:"
            r"[ \t]*+(?:[>|][+-]?[0-9]?[+-]?[ \t]*+)?\n(?=(?P=indent)[ \t-])",
            r"(?:-?[ \t]++\S[^\n]*+(?:\n|\Z))++",
        ),
        # name=value, name: value; in the second form up to the end of the line
        (
            r"""(?<![\w.-])["']?(?P<name>[\w.-]++)["']?[ \t]{0,8}(?:=>|=|:(?!//)|\t)[ \t]{0,8}""",
            r""""(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|(?<=[:=>])[^\s&;,]++|(?<=[ \t])[^\n&;]++""",
        ),
        # --name value
        (r"(?<!\S)(?P<name>--?[\w.-]++)[ ]{1,8}", r""""[^"\n]*+"|'[^'\n]*+'|\S++"""),
        # <name>value
        (r"<(?P<name>[\w.:-]++)(?:\s[^<>]{0,200})?>", r"[^<]++"),
    )
)
"""The ways in which a text assigns a value to a name: the pattern before the value, and the pattern of the value."""
_PATH_TOKEN: Final = re.compile(r"(?<=/)(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{20,}(?=/|\Z)")
"""A segment of a URL's path that looks like random bytes in Base64, as in the addresses of webhooks."""


def masked(value: object) -> Any:
    """Return a JSON value without its secrets. Null stays null."""
    return _Masking().of(value)


def secret_texts(value: object) -> frozenset[str]:
    """Return the texts that masking removes, also in the spelling of JSON and of URLs."""
    masking = _Masking()
    masking.of(value)
    return frozenset(masking.taken)


def clean_line(text: str, secrets: Set[str] = frozenset()) -> str:
    """Return a line of a log without the secrets that `secret_texts` found, and without credentials that are recognised by their
    form."""
    return without_tokens(mask_secrets(text, secrets))


def mask_secrets(text: str, secrets: Set[str]) -> str:
    """Return the text without the secrets that `secret_texts` found."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def mask_secrets_in_texts(value: Any, secrets: Set[str]) -> Any:
    """Return a JSON document whose texts are mask_secrets. It stays a document, although a secret may be any text, such as `{"`."""
    if isinstance(value, str):
        return mask_secrets(value, secrets)
    if isinstance(value, list | tuple):
        return [mask_secrets_in_texts(entry, secrets) for entry in value]
    if isinstance(value, Mapping):
        return {mask_secrets(name, secrets): mask_secrets_in_texts(inner, secrets) for name, inner in value.items()}
    return value


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request as its job records them: those that help to find the caller's mistake, and credentials
    without their values. Headers that a proxy or a network adds about the caller are left out."""
    masking = _Masking()
    return {
        name: MASK if hints_at_credential(name) else masking.of(value)
        for name, value in headers.items()
        if name.lower() in _RECORDED or hints_at_credential(name)
    }


def masked_for_strangers(value: object, inside: InternalAddresses) -> Any:
    """Return the value as `masked` does, and also without internal addresses: for callers without a key."""
    return _ForStrangers(inside).of(value)


class _Masking:
    """Collects the masked document and the removed texts in one pass. It uses one stack frame per level: a document may be 200
    levels deep."""

    def __init__(self, *, decoded: int = 0) -> None:
        self.taken: set[str] = set()
        self._decoded = decoded

    def of(self, value: Any, depth: int = 0) -> Any:
        if depth > _DEEPEST:
            return self._mask(value)
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, list | tuple):
            if len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str) and may_be_credential(value[0]):
                return [self._text(value[0], depth), self._mask(value[1])]
            return self._entries(value, depth) if depth < _DEEPEST else [self._mask(entry) for entry in value]
        if not isinstance(value, Mapping):
            return value
        shown: dict[str, Any] = {}
        labelled = _labelled(value)
        for name, inner in value.items():
            secret = may_be_credential(name) or (labelled and name.lower() == "value")
            shown[self._text(name, depth)] = self._mask(inner) if secret else self.of(inner, depth + 1)
        return shown

    def _entries(self, entries: Sequence[Any], depth: int) -> list[Any]:
        """Mask the entries of an array. Numbers and empty lists, of which there may be many thousands, cost no call."""
        shown: list[Any] = []
        follows_option = False
        for entry in entries:
            if follows_option:
                shown.append(self._mask(entry))
            elif type(entry) in _WITHOUT_TEXT or (type(entry) is list and not entry):
                shown.append(entry)
            else:
                shown.append(self.of(entry, depth + 1))
            follows_option = type(entry) is str and _is_option(entry)
        return shown

    def _mask(self, value: Any) -> Any:
        """Remove the whole text, and record its lines, because a step may log one line of a key file."""
        pending = [value]
        while pending:
            node = pending.pop()
            if isinstance(node, Mapping):
                pending.extend(node.values())
            elif isinstance(node, list | tuple):
                pending.extend(node)
            elif node is not None and not isinstance(node, bool):
                self._note(str(node))
                if isinstance(node, str):
                    pending.extend(self._parts(node))
        return None if value is None else MASK

    def _parts(self, text: str) -> list[Any]:
        self._plain_text(text)
        if _may_be_json(text):
            with suppress(ValueError, RecursionError):
                return [json.loads(text.lstrip(_BLANKS))]
        return []

    def _note(self, text: str) -> None:
        if len(text) >= _SHORTEST and text != MASK:
            in_json = (json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
            whole = [part for part in _ESCAPED.split(text) if len(part) >= _DISTINCT]  # as in JSON within JSON
            self.taken.update((text, *in_json, quote(text, "", errors="replace"), *whole))

    def _text(self, text: str, depth: int) -> str:
        if _may_be_json(text):
            shown = self._document(text, depth)
            if shown is not None:
                return shown
        return self._plain_text(text)

    def _plain_text(self, text: str) -> str:
        """Return a text without its credentials."""
        if "eyJ" not in text and _ORDINARY.fullmatch(text) and not TOKEN.search(text):
            return text
        text = TOKEN.sub(self._whole, text)
        if "://" in text:
            text = _PIECE.sub(self._piece, text)
        if "PRIVATE KEY-----" in text:
            text = _PRIVATE_KEY.sub(self._whole, text)
        if "eyJ" in text:
            text = _TOKEN.sub(self._after, text)
        for name, value in _NAMED:
            text = self._values(text, name, value)
        if "%" in text:
            text = _PIECE.sub(self._encoded, text)
        return SCHEME.sub(self._after, text)

    def _whole(self, match: re.Match[str]) -> str:
        for line in match[0].splitlines():
            self._note(line)
        return MASK

    def _after(self, match: re.Match[str]) -> str:
        secret = match["secret"]
        for text in (secret, secret.strip(" \t\"'")):
            self._note(text)
        return f"{match['prefix']}{MASK}"

    def _values(self, text: str, name: re.Pattern[str], value: re.Pattern[str]) -> str:
        """Return the text without the values of names that denote a credential. Other values may contain names in turn."""
        shown, at = [], 0
        for match in name.finditer(text):
            if match.start() < at or _MASKED_AHEAD.match(text, match.end()):
                continue
            if _gives_credential(match["name"]):
                secret = value.match(text, match.end())
                if secret is not None and secret[0].strip() and not _is_masked(secret[0]):
                    for line in (secret[0], *secret[0].splitlines()):
                        self._note(line)
                        self._note(line.strip(_SURROUNDING))
                    shown += [text[at : match.end()], MASK]
                    at = secret.end()
        return "".join((*shown, text[at:]))

    def _encoded(self, match: re.Match[str]) -> str:
        """Mask a percent-encoded word as a whole if masking its decoded text would change it."""
        decoded = unquote(match[0])
        if decoded == match[0] or MASK in decoded:
            return match[0]
        if self._decoded < _DECODED:
            inner = self._inner(self._decoded + 1)
            if inner.of(decoded, _DEEPEST - _DEEPEST_DECODED) == decoded:
                return match[0]
            inner._mask(decoded)
            self.taken |= inner.taken
        return self._whole(match)

    def _inner(self, decoded: int) -> _Masking:
        return _Masking(decoded=decoded)

    def _document(self, text: str, depth: int) -> str | None:
        """Mask the inside of a text that is JSON and leave the rest as it was; return None for any other text. JSON that cannot be
        read, because it is too deep or contains a number with thousands of digits, is masked as a whole."""
        twins: list[object] = []

        def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            object_ = dict(pairs)
            if len(object_) < len(pairs):
                last = {name: at for at, (name, _) in enumerate(pairs)}
                twins.append(self._mask([value for at, (name, value) in enumerate(pairs) if last[name] != at]))
            return object_

        try:
            document = json.loads(text.lstrip(_BLANKS), object_pairs_hook=members)
        except json.JSONDecodeError:
            return None
        except (ValueError, RecursionError):
            return str(self._mask(text))
        shown = self.of(document, depth + 1)
        return text if shown == document and not twins else json.dumps(shown, ensure_ascii=False, separators=(",", ":"))

    def _piece(self, match: re.Match[str]) -> str:
        """Mask the URLs in a word between blanks. Splitting keeps the cost proportional to the length."""
        before, *urls = match[0].split("://")
        if not urls:
            return before
        rest = "://".join(urls)
        query = _QUERY.search(rest)
        if query is not None:
            self._note_query(rest[query.end() :])
            rest = rest[: query.start()]
        return f"{before}://{self._addresses(rest)}"

    def _addresses(self, rest: str) -> str:
        """Mask the text after the first `://`, which may contain further URLs. A host whose port is not a number is the beginning
        of a password with a slash in it; then the rest is removed."""
        shown = []
        urls = rest.split("://")
        for at, url in enumerate(urls):
            authority = _AUTHORITY.match(url)
            assert authority is not None, "it matches the empty text too"
            userinfo, _, host = authority[0].rpartition("@")
            beyond = _NEXT_URL.fullmatch(host) if at < len(urls) - 1 else None
            if not _HOST.fullmatch(beyond["host"] if beyond is not None else host):
                self._note_userinfo("://".join(urls[at:]))
                shown.append("")
                break
            self._note_userinfo(userinfo)
            shown.append(host + _PATH_TOKEN.sub(self._whole, url[authority.end() :]))
        return "://".join(shown)

    def _note_userinfo(self, userinfo: str) -> None:
        name, _, password = userinfo.partition(":")
        for text in (userinfo, password or name):
            self._note(text)
            self._note(unquote(text))

    def _note_query(self, query: str) -> None:
        self._note(query)
        for pair in re.split(r"[&;]", query):
            name, _, value = pair.partition("=")
            if len(value) >= _TELLING or may_be_credential(unquote(name)):
                self._note(value)
                self._note(unquote(value))


class _ForStrangers(_Masking):
    def __init__(self, inside: InternalAddresses, *, decoded: int = 0) -> None:
        super().__init__(decoded=decoded)
        self._inside = inside

    def _plain_text(self, text: str) -> str:
        return super()._plain_text(self._inside.masked(text))

    def _inner(self, decoded: int) -> _Masking:
        return _ForStrangers(self._inside, decoded=decoded)


def _is_masked(value: str) -> bool:
    """Return True if a value consists only of the mask. Brackets that close after it, and the text after them, do not belong to the
    value."""
    return _MASKED.match(value.lstrip(_SURROUNDING + _BRACKETS)) is not None


def _may_be_json(text: str) -> bool:
    return text.lstrip(_BLANKS)[:1] in ("{", "[", '"')


def _gives_credential(name: str) -> bool:
    """Return True if a credential follows the name or option. `-p` is the password option of many commands."""
    return name == "-p" or may_be_credential(name.lstrip("-"))


def _is_option(value: str) -> bool:
    """Return True if the next argument of a command is a credential."""
    return value.startswith("-") and "=" not in value and _gives_credential(value)


def _labelled(members: Mapping[str, Any]) -> bool:
    """Return True if an object is a pair, such as a header, whose name denotes a credential in its value."""
    names = (value for name, value in members.items() if name.lower() in _LABELS and isinstance(value, str))
    return any(may_be_credential(name) for name in names)
