"""Secrets that hold a key pair: what a plugin wants, without the keys themselves.

A plugin is pure and cannot make keys. It says which pair it wants and under which names; the
controller makes the pair when it writes the Secret, and keeps it for as long as the Secret lives, whatever else of it
changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Algorithm", "KeySecret"]

Algorithm = Literal["rsa", "ed25519"]
"""`rsa`: 2048 bits, PKCS#1 PEM; `ed25519`: OpenSSH's own PEM."""


@dataclass(frozen=True, slots=True)
class KeySecret:
    """A Secret with a key pair.

    Attributes:
        name: Name of the Secret.
        namespace: Its namespace.
        algorithm: Kind of the pair.
        private_key: Key of `data` under which the private key stands.
        public_keys: Keys of `data` under which the public key stands, as OpenSSH writes it on one line.
        texts: The rest of `data`, which is kept current.
    """

    name: str
    namespace: str
    algorithm: Algorithm
    private_key: str
    public_keys: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
