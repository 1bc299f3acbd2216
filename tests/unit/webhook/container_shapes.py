"""Hypothesis strategies: containers of pod templates, most of them in order or nearly so."""

from hypothesis import strategies as st

from tests.unit.webhook.template_atoms import (
    BOOLEANS,
    COUNTS,
    CPU,
    IDS,
    LABEL_NAMES,
    MEMORY,
    PATHS,
    SUBDOMAINS,
    TEXTS,
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

_USUAL_AMOUNTS = {"cpu": CPU, "memory": MEMORY}
_UNUSUAL_AMOUNTS = {
    "example.com/gpu": COUNTS,
    "hugepages-2Mi": mostly(sampled("2Mi", "4Mi"), sampled("1Mi", 0, "x")),
    "ephemeral-storage": MEMORY,
    "gpu": COUNTS,
}
_AMOUNTS = st.fixed_dictionaries({}, optional=_USUAL_AMOUNTS | _UNUSUAL_AMOUNTS)
_USUAL = st.fixed_dictionaries({}, optional=_USUAL_AMOUNTS)
_LIST = mostly(_USUAL, _AMOUNTS)
RESOURCE_LISTS = fields(limits=_LIST, requests=_LIST)
_RESOURCES = st.one_of(
    RESOURCE_LISTS,
    _LIST.map(lambda amounts: {"limits": amounts, "requests": amounts}),
    fields(claims=listed(fields({"name": LABEL_NAMES}, request=LABEL_NAMES))),
)
_PORT_NUMBERS = mostly(sampled(80, 8080, 65535), sampled(0, -1, 65536))
_PORT_NAMES = mostly(
    sampled("http", "a-b"), sampled("", "1", "a--b", "-a", "A", "a" * 15, "a" * 16, "a_b")
)
_PORTS = listed(
    fields(
        {"containerPort": _PORT_NUMBERS},
        name=_PORT_NAMES,
        hostPort=_PORT_NUMBERS,
        protocol=choice("TCP", "UDP", "SCTP"),
        hostIP=sampled("", "10.0.0.1"),
    )
)
_REFERENCED = SUBDOMAINS.filter(lambda name: not name.endswith("-"))
_KEY_REFS = fields(
    {
        "name": _REFERENCED,
        "key": mostly(sampled("a", "b.c"), sampled("", "..", "..a", ".", "a/b", "a" * 254)),
    }
)
_FIELD_PATHS = mostly(
    sampled("metadata.name", "status.podIP", "metadata.labels['a']", "spec.nodeName"),
    sampled("metadata.labels", "", "spec.host", "status.phase", "metadata.labels['a b']"),
)
_SOURCES = mostly(
    st.one_of(
        fields({"fieldRef": fields({"fieldPath": _FIELD_PATHS})}),
        fields({"configMapKeyRef": _KEY_REFS}),
        fields({"secretKeyRef": _KEY_REFS}),
        fields(
            {
                "resourceFieldRef": fields(
                    {"resource": sampled("limits.cpu", "requests.memory", "limits.gpu")},
                    divisor=sampled("1", "1m", "1Mi", "0"),
                )
            }
        ),
    ),
    fields(fieldRef=fields({"fieldPath": _FIELD_PATHS}), secretKeyRef=_KEY_REFS),
)
_ENV = listed(
    st.one_of(
        fields(
            {"name": mostly(sampled("A", "b.c"), sampled("", "A=B", "1", "é", "a b"))}, value=TEXTS
        ),
        fields({"name": sampled("B"), "valueFrom": _SOURCES}),
    )
)
_ENV_FROM = listed(
    mostly(
        st.one_of(
            fields({"configMapRef": fields({"name": _REFERENCED})}, prefix=TEXTS),
            fields({"secretRef": fields({"name": _REFERENCED})}),
        ),
        fields(configMapRef=fields(), secretRef=fields({"name": _REFERENCED})),
    )
)
_MOUNTS = listed(
    fields(
        {
            "name": mostly(sampled("v", "w", "data"), LABEL_NAMES),
            "mountPath": mostly(sampled("/a", "/b", "c"), sampled("", "/d:e", "..")),
        },
        subPath=PATHS,
        subPathExpr=PATHS,
        readOnly=BOOLEANS,
        mountPropagation=choice("None", "HostToContainer", "Bidirectional"),
        recursiveReadOnly=choice("Disabled", "IfPossible", "Enabled"),
    )
)
_DEVICES = listed(
    fields({"name": sampled("v", "w", "data"), "devicePath": mostly(sampled("/a", "b"), PATHS)})
)
_PORT = mostly(sampled(80, "http"), sampled(0, 65536, "", "A", "a" * 16))
_HANDLERS = mostly(
    st.one_of(
        fields({"exec": fields({"command": mostly(listed(TEXTS), sampled([]))})}),
        fields(
            {
                "httpGet": fields(
                    {"port": _PORT},
                    path=TEXTS,
                    scheme=choice("HTTP", "HTTPS"),
                    httpHeaders=listed(fields({"name": mostly(sampled("X-a"), sampled("", "a b"))}, value=TEXTS)),
                )
            }
        ),
        fields({"tcpSocket": fields({"port": _PORT})}),
    ),
    fields(exec=fields(), tcpSocket=fields({"port": _PORT})),
)  # fmt: skip


def _probe(*successes: int) -> Strategy:
    numbered = fields(
        initialDelaySeconds=numbers(0, 5),
        timeoutSeconds=numbers(1, 5),
        periodSeconds=numbers(1, 10),
        successThreshold=numbers(*successes),
        failureThreshold=numbers(1, 3),
        terminationGracePeriodSeconds=numbers(1, 30),
    )
    grpc = fields({"grpc": fields({"port": numbers(80)}, service=TEXTS)})
    return st.builds(lambda handler, rest: handler | rest, mostly(_HANDLERS, grpc), numbered)


_SLEEP = fields({"sleep": fields({"seconds": numbers(0, 1, 30)})})
_LIFECYCLE = fields(postStart=mostly(_HANDLERS, _SLEEP), preStop=st.one_of(_HANDLERS, _SLEEP))
_PROFILES = fields(
    {"type": choice("RuntimeDefault", "Localhost", "Unconfined")}, localhostProfile=PATHS
)
_SECURITY = fields(
    runAsUser=IDS,
    runAsGroup=IDS,
    privileged=BOOLEANS,
    allowPrivilegeEscalation=BOOLEANS,
    readOnlyRootFilesystem=BOOLEANS,
    capabilities=fields(add=listed(sampled("NET_ADMIN", "CAP_SYS_ADMIN", "x")), drop=listed(TEXTS)),
    procMount=choice("Default", "Unmasked"),
    seccompProfile=_PROFILES,
    appArmorProfile=_PROFILES,
    windowsOptions=mostly(fields(), fields(hostProcess=BOOLEANS)),
)
_RESIZE = listed(
    fields(
        {
            "resourceName": mostly(sampled("cpu", "memory"), sampled("", "storage")),
            "restartPolicy": choice("NotRequired", "RestartContainer"),
        }
    )
)
_RULES = listed(
    fields(
        {
            "action": choice("Restart", "RestartAllContainers"),
            "exitCodes": fields(
                {"operator": choice("In", "NotIn")}, values=listed(numbers(0, 42, 255))
            ),
        }
    )
)
CONTAINER_FIELDS: dict[str, Strategy] = {
    "args": listed(TEXTS),
    "env": _ENV,
    "envFrom": _ENV_FROM,
    "imagePullPolicy": choice("Always", "IfNotPresent", "Never"),
    "lifecycle": _LIFECYCLE,
    "livenessProbe": _probe(1),
    "ports": _PORTS,
    "readinessProbe": _probe(1, 2),
    "resizePolicy": _RESIZE,
    "resources": _RESOURCES,
    "restartPolicy": mostly(sampled("Always"), sampled("Never", "OnFailure", "")),
    "restartPolicyRules": _RULES,
    "securityContext": _SECURITY,
    "startupProbe": _probe(1),
    "terminationMessagePolicy": choice("File", "FallbackToLogsOnError"),
    "tty": BOOLEANS,
    "volumeDevices": _DEVICES,
    "volumeMounts": _MOUNTS,
    "workingDir": TEXTS,
}


@st.composite
def _containers(draw: st.DrawFn, names: tuple[str, ...], focus: str) -> list[Raw]:
    """Containers of different names, each with some fields; the first with the one that counts."""
    count = draw(sampled(1, 1, 2))
    found: list[Raw] = []
    for index in range(count):
        container: Raw = {
            "name": draw(mostly(st.just(names[index]), LABEL_NAMES)),
            "image": draw(mostly(sampled("busybox", "a/b:1"), sampled("", " ", " a", "a\n"))),
        }
        chosen = draw(st.lists(sampled(*sorted(CONTAINER_FIELDS)), max_size=1))
        for name in sorted({*chosen, focus}) if index == 0 and focus else chosen:
            container[name] = draw(spoilt(CONTAINER_FIELDS[name]))
        found.append(container)
    return found


def containers(focus: str = "") -> Strategy:
    """Regular containers, of which the first has a certain field if one is named."""
    return _containers(("main", "side"), focus)


INIT_CONTAINERS = _containers(("init", "before"), "")
