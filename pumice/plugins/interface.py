"""The interface of a job plugin.

A plugin reads a Job and returns data: annotations for the Job, objects for it, and edits of each of its pods. It is
pure: it reads no cluster, writes nothing, has no state between calls, and depends only on its arguments. The controller
creates the objects, and admission writes the annotations. So the controller, the pod webhook, `pumice render` and tests
use the same plugin, and applying it twice equals applying it once.

Subclass `JobPlugin`, set `name` and `summary`, and override what the plugin needs: the default of every method returns
nothing.

A plugin cannot create keys. It specifies the type of a pair and the names of the keys in a Secret. The controller creates
the pair with the Secret and keeps it as long as the Secret exists, also when other fields change.

Plugins may come from other packages, and Python does not enforce the annotations of their methods. A result of a wrong type
is reported here, with the plugin that returned it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from pumice.api.fields import FieldError
from pumice.api.jobs import Job, Task
from pumice.api.json_words import quoted
from pumice.api.kinds import Kind, of_object
from pumice.api.meta import Raw
from pumice.api.raw import object_in
from pumice.plugins.arguments import ArgumentSpec, Values
from pumice.plugins.edits import PodEdits

# ruff: noqa: ARG002 (the defaults want nothing, so they look at nothing)


Algorithm = Literal["rsa", "ed25519"]
"""`rsa`: 2048 bits, PKCS#1 PEM; `ed25519`: OpenSSH's own PEM."""


@dataclass(frozen=True, slots=True)
class KeySecret:
    """A Secret with a key pair.

    Attributes:
        name: Name of the Secret.
        namespace: Its namespace.
        algorithm: Type of the pair.
        private_key: Key of `data` for the private key.
        public_keys: Keys of `data` for the public key, in OpenSSH's format on one line.
        texts: The rest of `data`, which is updated.
    """

    name: str
    namespace: str
    algorithm: Algorithm
    private_key: str
    public_keys: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict)


class PluginError(Exception):
    """A plugin cannot be registered, is unknown, or cannot wire a pod; the message names it."""


PodEditor = Callable[[Task, int], PodEdits]
"""Returns the edits for the pod of a task at an index, for a prepared Job."""


class Findings(NamedTuple):
    """Errors, for which a Job is refused, and warnings."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()


class JobPlugin:
    """Base of all job plugins.

    Attributes:
        name: Name in `spec.plugins`.
        summary: One sentence for the documentation.
        requires: Plugins that admission adds to a Job that names this one.
        after: Plugins that are applied before this one if a Job names both. Variables of a pod have this order, so a
            later plugin's can refer to an earlier one's.
        arguments: Its flags.
    """

    name: str = ""
    summary: str = ""
    requires: tuple[str, ...] = ()
    after: tuple[str, ...] = ("svc", "ssh", "env")
    arguments: ArgumentSpec = ArgumentSpec()

    def check(self, job: Job, values: Values) -> Findings:
        """Check the Job, for example whether its tasks have the roles that the plugin needs.

        It must not raise for any Job.
        """
        return Findings()

    def in_effect(self, job: Job, values: Values, name: str) -> Any:
        """The value of an argument whose default depends on the rest of the Job.

        Warnings about an invalid argument name it as the value that is used instead.
        """
        return values[name]

    def job_annotations(self, job: Job, values: Values) -> dict[str, str]:
        """Annotations for the Job; existing annotations are kept."""
        return {}

    def objects(self, job: Job, values: Values) -> Iterable[Raw]:
        """Objects that the plugin wants for the Job, as manifests without owner references."""
        return ()

    def secrets(self, job: Job, values: Values) -> Iterable[KeySecret]:
        """Secrets with a key pair, which is created once and then kept."""
        return ()

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:
        """Edits of the pod of a task at an index (from 0)."""
        return PodEdits()

    def for_job(self, job: Job, values: Values) -> PodEditor:
        """Prepare what all pods of a Job share, and return the function that edits one.

        Override this method instead of `pod_edits` if the preparation is expensive: it is called once for a
        Job, and the function that it returns once for each pod.
        """
        return partial(self.pod_edits, job, values)


_NOTHING = Findings()
_LONGEST = 60
"""Maximum length of a wrong result in a message."""


def fault_of_findings(found: Any) -> str:
    """What is wrong with the result of `check`; empty if it is valid."""
    if not isinstance(found, Findings):
        return f"check gives {_shown(found)}, expected Findings"
    if found == _NOTHING:
        return ""
    for name in ("errors", "warnings"):
        listed = getattr(found, name)
        if not isinstance(listed, tuple | list):
            return f"check gives {_shown(listed)} for {name}, expected a tuple of FieldError"
        for each in listed:
            if not isinstance(each, FieldError):
                return f"check has {_shown(each)} among its {name}, expected FieldError"
    return ""


def fault_of_annotations(found: Any) -> str:
    """What is wrong with the result of `job_annotations`; empty if it is valid."""
    if not isinstance(found, Mapping):
        return f"job_annotations gives {_shown(found)}, expected a dict of texts"
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, str):
            return f"job_annotations gives {_shown(value)} for {_shown(key)}, expected texts"
    return ""


def fault_of_objects(found: list[Any]) -> str:
    """What is wrong with the result of `objects`; empty if it is valid."""
    for each in found:
        if not isinstance(object_in(each, "metadata").get("name"), str):
            return f"objects gives {_shown(each)}, expected a manifest with a name"
        if of_object(each) is None:
            what = f"{each.get('apiVersion')} {each.get('kind')}"
            return f"objects gives a {what}, which is no kind that Pumice knows"
    return ""


def fault_of_secrets(found: list[Any]) -> str:
    """What is wrong with the result of `secrets`; empty if it is valid."""
    for each in found:
        if not isinstance(each, KeySecret):
            return f"secrets gives {_shown(each)}, expected KeySecret"
    return ""


def fault_of_editor(found: Any) -> str:
    """What is wrong with the result of `for_job`; empty if it is valid."""
    if callable(found):
        return ""
    return f"for_job gives {_shown(found)}, expected a function of a task and an index"


def fault_of_edits(found: Any) -> str:
    """What is wrong with edits that could be applied and would make an invalid pod; empty if they are valid.

    Other invalid edits fail when they are applied.
    """
    if not isinstance(found, PodEdits):
        return f"pod_edits gives {_shown(found)}, expected PodEdits"
    env: Any = found.env
    for variable in env:
        if not isinstance(variable.value, str):
            return f"the value of {variable.name} is {_shown(variable.value)}, expected text"
    return ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


Derived = tuple[str, str, str | None]
"""A name that contains the Job's: its object in words, the name, and its problem."""


def manifest(kind: Kind, name: str, namespace: str, **sections: Any) -> dict[str, Any]:
    """The manifest of an object, without owner references."""
    metadata = {"name": name, "namespace": namespace}
    return {**kind.type_meta, "metadata": metadata, **sections}


def name_errors(job: Job, plugin: str, derived: Iterable[Derived]) -> list[FieldError]:
    """Refuse a Job whose name makes another name invalid; a Job without a name is not checked.

    Args:
        job: The Job.
        plugin: Name of the plugin.
        derived: The names that contain the Job's.
    """
    if not job.metadata.name:
        return []
    return [
        FieldError(
            "metadata.name",
            f"plugin {plugin} names a {what} {quoted(name)} after the Job, which is invalid: {problem}; "
            "choose another name for the Job",
            "JOB-PLUGIN-NAME",
        )
        for what, name, problem in derived
        if problem
    ]
