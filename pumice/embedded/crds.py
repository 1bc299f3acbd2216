"""CustomResourceDefinitions: the resource that one defines, and how a definition is completed and accepted."""

import copy
from functools import lru_cache
from typing import Any

import msgspec

from pumice.api import structural
from pumice.api.fields import FieldError
from pumice.api.kinds import Kind
from pumice.api.structural import Structural
from pumice.api.structural_rules import SchemaError
from pumice.embedded import schemas
from pumice.embedded.naming import plain_label_problem
from pumice.embedded.resources import STATUS, PrinterColumn, Resource
from pumice.embedded.storage import Obj
from pumice.embedded.strategies import Strategy, field_invalid, field_required

_AGE = PrinterColumn("Age", ".metadata.creationTimestamp", "date", "", 0)


class CustomStrategy(Strategy):
    """A kind of a CRD: its schema prunes, defaults and checks."""

    custom = True

    def __init__(self, schema: Structural, *, has_status: bool) -> None:
        super().__init__(has_status=has_status, has_generation=True, unconditional_update=False)
        self.schema = schema

    def decode(self, obj: Obj) -> list[str]:
        """Prune, then default."""
        dropped = self.schema.prune_paths(obj)
        self.schema.default(obj)
        return dropped

    def default(self, obj: Obj) -> None:
        """Write the schema's defaults."""
        self.schema.default(obj)

    def prepare_status(self, new: Obj, old: Obj) -> Obj:
        """All of the old object but its status; metadata is not written here."""
        result = dict(old)
        if "status" in new:
            result["status"] = new["status"]
        else:
            result.pop("status", None)
        return result

    def wants_generation(self, new: Obj, old: Obj) -> bool:
        """Anything but metadata counts, and but status where that is a subresource."""
        ignored = {"metadata", "status"} if self.has_status else {"metadata"}
        keys = (new.keys() | old.keys()) - ignored
        return any(new.get(key) != old.get(key) for key in keys)

    def validate(self, obj: Obj, /) -> list[FieldError]:
        """All violations of the schema."""
        return self.schema.validate(obj)


def compiled(schema: dict[str, Any]) -> Structural:
    """Compile a schema; equal schemas are compiled once.

    A definition is compiled when it is checked and again when it is served, and tests start hundreds of
    clusters with the same definitions.

    Raises:
        SchemaError: The schema is invalid.
    """
    return _compiled(msgspec.json.encode(schema))


@lru_cache(maxsize=64)
def _compiled(schema: bytes) -> Structural:
    return structural.compile(msgspec.json.decode(schema))


def resource_of(crd: Obj) -> list[Resource]:
    """The resources that a definition serves, one a version; all of them share their objects."""
    spec = crd["spec"]
    return [_version(crd, version) for version in spec["versions"] if version.get("served", True)]


def _version(crd: Obj, version: dict[str, Any]) -> Resource:
    spec = crd["spec"]
    names = spec["names"]
    has_status = "status" in (version.get("subresources") or {})
    kind = Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        status=has_status,
    )
    schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
    columns = version.get("additionalPrinterColumns")
    return Resource(
        kind=kind,
        strategy=CustomStrategy(compiled(schema), has_status=has_status),
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        categories=tuple(names.get("categories") or ()),
        subresources=(STATUS,) if has_status else (),
        columns=tuple(_column(each) for each in columns) if columns else (_AGE,),
        schema=schema,
        fields=tuple(
            each["jsonPath"].removeprefix(".") for each in version.get("selectableFields") or ()
        ),
        crd=crd["metadata"]["name"],
    )


def _column(column: dict[str, Any]) -> PrinterColumn:
    return PrinterColumn(
        name=column["name"],
        path=column["jsonPath"],
        type=column["type"],
        description=column.get("description")
        or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
        priority=column.get("priority", 0),
        format=column.get("format", ""),
    )


CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer that keeps a definition until the objects of its kind are gone."""


class CrdStrategy(Strategy):
    """A definition is established at once: nothing here has to wait for anything."""

    types = schemas.CRD

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
        except SchemaError as error:
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
