"""The Secrets with keys of Jobs and other owners: read by name where a plugin needs them, and their key pairs.

Secrets are neither listed nor watched: the right to list them is the right to read those of all users. What was read or written counts for a
minute, so that passes that follow each other read nothing. The state of an owner that is gone is dropped, and the number of Secrets is limited.

Creating an RSA key pair takes a tenth of a second of CPU, so it runs in a thread.
"""

import asyncio
import base64
from collections.abc import Iterable
from itertools import islice

from pumice.api.kinds import SECRET
from pumice.api.meta import ObjectMeta, Raw
from pumice.cluster.client import Client
from pumice.cluster.clock import Clock
from pumice.cluster.errors import Forbidden, NotFound
from pumice.controller.objects import controls_raw
from pumice.controller.worker.memory import OwnWrite
from pumice.plugins import KeySecret

SECONDS = 60.0
"""How long it counts what was read."""

MOST = 4096
"""How many are known at most; the oldest is forgotten for a new one, and read again when it is needed."""

_AT_ONCE = 64
"""Secrets at most that are forgotten when one is added, so that its cost does not depend on how many are known."""


class KnownSecrets:
    """Secrets that were read or written in the last minute, by namespace and name; None for one that does not exist."""

    def __init__(self, client: Client, clock: Clock, *, readable: bool = True) -> None:
        """Know nothing yet.

        Args:
            client: Session with the API server.
            clock: Tells how old what was read is.
            readable: Whether there is a right to read Secrets; without it none is asked for.
        """
        self._client = client
        self._clock = clock
        self._readable = readable
        self._known: dict[tuple[str, str], tuple[Raw | None, float]] = {}

    async def read(self, namespace: str, names: Iterable[str], *, new: bool = False) -> list[Raw]:
        """Those of the Secrets that exist.

        Args:
            namespace: Their namespace.
            names: Their names.
            new: Whether their owner is new, so that it has none; where one exists all the same, its creation will tell.

        Raises:
            ApiError: The API server did not answer.
        """
        found = []
        for name in names:
            if not new and self._readable and not self._is_fresh(namespace, name):
                self._keep((namespace, name), await self._get(namespace, name))
            secret, _ = self._known.get((namespace, name), (None, 0.0))
            if secret is not None:
                found.append(secret)
        return found

    def known(self, namespace: str, uid: str) -> list[Raw]:
        """Those of an owner that are known."""
        owner = ObjectMeta(uid=uid)
        of_namespace = (each for (where, _), (each, _) in self._known.items() if where == namespace)
        return [each for each in of_namespace if each is not None and controls_raw(owner, each)]

    def note(self, written: Iterable[OwnWrite], found: Iterable[Raw] = ()) -> None:
        """Take in what was written, and what was found in its place."""
        for each in written:
            if each.kind == SECRET:
                made = None if each.made is None else each.made | SECRET.type_meta
                self._keep((each.namespace, each.name), made)
        for secret in found:
            if secret.get("kind") == SECRET.kind:
                meta = secret["metadata"]
                self._keep((meta.get("namespace", ""), meta["name"]), secret)

    def _is_fresh(self, namespace: str, name: str) -> bool:
        known = self._known.get((namespace, name))
        return known is not None and self._clock.monotonic() - known[1] < SECONDS

    def forget(self, namespace: str, names: Iterable[str]) -> None:
        """Read these again: a write was refused because something has changed, or their owner is gone or is another one."""
        for name in names:
            self._known.pop((namespace, name), None)

    def _keep(self, key: tuple[str, str], secret: Raw | None) -> None:
        now = self._clock.monotonic()
        self._known.pop(key, None)  # the newest are last
        self._known[key] = secret, now
        for old, (_, since) in list(islice(self._known.items(), _AT_ONCE)):
            if now - since < SECONDS and len(self._known) <= MOST:
                break
            del self._known[old]

    async def _get(self, namespace: str, name: str) -> Raw | None:
        try:
            return await self._client.get(SECRET, name, namespace) | SECRET.type_meta
        except (NotFound, Forbidden):  # what is forbidden is reported when it is to be created
            return None


_RSA_BITS = 2048


async def make_keys(algorithm: str) -> tuple[bytes, bytes]:
    """A private key (PEM) and its public key (one line, in OpenSSH's format).

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
