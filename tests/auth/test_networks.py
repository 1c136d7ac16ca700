"""Callers are counted by what one host has: an address of IPv4, a network of IPv6."""

from __future__ import annotations

import pytest

from reward_server.auth.failed_keys import MOST_PER_MINUTE, LocalFailedKeys
from reward_server.auth.networks import network_of
from reward_server.errors import TooManyFailedKeys


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::7", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::1", "::1"),
        ("", ""),
        ("not:an:address", "not:an:address"),
    ],
)
def test_a_host_is_one_caller(address: str, counted: str) -> None:
    assert network_of(address) == counted


async def test_failed_keys_of_a_host_are_counted_over_its_addresses() -> None:
    failed = LocalFailedKeys()
    for number in range(MOST_PER_MINUTE):
        await failed.failed(f"2001:db8::{number:x}")
    with pytest.raises(TooManyFailedKeys):
        await failed.failed("2001:db8::ffff")
    assert await failed.failed("2001:db8:0:1::1") is False
