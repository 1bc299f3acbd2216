"""Files that Kubernetes puts into volumes: from ConfigMaps, Secrets, the pod, and projected from several sources.

Trust bundles and pod certificates are features that are off by default. Where they are off, the API server drops
these sources unseen, and pods lack their files.
"""

from pumice.api.json_words import either
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL, overlaps
from pumice.webhook.rules.templates.environment import field_ref, resource_field_ref
from pumice.webhook.rules.templates.metadata import LABEL_SELECTOR, annotations_of
from pumice.webhook.rules.templates.shapes import (
    one_of,
    one_of_two,
    quoted,
    refused,
    relative_path,
    required,
    within,
)
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row, below

__all__ = ["ROWS"]

TPL_VOLUME_FILE = refused(
    "TPL-VOLUME-FILE",
    "files in volumes have relative paths that do not lead upwards, and modes from 0 to 0777",
    "configMap: {name: conf, items: [{key: a, path: ../a}]}",
)
TPL_VOLUME_FIELD = refused(
    "TPL-VOLUME-FIELD",
    "a file about the pod holds one field of it, or one resource of a container",
    "downwardAPI: {items: [{path: name, fieldRef: {fieldPath: spec.nodeName}}]}",
)
TPL_PROJECTION = Rule(
    "TPL-PROJECTION",
    "each source of a projected volume is one thing and complete, and no two of them write the same file",
    "One file would hide the other.",
    "projected: {sources: [{secret: {name: a}, configMap: {name: b}}]}",
)
TPL_CERTIFICATES = Rule(
    "TPL-CERTIFICATES",
    "projected trust bundles and pod certificates name a signer, a key type and a file that can be",
    "Where the cluster has these features on, Kubernetes refuses the pod otherwise.",
    "projected: {sources: [{clusterTrustBundle: {path: ca.crt}}]}",
)

_PROJECTIONS = (
    "clusterTrustBundle",
    "configMap",
    "downwardAPI",
    "podCertificate",
    "secret",
    "serviceAccountToken",
)
_SHORTEST_TOKEN = 600
_LONGEST_TOKEN = 2**32
_KEY_TYPES = ("ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096")
_CERTIFICATE_FILES = ("credentialBundlePath", "keyPath", "certificateChainPath")
_SHORTEST_CERTIFICATE = 3600
_LONGEST_CERTIFICATE = 91 * 24 * 3600
_LONGEST_OF_KUBERNETES = 24 * 3600
_LONGEST_SIGNER = 253 + 1 + 253 + 1 + 63
_LARGEST_MODE = 0o777
_POD_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
"""What a file can hold of its pod, besides single labels and annotations."""


def _own_names(site: Site, path: str, field: str, _: Raw) -> None:
    """Check that a file's name does not begin with two dots, as those of Kubernetes' own do."""
    if path.startswith("..") and ".." not in path.split("/"):
        message = f'must not start with "..", found {quoted(path)}'
        site.report(TPL_VOLUME_FILE, message, field)


def _apart(site: Site, source: Raw, field: str, _: Raw) -> None:
    """Check that no file is where another is."""
    items = enumerate(source.get("items", ()))
    overlaps(
        site, [(each.get("path", ""), f"{field}.items[{index}].path") for index, each in items]
    )


def _projected(site: Site, projected: Raw, field: str, _: Raw) -> None:
    """Check that each source of a projected volume is one thing, and that no two write the same file."""
    written: dict[str, str] = {}
    tokens: list[tuple[str, str]] = []
    for index, each in enumerate(projected.get("sources", ())):
        where = f"{field}.sources[{index}]"
        found = [name for name in _PROJECTIONS if name in each]
        if len(found) > 1:
            message = f"must have one source, found {' and '.join(found)}"
            site.report(TPL_PROJECTION, message, where)
        for name in found:
            paths = [path for path in _files(name, each[name]) if path]
            for path in sorted({path for path in paths if paths.count(path) > 1}):
                site.report(TPL_PROJECTION, f"{quoted(path)} is written twice", f"{where}.{name}")
            for path in paths:
                if (first := written.setdefault(path, where)) != where:
                    message = f"{quoted(path)} is already written by {first}"
                    site.report(TPL_PROJECTION, message, where)
        if "serviceAccountToken" in each:
            tokens.append((each["serviceAccountToken"].get("path", ""), where))
        elif not each:
            site.report(TPL_DOUBTFUL, "names nothing that is projected", where)
    overlaps(site, [*written.items(), *tokens])


def _files(kind: str, source: Raw) -> list[str]:
    """Paths of the files of a source of a projected volume that must be its alone."""
    if kind == "serviceAccountToken":
        return []
    if kind == "clusterTrustBundle":
        return [source.get("path", "")]
    if kind == "podCertificate":
        return [source.get(name, "") for name in _CERTIFICATE_FILES]
    return [item.get("path", "") for item in source.get("items", ())]


def _trust_bundle(site: Site, source: Raw, field: str, _: Raw) -> None:
    """Check the name of certificates to trust, or their signer."""
    if ("name" in source) is ("signerName" in source):
        seen = "both" if "name" in source else "neither"
        site.report(TPL_CERTIFICATES, f"must have name or signerName, found {seen}", field)
    elif "signerName" in source:
        _signer(site, source["signerName"], f"{field}.signerName", source)
        if "labelSelector" in source:
            LABEL_SELECTOR(site, source["labelSelector"], f"{field}.labelSelector", source)
    else:
        signed, colon, rest = source["name"].rpartition(":")
        if problem := dns_subdomain_problem(source["name"] if colon and not signed else rest):
            site.report(TPL_CERTIFICATES, problem, f"{field}.name")
        if "labelSelector" in source:
            message = "must not be set together with name"
            site.report(TPL_CERTIFICATES, message, f"{field}.labelSelector")


def _pod_certificate(site: Site, source: Raw, field: str, _: Raw) -> None:
    domain = source.get("signerName", "").partition("/")[0]
    is_of_kubernetes = f".{domain}".endswith(".kubernetes.io")
    longest = _LONGEST_OF_KUBERNETES if is_of_kubernetes else _LONGEST_CERTIFICATE
    seconds = source.get("maxExpirationSeconds", longest)
    if not _SHORTEST_CERTIFICATE <= seconds <= longest:
        message = f"must be from {_SHORTEST_CERTIFICATE} to {longest}, found {seconds}"
        site.report(TPL_CERTIFICATES, message, f"{field}.maxExpirationSeconds")
    for key in source.get("userAnnotations", ()):
        if "/" not in key:
            message = f"the key must have a domain, found {quoted(key)}"
            site.report(TPL_CERTIFICATES, message, f"{field}.userAnnotations.{key}")
    if not any(source.get(name) for name in _CERTIFICATE_FILES):
        site.report(TPL_CERTIFICATES, f"must have {either(_CERTIFICATE_FILES)}, found none", field)


def _signer(site: Site, name: str, field: str, _: Raw) -> None:
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


_mode = within(TPL_VOLUME_FILE, 0, _LARGEST_MODE, "from 0 to 0777 (511)")
_required = required(TPL_VOLUME_FILE)
_PATH = (Row("", relative_path(TPL_VOLUME_FILE)), Row("", _own_names))
_FILE = (Row("path", _required, ""), *below("path", _PATH))
_FILES = (*below("items[]", _FILE), Row("items[].mode", _mode))
_CONFIG = (*_FILES, Row("items[].key", _required, ""))
_DOWNWARD = (
    *_FILES,
    Row("items[]", one_of_two(TPL_VOLUME_FIELD, "fieldRef", "resourceFieldRef", empty=False)),
    Row("items[].fieldRef", field_ref(TPL_VOLUME_FIELD, _POD_FIELDS)),
    Row("items[].resourceFieldRef", resource_field_ref(TPL_VOLUME_FIELD)),
    Row("items[].resourceFieldRef.containerName", required(TPL_VOLUME_FIELD), ""),
)
_SOURCES = "projected.sources[]"
ROWS = (
    Row("configMap|secret|downwardAPI|projected.defaultMode", _mode),
    Row("configMap|secret|downwardAPI", _apart),
    *below("configMap|secret", _CONFIG),
    *below("downwardAPI", _DOWNWARD),
    Row("projected", _projected),
    *below(
        _SOURCES,
        (
            Row("configMap|secret.name", required(TPL_PROJECTION), ""),
            *below("configMap|secret", _CONFIG),
            *below("downwardAPI", _DOWNWARD),
            *below("serviceAccountToken|clusterTrustBundle", _FILE),
            Row(
                "serviceAccountToken.expirationSeconds",
                within(TPL_PROJECTION, _SHORTEST_TOKEN, _LONGEST_TOKEN),
            ),
            Row("clusterTrustBundle", _trust_bundle),
            Row("podCertificate", _pod_certificate),
            *below(f"podCertificate.{'|'.join(_CERTIFICATE_FILES)}", _PATH),
            Row("podCertificate.signerName", _signer, ""),
            Row("podCertificate.keyType", one_of(TPL_CERTIFICATES, _KEY_TYPES), ""),
            Row("podCertificate.userAnnotations", annotations_of(TPL_CERTIFICATES)),
        ),
    ),
)
"""Fields of a volume."""
