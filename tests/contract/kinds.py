"""What the contract suite works on: paths, objects, and kinds of its own.

The kinds are Pumice's CRDs under another group and other names, so that the suite can share a
control plane with tests that install Pumice there.
"""

from typing import Any

from pumice.api.crds import all_crds

Json = dict[str, Any]
GROUP = "contract.pumice.dev"
JOBS = f"{GROUP}/v1alpha1/samplejobs"
POD_GROUPS = f"{GROUP}/v1beta1/samplepodgroups"
QUEUES = f"{GROUP}/v1beta1/samplequeues"
CRON_JOBS = f"{GROUP}/v1alpha1/samplecronjobs"
JOB_FLOWS = f"{GROUP}/v1alpha1/samplejobflows"
HYPER_NODES = f"{GROUP}/v1alpha1/samplehypernodes"


def definitions() -> list[Json]:
    """CRDs of SampleJob, SampleQueue, SamplePodGroup and all the others."""
    return [_renamed(crd) for crd in all_crds()]


def _renamed(crd: Json) -> Json:
    spec = crd["spec"]
    kind, plural = f"Sample{spec['names']['kind']}", f"sample{spec['names']['plural']}"
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        **crd,
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {**spec, "group": GROUP, "names": names},
    }


def path(resource: str, namespace: str | None = None, *below: str) -> str:
    """Path of a resource: `pods` of the core group, or `group/version/plural`."""
    *root, plural = resource.split("/")
    start = f"/apis/{'/'.join(root)}" if root else "/api/v1"
    place = f"/namespaces/{namespace}" if namespace else ""
    return "/".join([f"{start}{place}/{plural}", *below])


def manifest(resource: str, kind: str, name: str, /, **fields: Any) -> Json:
    """An object; `labels`, `finalizers` and other parts of metadata are told apart from the rest."""
    *root, _ = resource.split("/")
    metadata: Json = {"name": name} if name else {}
    for part in ("labels", "annotations", "finalizers", "ownerReferences", "generateName"):
        if part in fields:
            metadata[part] = fields.pop(part)
    return {"apiVersion": "/".join(root) or "v1", "kind": kind, "metadata": metadata, **fields}


def config_map(name: str, data: dict[str, str] | None = None, **fields: Any) -> Json:
    """A ConfigMap."""
    return manifest("configmaps", "ConfigMap", name, **({"data": data} if data else {}), **fields)


def pod(name: str = "p", **spec: Any) -> Json:
    """A pod with one container."""
    containers = [{"name": "c", "image": "image:1"}]
    return manifest("pods", "Pod", name, spec={"containers": containers, **spec})


def job(name: str = "j", /, **fields: Any) -> Json:
    """A SampleJob."""
    return manifest(JOBS, "SampleJob", name, **{"spec": {"minAvailable": 1}, **fields})


def queue(name: str, **spec: Any) -> Json:
    """A SampleQueue."""
    return manifest(QUEUES, "SampleQueue", name, spec=spec)
