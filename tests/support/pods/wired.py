"""What Pumice makes of a Job: admitted by its webhook's rules, rendered by its controller, with keys that the loop makes."""

from __future__ import annotations

from typing import Any

from pumice.api.fields import FieldError
from pumice.api.kinds import WIRED_OWNERS, of_object
from pumice.cli.files.checking import ManifestChecker, read_settings, registry
from pumice.cli.files.manifests import Manifest, Source
from pumice.controller.jobs.subject import read
from pumice.controller.render import render, render_owner
from pumice.controller.worker.secrets import make_keys, with_keys
from pumice.plugins import Wiring

__all__ = ["Wired", "wired"]

Raw = dict[str, Any]


class Wired:
    """A Job's objects.

    Attributes:
        pods: Its pods, in the order in which they are made.
        warnings: What admission had to say.
    """

    def __init__(self, made: list[Raw], warnings: list[FieldError]) -> None:
        self.warnings = warnings
        self.pods = [each for each in made if each["kind"] == "Pod"]
        self._made = {(each["kind"], each["metadata"]["name"]): each for each in made}

    def get(self, kind: str, name: str) -> Raw | None:
        """An object by kind and name; None where there is none."""
        return self._made.get((kind, name))

    def keep(self, kind: str, of: Wired) -> None:
        """Take over objects that are made once, as the controller keeps them."""
        old = {key: each for key, each in of._made.items() if key[0] == kind}
        self._made |= {key: each for key, each in old.items() if key in self._made}


async def wired(manifest: Raw, *others: Raw) -> Wired:
    """Admit a manifest and make everything that the controller would make of it.

    Args:
        manifest: A Volcano Job, or an object of another kind whose pods plugins can wire.
        others: Objects that the user has made beside it.

    Raises:
        AssertionError: Admission refuses it.
    """
    checker = ManifestChecker(read_settings(()), ())
    found = checker.judge(Manifest(manifest, Source("test")))
    assert found.allowed, found.errors
    job = found.patched
    kind = of_object(job)
    if kind is not None and kind in WIRED_OWNERS:
        return Wired([*render_owner(kind, job, registry()), *others], list(found.warnings))
    made = {(each["kind"], each["metadata"]["name"]): each for each in render(job, registry())}
    for secret in Wiring(read(job), registry()).secrets():
        private, public = await make_keys(secret.algorithm)
        bare = made["Secret", secret.name]
        names = (secret.private_key, *secret.public_keys)
        rest = {key: text for key, text in bare["data"].items() if key not in names}
        made["Secret", secret.name] = with_keys(bare | {"data": rest}, secret, private, public)
    return Wired([*made.values(), *others], list(found.warnings))
