"""Documents of packagers, and access to the parts of a response."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from uuid import UUID

import httpx
from lxml import etree

WIDEVINE = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
PLAYREADY = "9a04f079-9840-4286-ab92-e65be0885f95"
FAIRPLAY = "94ce86fb-07ff-4f43-adb8-93d2fa968ca2"
NAMESPACES = {
    "cpix": "urn:dashif:org:cpix",
    "pskc": "urn:ietf:params:xml:ns:keyprov:pskc",
    "speke": "urn:aws:amazon:com:speke",
}
_DECLARED = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
XML = {"content-type": "application/xml"}


def document_1(*systems: str, content_id: str = "match-17", kid: str = "", iv: str | None = "") -> bytes:
    """A SPEKE v1 request with empty kids, empty explicitIV and no children."""
    explicit = "" if iv is None else f' explicitIV="{iv}"'
    asked = "".join(f'<cpix:DRMSystem kid="{kid}" systemId="{system}"/>' for system in systems)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<cpix:CPIX id="{content_id}" {_DECLARED}>
  <cpix:ContentKeyList><cpix:ContentKey kid="{kid}"{explicit}/></cpix:ContentKeyList>
  <cpix:DRMSystemList>{asked}</cpix:DRMSystemList>
</cpix:CPIX>""".encode()


def version_2(*kids: UUID, content_id: str = "match-17", scheme: str = "cbcs", version: str = "2.3") -> bytes:
    """Return a document with one video key and one audio key, or with as many as there are kids."""
    kinds = ("VIDEO", "AUDIO")
    keys = "".join(f'<cpix:ContentKey kid="{kid}" commonEncryptionScheme="{scheme}"/>' for kid in kids)
    systems = "".join(
        f'<cpix:DRMSystem kid="{kid}" systemId="{system}"><cpix:PSSH/>'
        f'<cpix:HLSSignalingData playlist="media"/><cpix:HLSSignalingData playlist="master"/></cpix:DRMSystem>'
        for kid in kids
        for system in (WIDEVINE, PLAYREADY, FAIRPLAY)
    )
    rules = "".join(
        f'<cpix:ContentKeyUsageRule kid="{kid}" intendedTrackType="{kind}"><cpix:{kind.title()}Filter/></cpix:ContentKeyUsageRule>'
        for kid, kind in zip(kids, kinds, strict=False)
    )
    return (
        f'<cpix:CPIX contentId="{content_id}" version="{version}" {_DECLARED}><cpix:ContentKeyList>{keys}</cpix:ContentKeyList>'
        f"<cpix:DRMSystemList>{systems}</cpix:DRMSystemList>"
        f"<cpix:ContentKeyUsageRuleList>{rules}</cpix:ContentKeyUsageRuleList></cpix:CPIX>"
    ).encode()


@dataclass(frozen=True)
class ParsedResponse:
    """A parsed response."""

    root: etree._Element
    text: str

    def all(self, path: str) -> list[etree._Element]:
        result: list[etree._Element] = self.root.findall(path, NAMESPACES)
        return result

    def single(self, path: str) -> etree._Element:
        [result] = self.all(path)
        return result

    def value(self, path: str) -> bytes:
        return b64decode(self.single(path).text or "", validate=True)

    @property
    def kids(self) -> list[str]:
        return [str(key.get("kid")) for key in self.all(".//cpix:ContentKey")]

    @property
    def keys(self) -> list[bytes]:
        return [b64decode(plain.text or "") for plain in self.all(".//cpix:ContentKey/cpix:Data/pskc:Secret/pskc:PlainValue")]

    def system(self, system: str, child: str) -> bytes:
        return self.value(f".//cpix:DRMSystem[@systemId='{system}']/{child}")


async def post_document(http: httpx.AsyncClient, body: bytes, *, path: str = "/admin/speke", **headers: str) -> httpx.Response:
    return await http.post(path, content=body, headers={**XML, **headers})


async def post_and_parse(http: httpx.AsyncClient, body: bytes, *, path: str = "/admin/speke", **headers: str) -> ParsedResponse:
    answer = await post_document(http, body, path=path, **headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/xml"
    return ParsedResponse(etree.fromstring(answer.content), answer.text)


def refusal(answer: httpx.Response, status: int, code: str) -> str:
    """The line that an operator sees, after the checks that hold for every refusal."""
    assert (answer.status_code, answer.headers.get("x-error-code")) == (status, code), answer.text[:300]
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-transaction-id"]
    assert answer.text.startswith(f"{code} ")
    assert answer.text.count("\n") == 1
    assert answer.text.endswith("\n")
    assert len(answer.content) < 300
    return answer.text.removeprefix(f"{code} ").rstrip("\n")
