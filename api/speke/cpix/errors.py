"""Errors in CPIX documents, with their codes: docs/reference/speke-errors.md.

The texts of SPEKE v2 (4201 to 4209) are the published ones; packagers show them to their operators. A text never repeats the
document, except a valid kid or system id, and never a key. No code ends in 0: those are errors of HTTP.
"""

from __future__ import annotations

from enum import Enum


class CpixFault(Enum):
    """The code, status and text of each error. docs/reference/speke-errors.md has one row for each."""

    EMPTY = ("SPEKE-4001", 400, "the body is empty")
    NOT_XML = ("SPEKE-4002", 400, "the body is not well-formed XML at line {at}, column {column}")
    DOCTYPE = ("SPEKE-4003", 400, "a document type declaration is not accepted")
    UNSUPPORTED_SYSTEM = ("SPEKE-4004", 400, "unsupported systemId {system_id}")
    NOT_CPIX = ("SPEKE-4005", 400, "the root element is not CPIX in the namespace urn:dashif:org:cpix")
    MISSING_ELEMENT = ("SPEKE-4006", 400, "missing {name}")
    REPEATED_ELEMENT = ("SPEKE-4007", 400, "more than one {name}")
    MISSING_ATTRIBUTE = ("SPEKE-4008", 400, "missing {attribute}")
    NOT_A_UUID = ("SPEKE-4009", 400, "{attribute} is not a UUID")
    BAD_IV = ("SPEKE-4011", 400, "ContentKey@explicitIV is not base64 of 16 bytes")
    REPEATED_KID = ("SPEKE-4012", 400, "more than one ContentKey has the kid {kid}")
    UNKNOWN_KID = ("SPEKE-4013", 400, "no ContentKey has the kid {kid} of a {name}")
    UNCLEAR_KEY = ("SPEKE-4014", 400, "a {name} without a kid may mean several ContentKeys; give each its kid")
    UNCLEAR_PERIOD = ("SPEKE-4015", 400, "a ContentKey without a kid may mean several key periods; give each its kid")
    TOO_MANY = ("SPEKE-4016", 400, "more than {most} {name}")
    BAD_VALUE = ("SPEKE-4017", 400, "{attribute} must be {expected}")
    BAD_CERTIFICATE = ("SPEKE-4018", 400, "X509Certificate is not {expected}")
    TOO_LARGE = ("SPEKE-4130", 413, "the body is over 256 KiB")
    MISSING_CONTENT_ID = ("SPEKE-4201", 422, "Missing CPIX@contentId")
    MISSING_VERSION = ("SPEKE-4202", 422, "Missing CPIX@version")
    UNSUPPORTED_VERSION = ("SPEKE-4203", 422, "Unsupported CPIX@version")
    MISSING_SCHEME = ("SPEKE-4204", 422, "Missing ContentKey@commonEncryptionScheme for KID {kid}")
    MIXED_SCHEMES = ("SPEKE-4205", 422, "Non compliant ContentKey@commonEncryptionScheme combination")
    SCHEME_OF_SYSTEM = ("SPEKE-4206", 422, "ContentKey@commonEncryptionScheme non compatible with DRMSystem {system_id}")
    UNSUPPORTED_SPEKE = ("SPEKE-4207", 422, "Unsupported SPEKE version")
    MALFORMED_CONTRACT = ("SPEKE-4208", 422, "Malformed encryption contract: {why}")
    MISSING_CONTRACT = ("SPEKE-4209", 422, "Missing CPIX encryption contract")
    UNKNOWN_SCHEME = ("SPEKE-4211", 422, "Unsupported ContentKey@commonEncryptionScheme for KID {kid}")

    def __init__(self, code: str, status: int, text: str) -> None:
        self.code = code
        self.status = status
        self.text = text


class SpekeError(Exception):
    """Raised for an error in a document. `line` is its line in the request, for the author of the document."""

    def __init__(self, fault: CpixFault, *, line: int | None = None, **names: object) -> None:
        self.fault = fault
        self.code = fault.code
        self.status = fault.status
        self.text = fault.text.format(**names)
        self.line = line
        super().__init__(f"{self.code} {self.text}")

    @property
    def sentence(self) -> str:
        """The error as one line for `medialedger keys dry-run`."""
        where = "" if self.line is None else f"line {self.line}: "
        return f"{where}{self.text} ({self.code})"
