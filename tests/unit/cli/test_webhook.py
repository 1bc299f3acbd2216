"""`pumice webhook` refuses what it cannot do before it listens."""

import json
from pathlib import Path

import pytest

from pumice import __version__
from pumice.cli.processes.volcano_flags import settings_among
from tests.kit.builders import queue
from tests.unit.cli.conftest import Pumice


@pytest.mark.usefixtures("freezing_again")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--host", "0.0.0.0"], "without a certificate only loopback is served"),
        (["--host", "256.0.0.1"], "--port 8443 on 256.0.0.1"),
        (["--tls-cert-file", "x"], "go together, one is missing"),
        (["--enabled-admission", "/nowhere"], "there is no endpoint /nowhere, known are /jobs"),
        (["--enabled-admission", "/job/validate"], 'did you mean "/jobs/validate"?'),
        (["--max-queue-depth=deep"], "max-queue-depth: must be an integer"),
        (["--set", "nonsense"], "expected NAME=VALUE"),
        (["--drain-seconds", "inf"], "--drain-seconds inf: expected 0 to 300 seconds"),
        (["--drain-seconds", "1e400"], "--drain-seconds inf: expected 0 to 300 seconds"),
        (["--drain-seconds", "nan"], "--drain-seconds nan: expected 0 to 300 seconds"),
        (["--drain-seconds", "301"], "--drain-seconds 301: expected 0 to 300 seconds"),
        (["--drain-seconds", "-1"], "--drain-seconds -1: expected 0 to 300 seconds"),
        (["--port", "18450", "--metrics-port", "18450"], "are both 18450"),
        (["--webhook-url", "http://10.0.0.1"], "expected an address such as https://10.0.0.1:8443"),
        (["--webhook-url", "https://"], "expected an address such as https://10.0.0.1:8443"),
        (
            ["--webhook-secret-name", "A B"],
            "--webhook-secret-name: a lowercase RFC 1123 subdomain must consist of",
        ),
        (
            ["--webhook-service-name", ""],
            "--webhook-service-name: a lowercase RFC 1123 subdomain must",
        ),
        (
            ["--scheduler-name", ""],
            "--set: scheduler-names[0]: must be a name, found an empty string",
        ),
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


@pytest.mark.parametrize(
    "enabled", ["", "  ", " /jobs/validate, ", "/cronjobs/validate,/jobflows/validate"]
)
def test_a_list_of_endpoints_is_read_leniently(pumice: Pumice, enabled: str) -> None:
    assert pumice("webhook", "--check-config", "--enabled-admission", enabled).code == 0


def test_flags_and_files_are_checked_without_listening(pumice: Pumice, tmp_path: Path) -> None:
    conf = tmp_path / "volcano-admission.conf"
    conf.write_text("resourceGroups:\n- resourceGroup: gpu\n  labels: {class: gpu}\n")
    assert pumice("webhook", "--check-config", "--admission-conf", conf).code == 0
    conf.write_text("resourceGroups:\n- resourceGroup: gpu\n  tolerations: [{effect: Never}]\n")
    ran = pumice("webhook", "--check-config", "--admission-conf", conf)
    assert ran.code == 2
    assert "resourceGroups[0].tolerations[0]" in ran.err.splitlines()[-1]
    ran = pumice("webhook", "--check-config", "--admission-conf", tmp_path / "none")
    assert (ran.code, "no such file" in ran.err) == (2, True)
    ran = pumice(
        "webhook", "--check-config", "--tls-cert-file", conf, "--tls-private-key-file", conf
    )
    assert ran.code == 2


@pytest.mark.parametrize(
    ("arguments", "settings", "others"),
    [
        (
            ["--feature-gates=SchedulingGatesQueueAdmission=true,Other=true"],
            ["scheduling-gates-queue-admission=true"],
            ["--feature-gates=Other=true"],
        ),
        (
            ["--feature-gates", "SchedulingGatesQueueAdmission=false", "2>&1"],
            ["scheduling-gates-queue-admission=false"],
            ["2>&1"],
        ),
        (
            ["--feature-gates=PodLevelResources=false,SchedulingGatesQueueAdmission=true"],
            ["pod-level-resources=false", "scheduling-gates-queue-admission=true"],
            [],
        ),
        (["--feature-gates"], [], []),
        # What has no meaning here changes nothing else.
        (["--master=127.0.0.1", "--kube-api-burst=200"], [], ["--master=127.0.0.1", "--kube-api-burst=200"]),
        (["--strict-upstream", "--max-queue-depth", "3"], ["strict-upstream=true", "max-queue-depth=3"], []),
        (["--scheduling-gates-queue-admission", "x"], ["scheduling-gates-queue-admission=true"], ["x"]),
    ],
)  # fmt: skip
def test_flags_of_volcano_are_settings(
    arguments: list[str], settings: list[str], others: list[str]
) -> None:
    assert settings_among(arguments) == (settings, others)


@pytest.mark.parametrize("flag", ["--version", "--version=true"])
def test_the_version_is_printed_as_volcanos_is(pumice: Pumice, flag: str) -> None:
    ran = pumice("webhook", "--port", "0", flag, "2>&1")
    assert (ran.code, ran.out) == (0, f"pumice {__version__}\n")


EVERY_FLAG = """
    --master= --kube-api-qps=50 --kube-api-burst=100 --ca-cert-file=ca.crt --listen-address= --port=8443
    --webhook-namespace=volcano-system --webhook-service-name=volcano-admission-service
    --enabled-admission=/jobs/mutate,/jobs/validate --scheduler-name=volcano --admission-conf=
    --enable-healthz=true --healthz-address=:11251 --graceful-shutdown-time=30s
    --enable-queue-allocated-pods-check=false --max-queue-depth=5 --enable-root-queue-protection=true
    --feature-gates=SchedulingGatesQueueAdmission=false,PodLevelResources=true,Other=true
    --log-flush-frequency=5s --logtostderr -v=4 --version=false 2>&1
"""


def test_every_flag_of_volcanos_is_taken(pumice: Pumice) -> None:
    ran = pumice("webhook", "--check-config", *EVERY_FLAG.split())
    assert (ran.code, ran.err) == (0, "")


def test_settings_of_job_plugins_are_checked(pumice: Pumice) -> None:
    assert pumice("webhook", "--check-config", "--set-plugins", "wait-image=mine:1").code == 0
    ran = pumice("webhook", "--check-config", "--set-plugins", "wait-imag=mine:1")
    assert ran.code == 2
    assert "--set-plugins: " in ran.err
    resources = 'wait-resources={"requests": {"cpu": "10x"}, "limts": {}}'
    context = 'wait-security-context={"runAsGroup": "a"}'
    ran = pumice("webhook", "--check-config", "--set-plugins", resources, "--set-plugins", context)
    assert ran.code == 2
    for said in (
        '--set-plugins: wait-resources.limts: there is no field "limts" (did you mean "limits"?)',
        "--set-plugins: wait-resources.requests.cpu: quantities must match",
        '--set-plugins: wait-security-context.runAsGroup: json: cannot unmarshal the string "a"',
    ):
        assert said in ran.err
