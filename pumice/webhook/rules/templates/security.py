"""Security contexts of pods and containers: users, privileges, profiles, sysctls and the operating system."""

import re

from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.api.names import dns_subdomain_problem
from pumice.webhook.rules.templates.shapes import TPL_FEATURE, FieldRule, refused
from pumice.webhook.rules.templates.table import Row, Site, below

TPL_SECURITY = refused(
    "TPL-SECURITY",
    "a container runs as a valid user, and does not both deny and grant itself privileges",
    "securityContext: {privileged: true, allowPrivilegeEscalation: false}",
)
TPL_SECURITY_OS = refused(
    "TPL-SECURITY-OS",
    "a container's security context has only fields of the pod's operating system",
    "os: {name: windows}, containers: [{securityContext: {runAsUser: 1000}}]",
    reason="FieldValueForbidden",
)
TPL_PROFILE = refused(
    "TPL-PROFILE",
    "seccomp and AppArmor profiles are of a known type, with a localhostProfile if that is Localhost",
    "securityContext: {seccompProfile: {type: Localhost}}",
)
TPL_WINDOWS = refused(
    "TPL-WINDOWS",
    "windowsOptions name a valid Windows user and valid credentials",
    'securityContext: {windowsOptions: {runAsUserName: "a\\\\b\\\\c"}}',
)
TPL_HOST_PROCESS = FieldRule(
    "TPL-HOST-PROCESS",
    "either all containers are processes of the host or none, and only in the host's network",
    "Windows cannot mix them in a pod.",
    "securityContext: {windowsOptions: {hostProcess: true}}",
    compares=True,
)
TPL_HOST_USERS = FieldRule(
    "TPL-HOST-USERS",
    "with users of its own, a pod does not share the processes or the IPC of its node",
    "Files and processes of the node would have no owner in the pod.",
    "hostUsers: false, hostPID: true",
    reason="FieldValueForbidden",
)
TPL_POD_SECURITY = refused(
    "TPL-POD-SECURITY",
    "users and groups of a pod are from 0 to 2147483647, and its policies exist",
    "securityContext: {fsGroup: -1}",
)
TPL_SYSCTL = FieldRule(
    "TPL-SYSCTL",
    "sysctls have names of the kernel, once each, and are not those of a namespace that the node shares",
    "The pod would change its node.",
    "hostNetwork: true, securityContext: {sysctls: [{name: net.core.somaxconn, value: '1024'}]}",
)
TPL_SHARE_PROCESSES = FieldRule(
    "TPL-SHARE-PROCESSES",
    "containers share their processes with each other or with the node, not both",
    "A container is in one process namespace only.",
    "hostPID: true, shareProcessNamespace: true",
    compares=True,
)
TPL_OS = refused(
    "TPL-OS",
    "os is linux or windows, and the pod has no field of the other one",
    "os: {name: windows}, securityContext: {runAsUser: 1000}",
)

_CONTEXT = "securityContext"
_LARGEST_ID = 2**31 - 1
_LONGEST_DOMAIN = 255
_LONGEST_USER = 104
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DOMAIN_LABEL = r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"{_DOMAIN_LABEL}(\.{_DOMAIN_LABEL})*")
_NOT_IN_USERS = frozenset('"/\\:;|=,+*?<>@[]')
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


def _user_problem(name: str) -> str | None:
    """Say why no user of Windows has this name, or None when one could."""
    parts = name.split("\\")
    domain, user = parts[0] if len(parts) > 1 else None, parts[-1]
    if not name or len(parts) > 2:
        problem = r"must be USER or DOMAIN\USER"
    elif any(ord(each) < 32 or ord(each) == 127 for each in name):
        problem = "must have no control characters"
    elif domain is not None and len(domain.encode()) > _LONGEST_DOMAIN:
        problem = f"must have a domain of at most {_LONGEST_DOMAIN} characters"
    elif domain is not None and not (_NETBIOS.fullmatch(domain) or _DOMAIN.fullmatch(domain)):
        problem = "must have a domain as NetBIOS or DNS have them"
    elif not user.strip(". ") or len(user.encode()) > _LONGEST_USER:
        problem = f"must have a user of 1 to {_LONGEST_USER} characters, not dots and spaces alone"
    elif not _NOT_IN_USERS.isdisjoint(user):
        problem = r'must have a user without "/\:;|=,+*?<>@[]'
    else:
        return None
    return f"runAsUserName cannot be {quoted(name)}: {problem}"


def host_processes(site: Site, spec: Raw) -> None:
    """Check that containers agree on being Windows HostProcess containers."""
    whole = _host_process(spec)
    flags: list[bool] = []
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field, ())):
            own = _host_process(container)
            if whole is not None and own not in (None, whole):
                message = "pod hostProcess value must be identical if both are specified: "
                message += f"{str(whole).lower()} for the pod, found {str(own).lower()}"
                where = f"{field}[{index}].securityContext.windowsOptions.hostProcess"
                site.report(TPL_HOST_PROCESS, message, where)
            flags.append(bool(whole if own is None else own))
    if not any(flags):
        return
    if not all(flags):
        message = "all containers must be HostProcess containers, or none of them; found "
        site.report(TPL_HOST_PROCESS, f"{message}{sum(flags)} of {len(flags)}")
    if not site.pod.host_network:
        message = "hostNetwork must be true if pod contains any hostProcess containers"
        site.report(TPL_HOST_PROCESS, message, "hostNetwork")


def _host_process(owner: Raw) -> bool | None:
    found: bool | None = owner.get(_CONTEXT, {}).get("windowsOptions", {}).get("hostProcess")
    return found


def _namespace_problem(site: Site, found: str, _: Raw) -> str:
    """Check that a sysctl belongs to a namespace that the pod does not share with its node."""
    separator = re.search("[./]", found)
    # With slashes between the parts, as in net/ipv4/conf/eno2.100/rp_filter, dots and slashes swap.
    plain = found.translate(_SWAPPED) if separator and separator[0] == "/" else found
    plain = plain.partition("*")[0]
    is_ipc = plain in _IPC_SYSCTLS or plain.startswith("fs.mqueue.")
    shared = "hostNetwork" if plain.startswith("net.") else "hostIPC" if is_ipc else ""
    wrong = (
        f"{quoted(found)} may not be specified when '{shared}' is true: it would change the node"
    )
    return wrong if site.pod.spec.get(shared) else ""


def _container_context(site: Site, context: Raw, field: str, _: Raw) -> None:
    """Check conflicts within the security context of a container, and with the pod's."""
    if context.get("procMount") == "Unmasked" and site.pod.host_users:
        message = "`hostUsers` must be false to use `Unmasked`"
        site.report(TPL_SECURITY, message, f"{field}.procMount")
    if not context.get("allowPrivilegeEscalation", True):
        where = f"{field}.allowPrivilegeEscalation"
        if context.get("privileged"):
            message = "cannot set `allowPrivilegeEscalation` to false and privileged to true"
            site.report(TPL_SECURITY, message, where)
        if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", ()):
            message = "cannot set `allowPrivilegeEscalation` to false and add CAP_SYS_ADMIN to capabilities"
            site.report(TPL_SECURITY, message, where)


def _localhost(site: Site, profile: Raw, field: str, _: Raw) -> None:
    if profile.get("type") == "Localhost" and "localhostProfile" not in profile:
        message = "must be set when type is Localhost, found none"
        site.report(TPL_PROFILE, message, f"{field}.localhostProfile")


def _lacks_users_of_node(site: Site, found: bool, _: Raw) -> bool:
    return found and not site.pod.host_users


_PROFILES = "seccompProfile|appArmorProfile"
_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_trimmed = TPL_PROFILE.matching(
    "must have no white space around it",
    lambda found: found and found == found.strip(),
)
_sysctl = TPL_SYSCTL.matching(
    f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL.pattern}, as net.core.somaxconn does",
    lambda found: len(found) <= _LONGEST_SYSCTL and _SYSCTL.fullmatch(found),
)
_CREDENTIALS = "windowsOptions.gmsaCredentialSpec"
_NO_CREDENTIALS = "gmsaCredentialSpec cannot be an empty string"
_SHARED = (
    Row(_PROFILES, _localhost),
    Row(f"{_PROFILES}.type", TPL_PROFILE.required(), ""),
    Row(f"{_PROFILES}.type", TPL_PROFILE.one_of(*_TYPES, empty=True)),
    Row(f"{_PROFILES}.localhostProfile", TPL_PROFILE.only_with("type", "Localhost")),
    Row("seccompProfile.localhostProfile", TPL_PROFILE.relative_path()),
    Row("appArmorProfile.localhostProfile", _trimmed),
    Row("appArmorProfile.localhostProfile", TPL_PROFILE.at_most(4095, unit=" characters")),
    Row(f"{_CREDENTIALS}Name", TPL_WINDOWS.valid(dns_subdomain_problem)),
    Row(_CREDENTIALS, TPL_WINDOWS.required(message=_NO_CREDENTIALS, reason=None)),
    Row(_CREDENTIALS, TPL_WINDOWS.at_most(64 * 1024, unit=" characters")),
    Row("windowsOptions.runAsUserName", TPL_WINDOWS.valid(_user_problem)),
)
CONTAINER_ROWS = below(
    _CONTEXT,
    Row("", _container_context),
    Row("windowsOptions", TPL_SECURITY_OS.not_for("linux", what="windows options")),
    Row(
        "allowPrivilegeEscalation|appArmorProfile|capabilities|privileged|procMount|readOnlyRootFilesystem"
        "|runAsUser|runAsGroup|seLinuxOptions|seccompProfile",
        TPL_SECURITY_OS.not_for("windows"),
    ),
    Row("runAsUser|runAsGroup", TPL_SECURITY.within(0, _LARGEST_ID)),
    Row("procMount", TPL_SECURITY.one_of("Default", "Unmasked")),
    *_SHARED,
)
"""Fields of a container."""

_mount_option = TPL_FEATURE.breaking(
    "MountOption needs the feature SELinuxMount", lambda _, found, _o: found == "MountOption"
)
_NO_HOST_USERS = "must not be true when `hostUsers` is false"
_OTHER_USERS = "beside hostUsers: false it needs the feature UserNamespacesHostNetworkSupport"
_BOTH_PROCESSES = "ShareProcessNamespace and HostPID cannot both be enabled"
_id = TPL_POD_SECURITY.within(0, _LARGEST_ID)
ROWS = (
    *below(
        _CONTEXT,
        Row("windowsOptions", TPL_OS.not_for("linux", what="windows options")),
        Row(
            "appArmorProfile|fsGroup|fsGroupChangePolicy|runAsGroup|runAsUser|seLinuxChangePolicy|seLinuxOptions"
            "|seccompProfile|supplementalGroups|supplementalGroupsPolicy",
            TPL_OS.not_for("windows"),
        ),
        Row("sysctls", TPL_OS.not_for("windows", empty=True)),
        Row("fsGroup|runAsGroup|runAsUser", _id),
        Row("supplementalGroups[]", _id),
        Row("fsGroupChangePolicy", TPL_POD_SECURITY.one_of("Always", "OnRootMismatch")),
        Row("seLinuxChangePolicy", TPL_POD_SECURITY.one_of("MountOption", "Recursive")),
        Row("seLinuxChangePolicy", _mount_option),
        Row("supplementalGroupsPolicy", TPL_POD_SECURITY.one_of("Merge", "Strict")),
        *_SHARED,
        Row("sysctls", TPL_SYSCTL.unique("name")),
        Row("sysctls[].name", _sysctl, ""),
        Row("sysctls[].name", TPL_SYSCTL.judged(_namespace_problem)),
    ),
    Row("os.name", TPL_OS.one_of("linux", "windows"), ""),
    Row("hostUsers|shareProcessNamespace", TPL_OS.not_for("windows")),
    Row("hostPID|hostIPC", TPL_OS.not_for("windows", empty=True)),
    Row("hostPID|hostIPC", TPL_HOST_USERS.breaking(_NO_HOST_USERS, _lacks_users_of_node)),
    Row("hostNetwork", TPL_FEATURE.breaking(_OTHER_USERS, _lacks_users_of_node)),
    Row("shareProcessNamespace", TPL_SHARE_PROCESSES.excludes("hostPID", _BOTH_PROCESSES)),
)
"""Fields of a pod's spec."""
