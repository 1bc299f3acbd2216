"""Load a certificate and key from memory into OpenSSL.

Python's `ssl` loads them from paths only. An anonymous in-memory file has a path, needs no writable file system, and
leaves no key on a disk.
"""

import os
import ssl
import tempfile
from pathlib import Path

__all__ = ["load_pair"]


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate chain and its key into a context.

    On the context of a running server, new connections use the new pair.

    Args:
        context: The context.
        certificate: The chain as PEM, leaf first.
        key: Its key as PEM.

    Raises:
        ssl.SSLError: When they are invalid or do not match.
    """
    content = certificate.rstrip() + b"\n" + key
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pumice-pair")
        try:
            os.write(descriptor, content)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="pumice-") as folder:
        pair = Path(folder, "pair.pem")
        pair.touch(mode=0o600)
        pair.write_bytes(content)
        context.load_cert_chain(pair)
