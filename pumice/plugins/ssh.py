"""Plugin `ssh`: the pods of a Job log in to each other without a password.

Source: job specification, section 5 and weaknesses W-02, W-11, W-12. The image brings the ssh server.

A private key must be readable by the user of the container and by no one else whom OpenSSH would
notice: it refuses a key that its own user owns and others may read. Files of a Secret belong to root,
so root needs mode 0600, another user 0644, or 0440 where the pod's fsGroup lets the group read.
"""

from typing import Any

from pumice.api import names
from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.kinds import SECRET
from pumice.plugins.arguments import (
    PORT,
    TEXT,
    Argument,
    ArgumentSpec,
    BadValueError,
    Kind,
    Values,
    one_of,
)
from pumice.plugins.edits import Mount, PodEdits
from pumice.plugins.interface import Findings, JobPlugin, PodEditor, Raw
from pumice.plugins.manifests import Derived, manifest, name_errors
from pumice.plugins.mpi import mpi_port
from pumice.plugins.secrets import Algorithm, KeySecret
from pumice.plugins.ssh_config import client_config

__all__ = ["Ssh"]

_FOLDER = ".ssh"
_ROOTS_PATH = "/root/.ssh"
_AUTHORIZED = "authorized_keys"
_CONFIG = "config"
_PRIVATE: dict[str, str] = {"rsa": "id_rsa", "ed25519": "id_ed25519"}
# Keys of a Secret of type kubernetes.io/ssh-auth, and of its public half by custom.
_GIVEN_PRIVATE, _GIVEN_PUBLIC = "ssh-privatekey", "ssh-publickey"


def _read_directory(word: str) -> str:
    """Read where the keys are mounted; Kubernetes takes no mount path with a colon."""
    if not word or ":" in word:
        raise BadValueError("a directory without a colon", upstream=word, accepted_upstream=True)
    return word


class Ssh(JobPlugin):
    """A key pair for the Job, mounted into every container, and a client configuration."""

    name = "ssh"
    summary = "Lets the pods log in to each other by ssh without a password."
    after = ("svc",)
    arguments = ArgumentSpec(
        Argument(
            "ssh-key-file-path",
            Kind("path", _read_directory),
            _ROOTS_PATH,
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
            TEXT,
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
        """Refuse names that cannot be made, warn about keys that everybody can read."""
        warnings = []
        path = "spec.plugins.ssh"
        if values["ssh-private-key"]:
            text = (
                "--ssh-private-key shows the key to everyone who may read the Job; put it into a Secret and "
                "name that with --ssh-key-secret=<secret>"
            )
            warnings.append(FieldError(path, text, "JOB-PLUGIN-SECRET"))
            if not values["ssh-public-key"]:
                text = "--ssh-private-key without --ssh-public-key: no pod lets another one in"
                warnings.append(FieldError(path, text, "JOB-PLUGIN-SECRET"))
        elif values["ssh-public-key"]:
            text = "--ssh-public-key without --ssh-private-key is ignored: a new pair is made"
            warnings.append(FieldError(path, text, "JOB-PLUGIN-SECRET"))
        return Findings(_name_errors(job), tuple(warnings))

    def objects(self, job: Job, values: Values) -> list[Raw]:
        """Secret `<job>-ssh` where no key has to be made for it."""
        if not (values["ssh-private-key"] or values["ssh-key-secret"]):
            return []
        texts = {_CONFIG: _config(job, values)}
        if not values["ssh-key-secret"]:
            private, *public = _key_files(values)
            texts[private] = values["ssh-private-key"]
            texts |= dict.fromkeys(public, values["ssh-public-key"])
        return [manifest(SECRET, _secret(job), job.metadata.namespace, stringData=texts)]

    def secrets(self, job: Job, values: Values) -> list[KeySecret]:
        """Secret `<job>-ssh` with a key pair of the Job's own."""
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
        """The files in every container; nothing else of the directory is hidden."""
        edits = {
            task.name: _edits(job, values, _mode(task.pod_spec(), values)) for task in job.tasks
        }
        other = _edits(job, values, _mode({}, values))
        return lambda task, _index: edits.get(task.name, other)


def _edits(job: Job, values: Values, mode: int) -> PodEdits:
    volume = _secret(job)
    files = (*_key_files(values), _CONFIG)
    path = values["ssh-key-file-path"].rstrip("/")
    mounts = [Mount(volume, f"{path}/{file}", sub_path=f"{_FOLDER}/{file}") for file in files]
    if values.strict_upstream:
        mounts = [Mount(volume, values["ssh-key-file-path"], sub_path=_FOLDER)]
    return PodEdits(volumes=(_volume(volume, values, files, mode),), mounts=tuple(mounts))


def _volume(name: str, values: Values, files: tuple[str, ...], mode: int) -> Raw:
    given = values["ssh-key-secret"]
    if not given:
        secret = {"secretName": name, "items": _items(zip(files, files, strict=True))}
        return {"name": name, "secret": {**secret, "defaultMode": mode}}
    private, public, authorized, config = files
    keys = ((_GIVEN_PRIVATE, private), (_GIVEN_PUBLIC, public), (_GIVEN_PUBLIC, authorized))
    sources = [
        {"secret": {"name": given, "items": _items(keys)}},
        {"secret": {"name": name, "items": _items(((config, config),))}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": mode}}


def _items(pairs: Any) -> list[Raw]:
    return [{"key": key, "path": f"{_FOLDER}/{file}"} for key, file in pairs]


def _key_files(values: Values) -> tuple[str, str, str]:
    """Private key, public key, and the file of those who may log in."""
    private = _PRIVATE[values["ssh-key-type"]]
    return private, f"{private}.pub", _AUTHORIZED


def _mode(spec: Raw, values: Values) -> int:
    """Mode of the files, by the user that the containers run as; Volcano goes by the path alone."""
    by_path = 0o600 if values["ssh-key-file-path"] == _ROOTS_PATH else 0o644
    users = _users(spec)
    if values.strict_upstream or not users:
        return by_path
    if users == {0}:
        return 0o600
    return 0o440 if "fsGroup" in _context(spec) and 0 not in users else 0o644


def _users(spec: Raw) -> set[int]:
    """Users that the pod's containers say they run as, -1 for one that is not root's."""
    pod = _user(_context(spec))
    found = set()
    containers = spec.get("containers")
    for container in containers if isinstance(containers, list) else ():
        own = _user(_context(container) if isinstance(container, dict) else {})
        user = own if own is not None else pod
        if user is not None:
            found.add(user)
    return found


def _user(context: Raw) -> int | None:
    user = context.get("runAsUser")
    if isinstance(user, int) and not isinstance(user, bool):
        return user
    return -1 if context.get("runAsNonRoot") is True else None


def _context(owner: Raw) -> Raw:
    found = owner.get("securityContext")
    return found if isinstance(found, dict) else {}


def _config(job: Job, values: Values) -> str:
    port = values["ssh-port"]
    if values.strict_upstream:
        port = port if 1 <= port <= 65535 else 22
    elif "ssh-port" not in values.given:
        port = mpi_port(job) or port
    return client_config(job, port, strict_upstream=values.strict_upstream)


def _secret(job: Job) -> str:
    return names.ssh_secret(job.metadata.name)


def _name_errors(job: Job) -> tuple[FieldError, ...]:
    name = _secret(job)
    secret = Derived("Secret and its volume", name, names.dns_label_problem(name))
    return name_errors(job, Ssh.name, (secret,))
