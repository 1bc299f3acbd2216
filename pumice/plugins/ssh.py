"""Plugin `ssh`: the pods of a Job log in to each other without a password.

The image must contain an ssh server.

The first part of the client's configuration equals Volcano's: one stanza for each pod. The second part matches pods by
pattern, so that later pods are found without a new file, and addresses in host files get the port, too. OpenSSH takes the
first value that it finds, so the patterns change nothing for pods that are listed.
"""

from posixpath import normpath
from typing import Any

from pumice.api import names
from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.kinds import SECRET
from pumice.api.meta import Raw
from pumice.plugins.addresses import (
    OwnerJob,
    hostname_pattern,
    hostnames,
    is_small,
    joined_size,
    subdomain,
)
from pumice.plugins.arguments import (
    PORT,
    TEXT,
    Argument,
    ArgumentSpec,
    BadValueError,
    Values,
    ValueType,
    one_of,
)
from pumice.plugins.edits import Mount, PodEdits
from pumice.plugins.interface import (
    Algorithm,
    Findings,
    JobPlugin,
    KeySecret,
    PodEditor,
    manifest,
    name_errors,
)
from pumice.plugins.kept_volumes import kept_volume_warnings
from pumice.plugins.mpi import mpi_port
from pumice.plugins.ssh_modes import ROOT_MODE, ROOTS_PATH, group_warnings, mode_of_path, modes

LIST_LIMIT = 256 * 1024
"""Size of stanzas in bytes above which only patterns are used; a Secret has at most 1 MiB."""

_HEAD = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
_STANZA = len("Host \n  HostName \n  Port 65535\n")


def client_config(job: Job, port: int, *, strict_upstream: bool = False) -> str:
    """The text of `config`.

    Args:
        job: The Job.
        port: Port of the pods' ssh servers.
        strict_upstream: Whether to write only Volcano's stanzas.
    """
    listed = _listed(job, port) if strict_upstream or _fits(job) else ""
    patterns = "" if strict_upstream else _patterns(job, port)
    return f"{_HEAD}{listed}{patterns}"


def _listed(job: Job, port: int) -> str:
    return "".join(
        f"Host {hostname}\n  HostName {names.address(hostname, subdomain(job, task))}\n  Port {port}\n"
        for task in job.tasks
        for hostname in hostnames(job, task)
    )


def _fits(job: Job) -> bool:
    if is_small(job):
        return True
    size = sum(2 * joined_size(job, task) + task.size * _STANZA for task in job.tasks)
    return size <= LIST_LIMIT


def _patterns(job: Job, port: int) -> str:
    # Tasks of one stem share a pattern.
    patterns = dict.fromkeys(
        (pattern, subdomain(job, task))
        for task in job.tasks
        if (pattern := hostname_pattern(job, task))
    )
    stanzas = [
        f"Host {pattern} !*.*\n  HostName %h.{found}\n  Port {port}\n"
        for pattern, found in patterns
    ]
    subdomains = dict.fromkeys(subdomain(job, task) for task in job.tasks)
    stanzas += [f"Host *.{name}\n  Port {port}\n" for name in subdomains]
    return "".join(stanzas)


_SECRET_LIMIT = 1024 * 1024
"""Bytes of all values of a Secret."""
_FEW_BYTES, _FEW_TASKS = 64 * 1024, 1000
"""Sizes of keys and of a client configuration that are surely below that limit."""

_FOLDER = ".ssh"
_AUTHORIZED = "authorized_keys"
_CONFIG = "config"
_PRIVATE: dict[str, str] = {"rsa": "id_rsa", "ed25519": "id_ed25519"}
# Keys of a Secret of type kubernetes.io/ssh-auth, and of its public half by custom.
_GIVEN_PRIVATE, _GIVEN_PUBLIC = "ssh-privatekey", "ssh-publickey"


def _read_directory(word: str) -> str:
    """Read the directory of the keys; Kubernetes accepts no mount path with a colon."""
    if not word or ":" in word:
        raise BadValueError("a directory without a colon", upstream=word, accepted_upstream=True)
    return word


def _read_secret(word: str) -> str:
    if problem := names.dns_subdomain_problem(word):
        raise ValueError(f"expected the name of a Secret: {problem}")
    return word


class Ssh(JobPlugin):
    """A key pair for the Job, mounted into every container, and a client configuration."""

    name = "ssh"
    summary = "Lets the pods log in to each other by ssh without a password."
    after = ("svc",)
    arguments = ArgumentSpec(
        Argument(
            "ssh-key-file-path",
            ValueType("path", _read_directory),
            ROOTS_PATH,
            "directory of the keys in every container",
        ),
        Argument(
            "ssh-key-type",
            one_of("key type", _PRIVATE),
            "rsa",
            "`rsa` or `ed25519`",
            ours=True,
        ),
        Argument(
            "ssh-key-secret",
            ValueType("name", _read_secret),
            "",
            "Secret of type `kubernetes.io/ssh-auth` with `ssh-privatekey` and `ssh-publickey` to use",
            ours=True,
        ),
        Argument("ssh-private-key", TEXT, "", "private key; better give it by `ssh-key-secret`"),
        Argument("ssh-public-key", TEXT, "", "public key of that private key"),
        Argument(
            "ssh-port", PORT, 22, "port of the ssh servers; that of plugin `mpi` unless given"
        ),
    )

    def check(self, job: Job, values: Values) -> Findings:
        """Refuse invalid names; warn about keys that all users can read."""
        warnings = []
        path = "spec.plugins.ssh"
        if values["ssh-private-key"]:
            text = (
                "--ssh-private-key shows the key to every user who may read the Job; put it into a Secret and "
                "name the Secret with --ssh-key-secret=<secret>"
            )
            warnings.append(FieldError(path, text, "JOB-PLUGIN-SECRET"))
            if not values["ssh-public-key"]:
                text = "--ssh-private-key without --ssh-public-key: no pod accepts a connection of another one"
                warnings.append(FieldError(path, text, "JOB-PLUGIN-SECRET"))
        elif values["ssh-public-key"]:
            text = "--ssh-public-key without --ssh-private-key is ignored: a new pair is made"
            warnings.append(FieldError(path, text, "JOB-PLUGIN-SECRET"))
        if not values.strict_upstream:
            warnings += _path_warnings(values)
            warnings += group_warnings(job, _directory(values))
        warnings += kept_volume_warnings(job, self.name, _secret(job), _paths(values))
        warnings += _address_warnings(job)
        return Findings((*_name_errors(job, values), *_size_errors(job, values)), tuple(warnings))

    def in_effect(self, job: Job, values: Values, name: str) -> Any:
        """The default port is that of plugin `mpi`."""
        return _port(job, values) if name == "ssh-port" else values[name]

    def objects(self, job: Job, values: Values) -> list[Raw]:
        """Secret `<job>-ssh` if it needs no new key."""
        if not (values["ssh-private-key"] or values["ssh-key-secret"]):
            return []
        texts = {_CONFIG: _config(job, values)}
        if not values["ssh-key-secret"]:
            private, *public = _key_files(values)
            texts[private] = values["ssh-private-key"]
            texts |= dict.fromkeys(public, values["ssh-public-key"])
        return [manifest(SECRET, _secret(job), job.metadata.namespace, stringData=texts)]

    def secrets(self, job: Job, values: Values) -> list[KeySecret]:
        """Secret `<job>-ssh` with a key pair for the Job."""
        if values["ssh-private-key"] or values["ssh-key-secret"]:
            return []
        algorithm: Algorithm = values["ssh-key-type"]
        private, *public = _key_files(values)
        return [
            KeySecret(
                _secret(job),
                job.metadata.namespace,
                algorithm,
                private,
                tuple(public),
                {_CONFIG: _config(job, values)},
            )
        ]

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """The files in every container; other files of the directory stay visible."""
        edits = {task.name: _edits(job, values, task.pod_spec()) for task in job.tasks}
        other = _edits(job, values, {})
        return lambda task, _index: edits.get(task.name, other)


def _edits(job: Job, values: Values, spec: Raw) -> PodEdits:
    volume = _secret(job)
    if values.strict_upstream:
        (path,) = _paths(values)
        source = _volume(job, volume, values, mode_of_path(path))
        return PodEdits(volumes=(source,), mounts=(Mount(volume, path, sub_path=_FOLDER),))
    mode, others = modes(spec, _directory(values))
    volumes = [_volume(job, volume, values, mode)]
    mounts: list[Mount] = []
    if others:
        # They come first, so that those containers do not get the volume of the rest.
        (other,) = set(others.values())
        name = _other_volume(job, other)
        volumes.append(_volume(job, name, values, other))
        mounts += _mounts(name, values, frozenset(others))
    mounts += _mounts(volume, values)
    return PodEdits(volumes=tuple(volumes), mounts=tuple(mounts))


def _mounts(volume: str, values: Values, containers: frozenset[str] | None = None) -> list[Mount]:
    return [
        Mount(volume, path, sub_path=f"{_FOLDER}/{file}", containers=containers)
        for path, file in zip(_paths(values), _files(values), strict=True)
    ]


def _directory(values: Values) -> str:
    """Directory of the keys; Kubernetes reads a relative path as one from the root."""
    given: str = values["ssh-key-file-path"]
    return normpath("/" + given.strip("/"))


def _paths(values: Values) -> tuple[str, ...]:
    """Paths at which the containers mount a volume."""
    if values.strict_upstream:
        return (values["ssh-key-file-path"],)
    stem = _directory(values).rstrip("/")
    return tuple(f"{stem}/{file}" for file in _files(values))


def _volume(job: Job, name: str, values: Values, mode: int) -> Raw:
    given, files, own = values["ssh-key-secret"], _files(values), _secret(job)
    if not given:
        secret = {"secretName": own, "items": _items(zip(files, files, strict=True))}
        return {"name": name, "secret": {**secret, "defaultMode": mode}}
    private, public, authorized, config = files
    keys = ((_GIVEN_PRIVATE, private), (_GIVEN_PUBLIC, public), (_GIVEN_PUBLIC, authorized))
    sources = [
        {"secret": {"name": given, "items": _items(keys)}},
        {"secret": {"name": own, "items": _items(((config, config),))}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": mode}}


def _items(pairs: Any) -> list[Raw]:
    return [{"key": key, "path": f"{_FOLDER}/{file}"} for key, file in pairs]


def _key_files(values: Values) -> tuple[str, str, str]:
    """Private key, public key, and `authorized_keys`."""
    private = _PRIVATE[values["ssh-key-type"]]
    return private, f"{private}.pub", _AUTHORIZED


def _files(values: Values) -> tuple[str, ...]:
    return (*_key_files(values), _CONFIG)


def _path_warnings(values: Values) -> list[FieldError]:
    given = values["ssh-key-file-path"]
    if given.startswith("/"):
        return []
    text = f"--ssh-key-file-path={given} is no absolute path: the keys are in {_directory(values)}"
    return [FieldError("spec.plugins.ssh", text, "JOB-PLUGIN-ARGUMENT")]


def _address_warnings(job: Job) -> list[FieldError]:
    """Warn if the pods' names do not resolve."""
    plugins = job.spec.plugins or {}
    served = "svc" in plugins or (isinstance(job, OwnerJob) and job.has_service)
    if served or job.replicas < 2 or all("subdomain" in task.pod_spec() for task in job.tasks):
        return []
    text = "the pods have keys for each other, and no names: nothing makes theirs resolve; name plugin svc, too"
    return [FieldError("spec.plugins.ssh", text, "JOB-PLUGIN-SUBDOMAIN")]


def _config(job: Job, values: Values) -> str:
    return client_config(job, _port(job, values), strict_upstream=values.strict_upstream)


def _port(job: Job, values: Values) -> int:
    port: int = values["ssh-port"]
    if values.strict_upstream:
        return port if 1 <= port <= 65535 else 22
    if "ssh-port" in values.given:
        return port
    return mpi_port(job) or port


def _secret(job: Job) -> str:
    return names.ssh_secret(job.metadata.name)


def _other_volume(job: Job, mode: int) -> str:
    """Name of the volume with the mode that only some containers of a pod need."""
    return f"{_secret(job)}-{'root' if mode == ROOT_MODE else 'user'}"


def _name_errors(job: Job, values: Values) -> list[FieldError]:
    name = _secret(job)
    secret = ("Secret and its volume", name, names.dns_label_problem(name))
    others = []
    if names.dns_label_problem(_other_volume(job, ROOT_MODE)) and not values.strict_upstream:
        others = _other_volumes(job, _directory(values))
    volumes = (("volume", each, names.dns_label_problem(each)) for each in others)
    return name_errors(job, Ssh.name, (secret, *volumes))


def _size_errors(job: Job, values: Values) -> tuple[FieldError, ...]:
    """Refuse keys, and configurations of very many tasks, that are too large for a Secret."""
    texts = [values["ssh-private-key"], *(2 * [values["ssh-public-key"]])]
    if sum(map(len, texts)) < _FEW_BYTES and len(job.tasks) < _FEW_TASKS:
        return ()
    if not values["ssh-private-key"]:
        texts = []
    size = sum(len(each.encode()) for each in (*texts, _config(job, values)))
    if size <= _SECRET_LIMIT:
        return ()
    text = (
        f"plugin ssh would write a Secret of {size} bytes, and Kubernetes takes {_SECRET_LIMIT}; "
        "use shorter keys or fewer tasks"
    )
    return (FieldError("spec.plugins.ssh", text, "JOB-PLUGIN-SIZE"),)


def _other_volumes(job: Job, path: str) -> list[str]:
    wanted = (
        _other_volume(job, mode)
        for task in job.tasks
        for mode in modes(task.pod_spec(), path)[1].values()
    )
    return list(dict.fromkeys(wanted))
