"""Tokens of a trusted issuer, and the known attacks on them."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from reward_server.auth.lab import PLAN_RATES, Plan
from reward_server.auth.scopes import Scope
from reward_server.auth.tokens import LONGEST, Issuer, TokenVerifier
from reward_server.clock import ManualClock
from reward_server.errors import ConfigurationError
from reward_server.store.records import LabLimitsRow, LabRow
from reward_server.store.store import Store

ISSUER, AUDIENCE, SECRET = "https://login.example", "labs", "s" * 32
CLOCK = ManualClock()
NOW = int(CLOCK.now().timestamp())
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "lab": "acme", "scope": "train score", "exp": NOW + 3600}
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def public(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


@pytest.fixture
async def store(sqlite_database: str) -> AsyncIterator[Store]:
    opened = await Store.open(sqlite_database)
    async with opened.transaction() as work:
        await work.labs.add(LabRow(lab_id="acme", name="", created_at=CLOCK.now(), limits=LabLimitsRow(concurrency=3)))
    yield opened
    await opened.close()


def tokens(store: Store, key: str = SECRET) -> TokenVerifier:
    return TokenVerifier(Issuer.of(ISSUER, AUDIENCE, key), store, CLOCK)


@pytest.mark.parametrize(
    ("signing", "verifying", "algorithm"),
    [
        (SECRET, SECRET, "HS256"),
        (RSA, public(RSA), "RS256"),
        (EC, public(EC), "ES256"),
        (ED, public(ED), "EdDSA"),
        (ED, public(ED).replace("\n", "\\n"), "EdDSA"),
    ],
    ids=["secret", "RSA", "P-256", "Ed25519", "on one line"],
)
async def test_a_good_token_says_whose_it_is(store: Store, signing: Any, verifying: str, algorithm: str) -> None:
    lab = await tokens(store, verifying).verify(jwt.encode(CLAIMS, signing, algorithm))
    assert lab is not None
    assert (lab.lab_id, lab.key_id, lab.scopes) == ("acme", "jwt/ada", {Scope.TRAIN, Scope.SCORE})
    assert (lab.per_minute, lab.limits.concurrency) == (PLAN_RATES[Plan.STANDARD], 3)


async def test_a_plan_and_scopes_come_from_the_token(store: Store) -> None:
    claims = {**CLAIMS, "plan": "premium", "scope": "operate everything"}
    lab = await tokens(store).verify(jwt.encode(claims, SECRET, "HS256"))
    assert lab is not None
    assert (lab.per_minute, lab.scopes) == (PLAN_RATES[Plan.PREMIUM], {Scope.OPERATE})


WRONG: dict[str, dict[str, Any]] = {
    "expired": {"exp": NOW},
    "expires beyond a day": {"exp": NOW + LONGEST.total_seconds() + 1},
    "expires never": {"exp": float("inf")},
    "expires in more seconds than a number holds": {"exp": 10**400},
    "expires at no number": {"exp": str(NOW + 60)},
    "not yet": {"nbf": NOW + 10},
    "another audience": {"aud": "billing"},
    "another issuer": {"iss": "https://evil.example"},
    "a lab that is not there": {"lab": "rival"},
    "a lab that is no text": {"lab": ["acme"]},
    "a lab that is no valid text": {"lab": "\ud800"},
    "a subject that is no valid text": {"sub": "\ud800"},
    "a subject that no database takes": {"sub": "a\0"},
    "no subject": {"sub": ""},
    "a plan with a rate of its own": {"plan": "custom"},
    "an unknown plan": {"plan": "unlimited"},
    "a long subject": {"sub": "x" * 61},
    "scopes that are no text": {"scope": ["train"]},
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_claim_is_refused(store: Store, name: str) -> None:
    assert await tokens(store).verify(jwt.encode({**CLAIMS, **WRONG[name]}, SECRET, "HS256")) is None


@pytest.mark.parametrize("missing", CLAIMS)
async def test_every_claim_has_to_be_there(store: Store, missing: str) -> None:
    claims = {name: value for name, value in CLAIMS.items() if name != missing}
    assert await tokens(store).verify(jwt.encode(claims, SECRET, "HS256")) is None


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def forged(algorithm: str, secret: bytes, **head: object) -> str:
    """Signed with any bytes as a secret, which a careful library would not do."""
    signed = f"{part({'alg': algorithm, 'typ': 'JWT', **head})}.{part(CLAIMS)}"
    mac = hmac.HMAC(secret, hashes.SHA256())
    mac.update(signed.encode())
    return f"{signed}.{base64.urlsafe_b64encode(mac.finalize()).rstrip(b'=').decode()}"


async def test_known_attacks_are_refused(store: Store) -> None:
    with_rsa, with_secret = tokens(store, public(RSA)), tokens(store)
    assert await with_secret.verify(forged("HS256", SECRET.encode())) is not None, "the forge works"
    own = RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for attack in (
        forged("HS256", public(RSA).encode()),  # the public key as a secret
        forged("HS256", public(RSA).strip().encode()),
        forged("RS256", public(RSA).encode()),
        jwt.encode(CLAIMS, OTHER_RSA, "RS256"),
        jwt.encode(CLAIMS, OTHER_RSA, "RS256", headers={"kid": "../../../dev/null", "jku": "https://evil.example"}),
        jwt.encode(CLAIMS, own, "RS512"),
        f"{part({'alg': 'none'})}.{part(CLAIMS)}.",
        f"{part({'alg': 'NoNe'})}.{part(CLAIMS)}.",
        "a.b.c",
        "..",
        jwt.encode({**CLAIMS, "pad": "x" * 5000}, RSA, "RS256"),
    ):
        assert await with_rsa.verify(attack) is None, attack[:80]
    for attack in (
        forged("HS256", b""),
        forged("HS512", SECRET.encode()),
        f"{part({'alg': 'none'})}.{part(CLAIMS)}.",
        jwt.encode(CLAIMS, RSA, "RS256"),
        forged("HS256", SECRET.encode())[:-2] + "AA",
    ):
        assert await with_secret.verify(attack) is None, attack[:80]


async def test_a_token_ends_when_it_says(store: Store) -> None:
    clock = ManualClock()
    taken = TokenVerifier(Issuer.of(ISSUER, AUDIENCE, SECRET), store, clock)
    text = jwt.encode(CLAIMS, SECRET, "HS256")
    clock.advance(timedelta(seconds=3599))
    assert await taken.verify(text) is not None
    clock.advance(timedelta(seconds=1))
    assert await taken.verify(text) is None


@pytest.mark.parametrize(
    "key",
    [
        "short",
        "-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----",
        public(rsa.generate_private_key(public_exponent=65537, key_size=1024)),
        public(ec.generate_private_key(ec.SECP384R1())),
    ],
    ids=["short secret", "no key", "weak RSA", "another curve"],
)
def test_a_key_of_no_use_is_said_at_the_start(key: str) -> None:
    with pytest.raises(ConfigurationError, match="LABS_JWT_KEY"):
        Issuer.of(ISSUER, AUDIENCE, key)
