"""Where a webhook may point."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest

from reward_server.webhooks.addresses import RefusedAddress, UnresolvedName, checked_url, is_allowed, resolve
from reward_server.webhooks.names import NameLookups

PUBLIC = ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
INNER = [
    "127.0.0.1",
    "10.1.2.3",
    "192.168.0.1",
    "172.16.0.1",
    "100.64.0.1",
    "::1",
    "fd00::1",
    "::ffff:10.0.0.1",
    "fec0::1",
    "192.0.0.8",
    "192.88.99.1",
    "3fff::1",
    "::ffff:0:10.0.0.1",
    "64:ff9b:1::a00:1",
    "2002:c000:8::1",
]
NEVER = [
    "169.254.169.254",
    "fe80::1",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "::169.254.169.254",
    "::ffff:0:169.254.169.254",
    "64:ff9b:1::a9fe:a9fe",
    "168.63.129.16",
    "::ffff:168.63.129.16",
    "100.100.100.200",
    "fd00:ec2::254",
]


@pytest.mark.parametrize("address", PUBLIC + INNER + NEVER)
def test_only_public_addresses_unless_the_operator_allows_his_own(address: str) -> None:
    parsed = ipaddress.ip_address(address)
    assert is_allowed(parsed, private=False) is (address in PUBLIC)
    assert is_allowed(parsed, private=True) is (address not in NEVER)


@pytest.mark.parametrize(
    "url",
    [
        "http://8.8.8.8/x",
        "ftp://8.8.8.8/x",
        "https://localhost./x",
        "https://LOCALHOST/x",
        "https://a.localhost/x",
        "https://metadata.google.internal/x",
        "https://printer.local/x",
        "https://8.8.8.8:22/x",
        "https://8.8.8.8:25/x",
        "https://user:secret@8.8.8.8/x",
        "https://8.8.8.8/x#part",
        "https:///x",
        "/x",
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://[::1]/x",
        "https://2130706433/x",
        "https://0x7f.1/x",
        "https://169.254.169.254/latest/meta-data",
    ],
)
async def test_urls_that_nothing_is_sent_to(url: str) -> None:
    with pytest.raises(RefusedAddress):
        await resolve(url, private=False, names=NameLookups())


HOST, PORT = "Must have a valid host name or address.", "Must have port 80, 443, or one from 1,024 to 65,535."


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://ex ample.com/", HOST),
        ("https://.../", HOST),
        ("https://lab..example/", HOST),
        ("https://*.example/", HOST),
        ("https://" + "a" * 64 + ".example/", HOST),
        ("https://" + "a." * 127 + "example/", HOST),
        ("https://lab.example:0/", PORT),
        ("https://lab.example:99999/", PORT),
    ],
)
def test_a_host_that_cannot_exist_is_refused_before_it_is_looked_up(url: str, told: str) -> None:
    with pytest.raises(RefusedAddress) as refused:
        checked_url(url, private=True)
    assert str(refused.value) == told


@pytest.mark.parametrize(
    "host",
    ["lab.example", "lab.example.", "my_lab.example", "bücher.example", "8.8.8.8", "[2606:4700::1]"],
)
def test_a_host_that_may_exist_is_taken(host: str) -> None:
    assert checked_url(f"https://{host}:65535/hook", private=False).port == 65535


def answering(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        if not addresses:
            raise socket.gaierror
        return [(None, None, 0, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


async def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "93.184.216.34")
    target = await resolve("https://lab.example:8443/hook?x=1", private=False, names=NameLookups())
    assert str(target.pinned) == "https://93.184.216.34:8443/hook?x=1"
    assert (target.host, target.url.host) == ("lab.example:8443", "lab.example")


async def test_one_address_that_is_not_public_refuses_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "93.184.216.34", "10.0.0.1")
    with pytest.raises(RefusedAddress, match="private"):
        await resolve("https://lab.example/hook", private=False, names=NameLookups())
    answering(monkeypatch)
    with pytest.raises(UnresolvedName):
        await resolve("https://lab.example/hook", private=False, names=NameLookups())


async def test_a_name_that_turns_to_an_inner_address_is_refused_at_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = NameLookups()
    answering(monkeypatch, "93.184.216.34")
    await resolve("https://lab.example/hook", private=False, names=names)
    answering(monkeypatch, "169.254.169.254")
    with pytest.raises(RefusedAddress):
        await resolve("https://lab.example/hook", private=False, names=names)
