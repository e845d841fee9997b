"""Mutated CPIX documents that respect their structure: documents that a careless packager or an attacker sends.

Most mutants are still XML, so that they get past the parser; some are then damaged as text or as bytes.
"""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Final, cast
from uuid import UUID

from lxml import etree

CPIX: Final = "urn:dashif:org:cpix"
SPEKE: Final = "urn:aws:amazon:com:speke"
PSKC: Final = "urn:ietf:params:xml:ns:keyprov:pskc"
DS: Final = "http://www.w3.org/2000/09/xmldsig#"
_NAMESPACES: Final = (CPIX, CPIX, CPIX, SPEKE, PSKC, DS, "", "urn:x", f"{CPIX}:")
_NAMES: Final = (
    *("CPIX", "ContentKeyList", "ContentKey", "DRMSystemList", "DRMSystem", "ContentKeyPeriodList", "ContentKeyPeriod"),
    *("ContentKeyUsageRuleList", "ContentKeyUsageRule", "KeyPeriodFilter", "VideoFilter", "AudioFilter", "DeliveryDataList"),
    *("DeliveryData", "DeliveryKey", "DocumentKey", "MACMethod", "X509Data", "X509Certificate", "Data", "Secret", "PlainValue"),
    *("PSSH", "ContentProtectionData", "URIExtXKey", "HLSSignalingData", "SmoothStreamingProtectionHeaderData"),
    *("ProtectionHeader", "KeyFormat", "KeyFormatVersions", "x", "é"),
)
_ATTRIBUTES: Final = (
    *("id", "contentId", "version", "kid", "systemId", "explicitIV", "commonEncryptionScheme", "playlist", "index", "periodId"),
    *("intendedTrackType", "minPixels", "maxPixels", "minChannels", "maxChannels", "Algorithm", "x", f"{{{SPEKE}}}kid"),
    "{http://www.w3.org/XML/1998/namespace}base",
)
_VALUES: Final = (
    *("", " ", "0", "-1", "1", "2.0", "2.1", "2.3", "2.4", "9" * 20, "9" * 5000, "1e9", "NaN", "٣", "²", "é", "\U0001f511"),
    *(
        "\ue000",
        "\u2028",
        "\u202e",
        "\x85",
        "a\nb",
        "a\tb",
        "%00",
        "{0}",
        "{kid}",
        "%s",
        "../..",
        "'",
        '"',
        "<&>",
        "]]>",
        "$$",
        "\\",
    ),
    *("cenc", "cbcs", "cens", "cbc1", "CENC", "SAMPLE-AES", "SAMPLE-AES-CTR", "media", "master", "VIDEO", "AUDIO", "ALL", "SD+HD"),
    *("AUDIO+VIDEO", "+", "OTHER", "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed", "9a04f079-9840-4286-ab92-e65be0885f95"),
    *("94ce86fb-07ff-4f43-adb8-93d2fa968ca2", "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2", "00000000-0000-0000-0000-000000000000"),
    *("ffffffff-ffff-ffff-ffff-ffffffffffff", "{98ee5596-cd3e-a20d-163a-e382420c6eff}", "98ee5596cd3ea20d163ae382420c6eff"),
    *(
        "urn:uuid:98ee5596-cd3e-a20d-163a-e382420c6eff",
        "OFj2IjCsPJFfMAxmQxLGPw==",
        "OFj2IjCsPJFfMAxmQxLGPw",
        "OFj2IjCsPJFf MAxmQxLGPw==",
    ),
    *(
        "OFj2IjCsPJFfMAxmQxLGPx==",
        "AAAA",
        "====",
        "A===",
        "_-_-",
        "é===",
        "a" * 255,
        "a" * 256,
        "é" * 256,
        "x" * 1025,
        "y" * 20_000,
    ),
)
_ENCODINGS: Final = (
    "UTF-8",
    "UTF-8",
    "UTF-8",
    "UTF-8",
    "UTF-8",
    "UTF-16",
    "UTF-16LE",
    "UTF-16BE",
    "ISO-8859-1",
    "US-ASCII",
    "UTF-32",
)
_DECLARED: Final = (*_ENCODINGS, "utf-7", "cp037", "x-none", "utf8", "")
_DOCTYPES: Final = (
    "<!DOCTYPE x>",
    '<!DOCTYPE x SYSTEM "file:///etc/passwd">',
    '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE x [<!ENTITY % e SYSTEM "http://127.0.0.1:9/x"> %e;]>',
    '<!DOCTYPE x [<!ATTLIST x kid CDATA "00000000-0000-0000-0000-000000000000">]>',
    "<!DOCTYPE x [<!ENTITY e 'ha'>" + "".join(f"<!ENTITY e{i} '{'&e;' * 10}'>" for i in range(9)) + "]>",
)
_PIECES: Final = (
    *(b"<", b">", b"/", b'"', b"&", b"&e;", b"&#0;", b"&#xD800;", b"&#x10FFFF;", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?a b?>"),
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xfe\xff", b"\xc0\x80", b' kid=""', b' xmlns=""', b' xmlns:p=""', b"<p:x/>", b"=" * 40),
)
_COUNTS: Final = (1, 1, 1, 2, 3, 16, 99, 199, 201, 599, 1001, 2000)
_LARGEST: Final = 300 * 1024

Step = Callable[[etree._Element], None]


class Mutator:
    """Makes mutants. `keys` are content keys that were returned: a mutant includes some of them, to see whether they are echoed."""

    def __init__(self, seeds: Sequence[bytes], dice: random.Random, *, certificate: str, keys: Sequence[bytes]) -> None:
        self._seeds = [etree.fromstring(seed) for seed in seeds]
        self._dice = dice
        self._certificate = certificate
        self._keys = keys
        self._steps: Sequence[Step] = (
            *(self._drop, self._repeat, self._retag, self._shuffle, self._move, self._nest, self._comment, self._text, self._widen),
            *(
                self._unset,
                self._set,
                self._set,
                self._set,
                self._rename,
                self._swap,
                self._swap,
                self._new_kids,
                self._deliver,
                self._set_all,
            ),
        )

    def document(self) -> bytes:
        dice = self._dice
        root = deepcopy(dice.choice(self._seeds))
        if dice.random() < 0.5:
            root.set("contentId" if "contentId" in root.attrib else "id", f"content-{dice.randrange(500)}")
            self._new_kids(root)
        for _ in range(dice.choice((0, 1, 1, 1, 2, 2, 3, 5, 8))):
            dice.choice(self._steps)(root)
        if dice.random() < 0.3:
            root = self._with_other_prefixes(root)
        body = self._encoded(root)
        return self._hit(body) if dice.random() < 0.15 else body

    def _any(self, root: etree._Element) -> etree._Element:
        return self._dice.choice(list(root.iter(etree.Element)))

    def _below(self, root: etree._Element) -> tuple[etree._Element, etree._Element] | None:
        """Return an element and its parent; None if there is only the root."""
        element = self._any(root)
        parent = element.getparent()
        return None if parent is None else (element, parent)

    def _tag(self) -> str:
        namespace = self._dice.choice(_NAMESPACES)
        return f"{{{namespace}}}{self._dice.choice(_NAMES)}" if namespace else self._dice.choice(_NAMES)

    def _value(self) -> str:
        dice, chosen = self._dice, self._dice.random()
        if chosen < 0.1 and self._keys:
            key = dice.choice(self._keys)
            return dice.choice((key.hex(), b64encode(key).decode()))
        if chosen < 0.2:
            return str(UUID(bytes=dice.randbytes(16)))
        if chosen < 0.3:
            return b64encode(dice.randbytes(dice.choice((0, 1, 15, 16, 17, 1000)))).decode()
        return dice.choice(_VALUES)

    def _drop(self, root: etree._Element) -> None:
        if pair := self._below(root):
            pair[1].remove(pair[0])

    def _repeat(self, root: etree._Element) -> None:
        if not (pair := self._below(root)):
            return
        size = len(etree.tostring(pair[0]))
        fresh = self._dice.random() < 0.5
        for _ in range(min(self._dice.choice(_COUNTS), _LARGEST // size)):
            copy = deepcopy(pair[0])
            if fresh and "kid" in copy.attrib:
                copy.set("kid", str(UUID(bytes=self._dice.randbytes(16))) if self._dice.random() < 0.8 else "")
            pair[1].insert(self._dice.randrange(len(pair[1]) + 1), copy)

    def _retag(self, root: etree._Element) -> None:
        self._any(root).tag = self._tag()

    def _shuffle(self, root: etree._Element) -> None:
        element = self._any(root)
        members = list(element)
        self._dice.shuffle(members)
        element[:] = members

    def _move(self, root: etree._Element) -> None:
        place, pair = self._any(root), self._below(root)
        if pair and place not in pair[0].iter():
            place.append(pair[0])

    def _nest(self, root: etree._Element) -> None:
        element, tag = self._any(root), self._tag()
        for _ in range(self._dice.choice((1, 2, 10, 200, 250, 5000))):
            element = etree.SubElement(element, tag if self._dice.random() < 0.9 else self._tag())

    def _comment(self, root: etree._Element) -> None:
        element, text = self._any(root), self._dice.choice(("", " x ", "<a>", "kid", "é" * 50))
        made = etree.Comment(text) if self._dice.random() < 0.5 else etree.ProcessingInstruction("x", text)
        made.tail = self._dice.choice(("", "tail"))
        element.insert(self._dice.randrange(len(element) + 1), made)

    def _text(self, root: etree._Element) -> None:
        element = self._any(root)
        if self._dice.random() < 0.5:
            element.text = self._value()
        elif element is not root:
            element.tail = self._value()

    def _widen(self, root: etree._Element) -> None:
        """Add very many children, attributes or namespaces."""
        element, count, way = self._any(root), self._dice.choice(_COUNTS), self._dice.randrange(3)
        if way == 0:
            for _ in range(count):
                etree.SubElement(element, self._tag())
        elif way == 1:
            for number in range(count):
                element.set(f"a{number}", "")
        elif (parent := element.getparent()) is not None:
            wide = etree.Element(
                element.tag, _attributes(element), nsmap={f"n{number}": f"urn:{number}" for number in range(count)}
            )
            wide.extend(list(element))
            parent.replace(element, wide)

    def _unset(self, root: etree._Element) -> None:
        element = self._any(root)
        if element.attrib:
            del element.attrib[self._dice.choice(list(element.attrib))]

    def _set(self, root: etree._Element) -> None:
        element = self._any(root)
        names = [str(name) for name in element.attrib] if self._dice.random() < 0.7 else []
        element.set(self._dice.choice(names or _ATTRIBUTES), self._value())

    def _set_all(self, root: etree._Element) -> None:
        """Set one value wherever the attribute occurs, such as another scheme for all keys."""
        having = [str(name) for node in root.iter(etree.Element) for name in node.attrib]
        if having:
            name, value = self._dice.choice(having), self._value()
            for element in root.iter(etree.Element):
                if name in element.attrib:
                    element.set(name, value)

    def _rename(self, root: etree._Element) -> None:
        element = self._any(root)
        if element.attrib:
            element.set(self._dice.choice(_ATTRIBUTES), element.attrib.pop(self._dice.choice(list(element.attrib))))

    def _swap(self, root: etree._Element) -> None:
        having = [(element, name) for element in root.iter(etree.Element) for name in element.attrib]
        if having:
            (element, name), (other, other_name) = self._dice.choice(having), self._dice.choice(having)
            value, other_value = element.attrib[name], other.attrib[other_name]
            element.attrib[name], other.attrib[other_name] = other_value, value

    def _new_kids(self, root: etree._Element) -> None:
        """Replace each kid consistently, so that the document keeps its meaning; sometimes with an empty one, or with capitals."""
        empty, capitals, changed = self._dice.random() < 0.2, self._dice.random() < 0.2, dict[str, str]()
        for element in root.iter(etree.Element):
            if kid := element.get("kid"):
                other = changed.setdefault(kid.lower(), str(UUID(bytes=self._dice.randbytes(16))))
                element.set("kid", "" if empty else other.upper() if capitals else other)

    def _deliver(self, root: etree._Element) -> None:
        """Ask for encryption, correctly or not."""
        listed = etree.Element(f"{{{CPIX}}}DeliveryDataList")
        for _ in range(self._dice.choice((0, 1, 1, 1, 2, 17))):
            key = etree.SubElement(etree.SubElement(listed, f"{{{CPIX}}}DeliveryData"), f"{{{CPIX}}}DeliveryKey")
            data = etree.SubElement(key, f"{{{DS}}}X509Data")
            cut = self._dice.choice((len(self._certificate),) * 6 + (0, 3, 400))
            etree.SubElement(data, f"{{{DS}}}X509Certificate").text = self._certificate[:cut]
        root.insert(0, listed)

    def _with_other_prefixes(self, root: etree._Element) -> etree._Element:
        names = ["a", "_", "cpix", "é", "xml2", "p.q", "speke", "pskc"]
        self._dice.shuffle(names)
        prefixes: dict[str | None, str] = dict(zip(names, (CPIX, SPEKE, PSKC, DS), strict=False))
        if self._dice.random() < 0.3:
            prefixes[None] = self._dice.choice((CPIX, SPEKE, "urn:x"))
        renamed = etree.Element(root.tag, _attributes(root), nsmap=cast("dict[str, str]", prefixes))
        renamed.text = root.text
        renamed.extend(list(root))
        etree.cleanup_namespaces(renamed, keep_ns_prefixes=[name for name in prefixes if name])
        return renamed

    def _encoded(self, root: etree._Element) -> bytes:
        dice = self._dice
        text = etree.tostring(root, encoding="unicode")
        if dice.random() < 0.04:
            text = dice.choice(_DOCTYPES) + text.replace('=""', '="&e;"', dice.randrange(2))
        encoding = dice.choice(_ENCODINGS)
        declared = encoding if dice.random() < 0.9 else dice.choice(_DECLARED)
        if encoding != "UTF-8" or declared != "UTF-8" or dice.random() < 0.5:
            text = f'<?xml version="1.0" encoding="{declared}"?>\n{text}'
        if dice.random() < 0.05:
            text = "\ufeff" + text
        return text.encode(encoding, "xmlcharrefreplace" if encoding in ("ISO-8859-1", "US-ASCII") else "replace")

    def _hit(self, body: bytes) -> bytes:
        """Damage the bytes, without regard to XML."""
        dice, hurt = self._dice, bytearray(body)
        for _ in range(dice.choice((1, 1, 2, 5))):
            place, way = dice.randrange(len(hurt) + 1), dice.randrange(4)
            if way == 0 and place < len(hurt):
                hurt[place] ^= 1 << dice.randrange(8)
            elif way == 1:
                del hurt[place:]
            elif way == 2:
                hurt[place:place] = dice.choice(_PIECES)
            else:
                del hurt[place : place + dice.randrange(20)]
        return bytes(hurt)


def _attributes(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}
