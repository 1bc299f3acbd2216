"""Security contexts of containers."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.security_profiles import apparmor_profile, seccomp_profile
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import is_int, one_of
from pumice.webhook.rules.templates.windows import windows_options

__all__ = ["RULES", "security_context"]

TPL_SECURITY = Rule(
    "TPL-SECURITY",
    "a container runs as a user that can be, and does not both deny and grant itself privileges",
    "Kubernetes refuses the pod otherwise.",
    "securityContext: {privileged: true, allowPrivilegeEscalation: false}",
)
TPL_SECURITY_OS = Rule(
    "TPL-SECURITY-OS",
    "a container's security context has only what the pod's operating system knows",
    "Kubernetes refuses the pod otherwise.",
    "os: {name: windows}, containers: [{securityContext: {runAsUser: 1000}}]",
    reason="FieldValueForbidden",
)

RULES = (TPL_SECURITY, TPL_SECURITY_OS)

_LARGEST_ID = 2**31 - 1
_PROC_MOUNTS = ("Default", "Unmasked")
_NOT_OF_WINDOWS = (
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
)
_NOT_OF = {"windows": _NOT_OF_WINDOWS, "linux": ("windowsOptions",)}


def security_context(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `securityContext` of a container."""
    context = container["securityContext"]
    if not isinstance(context, dict):
        return
    for name in ("runAsUser", "runAsGroup"):
        number = context.get(name)
        if is_int(number) and not 0 <= number <= _LARGEST_ID:
            message = f"must be from 0 to {_LARGEST_ID}, found {number}"
            site.report(TPL_SECURITY, message, f"securityContext.{name}")
    _proc_mount(site, context, pod)
    _escalation(site, context)
    seccomp_profile(site, context.get("seccompProfile"), "securityContext.seccompProfile")
    apparmor_profile(site, context.get("appArmorProfile"), "securityContext.appArmorProfile")
    if (options := context.get("windowsOptions")) is not None:
        pod.windows_options = True
        windows_options(site, options, "securityContext.windowsOptions")
    for name in _NOT_OF.get(pod.os, ()):
        if context.get(name) is not None:
            message = f"must not be set for a pod of {pod.os}"
            site.report(TPL_SECURITY_OS, message, f"securityContext.{name}")


def _proc_mount(site: Site, context: Raw, pod: Surroundings) -> None:
    mount, field = context.get("procMount"), "securityContext.procMount"
    one_of(site, TPL_SECURITY, mount, _PROC_MOUNTS, field)
    if mount == "Unmasked" and pod.host_users:
        site.report(TPL_SECURITY, "Unmasked needs hostUsers: false", field)


def _escalation(site: Site, context: Raw) -> None:
    """Check that what may not gain privileges does not have them."""
    if context.get("allowPrivilegeEscalation") is not False:
        return
    field = "securityContext.allowPrivilegeEscalation"
    if context.get("privileged") is True:
        site.report(TPL_SECURITY, "must not be false where privileged is true", field)
    capabilities = context.get("capabilities")
    added = capabilities.get("add") if isinstance(capabilities, dict) else None
    if isinstance(added, list) and "CAP_SYS_ADMIN" in added:
        message = "must not be false where capabilities.add has CAP_SYS_ADMIN"
        site.report(TPL_SECURITY, message, field)
