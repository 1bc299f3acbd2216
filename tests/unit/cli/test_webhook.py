"""`pumice webhook` refuses what it cannot do before it listens."""

import json
from pathlib import Path

import pytest

from tests.builders import queue
from tests.unit.cli.conftest import Pumice


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--host", "0.0.0.0"], "without a certificate only loopback is served"),
        (["--host", "256.0.0.1"], "--port 8443 on 256.0.0.1"),
        (["--tls-cert-file", "x"], "go together, one is missing"),
        (["--enabled-admission", "/nowhere"], "there is no path /nowhere"),
        (["--max-queue-depth=deep"], "setting max-queue-depth"),
        (["--set", "nonsense"], "expected NAME=VALUE"),
    ],
)
def test_what_a_webhook_cannot_do_is_one_line(
    pumice: Pumice, tmp_path: Path, arguments: list[str], line: str
) -> None:
    state = tmp_path / "queues.yaml"
    state.write_text(json.dumps(queue("research")))
    ran = pumice("webhook", "--state", state, *arguments)
    assert ran.code == 2
    assert line in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err
