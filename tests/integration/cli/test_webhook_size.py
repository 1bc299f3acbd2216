"""The webhook with a certificate from files loads nothing that it has no use for."""

import json
import mmap
import ssl
import time
import urllib.request
from pathlib import Path

from pumice.certs.authority import Authority, generate_key
from tests.builders import queue
from tests.integration.cli.running import running
from tests.kit.waiting import wait_until
from tests.support.ports import free_port

MOST_MIB = 64
"""What the webhook may occupy; six runs gave 59.8 to 60.2 MiB."""

UNUSED = ("cryptography", "numpy", "kubernetes", "re2")


def test_a_webhook_with_files_is_small(tmp_path: Path) -> None:
    now = time.time()
    authority = Authority.create(generate_key(), now - 60, now + 3600)
    leaf = authority.issue(generate_key(), ["localhost"], ["127.0.0.1"], now - 60, now + 3600)
    certificate, key, state = tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "queue.json"
    certificate.write_bytes(leaf.certificate_pem)
    key.write_bytes(leaf.key_pem)
    state.write_text(json.dumps(queue("research")))
    trusting = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    port = free_port()

    def is_ready() -> bool:
        try:
            address = f"https://127.0.0.1:{port}/readyz"
            with urllib.request.urlopen(address, context=trusting) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    flags = ["--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)]
    with running("webhook", "--state", str(state), "--port", str(port), *flags) as command:
        wait_until(is_ready, "the webhook does not become ready")
        process = Path(f"/proc/{command.process.pid}")
        mapped = process.joinpath("maps").read_text()
        assert [name for name in UNUSED if f"site-packages/{name}" in mapped] == []
        pages = int(process.joinpath("statm").read_text().split()[1])
        assert pages * mmap.PAGESIZE / 2**20 <= MOST_MIB
