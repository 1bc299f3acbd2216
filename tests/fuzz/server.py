"""A webhook as a process of its own, in a cluster of everything that the real reviews speak of."""

import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.fuzz.corpus import everything
from tests.integration.certs.probing import probe
from tests.integration.webhook.serving import Pair
from tests.kit.waiting import wait_until
from tests.support.controlplane.leash import leashed
from tests.support.ports import free_ports

_CRASHES = re.compile(r"(?m)^pumice_admission_rule_crashes_total\{.*\} .*$")
_NOTES = '"level": "info"'


class Server:
    """A webhook that runs.

    Attributes:
        port: Where it answers reviews over TLS.
        authority: PEM file of the authority to trust.
        complaints: What it logged last that is no note of a review.
    """

    def __init__(self, command: list[str], authority: Path) -> None:
        """Start it."""
        self.authority = authority
        self.port, self._metrics_port = free_ports(2)
        self.complaints: deque[str] = deque(maxlen=200)
        options = ["--port", str(self.port), "--metrics-port", str(self._metrics_port)]
        self._process = subprocess.Popen(
            leashed([*command, *options]), stderr=subprocess.PIPE, text=True
        )
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()
        try:
            wait_until(lambda: self._probe("/readyz")[0] == 200, "the webhook is ready", 60)
        except Exception:
            self.end()
            raise

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            self.complaints.extend(line for line in lines if _NOTES not in line)

    def _probe(self, path: str) -> tuple[int, str]:
        return probe(self._metrics_port, path)

    @property
    def crashes(self) -> list[str]:
        """How often which rule raised."""
        status, text = self._probe("/metrics")
        assert status == 200, "there are no metrics any more"
        return _CRASHES.findall(text)

    def end(self) -> int:
        """Tell it to end; its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(20)
        finally:
            self._process.kill()
            self._listening.join()


@contextmanager
def serving(pair: Pair, folder: Path) -> Iterator[Server]:
    """Have a webhook run for as long as the block lasts.

    Raises:
        AssertionError: It complained of something, or did not end as it should.
    """
    state = folder / "state.yaml"
    state.write_text(yaml.safe_dump_all(everything()))
    command = [
        sys.executable,
        "-m",
        "pumice",
        "webhook",
        "--state",
        str(state),
        "--drain-seconds",
        "0",
    ]
    command += ["--tls-cert-file", str(pair.certificate), "--tls-private-key-file", str(pair.key)]
    authority = folder / "authority.crt"
    authority.write_bytes(pair.authority)
    server = Server(command, authority)
    try:
        yield server
    finally:
        code = server.end()
    assert not server.complaints, "".join(server.complaints)
    assert code == 0
