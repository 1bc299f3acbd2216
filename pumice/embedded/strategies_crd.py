"""Rules of CustomResourceDefinitions: how a definition is completed and accepted."""

from pumice.api import structural
from pumice.api.fields import FieldError
from pumice.embedded import shapes
from pumice.embedded.crds import compiled
from pumice.embedded.naming import plain_label_problem
from pumice.embedded.storage import Obj
from pumice.embedded.strategies import Strategy, field_invalid, field_required

__all__ = ["CLEANUP", "CrdStrategy"]

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer that keeps a definition until the objects of its kind are gone."""


class CrdStrategy(Strategy):
    """A definition is established at once: nothing here has to wait for anything."""

    shape = shapes.CRD

    def __init__(self) -> None:
        super().__init__(has_status=True, has_generation=True)

    def default(self, obj: Obj) -> None:
        """Complete the names and the conversion."""
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind", "")
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
        spec.setdefault("conversion", {"strategy": "None"})

    def prepare_create(self, obj: Obj) -> None:
        """Accept the names and establish the kind."""
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)
        moment = obj["metadata"]["creationTimestamp"]

        def condition(type_: str, reason: str, message: str) -> Obj:
            return {
                "type": type_,
                "status": "True",
                "lastTransitionTime": moment,
                "reason": reason,
                "message": message,
            }

        obj["status"] = {
            "conditions": [
                condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                condition(
                    "Established", "InitialNamesAccepted", "the initial names have been accepted"
                ),
            ],
            "acceptedNames": obj["spec"]["names"],
            "storedVersions": [
                version.get("name")
                for version in obj["spec"].get("versions") or ()
                if version.get("storage")
            ],
        }

    def validate(self, obj: Obj, /) -> list[FieldError]:
        """The name is `<plural>.<group>`, and exactly one version is stored."""
        spec, name = obj["spec"], obj["metadata"]["name"]
        names, versions = spec["names"], spec.get("versions") or []
        errors = [
            field_required(path)
            for path, value in (
                ("spec.group", spec.get("group")),
                ("spec.versions", versions),
                ("spec.names.plural", names.get("plural")),
                ("spec.names.kind", names.get("kind")),
                ("spec.scope", spec.get("scope")),
            )
            if not value
        ]
        if errors:
            return errors
        expected = f"{names['plural']}.{spec['group']}"
        if name != expected:
            why = f'must be spec.names.plural+"."+spec.group, expected {expected}'
            errors.append(field_invalid("metadata.name", name, why))
        if spec["scope"] not in {"Namespaced", "Cluster"}:
            message = (
                f'Unsupported value: "{spec["scope"]}": supported values: "Cluster", "Namespaced"'
            )
            errors.append(
                FieldError("spec.scope", message, "API-UNSUPPORTED", "FieldValueNotSupported")
            )
        if sum(bool(version.get("storage")) for version in versions) != 1:
            why = "must have exactly one version marked as storage version"
            errors.append(field_invalid("spec.versions", "", why))
        for index, version in enumerate(versions):
            errors += _version_errors(version, f"spec.versions[{index}]")
        return errors


def _version_errors(version: Obj, path: str) -> list[FieldError]:
    errors = []
    name, schema = version.get("name", ""), (version.get("schema") or {}).get("openAPIV3Schema")
    if problem := plain_label_problem(name):
        errors.append(field_invalid(f"{path}.name", name, problem))
    schema_path = f"{path}.schema.openAPIV3Schema"
    if not schema:
        errors.append(field_required(schema_path, "schemas are required"))
    else:
        try:
            compiled(schema)
        except structural.SchemaError as error:
            errors.append(FieldError(schema_path, f"Invalid value: {error}", "API-INVALID"))
    for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
        errors += [
            field_required(f"{path}.additionalPrinterColumns[{number}].{field}")
            for field in ("name", "type", "jsonPath")
            if not column.get(field)
        ]
    errors += [
        field_required(f"{path}.selectableFields[{number}].jsonPath")
        for number, field in enumerate(version.get("selectableFields") or ())
        if not field.get("jsonPath")
    ]
    return errors
