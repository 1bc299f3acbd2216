"""Where the webhook's certificate comes from: what is rendered, and who may do what, in each mode."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from tests.chart.manifests import (
    CHART,
    NAMESPACE,
    Manifest,
    Render,
    Run,
    arguments_of,
    component,
    containers,
    of_kind,
    one,
)

pytestmark = pytest.mark.binaries

CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
CERT_MANAGER, FILES = CHART / "ci/cert-manager-values.yaml", CHART / "ci/files-values.yaml"
MODES = ["self", "cert-manager", "files"]


def rights(manifests: list[Manifest], resource: str) -> dict[tuple[str, ...], set[str]]:
    """What the webhook may do with a resource, by the names that it is bound to."""
    return {
        tuple(rule.get("resourceNames", ())): set(rule["verbs"])
        for each in of_kind(manifests, "Role", "ClusterRole")
        if component(each) == "webhook"
        for rule in each["rules"]
        if resource in rule["resources"]
    }


def names(manifests: list[Manifest], kind: str) -> tuple[str, ...]:
    return tuple(each["metadata"]["name"] for each in of_kind(manifests, kind))


@pytest.mark.parametrize("mode", MODES)
def test_rights_are_bound_to_names_and_end_at_what_the_mode_needs(
    render: Render, mode: str
) -> None:
    manifests = render(None, f"webhook.certificates.mode={mode}")
    own = mode == "self"
    verbs = {"get", "list", "watch", "patch"} if own else {"get", "list", "watch"}
    for kind in CONFIGURATIONS:
        found = rights(manifests, f"{kind.lower()}s")
        ((bound, allowed),) = found.items()
        assert set(bound) == set(names(manifests, kind))
        assert allowed == verbs
    secrets = rights(manifests, "secrets")
    assert secrets == (
        {("pumice-webhook-certs",): {"get", "update"}, (): {"create"}} if own else {}
    )


@pytest.mark.parametrize("mode", MODES)
def test_only_one_mode_has_objects_of_cert_manager(render: Render, mode: str) -> None:
    manifests = render(None, f"webhook.certificates.mode={mode}")
    theirs = {each["kind"] for each in manifests if "cert-manager.io" in each["apiVersion"]}
    assert theirs == ({"Certificate", "Issuer"} if mode == "cert-manager" else set())
    for each in of_kind(manifests, *CONFIGURATIONS):
        wanted = {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/pumice-webhook"}
        found = each["metadata"].get("annotations", {})
        assert found == (wanted if mode == "cert-manager" else {})


def test_nothing_of_cert_manager_is_left_without_the_webhook(render: Render) -> None:
    manifests = render(None, "webhook.certificates.mode=cert-manager", "webhook.enabled=false")
    assert of_kind(manifests, "Certificate", "Issuer") == []


@pytest.mark.parametrize("mode", MODES[1:])
def test_the_secret_is_mounted_where_the_webhook_reads(render: Render, mode: str) -> None:
    setting = f"webhook.certificates.mode={mode}"
    for secret, more in (
        ("pumice-webhook-tls", []),
        ("mine", ["webhook.certificates.secretName=mine"]),
    ):
        manifests = render(None, setting, *more)
        deployment = one(manifests, "Deployment", "webhook")
        arguments = dict(each.split("=", 1) for each in arguments_of(deployment) if "=" in each)
        (mount,) = (
            each for each in containers(deployment)[0]["volumeMounts"] if each["name"] == "tls"
        )
        assert mount["readOnly"] is True
        assert arguments["--tls-cert-file"] == f"{mount['mountPath']}/tls.crt"
        assert arguments["--tls-private-key-file"] == f"{mount['mountPath']}/tls.key"
        assert "--webhook-secret-name" not in arguments
        assert arguments["--webhook-service-name"] == "pumice-webhook"
        volumes = deployment["spec"]["template"]["spec"]["volumes"]
        (volume,) = (each for each in volumes if each["name"] == "tls")
        assert volume["secret"] == {"secretName": secret, "defaultMode": 0o440}
        for each in of_kind(manifests, "Certificate"):
            if each["metadata"]["name"] == "pumice-webhook":
                assert each["spec"]["secretName"] == secret


def test_the_certificate_is_for_whatever_the_api_server_calls(render: Render) -> None:
    def made(url: str) -> Manifest:
        found = render(None, "webhook.certificates.mode=cert-manager", f"webhook.url={url}")
        (spec,) = (
            each["spec"]
            for each in of_kind(found, "Certificate")
            if each["metadata"]["name"] == "pumice-webhook"
        )
        return dict(spec)

    service = ["pumice-webhook.pumice-system.svc", "pumice-webhook.pumice-system.svc.cluster.local"]
    assert made("")["dnsNames"] == service
    assert "ipAddresses" not in made("")
    assert made("https://a.example.com:8443/x")["dnsNames"] == [*service, "a.example.com"]
    assert made("https://192.0.2.1:8443")["ipAddresses"] == ["192.0.2.1"]
    assert made("https://192.0.2.1:8443")["dnsNames"] == service
    assert made("https://[2001:db8::1]:8443")["ipAddresses"] == ["2001:db8::1"]


def test_without_an_issuer_the_release_has_an_authority_whose_key_stays(render: Render) -> None:
    manifests = render(None, "webhook.certificates.mode=cert-manager")
    certificates = {
        each["metadata"]["name"]: each["spec"] for each in of_kind(manifests, "Certificate")
    }
    issuers = {each["metadata"]["name"]: each["spec"] for each in of_kind(manifests, "Issuer")}
    leaf, authority = certificates["pumice-webhook"], certificates["pumice-webhook-authority"]
    assert issuers[leaf["issuerRef"]["name"]] == {"ca": {"secretName": authority["secretName"]}}
    assert issuers[authority["issuerRef"]["name"]] == {"selfSigned": {}}
    assert authority["isCA"] is True
    assert authority["privateKey"]["rotationPolicy"] == "Never"
    # A leaf ends before the authority that signed it, whatever the two durations are set to by default.
    assert hours(leaf["duration"]) < hours(authority["renewBefore"])
    assert hours(leaf["renewBefore"]) < hours(leaf["duration"])


def hours(duration: str) -> int:
    (found,) = re.findall(r"^([0-9]+)h$", duration)
    return int(found)


def test_a_users_own_issuer_is_used_as_it_is_named(render: Render) -> None:
    manifests = render(CERT_MANAGER)
    (certificate,) = of_kind(manifests, "Certificate")
    assert certificate["spec"]["issuerRef"] == {
        "name": "company",
        "kind": "ClusterIssuer",
        "group": "cert-manager.io",
    }
    assert of_kind(manifests, "Issuer") == []


def test_a_bundle_is_what_the_api_server_trusts_in_the_mode_of_files_only(
    render: Render, tmp_path: Path
) -> None:
    def bundles(path: Path, *settings: str) -> set[str | None]:
        return {
            webhook["clientConfig"].get("caBundle")
            for each in of_kind(render(path, *settings), *CONFIGURATIONS)
            for webhook in each["webhooks"]
        }

    (found,) = bundles(FILES)
    assert found is not None
    assert base64.b64decode(found).startswith(b"-----BEGIN CERTIFICATE-----\n")
    assert bundles(FILES, "webhook.certificates.caBundle=") == {None}
    assert bundles(FILES, "webhook.certificates.mode=self") == {None}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("webhook.certificates.mode=certmanager", "at '/webhook/certificates/mode'"),
        ("webhook.certificates.caBundle=LS0tLS1", "at '/webhook/certificates/caBundle'"),
        ("webhook.certificates.duration=90d", "at '/webhook/certificates/duration'"),
        ("webhook.certificates.issuerRef.nmae=x", "additional properties 'nmae' not allowed"),
    ],
)
def test_what_cannot_be_meant_is_refused(helm: Run, setting: str, message: str) -> None:
    answer = helm("template", "pumice", str(CHART), "--set", setting)
    assert answer.returncode == 1
    assert message in answer.stderr
