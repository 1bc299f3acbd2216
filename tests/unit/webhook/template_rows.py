"""Rows of `tests/cases/templates/*.yaml`: pod templates, and what Pumice says about them."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.table import Site
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit import tables
from tests.unit.webhook.reviewing import merged

Raw = dict[str, Any]

BASE: Raw = {
    "metadata": {"labels": {"app": "t"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
}
"""A template that is in order, onto which rows merge theirs."""

_PLACE = "template"


@dataclass(frozen=True)
class TemplateRow:
    """A template of a table.

    Attributes:
        name: Table, id and title, as a test shows them.
        title: What the row is about.
        template: The template.
        codes: Rules that refuse it, in the order told; empty when it is in order.
        warnings: Rules that warn about it.
        paths: Where, relative to the template; None when the row does not say.
        warned: Where rules warn, sorted; None when the row does not say.
        alone: Below which places only one of Pumice and the API server warns.
        message: Parts of what is said.
        settings: Settings under which it is judged.
        disagrees: Why the API server answers otherwise; empty when it agrees.
    """

    name: str
    title: str
    template: Raw
    codes: list[str]
    warnings: list[str]
    paths: list[str] | None
    warned: list[str] | None
    alone: list[str]
    message: list[str]
    settings: list[str]
    disagrees: str

    def judged(self) -> Case:
        """The case after judging the template."""
        return judged(self.template, self.settings)


def judged(template: Raw, settings: list[str] | None = None) -> Case:
    """The case after judging a template as if it stood at the path `template`."""
    case = Case(AdmissionSettings.from_assignments(settings or ()), Snapshot.of([]), builtin())
    pod_template(Site(case, _PLACE), template)
    return case


def relative(path: str) -> str:
    """A path as rows write it."""
    return path.removeprefix(_PLACE).removeprefix(".")


def pod_of(template: Raw, name: str = "t") -> Raw:
    """A pod made of a template, with a name of its own."""
    metadata = {} if template.get("metadata") is None else template["metadata"]
    if isinstance(metadata, dict):
        own = {"name", "namespace", "generateName"}
        metadata = {key: value for key, value in metadata.items() if key not in own}
        metadata["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}


def template_rows() -> Iterator[TemplateRow]:
    """Every row of every table."""
    for file in sorted((tables.CASES / "templates").glob("*.yaml")):
        for row in tables.table(f"templates/{file.stem}")["cases"]:
            yield TemplateRow(
                name=f"{file.stem}: {row['id']}: {row['title']}",
                title=row["title"],
                template=merged(copy.deepcopy(BASE), row.get("merge", {})),
                codes=row.get("codes", []),
                warnings=row.get("warnings", []),
                paths=row.get("paths"),
                warned=row.get("warned"),
                alone=row.get("alone", []),
                message=row.get("message", []),
                settings=row.get("settings", []),
                disagrees=row.get("disagrees", ""),
            )


def disagreement(row: TemplateRow) -> str:
    """The line of `docs/pod-templates.md` for a row on which the API server answers otherwise."""
    said = " ".join(f"`{code}`" for code in row.codes or row.warnings)
    if row.codes:
        verdict, server = f"refuses: {said}", "takes it"
    else:
        verdict, server = f"warns: {said}" if said else "takes it", "refuses"
    if row.settings:
        verdict += f" (with `{' '.join(row.settings)}`)"
    why = row.disagrees[0].upper() + row.disagrees[1:].rstrip(".")
    return f"| {row.title} | {verdict} | {server} | {why} |"
