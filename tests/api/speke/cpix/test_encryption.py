"""Content key encryption, decrypted by another library than the one that encrypts."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha512

import pytest
from Crypto.Cipher import AES, PKCS1_OAEP
from Crypto.PublicKey import RSA
from Crypto.Util.Padding import unpad
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from lxml import etree

from api.speke.cpix.encryption import DocumentKeys
from api.speke.cpix.errors import SpekeError
from api.speke.cpix.request import dry_run, read
from tests.support.cpix.keys import DOCUMENTS, FAIRPLAY, KID, NS, answered, certificate, given_for, single, system, tree, v1

OAEP = "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"
AES_CBC = "http://www.w3.org/2001/04/xmlenc#aes256-cbc"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def delivery(*certificates: str, more: str = "") -> str:
    data = "".join(
        f'<cpix:DeliveryData id="to-{place}"><cpix:DeliveryKey><ds:X509Data><ds:X509Certificate>{entry}</ds:X509Certificate>'
        f"</ds:X509Data></cpix:DeliveryKey>{more}<cpix:Description>d</cpix:Description></cpix:DeliveryData>"
        for place, entry in enumerate(certificates)
    )
    return f"<cpix:DeliveryDataList>{data}</cpix:DeliveryDataList>"


@pytest.fixture(scope="module")
def private() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def opened(recipient: etree._Element, private: rsa.RSAPrivateKey) -> tuple[bytes, bytes]:
    """Document key and MAC key, by PyCryptodome, whose OAEP is SHA-1 without a label unless told otherwise."""
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    oaep = PKCS1_OAEP.new(RSA.import_key(pem))
    value = "/pskc:EncryptedValue[enc:EncryptionMethod]/enc:CipherData/enc:CipherValue"
    document_key = single(recipient, f"cpix:DocumentKey/cpix:Data/pskc:Secret{value}")
    mac_key = single(recipient, f"cpix:MACMethod/cpix:Key{value}")
    document, mac = (oaep.decrypt(b64decode(element.text or "")) for element in (document_key, mac_key))
    return document, mac


def content_key(secret: etree._Element, document_key: bytes, mac_key: bytes) -> bytes:
    sealed = b64decode(single(secret, "pskc:EncryptedValue/enc:CipherData/enc:CipherValue").text or "")
    assert hmac.digest(mac_key, sealed, sha512) == b64decode(single(secret, "pskc:ValueMAC").text or "")
    assert len(sealed) == 48
    return unpad(AES.new(document_key, AES.MODE_CBC, sealed[:16]).decrypt(sealed[16:]), 16)


def test_each_recipient_can_open_every_key(private: rsa.RSAPrivateKey) -> None:
    another = rsa.generate_private_key(65537, 2048)
    body = (DOCUMENTS / "eight-keys-v2.request.xml").read_text()
    wanted = delivery(certificate(private), certificate(another)).replace("<cpix:DeliveryDataList>", DELIVERY_DECLARED)
    body = body.replace("  <cpix:ContentKeyList>", f"  {wanted}<cpix:ContentKeyList>")
    answer = answered(body)
    root = tree(answer)
    asked = given_for(read(body.encode()).keys)
    for recipient, key in zip(root.findall(".//cpix:DeliveryData", NS), (private, another), strict=True):
        document_key, mac_key = opened(recipient, key)
        assert (len(document_key), len(mac_key)) == (32, 64)
        secrets = root.findall(".//cpix:ContentKey/cpix:Data/pskc:Secret", NS)
        assert [content_key(secret, document_key, mac_key) for secret in secrets] == [given.key for given in asked]
    assert b"PlainValue" not in answer
    for given in asked:
        assert b64encode(given.key) not in answer


DELIVERY_DECLARED = '<cpix:DeliveryDataList xmlns:ds="http://www.w3.org/2000/09/xmldsig#">'


def test_the_shape_is_the_published_one(private: rsa.RSAPrivateKey) -> None:
    root = tree(answered(v1(more=delivery(certificate(private)))))
    recipient = single(root, ".//cpix:DeliveryData")
    assert recipient.get("id") == "to-0"
    assert [child.tag.rpartition("}")[2] for child in recipient] == ["DeliveryKey", "DocumentKey", "MACMethod", "Description"]
    assert single(recipient, "cpix:DocumentKey").get("Algorithm") == AES_CBC
    assert single(recipient, "cpix:MACMethod").get("Algorithm") == "http://www.w3.org/2001/04/xmldsig-more#hmac-sha512"
    methods = [element.get("Algorithm") for element in root.findall(".//enc:EncryptionMethod", NS)]
    assert methods == [OAEP, OAEP, AES_CBC]
    secret = single(root, ".//cpix:ContentKey/cpix:Data/pskc:Secret")
    assert [child.tag.rpartition("}")[2] for child in secret] == ["EncryptedValue", "ValueMAC"]


def test_nothing_that_was_sent_takes_the_place_of_ours(private: rsa.RSAPrivateKey) -> None:
    planted = "<cpix:DocumentKey>old</cpix:DocumentKey><cpix:MACMethod>old</cpix:MACMethod>"
    data = "<cpix:Data><pskc:Secret><pskc:PlainValue>b2xk</pskc:PlainValue></pskc:Secret></cpix:Data>"
    body = v1(keys=f'<cpix:ContentKey kid="{KID}">{data}</cpix:ContentKey>', more=delivery(certificate(private), more=planted))
    answer = answered(body)
    assert b"PlainValue" not in answer
    assert b">old<" not in answer
    document_key, mac_key = opened(single(tree(answer), ".//cpix:DeliveryData"), private)
    (given,) = given_for(read(body.encode()).keys)
    assert content_key(single(tree(answer), ".//cpix:ContentKey/cpix:Data/pskc:Secret"), document_key, mac_key) == given.key


def test_two_answers_share_no_randomness(private: rsa.RSAPrivateKey) -> None:
    body = v1(systems=system(FAIRPLAY, KID), more=delivery(certificate(private)))
    first, second = (tree(answered(body)) for _ in range(2))
    values = [{element.text for element in root.findall(".//enc:CipherValue", NS)} for root in (first, second)]
    assert not values[0] & values[1]
    assert opened(single(first, ".//cpix:DeliveryData"), private) != opened(single(second, ".//cpix:DeliveryData"), private)


def test_known_values() -> None:
    """Computed with PyCryptodome and hashlib alone."""
    document_key, mac_key, iv, key = bytes(range(32)), bytes(range(64)), bytes(range(16, 32)), bytes(range(48, 64))
    padded = key + b"\x10" * 16
    expected = iv + AES.new(document_key, AES.MODE_CBC, iv).encrypt(padded)
    sealed, mac = DocumentKeys(document_key, mac_key).encrypt(key, iv=iv)
    assert sealed == expected
    assert mac == hmac.digest(mac_key, expected, sha512)


def test_document_keys_do_not_show() -> None:
    assert repr(DocumentKeys(b"d" * 32, b"m" * 64)) == "DocumentKeys()"


@pytest.mark.parametrize("bits", [1024, 8192])
def test_a_key_of_another_size_is_refused(bits: int, request: pytest.FixtureRequest) -> None:
    # An 8192-bit key takes seconds to make, so its public part stands here alone, signed by another.
    signer: rsa.RSAPrivateKey = request.getfixturevalue("private")
    public = rsa.RSAPublicNumbers(65537, (1 << bits) - 1).public_key()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "packager")])
    signed = x509.CertificateBuilder(name, name, public, 1, NOW, NOW + timedelta(days=1)).sign(signer, hashes.SHA256())
    der = b64encode(signed.public_bytes(Encoding.DER)).decode()
    (output,) = dry_run(v1(more=delivery(der)).encode())
    assert "X509Certificate is not a certificate of an RSA key of 2048 to 4096 bits" in output


def test_a_key_that_is_not_rsa_is_refused() -> None:
    with pytest.raises(SpekeError, match="SPEKE-4018"):
        read(v1(more=delivery(certificate(ec.generate_private_key(ec.SECP256R1())))).encode())


def test_one_bad_recipient_refuses_all(private: rsa.RSAPrivateKey) -> None:
    with pytest.raises(SpekeError, match="SPEKE-4018"):
        read(v1(more=delivery(certificate(private), "AAAA")).encode())


def test_a_certificate_may_have_line_breaks(private: rsa.RSAPrivateKey) -> None:
    der = certificate(private)
    lines = "\n  ".join(der[at : at + 64] for at in range(0, len(der), 64))
    assert read(v1(more=delivery(lines)).encode()).encrypted
