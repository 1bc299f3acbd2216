"""Names: what Kubernetes accepts, and the ones that Pumice derives from a Job."""

import re

from pumice.api.remembering import remembered

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
_PORT_NAME_LENGTH = 15

RANDOM_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of a generated suffix of a name, which make no words; as in Kubernetes."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*", re.ASCII)
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_PORT_NAME = re.compile(r"(?=[-0-9]*[a-z])[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_PORT_CHARACTERS = re.compile(r"[-a-z0-9]+", re.ASCII)
_PORT_LETTER = re.compile(r"[a-z]", re.ASCII)
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_ENV_NAME = bytes(each for each in range(0x20, 0x7F) if each != ord("="))
_HEADER_NAME = re.compile(r"[-A-Za-z0-9]+", re.ASCII)


@remembered(4096)
def dns_label_problem(name: str) -> str | None:
    """Explain why a string is not a valid DNS-1123 label (pod, container and task names); None if it is."""
    if len(name) > LABEL_LENGTH:
        return f"must be at most {LABEL_LENGTH} characters, found {len(name)}"
    if not _LABEL.fullmatch(name):
        return (
            "a lowercase RFC 1123 label must consist of lowercase letters, digits and '-', and start and end "
            f'with a letter or digit, found "{name}"'
        )
    return None


def service_name_problem(name: str) -> str | None:
    """Explain why a string is not a valid DNS-1035 label (Service names); None if it is."""
    if len(name) > LABEL_LENGTH:
        return f"must be at most {LABEL_LENGTH} characters, found {len(name)}"
    if not _SERVICE.fullmatch(name):
        return (
            "must consist of lowercase letters, digits and '-', start with a letter and end with "
            f'a letter or digit, found "{name}"'
        )
    return None


def dns_subdomain_problem(name: str) -> str | None:
    """Explain why a string is not a valid DNS-1123 subdomain (object names); None if it is."""
    if len(name) > SUBDOMAIN_LENGTH:
        return f"must be at most {SUBDOMAIN_LENGTH} characters, found {len(name)}"
    if not _SUBDOMAIN.fullmatch(name):
        return (
            "a lowercase RFC 1123 subdomain must consist of lowercase letters, digits, '-' and '.', and start "
            f'and end with a letter or digit, found "{name}"'
        )
    return None


def qualified_name_problem(name: str) -> str | None:
    """Explain why a string is not a valid qualified name (`prefix/name`; label and annotation keys); None if it is."""
    prefix, slash, base = name.rpartition("/")
    if "/" in prefix:
        return f'must have at most one "/", between a domain and a name, found "{name}"'
    if slash and (problem := dns_subdomain_problem(prefix)):
        return f"invalid prefix: {problem}"
    if len(base) > LABEL_LENGTH:
        where = "name part " if slash else ""
        return f"{where}must be at most {LABEL_LENGTH} characters, found {len(base)}"
    if not _QUALIFIED.fullmatch(base):
        return (
            "name part must consist of alphanumeric characters, '-', '_' and '.', and start and end with an "
            f'alphanumeric character, found "{name}"'
        )
    return None


def label_value_problem(value: str) -> str | None:
    """Explain why a string is not a valid label value; None if it is (the empty string is valid)."""
    if not value:
        return None
    if len(value) > LABEL_LENGTH:
        return f"must be at most {LABEL_LENGTH} characters, found {len(value)}"
    if not _QUALIFIED.fullmatch(value):
        return (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' and '.', and "
            f'start and end with an alphanumeric character, found "{value}"'
        )
    return None


def env_name_problem(name: str) -> str | None:
    """Explain why a string does not name a valid environment variable; None if it does.

    Since version 1.34 Kubernetes takes all printable ASCII but `=`.
    """
    # Admission checks all names of a container together; deleting the valid characters is the fastest check of many names.
    if name and name.isascii() and not name.encode().translate(None, _ENV_NAME):
        return None
    return f"a valid environment variable name must consist of printable ASCII characters other than '=', found \"{name}\""


@remembered(1024)
def port_name_problem(name: str) -> str | None:
    """Explain why a string is not a valid IANA service name (names of container ports); None if it is."""
    if len(name) > _PORT_NAME_LENGTH:
        return f'must be at most {_PORT_NAME_LENGTH} characters, found {len(name)} in "{name}"'
    if _PORT_NAME.fullmatch(name):
        return None
    if not _PORT_CHARACTERS.fullmatch(name):
        problem = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    elif not _PORT_LETTER.search(name):
        problem = "must contain at least one letter (a-z)"
    elif "--" in name:
        problem = "must not contain consecutive hyphens"
    else:
        problem = "must not start or end with a hyphen"
    return f'{problem}, found "{name}"'


def config_key_problem(key: str) -> str | None:
    """Explain why a string is not a valid key of a ConfigMap or a Secret; None if it is."""
    if len(key) > SUBDOMAIN_LENGTH:
        return f"must be at most {SUBDOMAIN_LENGTH} characters, found {len(key)}"
    if not _CONFIG_KEY.fullmatch(key):
        return f"must consist of letters, digits, '-', '_' and '.', found \"{key}\""
    if key == "." or key.startswith(".."):
        return f"must not be '.' and not start with '..', found \"{key}\""
    return None


def header_name_problem(name: str) -> str | None:
    """Explain why a string does not name a valid HTTP header of a probe; None if it does."""
    if not _HEADER_NAME.fullmatch(name):
        return f"must consist of letters, digits and '-', found \"{name}\""
    return None


def default_task_name(index: int) -> str:
    """Name that admission gives to the unnamed task at this position: `default0` and so on."""
    return f"default{index}"


def pod_name(job: str, task: str, index: int) -> str:
    """Name of a Job's pod: `<job>-<task>-<index>`."""
    return f"{job}-{task}-{index}"


def pod_index(name: str) -> str:
    """Index of a Job's pod as text, empty when the name has fewer than three `-` parts, as Volcano reads it."""
    parts = name.split("-")
    return parts[-1] if len(parts) >= 3 else ""


def pod_group_name(job: str, uid: str) -> str:
    """Name of a Job's PodGroup: `<job>-<uid>`."""
    return f"{job}-{uid}"


def hosts_config_map(job: str) -> str:
    """Name of the ConfigMap (and volume) that plugin `svc` keeps: `<job>-svc`."""
    return f"{job}-svc"


def ssh_secret(job: str) -> str:
    """Name of the Secret (and volume) that plugin `ssh` keeps: `<job>-ssh`."""
    return f"{job}-ssh"


def address(hostname: str, subdomain: str) -> str:
    """Namespace-relative DNS name of a pod: `<hostname>.<subdomain>`."""
    return f"{hostname}.{subdomain}"
