"""Trust bundles and pod certificates in projected volumes; both are features that are off by default.

Where they are off, the API server drops these sources unseen, and pods lack their files.
"""

from pumice.api.json_words import either
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.metadata import annotations_problem
from pumice.webhook.rules.templates.selectors import label_selector
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.values import one_of, quoted
from pumice.webhook.rules.templates.volume_files import file_path

__all__ = ["RULES", "pod_certificate", "trust_bundle"]

TPL_CERTIFICATES = Rule(
    "TPL-CERTIFICATES",
    "projected trust bundles and pod certificates name a signer, a key type and a file that can be",
    "Where the cluster has these features on, Kubernetes refuses the pod otherwise.",
    "projected: {sources: [{clusterTrustBundle: {path: ca.crt}}]}",
)

RULES = (TPL_CERTIFICATES,)

_KEY_TYPES = ("ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096")
_CERTIFICATE_FILES = ("credentialBundlePath", "keyPath", "certificateChainPath")
_SHORTEST_CERTIFICATE = 3600
_LONGEST_CERTIFICATE = 91 * 24 * 3600
_LONGEST_OF_KUBERNETES = 24 * 3600
_LONGEST_SIGNER = 253 + 1 + 253 + 1 + 63


def trust_bundle(site: Site, source: Raw, field: str) -> list[str]:
    """Check a source of certificates to trust.

    Args:
        site: Where to report.
        source: The source.
        field: Where it is, from the site on.

    Returns:
        Paths of its files.
    """
    name, signer = source.get("name"), source.get("signerName")
    if (name is None) is (signer is None):
        message = f"must have name or signerName, found {'neither' if name is None else 'both'}"
        site.report(TPL_CERTIFICATES, message, field)
    elif signer is not None:
        _signer(site, signer, f"{field}.signerName")
        label_selector(site, source.get("labelSelector", {}), f"{field}.labelSelector")
    elif name is not None:
        signed, colon, rest = name.rpartition(":")
        if problem := dns_subdomain_problem(name if colon and not signed else rest):
            site.report(TPL_CERTIFICATES, problem, f"{field}.name")
        if "labelSelector" in source:
            message = "must not be set together with name"
            site.report(TPL_CERTIFICATES, message, f"{field}.labelSelector")
    file_path(site, source, "path", field)
    return [source.get("path", "")]


def pod_certificate(site: Site, source: Raw, field: str) -> list[str]:
    """Check a source of a certificate for the pod; arguments are those of `trust_bundle`."""
    signer = source.get("signerName", "")
    _signer(site, signer, f"{field}.signerName")
    one_of(site, TPL_CERTIFICATES, source.get("keyType", ""), _KEY_TYPES, f"{field}.keyType")
    longest = _LONGEST_OF_KUBERNETES if _is_of_kubernetes(signer) else _LONGEST_CERTIFICATE
    seconds = source.get("maxExpirationSeconds", longest)
    if not _SHORTEST_CERTIFICATE <= seconds <= longest:
        message = f"must be from {_SHORTEST_CERTIFICATE} to {longest}, found {seconds}"
        site.report(TPL_CERTIFICATES, message, f"{field}.maxExpirationSeconds")
    annotations = source.get("userAnnotations", {})
    annotations_problem(site, TPL_CERTIFICATES, annotations, f"{field}.userAnnotations")
    for key in annotations:
        if "/" not in key:
            message = f"the key must have a domain, found {quoted(key)}"
            site.report(TPL_CERTIFICATES, message, f"{field}.userAnnotations.{key}")
    files = [name for name in _CERTIFICATE_FILES if source.get(name)]
    if not files:
        message = f"must have {either(_CERTIFICATE_FILES)}, found none"
        site.report(TPL_CERTIFICATES, message, field)
    for name in files:
        file_path(site, source, name, field)
    return [source[name] for name in files]


def _is_of_kubernetes(signer: str) -> bool:
    return f".{signer.partition('/')[0]}".endswith(".kubernetes.io")


def _signer(site: Site, name: str, field: str) -> None:
    """Check the name of a signer: a domain, a slash, and a path."""
    domain, slash, path = name.partition("/")
    good = (
        slash
        and "." in domain
        and len(name) <= _LONGEST_SIGNER
        and dns_subdomain_problem(domain) is None
        and all(dns_label_problem(label) is None for label in domain.split("."))
        and all(dns_subdomain_problem(label) is None for label in path.split("."))
    )
    if not good:
        message = f"must be a signer such as example.com/signer, found {quoted(name)}"
        site.report(TPL_CERTIFICATES, message, field)
