"""Addresses that must never be reached: for each URL a real socket listens at its address, and no connection comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.outbound.host import OK, Answers, Host, Liar, Silence, says
from workers.adapters.outbound_guard import AddressGuard, GuardedResolver, target
from workers.adapters.outbound_http import GuardedClient
from workers.ports.outbound import OutboundFailed, OutboundRefused

# PORT is where a socket listens, on every address of this machine.
LITERALS = """
    http://127.0.0.1:PORT/ https://127.0.0.1:PORT/ HTTP://127.0.0.1:PORT/ http://127.0.0.2:PORT/ http://127.255.255.254:PORT/
    http://0.0.0.0:PORT/ http://0.1.2.3:PORT/ http://255.255.255.255:PORT/ http://10.0.0.1:PORT/ http://172.16.0.1:PORT/
    http://172.31.255.255:PORT/ http://192.168.1.1:PORT/ http://169.254.169.254/latest/meta-data/ http://169.254.170.2/v2/credentials
    http://100.64.0.1:PORT/ http://100.100.100.200/latest/meta-data/ http://192.0.0.192/opc/v2/ http://168.63.129.16/machine
    http://192.0.2.1:PORT/ http://198.18.0.1:PORT/ http://198.51.100.7:PORT/ http://203.0.113.9:PORT/ http://192.88.99.1:PORT/
    http://224.0.0.1:PORT/ http://239.255.255.250:PORT/ http://240.0.0.1:PORT/
    http://[::1]:PORT/ https://[::1]:PORT/ http://[::]:PORT/ http://[0:0:0:0:0:0:0:1]:PORT/ http://[0000::0001]:PORT/
    http://[::ffff:127.0.0.1]:PORT/ http://[::ffff:7f00:1]:PORT/ http://[::FFFF:0.0.0.0]:PORT/ http://[::ffff:169.254.169.254]/
    http://[::127.0.0.1]:PORT/ http://[::ffff:0:127.0.0.1]:PORT/ http://[64:ff9b::127.0.0.1]:PORT/ http://[64:ff9b::a9fe:a9fe]/
    http://[64:ff9b:1::7f00:1]:PORT/ http://[2002:7f00:1::]:PORT/ http://[2001:0:7f00:1::]:PORT/ http://[2001:db8::1]:PORT/
    http://[fd00:ec2::254]/latest/ http://[fc00::1]:PORT/ http://[fe80::1]:PORT/ http://[fec0::1]:PORT/ http://[ff02::1]:PORT/
    http://[100::1]:PORT/ http://[5f00::1]:PORT/ http://[3fff::1]:PORT/ http://[3ffe::1]:PORT/ http://[4000::1]:PORT/
"""

SPELLINGS = """
    http://2130706433:PORT/ http://017700000001:PORT/ http://0x7f000001:PORT/ http://0X7F000001:PORT/ http://0x7f.0.0.1:PORT/
    http://0x7f.1:PORT/ http://127.1:PORT/ http://127.0.1:PORT/ http://0177.0.0.1:PORT/ http://0177.0.0.01:PORT/
    http://127.0.0.0x1:PORT/ http://127.0.0.1.:PORT/ http://127.0.0.1..:PORT/ http://0:PORT/ http://00000000:PORT/
    http://4294967295:PORT/ http://127.0.0.257:PORT/ http://383.0.0.1:PORT/ http://1.2.3.4.5:PORT/ http://0x:PORT/
    http://①②⑦.⓪.⓪.①:PORT/ http://①.①.①.①:PORT/ http://127。0。0。1:PORT/ http://１２７.０.０.１:PORT/ http://١٢٧.0.0.1:PORT/
    http://%31%32%37.0.0.1:PORT/ http://127%2e0.0.1:PORT/ http://127.0.0.1%00.example.com:PORT/ http://%5b::1%5d:PORT/
    http://[::1%25lo]:PORT/ http://[::1%lo]:PORT/ http://[fe80::1%25eth0]:PORT/ http://[127.0.0.1]:PORT/ http://[::1:PORT/
    http://::1:PORT/ http://[v1.::1]:PORT/ http://[[::1]]:PORT/ http://[::1]x:PORT/
    http://public.example@127.0.0.1:PORT/ http://user:word@127.0.0.1:PORT/ http://@127.0.0.1:PORT/ http://:@127.0.0.1:PORT/
    http://127.0.0.1:PORT@public.example/ http://a@b@127.0.0.1:PORT/ http://public.example%40127.0.0.1:PORT/
    http://public.example\\@127.0.0.1:PORT/ http://127.0.0.1\\public.example:PORT/ http:\\\\127.0.0.1:PORT\\
    file:///etc/passwd ftp://127.0.0.1:PORT/ gopher://127.0.0.1:PORT/_x unix:///run/x.sock http+unix://%2Frun%2Fx.sock/ ws://127.0.0.1:PORT/
    data:,x javascript:0 dict://127.0.0.1:PORT/ //127.0.0.1:PORT/ 127.0.0.1:PORT localhost:PORT /path http:127.0.0.1:PORT
    http:/127.0.0.1:PORT/ http: http:// http:/// http:///127.0.0.1:PORT/ http://:PORT/ http://?x http://#x http://. http://..
    http://127.0.0.1:0/ http://127.0.0.1:65536/ http://127.0.0.1:-1/ http://127.0.0.1:PORT:PORT/ http://127.0.0.1:0x50/ http://public.example:x/
    http://a..b:PORT/ http://.localhost:PORT/ http://-a-:PORT/ http://a;b:PORT/ http://a,127.0.0.1:PORT/ http://xn--:PORT/ http://a*:PORT/
"""

INVISIBLE = [
    "",
    " http://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/ x",
    "http://127.0.0.1 :PORT/",
    "ht\ntp://127.0.0.1:PORT/",
    "http://127.0.\t0.1:PORT/",
    "http://127.0.0.1:PORT/\r\nHost: x",
    "http://127.0.0.1\x00.public.example:PORT/",
    "http://public.example\u2028@127.0.0.1:PORT/",
    "http://local\u00adhost:PORT/",
    "http://local\u200bhost:PORT/",
    "http://\ufeff127.0.0.1:PORT/",
    f"http://{'a' * 64}.example:PORT/",
    f"http://{'a.' * 150}example:PORT/",
    f"http://{'1' * 5000}:PORT/",
    f"http://{'a' * 70_000}:PORT/",
]

HOSTILE = [*LITERALS.split(), *SPELLINGS.split(), *INVISIBLE]


@pytest.fixture
async def silence() -> AsyncIterator[Silence]:
    async with Silence() as listening:
        yield listening


def test_the_table_is_long_enough() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 140


@pytest.mark.parametrize("url", HOSTILE, ids=ascii)
async def test_a_hostile_url_is_refused_before_a_byte_is_sent(silence: Silence, url: str) -> None:
    client = GuardedClient(resolver=Answers(AddressGuard(), ["127.0.0.1"]))
    with pytest.raises(OutboundRefused):
        await client.request("POST", url.replace("PORT", str(silence.port)), body=b"x", seconds=60)
    assert await silence.arrivals() == 0
    await client.close()


@pytest.mark.parametrize("url", [*SPELLINGS.split(), *INVISIBLE], ids=ascii)
def test_how_it_is_spelled_is_reason_enough(url: str) -> None:
    """The URL is refused whatever addresses are allowed."""
    with pytest.raises(OutboundRefused):
        target(url.replace("PORT", "8080"))


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST", "ｌｏｃａｌｈｏｓｔ", "ⓛocalhost"])
async def test_the_systems_names_of_this_machine_are_refused(silence: Silence, name: str) -> None:
    client = GuardedClient()
    with pytest.raises(OutboundRefused, match="is not public"):
        await client.request("POST", f"http://{name}:{silence.port}/", body=b"x")
    assert await silence.arrivals() == 0
    await client.close()


INSIDE = """
    127.0.0.1 0.0.0.0 ::1 :: ::ffff:127.0.0.1 64:ff9b::7f00:1 169.254.169.254 fd00:ec2::254 fe80::1%lo fe80::1 ff02::1 2002:7f00:1::
"""


@pytest.mark.parametrize("name", ["inside.example", "localhost.", "a_b.example.", "bücher.example"])
@pytest.mark.parametrize("address", INSIDE.split())
async def test_a_name_that_leads_inside_is_refused(silence: Silence, name: str, address: str) -> None:
    client = GuardedClient(resolver=Answers(AddressGuard(), [address]))
    with pytest.raises(OutboundRefused, match="is not public"):
        await client.request("POST", f"http://{name}:{silence.port}/", body=b"x")
    assert await silence.arrivals() == 0
    await client.close()


@pytest.mark.parametrize("both", [["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "::1"]])
async def test_one_address_inside_spoils_the_name(silence: Silence, both: list[str]) -> None:
    """The address that is allowed stands for a public one: it would be reached, and is not."""
    allow = [ip_network("127.0.0.1/32")]
    client = GuardedClient(allow, resolver=Answers(AddressGuard(allow), both))
    with pytest.raises(OutboundRefused):
        await client.request("POST", f"http://two.example:{silence.port}/", body=b"x")
    assert await silence.arrivals() == 0
    await client.close()


@pytest.mark.parametrize("inside", INSIDE.split())
async def test_the_address_connected_to_is_checked_whatever_the_resolver_said(silence: Silence, inside: str) -> None:
    client = GuardedClient(resolver=Liar([inside]))
    with pytest.raises(OutboundRefused, match="is not public"):
        await client.request("POST", f"http://rebound.example:{silence.port}/", body=b"x")
    assert await silence.arrivals() == 0
    await client.close()


@pytest.mark.parametrize("name", ["localhost", "2130706433", "127.1", "", "/run/x.sock"])
async def test_what_is_no_address_is_not_connected_to(silence: Silence, name: str) -> None:
    client = GuardedClient(resolver=Liar([name]))
    with pytest.raises(OutboundRefused):
        await client.request("POST", f"http://rebound.example:{silence.port}/", body=b"x")
    assert await silence.arrivals() == 0
    await client.close()


@pytest.mark.parametrize("several", [["127.0.0.1", "::1"], ["127.0.0.1", "::1", "127.0.0.2"]])
async def test_several_addresses_inside_are_told_as_one(silence: Silence, several: list[str]) -> None:
    client = GuardedClient(resolver=Liar(several))
    with pytest.raises(OutboundRefused):
        await client.request("POST", f"http://rebound.example:{silence.port}/", body=b"x")
    assert await silence.arrivals() == 0
    await client.close()


async def test_beside_an_address_that_does_not_answer_one_inside_is_not_tried(silence: Silence) -> None:
    async with Host(says(OK)) as gone:
        port = gone.port
    client = GuardedClient([ip_network("127.0.0.1/32")], resolver=Liar(["127.0.0.1", "127.0.0.2"]))
    with pytest.raises((OutboundRefused, OutboundFailed)):
        await client.request("POST", f"http://rebound.example:{port}/", body=b"x")
    assert await silence.arrivals() == 0
    await client.close()


@pytest.mark.parametrize("guarded", [True, False], ids=["a guarded resolver", "one that lies"])
async def test_a_name_that_changes_its_answer_is_refused(silence: Silence, guarded: bool, caplog: pytest.LogCaptureFixture) -> None:
    """First what is allowed, then what is not. Another port, so that no answer is remembered."""
    allow = [ip_network("127.0.0.1/32")]
    answers = ["127.0.0.1"], ["127.0.0.2"]
    client = GuardedClient(allow, resolver=Answers(AddressGuard(allow), *answers) if guarded else Liar(*answers))
    async with Host(says(OK)) as host:
        assert (await client.request("POST", f"http://rebound.example:{host.port}/", body=b"x")).status == 200
        with pytest.raises(OutboundRefused, match="is not public") as refused:
            await client.request("POST", f"http://rebound.example:{silence.port}/", body=b"x")
    assert ("127.0.0.2" in str(refused.value), "127.0.0.2" in caplog.text) == (False, True), "callers do not learn it"
    assert await silence.arrivals() == 0
    await client.close()


async def test_a_name_without_addresses_fails() -> None:
    client = GuardedClient(resolver=Answers(AddressGuard(), []))
    with pytest.raises(OutboundFailed) as failed:
        await client.request("POST", "http://nowhere.example/")
    assert failed.value.kind == "dns"
    await client.close()


async def test_the_guarded_resolver_asks_the_system() -> None:
    resolver = GuardedResolver(AddressGuard([ip_network("127.0.0.0/8"), ip_network("::1/128")]))
    addresses = await resolver.resolve("localhost", 80)
    assert {address["host"] for address in addresses} <= {"127.0.0.1", "::1"}
    assert addresses


# -- addresses ----------------------------------------------------------------------------------------------------------


@given(st.ip_addresses())
def test_what_python_knows_not_to_be_global_is_never_permitted(address: object) -> None:
    """Python's table is older and shorter than ours; ours must include it."""
    judged = ip_address(str(address))
    if not judged.is_global or judged.is_multicast or judged.is_reserved:
        assert not AddressGuard().permits(str(judged)) or (isinstance(judged, IPv6Address) and judged.ipv4_mapped is not None)


@given(st.ip_addresses(v=4))
def test_ipv4_written_as_ipv6_is_judged_as_ipv4(address: object) -> None:
    guard = AddressGuard([IPv4Network("10.0.0.0/8"), IPv6Network("::ffff:0:0/96"), IPv6Network("fd00::/8")])
    assert guard.permits(f"::ffff:{address}") == guard.permits(str(address))


PUBLIC = """
    1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 168.63.129.17 172.15.255.255 172.32.0.0
    192.167.255.255 223.255.255.255 ::ffff:1.1.1.1 2606:4700:4700::1111 2001:200::1 2003::1 2a00::1
"""


@pytest.mark.parametrize("address", PUBLIC.split())
def test_what_lies_beside_is_public(address: str) -> None:
    assert AddressGuard().permits(address)


def test_allow_opens_what_it_names_and_nothing_else() -> None:
    guard = AddressGuard([ip_network("10.1.0.0/16"), ip_network("fd00:1::/32"), ip_network("::1/128")])
    assert all(map(guard.permits, ["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "fd00:1::5", "::1"]))
    assert not any(
        map(guard.permits, ["10.0.255.255", "10.2.0.0", "fd00:2::1", "::2", "127.0.0.1", "::10.1.2.3", "64:ff9b::a01:203"])
    )
