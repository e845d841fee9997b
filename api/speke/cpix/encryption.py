"""Content key encryption: CPIX 2.3, "Content key encryption"; docs/reference/api/key-provider.md#encrypted-keys.

A random document key encrypts every content key and a random MAC key authenticates them. Each recipient receives both, encrypted
for its certificate. If a request names a recipient, its response never contains a key in plain text.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7
from cryptography.x509 import load_der_x509_certificate
from lxml import etree

from api.speke.cpix.document import Faults, list_members
from api.speke.cpix.elements import (
    CPIX,
    DATA,
    DELIVERY_DATA,
    DELIVERY_DATA_LIST,
    DELIVERY_KEY,
    DOCUMENT_KEY,
    ENC,
    MAC_METHOD,
    PSKC,
    SECRET,
    X509_CERTIFICATE,
    add_child,
    children,
    remove_element,
)
from api.speke.cpix.errors import CpixFault

AES_256_CBC: Final = "http://www.w3.org/2001/04/xmlenc#aes256-cbc"
RSA_OAEP: Final = "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"
HMAC_SHA512: Final = "http://www.w3.org/2001/04/xmldsig-more#hmac-sha512"
_DOCUMENT_KEY_BYTES: Final = 32
_MAC_KEY_BYTES: Final = 64
_BLOCK_BYTES: Final = 16
_MOST_RECIPIENTS: Final = 16
_SMALLEST_RSA: Final = 2048
_LARGEST_RSA: Final = 4096
# The algorithm prescribes SHA-1 (xmlenc, 5.5.2); it is not used to sign.
_OAEP: Final = OAEP(mgf=MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


@dataclass(frozen=True, slots=True)
class Recipient:
    """A DeliveryData element and the key of its certificate."""

    element: etree._Element
    key: RSAPublicKey


@dataclass(frozen=True, slots=True)
class DocumentKeys:
    """The keys of one response. They are not stored."""

    document_key: bytes = field(repr=False)
    mac_key: bytes = field(repr=False)

    @classmethod
    def random(cls) -> DocumentKeys:
        return cls(os.urandom(_DOCUMENT_KEY_BYTES), os.urandom(_MAC_KEY_BYTES))

    def encrypt(self, key: bytes, *, iv: bytes) -> tuple[bytes, bytes]:
        """Return the cipher value, which begins with the IV, and its MAC."""
        padder = PKCS7(_BLOCK_BYTES * 8).padder()
        padded = padder.update(key) + padder.finalize()
        encryptor = Cipher(AES256(self.document_key), CBC(iv)).encryptor()
        cipher_value = iv + encryptor.update(padded) + encryptor.finalize()
        mac = hmac.HMAC(self.mac_key, hashes.SHA512())
        mac.update(cipher_value)
        return cipher_value, mac.finalize()


def recipients_of(root: etree._Element, *, faults: Faults) -> Sequence[Recipient]:
    """Return the recipients; empty if the response may contain keys in plain text. A list without a recipient is an error."""
    if not any(child.tag == DELIVERY_DATA_LIST for child in children(root)):
        return []
    elements = list_members(root, DELIVERY_DATA_LIST, DELIVERY_DATA, most=_MOST_RECIPIENTS, faults=faults)
    if not elements:
        faults.add(CpixFault.MISSING_ELEMENT, root, name="DeliveryData in the DeliveryDataList")
    recipients = []
    for element in elements:
        key = _key_of(element, faults=faults)
        if key is not None:
            recipients.append(Recipient(element, key))
    return recipients


def deliver(recipient: Recipient, keys: DocumentKeys) -> None:
    """Add DocumentKey and MACMethod, directly after DeliveryKey."""
    for child in list(children(recipient.element)):
        if child.tag in (DOCUMENT_KEY, MAC_METHOD):
            remove_element(child)
    document_key = add_child(recipient.element, DOCUMENT_KEY)
    document_key.set("Algorithm", AES_256_CBC)
    _encrypted(add_child(add_child(document_key, DATA), SECRET), RSA_OAEP, recipient.key.encrypt(keys.document_key, _OAEP))
    mac_method = add_child(recipient.element, MAC_METHOD)
    mac_method.set("Algorithm", HMAC_SHA512)
    _encrypted(add_child(mac_method, f"{{{CPIX}}}Key"), RSA_OAEP, recipient.key.encrypt(keys.mac_key, _OAEP))
    delivery_key = next(child for child in children(recipient.element) if child.tag == DELIVERY_KEY)
    for element in (mac_method, document_key):
        at = recipient.element.index(delivery_key) + 1
        recipient.element.insert(at, element)


def encrypt_key(secret: etree._Element, key: bytes, keys: DocumentKeys) -> None:
    """Fill a Secret with the encrypted content key."""
    cipher_value, mac = keys.encrypt(key, iv=os.urandom(_BLOCK_BYTES))
    _encrypted(secret, AES_256_CBC, cipher_value)
    add_child(secret, f"{{{PSKC}}}ValueMAC", text=b64encode(mac).decode())


def _encrypted(parent: etree._Element, algorithm: str, cipher_value: bytes) -> None:
    value = add_child(parent, f"{{{PSKC}}}EncryptedValue")
    add_child(value, f"{{{ENC}}}EncryptionMethod").set("Algorithm", algorithm)
    add_child(add_child(value, f"{{{ENC}}}CipherData"), f"{{{ENC}}}CipherValue", text=b64encode(cipher_value).decode())


def _key_of(element: etree._Element, *, faults: Faults) -> RSAPublicKey | None:
    delivery_keys = [child for child in children(element) if child.tag == DELIVERY_KEY]
    certificates = [certificate for delivery_key in delivery_keys[:1] for certificate in delivery_key.iter(X509_CERTIFICATE)]
    if len(delivery_keys) != 1 or len(certificates) != 1:
        fault = CpixFault.MISSING_ELEMENT if not certificates else CpixFault.REPEATED_ELEMENT
        faults.add(fault, element, name="DeliveryKey with an X509Certificate in a DeliveryData")
        return None
    try:
        sent = "".join(str(part) for part in certificates[0].itertext()).split()
        key = load_der_x509_certificate(b64decode("".join(sent), validate=True)).public_key()
    except (NotBase64, ValueError, TypeError, UnsupportedAlgorithm):
        faults.add(CpixFault.BAD_CERTIFICATE, certificates[0], expected="a certificate (base64 of DER)")
        return None
    if not isinstance(key, RSAPublicKey) or not _SMALLEST_RSA <= key.key_size <= _LARGEST_RSA or key.public_numbers().e < 3:
        faults.add(
            CpixFault.BAD_CERTIFICATE,
            certificates[0],
            expected=f"a certificate of an RSA key of {_SMALLEST_RSA} to {_LARGEST_RSA} bits",
        )
        return None
    return key
