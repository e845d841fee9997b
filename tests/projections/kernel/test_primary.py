"""Several hosts in the address of the database, one of them the primary."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from projections.kernel.database.primary import Primary

HOSTS = "postgresql://ana@one:5432,two:5433,three:5434/medialedger"


def hosts(primary: Primary) -> tuple[object, object]:
    parts = conninfo_to_dict(primary.conninfo)
    return parts["host"], parts["port"]


def test_the_host_that_was_the_primary_at_last_is_tried_first() -> None:
    primary = Primary(HOSTS)
    assert hosts(primary) == ("one,two,three", "5432,5433,5434")
    primary.met(1, host="two", port=5433)
    assert hosts(primary) == ("two,three,one", "5433,5434,5432")
    primary.met(2, host="one", port=5432)
    assert hosts(primary) == ("one,two,three", "5432,5433,5434")


def test_one_port_may_be_for_all_hosts() -> None:
    primary = Primary("host=one,two port=6000 dbname=medialedger")
    primary.met(1, host="two", port=6000)
    assert hosts(primary) == ("two,one", "6000,6000")


def test_no_port_is_needed() -> None:
    primary = Primary("host=one,two dbname=medialedger")
    primary.met(1, host="two", port=5432)
    assert conninfo_to_dict(primary.conninfo) == {"host": "two,one", "dbname": "medialedger"}


def test_an_address_with_one_host_stays_as_it_is() -> None:
    primary = Primary("postgresql://ana@one/medialedger")
    primary.met(1, host="one", port=5432)
    assert conninfo_to_dict(primary.conninfo) == {"user": "ana", "host": "one", "dbname": "medialedger"}


def test_a_promotion_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    primary = Primary(HOSTS)
    for timeline, host in ((3, "one"), (3, "one"), (4, "two"), (4, "two")):
        primary.met(timeline, host=host, port=5432)
    assert caplog.text.count("medialedger restored") == 1
    assert primary.timeline == 4


def test_a_former_primary_that_does_not_know_it_is_refused() -> None:
    primary = Primary(HOSTS)
    primary.met(4, host="two", port=5433)
    with pytest.raises(psycopg.OperationalError, match="one was the primary before"):
        primary.met(3, host="one", port=5432)
    assert primary.timeline == 4
