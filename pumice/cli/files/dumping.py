"""YAML that Kubernetes reads with the intended types."""

from collections.abc import Iterable
from typing import Any

import yaml

from pumice.api import scalars

__all__ = ["dump"]

_BaseDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _ManifestDumper(_BaseDumper):  # type: ignore[misc]  # the C dumper where there is one
    """The safe dumper, which quotes strings that Kubernetes would read as other types."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write shared parts in full."""
        del data
        return True

    def represent_text(self, text: str) -> Any:
        """Text of several lines as a block."""
        return self.represent_scalar(f"{scalars.TAG}str", text, style="|" if "\n" in text else None)


_ManifestDumper.add_representer(str, _ManifestDumper.represent_text)
_NUMBERS = [(f"{scalars.TAG}int", scalars.INTEGER), (f"{scalars.TAG}float", scalars.FLOAT)]
_ManifestDumper.yaml_implicit_resolvers = {
    first: [*known, *(_NUMBERS if first in scalars.NUMERIC else ())]
    for first, known in _BaseDumper.yaml_implicit_resolvers.items()
}


def dump(documents: Iterable[Any]) -> str:
    """Write values as YAML documents without control characters."""
    documents = list(documents)
    text = _dumped(documents, allow_unicode=True)
    if text.replace("\n", "").isprintable():
        return text
    return _dumped(documents, allow_unicode=False)


def _dumped(documents: list[Any], *, allow_unicode: bool) -> str:
    text: str = yaml.dump_all(
        documents,
        Dumper=_ManifestDumper,
        sort_keys=False,
        width=100,
        explicit_start=True,
        allow_unicode=allow_unicode,
    )
    return text
