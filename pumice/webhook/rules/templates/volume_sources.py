"""Sources of volumes that jobs have: what each of them must say.

Most only have fields that must not be empty. Whether an object that a source names exists is not asked.
A volume without a source is an empty directory; one whose source is not known is newer than this version.
"""

from pumice.api.names import dns_subdomain_problem
from pumice.api.quantities import parse_milli
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.claim_templates import claim_template
from pumice.webhook.rules.templates.deprecated import volume_source
from pumice.webhook.rules.templates.doubtful import overlaps
from pumice.webhook.rules.templates.projections import projected
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.values import one_of, quoted, text, without_backsteps
from pumice.webhook.rules.templates.vendor_volumes import VENDOR_SOURCES
from pumice.webhook.rules.templates.volume_files import config_files, downward_files, file_mode
from pumice.webhook.rules.templates.volume_needs import (
    TPL_VOLUME_SOURCE,
    SourceCheck,
    require,
)

__all__ = ["RULES", "SOURCES"]

TPL_VOLUME_IMAGE = Rule(
    "TPL-VOLUME-IMAGE",
    "a volume of files from an image names the image",
    "Kubernetes takes the template, and then refuses each of its pods.",
    "volumes: [{name: model, image: {pullPolicy: Always}}]",
    reason="FieldValueRequired",
    stricter=True,
)

RULES = (TPL_VOLUME_IMAGE,)

_HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_LONGEST_DRIVER = 63


def _empty_dir(site: Site, source: Raw, field: str) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and parse_milli(limit) < 0:
        message = f"must be 0 or more, found {limit}"
        site.report(TPL_VOLUME_SOURCE, message, f"{field}.sizeLimit")


def _host_path(site: Site, source: Raw, field: str) -> None:
    path = text(site, TPL_VOLUME_SOURCE, source.get("path"), f"{field}.path")
    without_backsteps(site, TPL_VOLUME_SOURCE, path, f"{field}.path")
    one_of(site, TPL_VOLUME_SOURCE, source.get("type"), _HOST_PATHS, f"{field}.type")


def _config_map(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "name")
    _apart(site, config_files(site, source, field), field)


def _secret(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "secretName")
    _apart(site, config_files(site, source, field), field)


def _downward_api(site: Site, source: Raw, field: str) -> None:
    file_mode(site, source, "defaultMode", field)
    _apart(site, downward_files(site, source, field), field)


def _apart(site: Site, paths: list[str], field: str) -> None:
    """Check that no file is where another is."""
    if len(paths) > 1:
        files = [(path, f"{field}.items[{index}].path") for index, path in enumerate(paths)]
        overlaps(site, files)


def _image(site: Site, source: Raw, field: str) -> None:
    if not source.get("reference"):
        site.report(TPL_VOLUME_IMAGE, "must name an image, found none", f"{field}.reference")
    policy = source.get("pullPolicy") or None
    one_of(site, TPL_VOLUME_SOURCE, policy, _PULL_POLICIES, f"{field}.pullPolicy")


def _csi(site: Site, source: Raw, field: str) -> None:
    driver = text(site, TPL_VOLUME_SOURCE, source.get("driver"), f"{field}.driver")
    if len(driver) > _LONGEST_DRIVER:
        message = f"must be at most {_LONGEST_DRIVER} characters, found {len(driver)}"
        site.report(TPL_VOLUME_SOURCE, message, f"{field}.driver", "FieldValueTooLong")
    elif driver and (problem := dns_subdomain_problem(driver.lower())):
        site.report(TPL_VOLUME_SOURCE, problem, f"{field}.driver")
    if "nodePublishSecretRef" in source:
        where = f"{field}.nodePublishSecretRef.name"
        name = text(site, TPL_VOLUME_SOURCE, source["nodePublishSecretRef"].get("name"), where)
        if name and (problem := dns_subdomain_problem(name)):
            site.report(TPL_VOLUME_SOURCE, problem, where)


def _nfs(site: Site, source: Raw, field: str) -> None:
    require(site, source, field, "server", "path")
    path = source.get("path", "")
    if path and not path.startswith("/"):
        message = f"must be an absolute path, found {quoted(path)}"
        site.report(TPL_VOLUME_SOURCE, message, f"{field}.path")


def _ephemeral(site: Site, source: Raw, field: str) -> None:
    if "volumeClaimTemplate" in source:
        claim_template(site, source["volumeClaimTemplate"], f"{field}.volumeClaimTemplate")
    else:
        require(site, source, field, "volumeClaimTemplate")


SOURCES: dict[str, SourceCheck] = {
    "configMap": _config_map,
    "csi": _csi,
    "downwardAPI": _downward_api,
    "emptyDir": _empty_dir,
    "ephemeral": _ephemeral,
    "hostPath": _host_path,
    "image": _image,
    "nfs": _nfs,
    "persistentVolumeClaim": ("claimName",),
    "projected": projected,
    "secret": _secret,
    **{name: volume_source(name, check) for name, check in VENDOR_SOURCES.items()},
}
"""Every source of a volume, with its check."""
