"""What Kubernetes has given up: labels of nodes, annotations, volumes and fields, most with a successor.

The API server says so in a warning when somebody creates a pod. Pods of a Job are made by a controller,
which nobody watches, so Pumice says it when the Job is applied. Of what has no effect any more it says just
that: most of it makes pods wait for ever, or do without what they were to have.

Source: the warnings that a Kubernetes API server of version 1.36 gives for pods, and what its OpenAPI
documents call deprecated.
"""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.volume_needs import SourceCheck, require

__all__ = [
    "ANNOTATIONS",
    "NODE_LABELS",
    "RULES",
    "VOLUMES",
    "alias",
    "annotation",
    "node_label",
    "socket_hook",
    "volume_source",
]

TPL_DEPRECATED = Rule(
    "TPL-DEPRECATED",
    "a template uses nothing that Kubernetes has deprecated",
    "Much of it has no effect any more, and the rest will have none: pods wait for nodes with an old label, or "
    "for a volume that no node can mount.",
    "nodeSelector: {beta.kubernetes.io/arch: amd64}",
    level="warn",
)

RULES = (TPL_DEPRECATED,)

NODE_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "taints and tolerations",
    "app.kubernetes.io/created-by": "",
}
"""Labels of nodes with their successors; the last one has none."""

ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/affinity": "spec.affinity",
    "scheduler.alpha.kubernetes.io/critical-pod": "spec.priorityClassName",
    "scheduler.alpha.kubernetes.io/tolerations": "spec.tolerations",
    "security.alpha.kubernetes.io/sysctls": "spec.securityContext.sysctls",
    "security.alpha.kubernetes.io/unsafe-sysctls": "spec.securityContext.sysctls",
}
"""Annotations without an effect, with the fields that have it."""

_CLONE = "an init container that clones into an emptyDir"
_CSI = "the CSI driver "
VOLUMES = {
    "awsElasticBlockStore": f"{_CSI}ebs.csi.aws.com",
    "azureDisk": f"{_CSI}disk.csi.azure.com",
    "azureFile": f"{_CSI}file.csi.azure.com",
    "cephfs": "",
    "cinder": f"{_CSI}cinder.csi.openstack.org",
    "flexVolume": "a CSI driver",
    "flocker": "",
    "gcePersistentDisk": f"{_CSI}pd.csi.storage.gke.io",
    "gitRepo": _CLONE,
    "glusterfs": "",
    "photonPersistentDisk": "",
    "portworxVolume": f"{_CSI}pxd.portworx.com",
    "quobyte": "",
    "rbd": "",
    "scaleIO": "",
    "storageos": "",
    "vsphereVolume": f"{_CSI}csi.vsphere.vmware.com",
}
"""Sources of volumes, with what there is instead; an empty text where Kubernetes has taken the source out."""


def node_label(site: Site, key: str, field: str) -> None:
    """Say that a label of nodes is one of `NODE_LABELS`; the field is where it is, from the site on."""
    successor = NODE_LABELS[key]
    message = f"{key} is deprecated as a label of nodes"
    _report(site, f"{message}; use {successor} instead" if successor else message, field)


def annotation(site: Site, key: str, successor: str, problem: str = "has no effect") -> None:
    """Say that a field has taken the place of an annotation of the pod, which is at the site."""
    _report(site, f"{problem}; use {successor} instead", key)


def alias(site: Site, field: str, successor: str) -> None:
    """Say that a field of the pod has another name now."""
    _report(site, f"is deprecated; use {successor} instead", field)


def socket_hook(site: Site, field: str) -> None:
    """Say that a hook of a container is not done; the field is that of the hook."""
    _report(site, "is not supported, the hook fails; use exec or httpGet instead", field)


def volume_source(name: str, check: SourceCheck) -> SourceCheck:
    """The check of a source of volumes that also says that the source is one of `VOLUMES`."""
    if name not in VOLUMES:
        return check
    if successor := VOLUMES[name]:
        message = f"is deprecated; use {successor} instead"
    else:
        message = "is no longer in Kubernetes, so no node can mount it; use a CSI driver instead"

    def both(site: Site, source: Raw, field: str) -> None:
        _report(site, message, field)
        if isinstance(check, tuple):
            require(site, source, field, *check)
        else:
            check(site, source, field)

    return both


def _report(site: Site, message: str, field: str) -> None:
    site.report(TPL_DEPRECATED, message, field)
