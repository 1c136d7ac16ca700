"""JSON Web Tokens of one trusted issuer, for people and services; off unless configured.

Which algorithm is taken follows from the configured key alone, never from the token: a secret verifies HS256, an RSA
key RS256, an elliptic curve ES256, an Ed25519 key EdDSA. So `none`, and a public key used as a secret, verify nothing.
`exp`, `iss`, `aud`, `sub` and `lab` have to be there. A token cannot be revoked, so one may not last longer than a day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from reward_server.auth.lab import PLAN_RATES, Lab, Plan
from reward_server.auth.scopes import Scope
from reward_server.clock import Clock
from reward_server.errors import ConfigurationError
from reward_server.store.store import Store

MAX_CHARACTERS = 4096
LONGEST = timedelta(days=1)
"""From now to `exp`."""
MIN_SECRET_CHARACTERS = 32
MAX_SUBJECT_CHARACTERS = 60
_PEM = "-----BEGIN"
_REQUIRED = ("exp", "iss", "aud", "sub", "lab")


@dataclass(frozen=True)
class Issuer:
    """The issuer whose tokens are taken, and how they are verified."""

    issuer: str
    audience: str
    algorithm: str
    key: Any

    @classmethod
    def of(cls, issuer: str, audience: str, key: str) -> Issuer:
        """From the settings; `ConfigurationError` where the key is of no use."""
        algorithm, usable = _public(key) if _PEM in key else ("HS256", key)
        if algorithm == "HS256" and len(key) < MIN_SECRET_CHARACTERS:
            raise ConfigurationError(f"LABS_JWT_KEY: a secret needs {MIN_SECRET_CHARACTERS} characters or more")
        return cls(issuer, audience, algorithm, usable)


_Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""Since 1970."""
_Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]
"""As databases take it: no NUL; lone surrogates are no text to pydantic."""


class _Claims(BaseModel):
    """The claims used of a token, once its signature, issuer and audience were checked."""

    sub: Annotated[_Text, Field(max_length=MAX_SUBJECT_CHARACTERS)]
    lab: _Text
    scope: str
    plan: Literal[Plan.STANDARD, Plan.PREMIUM] | None = None
    exp: _Seconds
    nbf: _Seconds = 0.0


class TokenVerifier:
    """Says whose a token is."""

    def __init__(self, issuer: Issuer, store: Store, clock: Clock) -> None:
        self._issuer = issuer
        self._store = store
        self._clock = clock

    async def verify(self, text: str) -> Lab | None:
        """The lab and the scopes of a token; None if it is no good, or names a lab that is not there."""
        if len(text) > MAX_CHARACTERS:
            return None
        claims = self._claims(text)
        if claims is None or not self._is_timely(claims):
            return None
        async with self._store.reading() as work:
            row = await work.labs.get(claims.lab)
        if row is None:
            return None
        return Lab(
            lab_id=claims.lab,
            key_id=f"jwt/{claims.sub}",
            per_minute=PLAN_RATES[claims.plan or Plan.STANDARD],
            scopes=frozenset(Scope(name) for name in claims.scope.split() if name in set(Scope)),
            limits=row.limits,
        )

    def _claims(self, text: str) -> _Claims | None:
        import jwt

        checks = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "require": list(_REQUIRED)}
        try:
            claims = jwt.decode(
                text,
                self._issuer.key,
                algorithms=[self._issuer.algorithm],
                audience=self._issuer.audience,
                issuer=self._issuer.issuer,
                options=checks,  # type: ignore[arg-type]  # moments are compared below, with the clock of this server
            )
            return _Claims.model_validate(claims)
        except (jwt.PyJWTError, ValueError):  # among them the ValidationError of pydantic
            return None

    def _is_timely(self, claims: _Claims) -> bool:
        now = self._clock.now().timestamp()
        return claims.nbf <= now < claims.exp <= now + LONGEST.total_seconds()


def _public(pem: str) -> tuple[str, Any]:
    """The algorithm that goes with a public key, and the key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem.replace("\\n", "\n").encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigurationError("LABS_JWT_KEY: is not a PEM public key; a private one is not needed") from None
    if isinstance(key, RSAPublicKey) and key.key_size >= 2048:
        return "RS256", key
    if isinstance(key, EllipticCurvePublicKey) and key.curve.name == "secp256r1":
        return "ES256", key
    if isinstance(key, Ed25519PublicKey):
        return "EdDSA", key
    raise ConfigurationError("LABS_JWT_KEY: must be RSA of 2048 bits or more, P-256, Ed25519 or a secret")
