"""Decoding of manifests into structs."""

from typing import TypeVar

import msgspec

from pumice.api.kinds import of_object
from pumice.cli.exits import UserError
from pumice.cli.files.manifests import Manifest

__all__ = ["decode"]

T = TypeVar("T")


def decode(manifest: Manifest, type: type[T]) -> T:  # noqa: A002 - the word that msgspec uses
    """Decode a manifest into a struct; the namespace is `default` if it is not set.

    Raises:
        UserError: It has no name, or a field has the wrong type.
    """
    raw = manifest.object
    if not isinstance(raw.get("metadata"), dict) or not manifest.name:
        raise UserError(f"{manifest.source}: metadata.name is missing")
    kind = of_object(raw)
    if kind is not None and kind.namespaced and not raw["metadata"].get("namespace"):
        raw = raw | {"metadata": raw["metadata"] | {"namespace": "default"}}
    try:
        return msgspec.convert(raw, type)
    except msgspec.ValidationError as error:
        raise UserError(f"{manifest.source}: {manifest.identity}: {error}") from None
