"""CustomResourceDefinitions, generated from the structs of `pumice.api`.

The structs say what a field is, their markers what it may hold, their docstrings what it means; from
these three the CRDs follow, so that code, schema and `kubectl explain` cannot drift. `make generate`
writes them to `charts/pumice/crds/`.
"""

from pumice.api.crds.definitions import all_crds, crd, schema_of

__all__ = ["all_crds", "crd", "schema_of"]
