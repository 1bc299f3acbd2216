"""The command lines of the parts, and why each flag is there."""

from __future__ import annotations

from pathlib import Path

STAGES = Path(__file__).with_name("stages.yaml")

# What tests of a batch stack meet: namespaces that end, owners that are collected, accounts for
# pods, quotas, and the workloads whose pods Pumice also places. No node lifecycle: kwok's nodes
# are Ready by decree.
CONTROLLERS = [
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
]


def etcd(folder: Path, client_port: int, peer_port: int) -> list[str]:
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # nothing has to survive
        "--log-level=warn",
    ]


def apiserver(folder: Path, port: int, etcd_port: int) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # loopback may not stand in an Endpoints object
        f"--tls-cert-file={folder / 'tls.crt'}",
        f"--tls-private-key-file={folder / 'tls.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'sa.pub'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        "--allow-privileged",
        # Its taint would stay: the node lifecycle controller, which lifts it, does not run.
        "--disable-admission-plugins=TaintNodesByCondition",
        # A queue per user costs time and protects nobody here.
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
    ]


def controller_manager(folder: Path) -> list[str]:
    return [
        f"--kubeconfig={folder / 'admin.kubeconfig'}",
        "--secure-port=0",
        "--leader-elect=false",
        f"--controllers={','.join(CONTROLLERS)}",
        f"--root-ca-file={folder / 'ca.crt'}",
        f"--service-account-private-key-file={folder / 'sa.key'}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def scheduler(config: Path) -> list[str]:
    return [
        f"--config={config}",
        "--secure-port=0",
    ]


def kwok(folder: Path) -> list[str]:
    return [
        f"--kubeconfig={folder / 'admin.kubeconfig'}",
        f"--config={STAGES}",
        "--manage-all-nodes",
    ]
