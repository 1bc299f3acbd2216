"""Projected volumes: files of several sources in one place."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.certificates import pod_certificate, trust_bundle
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL, overlaps
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import quoted, text
from pumice.webhook.rules.templates.volume_files import (
    config_files,
    downward_files,
    file_mode,
    file_path,
)

__all__ = ["RULES", "projected"]

TPL_PROJECTION = Rule(
    "TPL-PROJECTION",
    "each source of a projected volume is one thing and complete, and no two of them write the same file",
    "One file would hide the other.",
    "projected: {sources: [{secret: {name: a}, configMap: {name: b}}]}",
)

RULES = (TPL_PROJECTION,)

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


def projected(site: Site, source: Raw, field: str) -> None:
    """Check a projected volume."""
    file_mode(site, source, "defaultMode", field)
    written: dict[str, str] = {}
    tokens: list[tuple[str, str]] = []
    for index, each in entries(source.get("sources")):
        where = f"{field}.sources[{index}]"
        found = [name for name in _PROJECTIONS if name in each]
        if len(found) > 1:
            message = f"must have one source, found {' and '.join(found)}"
            site.report(TPL_PROJECTION, message, where)
        for name in found:
            for path in _projection(site, name, each[name], f"{where}.{name}"):
                if path and (first := written.setdefault(path, where)) != where:
                    message = f"{quoted(path)} is already written by {first}"
                    site.report(TPL_PROJECTION, message, where)
        if "serviceAccountToken" in each:
            tokens.append((each["serviceAccountToken"].get("path", ""), where))
        elif not each:
            site.report(TPL_DOUBTFUL, "names nothing that is projected", where)
    overlaps(site, [*written.items(), *tokens])


def _projection(site: Site, name: str, source: Raw, field: str) -> list[str]:
    """Check a source of a projected volume; the paths that must be its alone."""
    if name in ("configMap", "secret"):
        text(site, TPL_PROJECTION, source.get("name"), f"{field}.name")
        paths = config_files(site, source, field)
    elif name == "downwardAPI":
        paths = downward_files(site, source, field)
    elif name == "serviceAccountToken":
        _token(site, source, field)
        return []
    elif name == "clusterTrustBundle":
        paths = trust_bundle(site, source, field)
    else:
        paths = pod_certificate(site, source, field)
    twice = {path for path in paths if path and paths.count(path) > 1}
    for path in sorted(twice):
        site.report(TPL_PROJECTION, f"{quoted(path)} is written twice", field)
    return paths


def _token(site: Site, source: Raw, field: str) -> None:
    seconds = source.get("expirationSeconds", _SHORTEST_TOKEN)
    if not _SHORTEST_TOKEN <= seconds <= _LONGEST_TOKEN:
        message = f"must be from {_SHORTEST_TOKEN} to {_LONGEST_TOKEN}, found {seconds}"
        site.report(TPL_PROJECTION, message, f"{field}.expirationSeconds")
    file_path(site, source, "path", field)
