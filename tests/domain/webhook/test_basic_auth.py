"""Valid and invalid user names and passwords of webhooks."""

from __future__ import annotations

import pytest

from domain.kernel.errors import Malformed
from domain.webhook.basic_auth import check_password, check_username


def test_a_username_has_no_colon_and_neither_name_nor_password_a_control_character() -> None:
    check_username("Jörg 日本")
    check_password(": pass word ä")
    for username in ("a:b", ":", "a\nb", "\x00", "\x85"):
        with pytest.raises(Malformed, match="username"):
            check_username(username)
    for password in ("a\r\nb", "\x7f", "x" * 1025):
        with pytest.raises(Malformed, match="password"):
            check_password(password)
