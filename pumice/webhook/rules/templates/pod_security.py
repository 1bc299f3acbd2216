"""Security context of a pod, and what its operating system has no notion of."""

import re

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.features import TPL_FEATURE
from pumice.webhook.rules.templates.security_profiles import apparmor_profile, seccomp_profile
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import one_of, quoted
from pumice.webhook.rules.templates.windows import windows_options

__all__ = ["RULES", "operating_system", "security_context", "share_process_namespace"]

TPL_POD_SECURITY = Rule(
    "TPL-POD-SECURITY",
    "users and groups of a pod are from 0 to 2147483647, and its policies are ones that exist",
    "Kubernetes refuses the pod otherwise.",
    "securityContext: {fsGroup: -1}",
)
TPL_SYSCTL = Rule(
    "TPL-SYSCTL",
    "sysctls have names of the kernel, once each, and are not those of a namespace that the node shares",
    "The pod would change its node.",
    "hostNetwork: true, securityContext: {sysctls: [{name: net.core.somaxconn, value: '1024'}]}",
)
TPL_SHARE_PROCESSES = Rule(
    "TPL-SHARE-PROCESSES",
    "containers share their processes with each other or with the node, not both",
    "There is but one namespace of processes to be in.",
    "hostPID: true, shareProcessNamespace: true",
    compares=True,
)
TPL_OS = Rule(
    "TPL-OS",
    "os is linux or windows, and the pod has nothing that only the other one knows",
    "Kubernetes refuses the pod otherwise.",
    "os: {name: windows}, securityContext: {runAsUser: 1000}",
)

RULES = (TPL_POD_SECURITY, TPL_SYSCTL, TPL_SHARE_PROCESSES, TPL_OS)

_LARGEST_ID = 2**31 - 1
_CHOICES = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
}
_LONGEST_SYSCTL = 253
_SEGMENT = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(rf"({_SEGMENT}[./])*{_SEGMENT}", re.ASCII)
_SWAPPED = str.maketrans("./", "/.")
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}"
    for name in (
        "msg", "msgmax", "msgmnb", "msgmni", "sem", "shm", "shm_rmid_forced", "shmall", "shmmax", "shmmni",
    )
)  # fmt: skip
_SYSTEMS = ("linux", "windows")
_NOT_OF_WINDOWS = ("hostPID", "hostIPC")
_NOT_EVEN_FALSE = ("hostUsers", "shareProcessNamespace")
_NOT_IN_CONTEXT = {
    "linux": ("windowsOptions",),
    "windows": (
        "appArmorProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "runAsGroup",
        "runAsUser",
        "seLinuxChangePolicy",
        "seLinuxOptions",
        "seccompProfile",
        "supplementalGroups",
        "supplementalGroupsPolicy",
    ),
}


def security_context(site: Site, spec: Raw) -> None:
    """Check `securityContext` of a pod."""
    context = spec["securityContext"]
    for name in ("fsGroup", "runAsGroup", "runAsUser"):
        if name in context:
            _number(site, context[name], f"securityContext.{name}")
    for index, number in enumerate(context.get("supplementalGroups", ())):
        _number(site, number, f"securityContext.supplementalGroups[{index}]")
    for name, known in _CHOICES.items():
        if name in context:
            one_of(site, TPL_POD_SECURITY, context[name], known, f"securityContext.{name}")
    if context.get("seLinuxChangePolicy") == "MountOption":
        message = "MountOption needs the feature SELinuxMount"
        site.report(TPL_FEATURE, message, "securityContext.seLinuxChangePolicy")
    seccomp_profile(site, context.get("seccompProfile"), "securityContext.seccompProfile")
    apparmor_profile(site, context.get("appArmorProfile"), "securityContext.appArmorProfile")
    windows_options(site, context.get("windowsOptions"), "securityContext.windowsOptions")
    if "sysctls" in context:
        _sysctls(site, context["sysctls"], spec)


def share_process_namespace(site: Site, spec: Raw) -> None:
    """Check that processes are shared with one side only."""
    if spec["shareProcessNamespace"] and spec.get("hostPID"):
        message = "must not be true where hostPID is true"
        site.report(TPL_SHARE_PROCESSES, message, "shareProcessNamespace")


def operating_system(site: Site, spec: Raw) -> None:
    """Check `os`, and what the pod says that this system does not know."""
    name = spec["os"].get("name", "")
    if name not in _SYSTEMS:
        one_of(site, TPL_OS, name, _SYSTEMS, "os.name")
        return
    fields = []
    context = spec.get("securityContext", {})
    if name == "windows":
        fields += [field for field in _NOT_OF_WINDOWS if spec.get(field)]
        fields += [field for field in _NOT_EVEN_FALSE if field in spec]
    fields += [f"securityContext.{field}" for field in _NOT_IN_CONTEXT[name] if field in context]
    if name == "windows" and context.get("sysctls"):
        fields.append("securityContext.sysctls")
    for field in fields:
        site.report(TPL_OS, f"must not be set for a pod of {name}", field)


def _number(site: Site, number: int, field: str) -> None:
    if not 0 <= number <= _LARGEST_ID:
        site.report(TPL_POD_SECURITY, f"must be from 0 to {_LARGEST_ID}, found {number}", field)


def _sysctls(site: Site, sysctls: list[Raw], spec: Raw) -> None:
    seen: dict[str, int] = {}
    for index, sysctl in entries(sysctls):
        field = f"securityContext.sysctls[{index}].name"
        name = sysctl.get("name", "")
        if len(name) > _LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            message = f"must be a name such as net.core.somaxconn, found {quoted(name)}"
            site.report(TPL_SYSCTL, message, field)
        elif (first := seen.setdefault(name, index)) != index:
            message = f"{quoted(name)} is already the name of securityContext.sysctls[{first}]"
            site.report(TPL_SYSCTL, message, field)
        shared = _namespace(name)
        if shared and spec.get(shared):
            site.report(TPL_SYSCTL, f"{quoted(name)} is the node's where {shared} is true", field)


def _namespace(name: str) -> str:
    """The field that says whether a pod shares the namespace of a sysctl with its node, or an empty text."""
    first = min((name.index(each) for each in "./" if each in name), default=-1)
    # With slashes between the parts, as in net/ipv4/conf/eno2.100/rp_filter, dots and slashes swap.
    plain = name.translate(_SWAPPED) if first >= 0 and name[first] == "/" else name
    plain = plain.partition("*")[0]
    if plain.startswith("net."):
        return "hostNetwork"
    if plain in _IPC_SYSCTLS or plain.startswith("fs.mqueue."):
        return "hostIPC"
    return ""
