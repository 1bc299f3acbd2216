"""Files of volumes from ConfigMaps, Secrets, the pod, and projected sources.

Trust bundles and pod certificates are features that are off by default. If they are off, the API server drops these
sources silently, and pods lack their files.
"""

from pumice.api.json_words import either, quoted
from pumice.api.meta import Raw
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.templates.environment import field_ref, resource_field_ref
from pumice.webhook.rules.templates.metadata import LABEL_SELECTOR, annotations_of
from pumice.webhook.rules.templates.shapes import TPL_DOUBTFUL, FieldRule, overlaps, refused
from pumice.webhook.rules.templates.table import Row, Site, below

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
TPL_PROJECTION = FieldRule(
    "TPL-PROJECTION",
    "each source of a projected volume is one thing and complete, and no two of them write the same file",
    "One file would hide the other.",
    "projected: {sources: [{secret: {name: a}, configMap: {name: b}}]}",
)
TPL_CERTIFICATES = FieldRule(
    "TPL-CERTIFICATES",
    "projected trust bundles and pod certificates name a signer, a key type and a file that can be",
    "Where the cluster has these features on, Kubernetes refuses the pod otherwise.",
    "projected: {sources: [{clusterTrustBundle: {path: ca.crt}}]}",
)

_PROJECTIONS = (
    "clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken",
)  # fmt: skip
_KEY_TYPES = ("ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096")
_CERTIFICATE_FILES = ("credentialBundlePath", "keyPath", "certificateChainPath")
_LONGEST_SIGNER = 253 + 1 + 253 + 1 + 63
_POD_FIELDS = tuple(
    f"metadata.{name}" for name in ("annotations", "labels", "name", "namespace", "uid")
)
"""Fields of the pod that a file may refer to, besides single labels and annotations."""


def _apart(site: Site, items: list[Raw], field: str, _: Raw) -> None:
    paths = [item.get("path", "") for item in items]
    overlaps(site, [(path, f"{field}[{index}].path") for index, path in enumerate(paths)])


def _projected(site: Site, projected: Raw, field: str, _: Raw) -> None:
    """Check that each source of a projected volume has one type, and that no two sources write the same file."""
    written: dict[str, str] = {}
    tokens: list[tuple[str, str]] = []
    for index, each in enumerate(projected.get("sources", ())):
        where = f"{field}.sources[{index}]"
        found = [name for name in _PROJECTIONS if name in each]
        if len(found) > 1:
            message = f"must have one source, found {' and '.join(found)}"
            site.report(TPL_PROJECTION, message, where)
        for kind in found:
            paths = [path for path in _files(kind, each[kind]) if path]
            for path in sorted({path for path in paths if paths.count(path) > 1}):
                message = f"conflicting duplicate paths: {quoted(path)} is written twice"
                site.report(TPL_PROJECTION, message, f"{where}.{kind}")
            for path in paths:
                if (first := written.setdefault(path, where)) != where:
                    message = f"conflicting duplicate paths: {quoted(path)} is already written by "
                    site.report(TPL_PROJECTION, f"{message}{first}", where)
        if "serviceAccountToken" in each:
            tokens.append((each["serviceAccountToken"].get("path", ""), where))
        elif not each:
            site.report(TPL_DOUBTFUL, "has no source", where)
    overlaps(site, [*written.items(), *tokens])


def _files(kind: str, source: Raw) -> list[str]:
    """Paths of the files of a source in a projected volume, which must be unique."""
    if kind == "clusterTrustBundle":
        return [source.get("path", "")]
    if kind == "podCertificate":
        return [source.get(name, "") for name in _CERTIFICATE_FILES]
    return [item.get("path", "") for item in source.get("items", ())]


def _bundle_name_problem(name: str) -> str | None:
    """Say why a trust bundle cannot have a name; the part before a colon is its signer."""
    signed, colon, rest = name.rpartition(":")
    return dns_subdomain_problem(name if colon and not signed else rest)


def _is_signer(name: str) -> bool:
    """True if a text is the name of a signer: a domain, a slash, and a path."""
    domain, slash, path = name.partition("/")
    return (
        slash != ""
        and "." in domain
        and len(name) <= _LONGEST_SIGNER
        and dns_subdomain_problem(domain) is None
        and all(dns_label_problem(label) is None for label in domain.split("."))
        and all(dns_subdomain_problem(label) is None for label in path.split("."))
    )


_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32


def _seconds_problem(_: Site, seconds: int, _owner: Raw) -> str:
    if seconds < _SHORTEST_TOKEN:
        return (
            f"may not specify a duration less than 10 minutes ({_SHORTEST_TOKEN}), found {seconds}"
        )
    wrong = f"must be less than or equal to {_LONGEST_TOKEN}, found {seconds}"
    return wrong if seconds > _LONGEST_TOKEN else ""


_mode = TPL_VOLUME_FILE.within(
    0,
    0o777,
    "must be a number between 0 and 0777 (octal), both inclusive (511 in decimal)",
)
_required = TPL_VOLUME_FILE.required()
_signer = TPL_CERTIFICATES.matching("must be a signer such as example.com/signer", _is_signer)
_some_file = TPL_CERTIFICATES.breaking(
    f"must have {either(_CERTIFICATE_FILES)}, found none",
    lambda _, source, _o: not any(source.get(name) for name in _CERTIFICATE_FILES),
)
_own_names = TPL_VOLUME_FILE.matching(
    'must not start with ".."',  # as names of Kubernetes' own files do; `..` by itself is reported as a step upwards
    lambda path: not path.startswith("..") or ".." in path.split("/"),
)
_NO_REF = "one of fieldRef and resourceFieldRef is required"
_one_ref = TPL_VOLUME_FIELD.one_of_two("fieldRef", "resourceFieldRef", neither=_NO_REF, empty=False)
_NO_NAME = "either name or signerName must be specified"
_one_name = TPL_CERTIFICATES.one_of_two("name", "signerName", neither=_NO_NAME, empty=False)
_91_DAYS = 91 * 24 * 3600
_PATH = (Row("", TPL_VOLUME_FILE.relative_path()), Row("", _own_names))
_FILE = (Row("path", _required, ""), *below("path", *_PATH))
_FILES = (*below("items[]", *_FILE), Row("items[].mode", _mode))
_CONFIG = (*_FILES, Row("items[].key", _required, ""))
_DOWNWARD = (
    *_FILES,
    Row("items[]", _one_ref),
    Row("items[].fieldRef", field_ref(TPL_VOLUME_FIELD, _POD_FIELDS)),
    Row("items[].resourceFieldRef", resource_field_ref(TPL_VOLUME_FIELD)),
    Row("items[].resourceFieldRef.containerName", TPL_VOLUME_FIELD.required(), ""),
)
_SOURCES = "projected.sources[]"
ROWS = (
    Row("configMap|secret|downwardAPI|projected.defaultMode", _mode),
    Row("configMap|secret|downwardAPI.items", _apart),
    *below("configMap|secret", *_CONFIG),
    *below("downwardAPI", *_DOWNWARD),
    Row("projected", _projected),
    *below(
        _SOURCES,
        Row("configMap|secret.name", TPL_PROJECTION.required(), ""),
        *below("configMap|secret", *_CONFIG),
        *below("downwardAPI", *_DOWNWARD),
        *below("serviceAccountToken|clusterTrustBundle", *_FILE),
        Row("serviceAccountToken.expirationSeconds", TPL_PROJECTION.judged(_seconds_problem)),
        Row("clusterTrustBundle", _one_name),
        Row("clusterTrustBundle.name", TPL_CERTIFICATES.valid(_bundle_name_problem)),
        Row("clusterTrustBundle.signerName", _signer),
        Row("clusterTrustBundle.labelSelector", TPL_CERTIFICATES.excludes("name")),
        Row("clusterTrustBundle.labelSelector", LABEL_SELECTOR),
        Row("podCertificate", _some_file),
        Row("podCertificate.maxExpirationSeconds", TPL_CERTIFICATES.within(3600, _91_DAYS)),
        *below(f"podCertificate.{'|'.join(_CERTIFICATE_FILES)}", *_PATH),
        Row("podCertificate.signerName", _signer, ""),
        Row("podCertificate.keyType", TPL_CERTIFICATES.one_of(*_KEY_TYPES), ""),
        Row("podCertificate.userAnnotations", annotations_of(TPL_CERTIFICATES)),
    ),
)
"""Fields of a volume."""
