"""Key pairs for the Secrets of Jobs. Creating an RSA pair takes a tenth of a second of CPU, so it runs in a thread."""

import asyncio
import base64
from collections.abc import Awaitable, Callable

from pumice.api.meta import Raw
from pumice.plugins import KeySecret

__all__ = ["KeyMaker", "make_keys", "with_keys"]

KeyMaker = Callable[[str], Awaitable[tuple[bytes, bytes]]]
"""Returns, for an algorithm, a private key (PEM) and its public key (one line, in OpenSSH's format)."""

_RSA_BITS = 2048


async def make_keys(algorithm: str) -> tuple[bytes, bytes]:
    """Create a key pair.

    Args:
        algorithm: `rsa` (2048 bits, PKCS#1) or `ed25519` (OpenSSH's format).
    """
    return await asyncio.to_thread(_make, algorithm)


def with_keys(manifest: Raw, secret: KeySecret, private: bytes, public: bytes) -> Raw:
    """The Secret's manifest with the keys in it."""
    keys = {secret.private_key: private} | dict.fromkeys(secret.public_keys, public)
    data = {name: base64.b64encode(value).decode() for name, value in keys.items()}
    return {**manifest, "data": {**data, **(manifest.get("data") or {})}}


def _make(algorithm: str) -> tuple[bytes, bytes]:
    # Most Jobs need no keys, and this import costs more than starting the rest of the controller.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    key: ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
    if algorithm == "ed25519":
        key = ed25519.Ed25519PrivateKey.generate()
        form = serialization.PrivateFormat.OpenSSH
    else:
        key = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS)
        form = serialization.PrivateFormat.TraditionalOpenSSL
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private, public + b"\n"
