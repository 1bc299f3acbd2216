"""The patch that gives a webhook configuration its trust bundle."""

import base64
import copy
from typing import Any

import jsonpatch
import pytest

from pumice.certs.injection import WebhookEntry, entries_of, patch_for

TRUST = b"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"


def entry(name: str, bundle: bytes | None = None) -> dict[str, Any]:
    client: dict[str, Any] = {"service": {"name": "webhook", "namespace": "system"}}
    if bundle is not None:
        client["caBundle"] = base64.b64encode(bundle).decode()
    return {"name": name, "clientConfig": client, "sideEffects": "None"}


def configuration(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "c", "resourceVersion": "7"}, "webhooks": list(entries)}


def _bundles_of(configuration: dict[str, Any]) -> list[bytes]:
    return [each.trust for each in entries_of(configuration)]


def test_only_entries_that_differ_are_patched() -> None:
    found = configuration(entry("a"), entry("b", TRUST), entry("c", b"old"))
    operations = patch_for(found, TRUST)
    assert [operation["path"] for operation in operations] == [
        "/metadata/resourceVersion",
        "/webhooks/0/clientConfig/caBundle",
        "/webhooks/2/clientConfig/caBundle",
    ]
    patched = jsonpatch.apply_patch(copy.deepcopy(found), operations)
    assert _bundles_of(patched) == [TRUST, TRUST, TRUST]
    assert patched["webhooks"][0]["clientConfig"]["service"] == {
        "name": "webhook",
        "namespace": "system",
    }
    assert patch_for(patched, TRUST) == []


def test_a_configuration_that_changed_meanwhile_is_not_patched() -> None:
    found = configuration(entry("a"))
    operations = patch_for(found, TRUST)
    found["metadata"]["resourceVersion"] = "8"
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(found, operations)


@pytest.mark.parametrize("webhooks", [None, []])
def test_a_configuration_without_entries_needs_nothing(webhooks: object) -> None:
    empty = {"metadata": {"name": "c"}, "webhooks": webhooks}
    assert patch_for(empty, TRUST) == []
    assert _bundles_of(empty) == []


@pytest.mark.parametrize("bundle", [None, "", "%%%"])
def test_missing_and_unreadable_bundles_count_as_empty(bundle: str | None) -> None:
    broken = entry("a")
    broken["clientConfig"]["caBundle"] = bundle
    assert _bundles_of(configuration(broken)) == [b""]
    assert len(patch_for(configuration(broken), TRUST)) == 2


@pytest.mark.parametrize(
    ("client", "host"),
    [
        (
            {"service": {"name": "webhook", "namespace": "system", "port": 443}},
            "webhook.system.svc",
        ),
        ({"url": "https://192.0.2.1:8443/jobs/mutate"}, "192.0.2.1"),
        ({"url": "https://[2001:db8::1]:8443/jobs/mutate"}, "2001:db8::1"),
        ({"url": "https://Pumice.example.com/x"}, "pumice.example.com"),
        ({"url": "https://[broken"}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_host_is_the_one_that_the_api_server_calls(client: object, host: str) -> None:
    found = {"metadata": {"name": "c"}, "webhooks": [{"name": "a", "clientConfig": client}]}
    assert entries_of(found) == [WebhookEntry(host, b"")]
