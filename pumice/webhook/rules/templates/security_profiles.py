"""Profiles that confine a container, of seccomp and AppArmor; pods and containers have them alike."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Site
from pumice.webhook.rules.templates.values import one_of, relative_path, text

__all__ = ["RULES", "apparmor_profile", "seccomp_profile"]

TPL_PROFILE = Rule(
    "TPL-PROFILE",
    "seccomp and AppArmor profiles are of a known type, with a localhostProfile if that is Localhost",
    "Kubernetes refuses the pod otherwise.",
    "securityContext: {seccompProfile: {type: Localhost}}",
)

RULES = (TPL_PROFILE,)

_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PATH = 4095


def seccomp_profile(site: Site, profile: object, field: str) -> None:
    """Check a seccomp profile.

    Args:
        site: Where to report.
        profile: The profile.
        field: Where it is, from the site on.
    """
    path = _localhost(site, profile, field)
    if path is not None:
        relative_path(site, TPL_PROFILE, path, f"{field}.localhostProfile")


def apparmor_profile(site: Site, profile: object, field: str) -> None:
    """Check an AppArmor profile; arguments are those of `seccomp_profile`."""
    name = _localhost(site, profile, field)
    if name is None:
        return
    where = f"{field}.localhostProfile"
    if not name.strip() or name != name.strip():
        site.report(TPL_PROFILE, f'must have no white space around it, found "{name}"', where)
    if len(name.encode()) > _LONGEST_PATH:
        message = f"must be at most {_LONGEST_PATH} bytes, found {len(name.encode())}"
        site.report(TPL_PROFILE, message, where)


def _localhost(site: Site, profile: object, field: str) -> str | None:
    """Check the type of a profile.

    Returns:
        The profile of the node that it names; None when it names none, which is reported where it
        must.
    """
    if not isinstance(profile, dict):
        return None
    kind = text(site, TPL_PROFILE, profile.get("type"), f"{field}.type")
    one_of(site, TPL_PROFILE, kind or None, _TYPES, f"{field}.type")
    local, where = profile.get("localhostProfile"), f"{field}.localhostProfile"
    if kind == "Localhost":
        if local is None:
            site.report(TPL_PROFILE, "must be set where type is Localhost, found none", where)
        return local if isinstance(local, str) else None
    if local is not None and kind:
        site.report(TPL_PROFILE, f"must not be set where type is {kind}", where)
    return None
