"""Hypothesis strategies: pod templates of every group of fields, most of them in order or nearly so.

What is known to be judged otherwise than by the API server (`docs/pod-templates.md`) is not drawn.
"""

from hypothesis import strategies as st

from tests.unit.webhook.container_shapes import (
    CONTAINER_FIELDS,
    INIT_CONTAINERS,
    RESOURCE_LISTS,
    containers,
)
from tests.unit.webhook.template_atoms import (
    ADDRESSES,
    BOOLEANS,
    IDS,
    KEYS,
    LABEL_NAMES,
    LABELS,
    MEMORY,
    PATHS,
    SUBDOMAINS,
    TEXTS,
    VALUES,
    Raw,
    Strategy,
    choice,
    fields,
    listed,
    mostly,
    numbers,
    sampled,
    spoilt,
)
from tests.unit.webhook.template_rows import BASE

# Selectors and affinity

_OPERATORS = mostly(sampled("In", "NotIn", "Exists", "DoesNotExist"), sampled("Gt", "Lt", "in", ""))


def _requirement(operators: Strategy) -> Strategy:
    matching = st.one_of(
        fields({"key": KEYS, "operator": sampled("In", "NotIn"), "values": listed(VALUES)}),
        fields({"key": KEYS, "operator": sampled("Exists", "DoesNotExist")}),
    )
    return mostly(matching, fields({"key": KEYS, "operator": operators}, values=listed(VALUES)))


SELECTORS = fields(matchLabels=LABELS, matchExpressions=listed(_requirement(_OPERATORS)))
NODE_TERMS = fields(
    matchExpressions=listed(
        st.one_of(
            _requirement(_OPERATORS),
            fields(
                {"key": KEYS, "operator": sampled("Gt", "Lt"), "values": listed(sampled("1", "a"))}
            ),
        )
    ),
    matchFields=listed(
        fields(
            {
                "key": mostly(sampled("metadata.name"), sampled("", "metadata.uid")),
                "operator": mostly(sampled("In", "NotIn"), sampled("Exists", "Gt")),
                "values": st.lists(SUBDOMAINS, min_size=1, max_size=1),
            }
        ),
        most=1,
    ),
)
LABEL_KEYS = listed(mostly(sampled("app", "rev", "x"), KEYS))
POD_TERMS = fields(
    {"topologyKey": KEYS, "labelSelector": SELECTORS},
    namespaces=listed(LABEL_NAMES),
    namespaceSelector=SELECTORS,
    matchLabelKeys=LABEL_KEYS,
    mismatchLabelKeys=LABEL_KEYS,
)


def _preferred(name: str, term: Strategy) -> Strategy:
    return listed(fields({"weight": numbers(1, 50, 100), name: term}))


_POD_AFFINITY = fields(
    requiredDuringSchedulingIgnoredDuringExecution=listed(POD_TERMS),
    preferredDuringSchedulingIgnoredDuringExecution=_preferred("podAffinityTerm", POD_TERMS),
)
AFFINITY = fields(
    nodeAffinity=fields(
        requiredDuringSchedulingIgnoredDuringExecution=fields(
            {"nodeSelectorTerms": mostly(listed(NODE_TERMS), sampled([]))}
        ),
        preferredDuringSchedulingIgnoredDuringExecution=_preferred("preference", NODE_TERMS),
    ),
    podAffinity=_POD_AFFINITY,
    podAntiAffinity=_POD_AFFINITY,
)
SPREAD = listed(
    fields(
        {
            "maxSkew": numbers(1, 2),
            "topologyKey": mostly(sampled("a", "b", "c"), sampled("", "a b")),
            "whenUnsatisfiable": choice("DoNotSchedule", "ScheduleAnyway"),
        },
        labelSelector=SELECTORS,
        minDomains=numbers(1, 3),
        nodeAffinityPolicy=choice("Honor", "Ignore"),
        nodeTaintsPolicy=choice("Honor", "Ignore"),
        matchLabelKeys=LABEL_KEYS,
    )
)
TOLERATIONS = listed(
    fields(
        key=KEYS,
        operator=mostly(sampled("Equal", "Exists"), sampled("", "Gt", "exists")),
        value=VALUES,
        effect=mostly(sampled("NoSchedule", "NoExecute", "PreferNoSchedule"), sampled("", "No")),
        tolerationSeconds=sampled(-1, 0, 60),
    )
)

# Volumes

_MODES = numbers(0, 256, 420, 511)
_ITEMS = listed(fields({"key": mostly(sampled("a"), sampled("", "/")), "path": PATHS}, mode=_MODES))
_DIVISORS = sampled("1", "1m", "0", "1k", "1Ki", "1000", "1024", "1024Ki", "1e3", "1000m", "2", 1)
_RESOURCES = sampled(
    "limits.cpu", "requests.memory", "limits.hugepages-2Mi", "requests.ephemeral-storage", "cpu", ""
)
_DOWNWARD = listed(
    st.one_of(
        fields(
            {
                "path": PATHS,
                "fieldRef": fields(
                    {
                        "fieldPath": mostly(
                            sampled("metadata.name", "metadata.labels", "metadata.annotations['a']"),
                            sampled(
                                "", "spec.nodeName", "metadata.labels['a b']", "metadata.uid['a']", "status.podIP",
                                "metadata.annotations['A.B/c']", "metadata.labels['A.b/c']", "metadata.labels['",
                            ),
                        )
                    },
                    apiVersion=mostly(sampled("v1"), sampled("", "v2")),
                ),
            },
            mode=_MODES,
        ),
        fields(
            {
                "path": PATHS,
                "resourceFieldRef": fields(
                    {"containerName": mostly(sampled("main", "gone"), sampled("")), "resource": _RESOURCES},
                    divisor=_DIVISORS,
                ),
            }
        ),
    )
)  # fmt: skip
_CLAIM_SPECS = fields(
    {
        "accessModes": mostly(
            listed(sampled("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")),
            sampled([], ["ReadWriteOncePod"], ["ReadWriteOncePod", "ReadWriteOnce"], ["RWX"]),
        ),
        "resources": fields({"requests": fields({"storage": MEMORY})}),
    },
    storageClassName=SUBDOMAINS,
    volumeMode=choice("Block", "Filesystem"),
    selector=SELECTORS,
    volumeAttributesClassName=SUBDOMAINS,
    dataSource=fields({"kind": sampled("PersistentVolumeClaim", "VolumeSnapshot"), "name": TEXTS}),
)
_PROJECTIONS = listed(
    fields(
        secret=fields({"name": mostly(sampled("a"), sampled(""))}, items=_ITEMS),
        configMap=fields({"name": mostly(sampled("a"), sampled(""))}, items=_ITEMS),
        downwardAPI=fields(items=_DOWNWARD),
        serviceAccountToken=fields(
            {"path": PATHS},
            expirationSeconds=mostly(sampled(600, 2**32), sampled(599, 0, 2**32 + 1)),
        ),
    )
)
SOURCES: dict[str, Strategy] = {
    "emptyDir": fields(medium=sampled("", "Memory", "HugePages-2Mi"), sizeLimit=MEMORY),
    "hostPath": fields({"path": PATHS}, type=choice("Directory", "File", "Socket", "BlockDevice")),
    "configMap": fields(
        {"name": mostly(sampled("a"), sampled(""))}, items=_ITEMS, defaultMode=_MODES
    ),
    "secret": fields(
        {"secretName": mostly(sampled("a"), sampled(""))}, items=_ITEMS, defaultMode=_MODES
    ),
    "downwardAPI": fields(items=_DOWNWARD, defaultMode=_MODES),
    "projected": fields(sources=_PROJECTIONS, defaultMode=_MODES),
    "persistentVolumeClaim": fields({"claimName": mostly(sampled("a"), sampled(""))}),
    "nfs": fields({"server": mostly(sampled("a"), sampled("")), "path": PATHS}),
    "csi": fields({"driver": SUBDOMAINS}, nodePublishSecretRef=fields({"name": SUBDOMAINS})),
    "ephemeral": fields(
        {
            "volumeClaimTemplate": fields(
                {"spec": _CLAIM_SPECS}, metadata=fields(labels=LABELS, annotations=LABELS)
            )
        }
    ),
    "image": fields(
        {"reference": mostly(sampled("a:1"), sampled(""))}, pullPolicy=choice("Always", "Never")
    ),
    "iscsi": fields(
        {
            "targetPortal": sampled("1.2.3.4"),
            "iqn": sampled("iqn.2001-04.com.example:a", "eui.1", "x"),
        },
        lun=numbers(0, 255),
        chapAuthSession=BOOLEANS,
    ),
    "fc": fields(targetWWNs=listed(TEXTS), wwids=listed(TEXTS), lun=numbers(0, 255)),
    "gitRepo": fields({"repository": TEXTS}, directory=PATHS),
    "rbd": fields({"image": TEXTS, "monitors": st.lists(TEXTS, max_size=1)}),
    "azureDisk": fields(
        {"diskName": TEXTS, "diskURI": sampled("https://a", "/subscriptions/a", "")},
        kind=choice("Shared", "Managed"),
        cachingMode=choice("None", "ReadOnly"),
    ),
}


def _volume(source: str) -> Strategy:
    name = mostly(sampled("v", "w", "data"), LABEL_NAMES)
    return fields({"name": name, source: SOURCES[source]})


VOLUMES = listed(sampled(*SOURCES).flatmap(_volume), most=3)

# The pod as a whole

_PROFILES = fields(
    {"type": choice("RuntimeDefault", "Localhost", "Unconfined")}, localhostProfile=PATHS
)
SYSCTLS = listed(
    fields(
        {
            "name": mostly(
                sampled(
                    "net.core.somaxconn", "kernel.sem", "net/ipv4/conf/eno2.100/rp_filter", "vm.x"
                ),
                sampled("", "A", "a..b", "a/b", "fs.mqueue.a", "a" * 254, "kernel.shm*"),
            )
        },
        value=TEXTS,
    )
)
WINDOWS = fields(
    runAsUserName=mostly(
        sampled("a", "NT AUTHORITY\\SYSTEM"),
        sampled(
            "", "a\\b\\c", "a:b", "..", ".a\\b", "a" * 105, "a\tb", "\\a", "a\\", "x" * 256 + "\\a"
        ),
    ),
    gmsaCredentialSpecName=SUBDOMAINS,
    hostProcess=BOOLEANS,
)
SECURITY = fields(
    runAsUser=IDS,
    runAsGroup=IDS,
    fsGroup=IDS,
    supplementalGroups=listed(IDS),
    fsGroupChangePolicy=choice("Always", "OnRootMismatch"),
    supplementalGroupsPolicy=choice("Merge", "Strict"),
    seLinuxChangePolicy=choice("Recursive", "MountOption"),
    seccompProfile=_PROFILES,
    appArmorProfile=_PROFILES,
    sysctls=SYSCTLS,
    windowsOptions=mostly(fields(), WINDOWS),
)
DNS = fields(
    nameservers=st.lists(ADDRESSES, max_size=4),
    searches=st.lists(mostly(sampled("a", "b.c.", "_d.e"), sampled("", ".", "..", "A", "-a", "a b", "a.-b")), max_size=2),
    options=listed(fields(name=mostly(sampled("ndots"), sampled("")), value=TEXTS)),
)  # fmt: skip
ANNOTATIONS = st.dictionaries(
    mostly(
        sampled("a", "Example.COM/a"),
        sampled(
            "controller.kubernetes.io/pod-deletion-cost",
            "seccomp.security.alpha.kubernetes.io/pod",
            "container.seccomp.security.alpha.kubernetes.io/main",
            "container.apparmor.security.beta.kubernetes.io/main",
            "container.apparmor.security.beta.kubernetes.io/gone",
            "a b",
        ),
    ),
    sampled("runtime/default", "docker/default", "unconfined", "localhost/a", "localhost/", "1", "-0", "01", ""),
    min_size=1,
    max_size=2,
)  # fmt: skip
POD_FIELDS: dict[str, Strategy] = {
    "activeDeadlineSeconds": mostly(sampled(1, 2**31 - 1), sampled(0, -1, 2**31)),
    "affinity": AFFINITY,
    "dnsConfig": DNS,
    "dnsPolicy": choice("ClusterFirst", "Default", "None", "ClusterFirstWithHostNet"),
    "enableServiceLinks": BOOLEANS,
    "hostAliases": listed(fields({"ip": ADDRESSES}, hostnames=listed(SUBDOMAINS))),
    "hostIPC": BOOLEANS,
    "hostNetwork": BOOLEANS,
    "hostPID": BOOLEANS,
    "hostUsers": BOOLEANS,
    "hostname": LABEL_NAMES,
    "hostnameOverride": SUBDOMAINS,
    "imagePullSecrets": listed(fields(name=SUBDOMAINS)),
    "initContainers": INIT_CONTAINERS,
    "nodeName": SUBDOMAINS,
    "nodeSelector": LABELS,
    "os": fields({"name": mostly(sampled("linux", "windows"), sampled("", "Linux"))}),
    "preemptionPolicy": mostly(sampled("PreemptLowerPriority"), sampled("", "never")),
    "readinessGates": listed(fields(conditionType=KEYS)),
    "resourceClaims": listed(
        fields(
            {"name": LABEL_NAMES},
            resourceClaimName=SUBDOMAINS,
            resourceClaimTemplateName=SUBDOMAINS,
        )
    ),
    "resources": RESOURCE_LISTS,
    "restartPolicy": choice("Always", "OnFailure", "Never"),
    "schedulerName": TEXTS,
    "schedulingGates": listed(fields(name=KEYS)),
    "securityContext": SECURITY,
    "setHostnameAsFQDN": BOOLEANS,
    "shareProcessNamespace": BOOLEANS,
    "subdomain": LABEL_NAMES,
    "terminationGracePeriodSeconds": sampled(-1, 0, 30),
    "tolerations": TOLERATIONS,
    "topologySpreadConstraints": SPREAD,
    "volumes": VOLUMES,
}


GROUPS = (
    "metadata",
    *(f"spec.{name}" for name in sorted(POD_FIELDS)),
    *(f"volume.{name}" for name in sorted(SOURCES)),
    *(f"container.{name}" for name in sorted(CONTAINER_FIELDS)),
)
"""What a template can be about."""


@st.composite
def templates(draw: st.DrawFn, group: str) -> Raw:
    """A template with fields of a group, and now and then others; each mostly in order."""
    kind, _, focus = group.partition(".")
    metadata: Raw = dict(BASE["metadata"])
    if kind == "metadata" or draw(sampled(*range(6))) == 5:
        metadata |= draw(fields(labels=LABELS, annotations=ANNOTATIONS))
    spec: Raw = {"restartPolicy": "Never"}
    others = st.lists(sampled(*sorted(POD_FIELDS)), max_size=2, unique=True)
    for name in draw(others):
        spec[name] = draw(spoilt(POD_FIELDS[name]))
    if kind == "spec":
        spec[focus] = draw(spoilt(POD_FIELDS[focus]))
    elif kind == "volume":
        spec["volumes"] = [draw(_volume(focus))]
    if kind == "container":
        spec["containers"] = draw(containers(focus))
    else:
        spec["containers"] = draw(st.one_of(st.just(BASE["spec"]["containers"]), containers()))
    return {"metadata": metadata, "spec": spec}
