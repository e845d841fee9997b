"""Keys and documents for these tests. The keys are made of names, so that answers can be kept in files."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from lxml import etree

from api.speke.cpix.answer import fill
from api.speke.cpix.keys import RequestedKey
from api.speke.cpix.request import read
from api.speke.cpix.signalling import Audience
from domain.drm.settings import DrmSettings

DOCUMENTS = Path(__file__).with_name("documents")
AUDIENCE = Audience("acme", "keys.example", DrmSettings())
WIDEVINE = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
PLAYREADY = "9a04f079-9840-4286-ab92-e65be0885f95"
FAIRPLAY = "94ce86fb-07ff-4f43-adb8-93d2fa968ca2"
KID = "0f083e4e-b831-4a3d-917e-ce78076e54aa"
OTHER_KID = "041fdd3a-7f5e-4848-a7cb-65e97758e9a0"
NS = {
    "cpix": "urn:dashif:org:cpix",
    "pskc": "urn:ietf:params:xml:ns:keyprov:pskc",
    "speke": "urn:aws:amazon:com:speke",
    "enc": "http://www.w3.org/2001/04/xmlenc#",
    "ds": "http://www.w3.org/2000/09/xmldsig#",
}
_DECLARED = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NS.items())


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Given:
    kid: UUID
    key: bytes = field(repr=False)
    iv: bytes


def given_for(asked: Sequence[RequestedKey]) -> list[Given]:
    """Return keys for one content. A kid that the key provider chooses depends on period and slot only; a key and its IV depend
    on the kid."""
    kids = [key.kid or UUID(bytes=_sixteen(f"kid {key.period} {key.slot}")) for key in asked]
    return [Given(kid, _sixteen(f"key {kid}"), _sixteen(f"iv {kid}")) for kid in kids]


def answered(body: str | bytes, *, speke_version: str | None = None, audience: Audience = AUDIENCE) -> bytes:
    request = read(body.encode() if isinstance(body, str) else body, speke_version=speke_version)
    return fill(request, given_for(request.keys), audience=audience)


def tree(document: bytes) -> etree._Element:
    return etree.fromstring(document)


def single(root: etree._Element, path: str) -> etree._Element:
    (result,) = root.findall(path, NS)
    return result


def v1(*, root: str = 'id="match-17"', keys: str | None = None, systems: str | None = None, more: str = "") -> str:
    keys = f'<cpix:ContentKey kid="{KID}"/>' if keys is None else keys
    systems = system(WIDEVINE, KID) if systems is None else systems
    return (
        f"<cpix:CPIX {root} {_DECLARED}>{more}<cpix:ContentKeyList>{keys}</cpix:ContentKeyList>"
        f"<cpix:DRMSystemList>{systems}</cpix:DRMSystemList></cpix:CPIX>"
    )


def v2(*, keys: str | None = None, systems: str | None = None, rules: str | None = None, root: str | None = None) -> str:
    keys = key(KID) + key(OTHER_KID) if keys is None else keys
    systems = system(WIDEVINE, KID) + system(WIDEVINE, OTHER_KID) if systems is None else systems
    rules = rule(KID, "VIDEO", "<cpix:VideoFilter/>") + rule(OTHER_KID, "AUDIO", "<cpix:AudioFilter/>") if rules is None else rules
    root = 'contentId="match-17" version="2.3"' if root is None else root
    return (
        f"<cpix:CPIX {root} {_DECLARED}><cpix:ContentKeyList>{keys}</cpix:ContentKeyList>"
        f"<cpix:DRMSystemList>{systems}</cpix:DRMSystemList>"
        f"<cpix:ContentKeyUsageRuleList>{rules}</cpix:ContentKeyUsageRuleList></cpix:CPIX>"
    )


def key(kid: str, scheme: str = "cenc", more: str = "") -> str:
    return f'<cpix:ContentKey kid="{kid}" commonEncryptionScheme="{scheme}"{more}/>'


def system(system_id: str, kid: str, children: str = "") -> str:
    return f'<cpix:DRMSystem kid="{kid}" systemId="{system_id}">{children}</cpix:DRMSystem>'


def rule(kid: str, kind: str, filters: str) -> str:
    return f'<cpix:ContentKeyUsageRule kid="{kid}" intendedTrackType="{kind}">{filters}</cpix:ContentKeyUsageRule>'


def certificate(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    """Return a self-signed certificate in DER and Base64."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "packager")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(days=1))
    return b64encode(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)).decode()


def _sixteen(name: str) -> bytes:
    return sha256(name.encode()).digest()[:16]
