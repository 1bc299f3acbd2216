"""What cert-manager does with the chart's objects: it issues, renews and injects.

Its kinds are installed with a schema of the fields that the chart uses, closed, so that a misspelt one
is refused. Issuers are self-signed or sign with a CA from a Secret; every certificate that is made has
what cert-manager gives it: a leaf without a subject, and the authority in `ca.crt`.
"""

from __future__ import annotations

import base64
import time
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pumice.certs.authority import Authority, generate_key
from tests.support.closed_kinds import TEXT, TEXTS, closed, install, remove
from tests.support.controlplane.cluster import ControlPlane

Raw = dict[str, Any]

API = "cert-manager.io"
INJECT = f"{API}/inject-ca-from"
DURATION: Raw = {"type": "string", "pattern": r"^([0-9]+(h|m|s))+$"}
USAGES = ["digital signature", "key encipherment", "server auth", "client auth"]


SPECS: dict[str, Raw] = {
    "Issuer": closed(selfSigned=closed(), ca=closed(("secretName",), secretName=TEXT)),
    "Certificate": closed(
        ("secretName", "issuerRef"),
        secretName=TEXT,
        isCA={"type": "boolean"},
        commonName={**TEXT, "maxLength": 64},
        duration=DURATION,
        renewBefore=DURATION,
        dnsNames=TEXTS,
        ipAddresses=TEXTS,
        usages={"type": "array", "items": {"enum": USAGES, **TEXT}},
        privateKey=closed(
            algorithm={"enum": ["RSA", "ECDSA", "Ed25519"], **TEXT},
            size={"type": "integer"},
            rotationPolicy={"enum": ["Never", "Always"], **TEXT},
        ),
        issuerRef=closed(("name",), name=TEXT, kind=TEXT, group=TEXT),
    ),
}
"""Source: cert-manager's reference of `cert-manager.io/v1`, as far as the chart uses it."""


class CertManager:
    """Plays cert-manager for one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        """Install its kinds."""
        self._plane = plane
        self._namespace = namespace
        install(plane, API, SPECS)

    def sync(self, *, inject: bool = True) -> None:
        """Issue what is not issued yet, and inject into what asks for it."""
        wanted = self._list("Certificate")
        for _ in range(2 if wanted else 0):  # the authority, then what it signs
            for each in wanted:
                if self._secret(each["spec"]["secretName"]) is None:
                    self._issue(each)
        if inject and wanted:
            self.inject()

    def renew(self, name: str) -> None:
        """Issue a certificate again, before its time."""
        (certificate,) = (
            each for each in self._list("Certificate") if each["metadata"]["name"] == name
        )
        self._issue(certificate)

    def inject(self, other: bytes = b"") -> None:
        """Put `ca.crt`, or something else, into the webhook configurations that are annotated."""
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            path = f"/apis/admissionregistration.k8s.io/v1/{kind}"
            for each in self._plane.request("GET", path)[1]["items"]:
                wanted = (each["metadata"].get("annotations") or {}).get(INJECT, "/")
                namespace, name = wanted.split("/")
                secret = self._secret_of(name) if namespace == self._namespace else None
                if secret is not None:
                    bundle = base64.b64encode(other).decode() or secret["data"]["ca.crt"]
                    field = "/clientConfig/caBundle"
                    patch = [
                        {"op": "add", "path": f"/webhooks/{index}{field}", "value": bundle}
                        for index in range(len(each["webhooks"]))
                    ]
                    self._patch(f"{path}/{each['metadata']['name']}", patch)

    def files(self, secret: str) -> dict[str, bytes]:
        """What a Secret holds; nothing while it is not there."""
        found = self._secret(secret)
        data = found["data"] if found else {}
        return {name: base64.b64decode(text) for name, text in data.items()}

    def remove(self) -> None:
        """Take its kinds away, and with them all of their objects."""
        remove(self._plane, API, SPECS)

    def _issue(self, certificate: Raw) -> None:
        spec = certificate["spec"]
        old = self._secret(spec["secretName"])
        keeps = spec.get("privateKey", {}).get("rotationPolicy") == "Never"
        key = self._key(old) if old is not None and keeps else generate_key()
        now = time.time()
        end = now + _seconds(spec.get("duration", "2160h"))
        signer = self._signer(spec["issuerRef"]["name"])
        if spec.get("isCA"):
            assert signer is None, "an authority below another is not played"
            made = Authority.create(key, now - 60, end)
            chain, trust = made.certificate_pem, made.certificate_pem
        else:
            if signer is None:
                return  # its authority is not issued yet
            names, addresses = spec.get("dnsNames", []), spec.get("ipAddresses", [])
            leaf = signer.issue(key, names, addresses, now - 60, end)
            chain, trust = leaf.certificate_pem, signer.certificate_pem
        pem = Authority(x509.load_pem_x509_certificate(chain), key).key_pem
        self._store(spec["secretName"], {"tls.crt": chain, "tls.key": pem, "ca.crt": trust})

    def _signer(self, name: str) -> Authority | None:
        """The authority of an issuer; None when it is self-signed, or its Secret is not there."""
        (issuer,) = (each for each in self._list("Issuer") if each["metadata"]["name"] == name)
        secret = self._secret(issuer["spec"].get("ca", {}).get("secretName", ""))
        if secret is None:
            return None
        certificate = base64.b64decode(secret["data"]["tls.crt"])
        return Authority(x509.load_pem_x509_certificate(certificate), self._key(secret))

    def _key(self, secret: Raw) -> ec.EllipticCurvePrivateKey:
        key = load_pem_private_key(base64.b64decode(secret["data"]["tls.key"]), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    def _list(self, kind: str) -> list[Raw]:
        path = f"/apis/{API}/v1/namespaces/{self._namespace}/{kind.lower()}s"
        items: list[Raw] = self._plane.request("GET", path)[1].get("items", [])
        return items

    def _secret_of(self, certificate: str) -> Raw | None:
        for each in self._list("Certificate"):
            if each["metadata"]["name"] == certificate:
                return self._secret(each["spec"]["secretName"])
        return None

    def _secret(self, name: str) -> Raw | None:
        path = f"/api/v1/namespaces/{self._namespace}/secrets/{name}"
        status, found = self._plane.request("GET", path)
        return found if name and status == 200 else None

    def _store(self, name: str, files: dict[str, bytes]) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self._namespace},
            "type": "kubernetes.io/tls",
            "data": {each: base64.b64encode(content).decode() for each, content in files.items()},
        }
        self._plane.apply(manifest)

    def _patch(self, path: str, patch: list[Raw]) -> None:
        status, answer = self._plane.request(
            "PATCH", path, patch, content_type="application/json-patch+json"
        )
        assert status == 200, answer


def _seconds(duration: str) -> float:
    units = {"h": 3600, "m": 60, "s": 1}
    total, number = 0, ""
    for each in duration:
        if each in units:
            total, number = total + int(number) * units[each], ""
        else:
            number += each
    return float(total)
