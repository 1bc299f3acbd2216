"""Secrets with a key pair that a plugin wants, without the keys.

A plugin is pure and cannot create keys. It specifies the type of the pair and the names of the keys in the Secret. The
controller creates the pair with the Secret and keeps it as long as the Secret exists, also when other fields change.
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
        algorithm: Type of the pair.
        private_key: Key of `data` for the private key.
        public_keys: Keys of `data` for the public key, in OpenSSH's format on one line.
        texts: The rest of `data`, which is updated.
    """

    name: str
    namespace: str
    algorithm: Algorithm
    private_key: str
    public_keys: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
