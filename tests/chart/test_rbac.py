"""What each component may do: what it needs and no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pumice.api.kinds import COMMAND, VOLCANO
from pumice.controller.worker.process import ControllerSettings
from pumice.scheduler.plugins.fairshare import SPEC
from pumice.scheduler.worker.configuration import WorkerSettings
from pumice.scheduler.worker.feeds import SchedulerCaches
from tests.chart.manifests import (
    AGGREGATE,
    USERS,
    Manifest,
    Render,
    arguments_of,
    component,
    of_kind,
    one,
)
from tests.kit.waiting import NO_CLIENT

pytestmark = pytest.mark.binaries

READING = {"get", "list", "watch"}
VERBS = READING | {"create", "update", "patch", "delete"}

LEASES = {
    "controller": ControllerSettings().lease_name,
    "scheduler": WorkerSettings().lease_name,
}
MAY_WRITE = {
    "webhook": {
        "secrets",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "events",
    },
    "controller": {
        "jobs",
        "jobs/status",
        "jobs/finalizers",
        "cronjobs",
        "cronjobs/status",
        "cronjobs/finalizers",
        "jobflows/status",
        "jobflows/finalizers",
        "jobtemplates/status",
        "jobsets/finalizers",
        "leaderworkersets/finalizers",
        "replicasets/finalizers",
        "statefulsets/finalizers",
        "daemonsets/finalizers",
        "replicationcontrollers/finalizers",
        "pods/finalizers",
        "commands",
        "podgroups",
        "queues",
        "queues/status",
        "pods",
        "services",
        "configmaps",
        "secrets",
        "networkpolicies",
        "hypernodes",
        "hypernodes/status",
        "persistentvolumeclaims",
        "events",
        "leases",
    },
    "scheduler": {
        "configmaps",
        "podgroups",
        "queues",
        "queues/status",
        "pods/binding",
        "pods/eviction",
        "pods/status",
        "persistentvolumeclaims",
        "persistentvolumes",
        "events",
        "leases",
    },
}


def rules(manifests: list[Manifest], *kinds: str) -> Iterator[tuple[str, Manifest]]:
    """The rules of each component; those of users have the tests at the end."""
    for each in of_kind(manifests, *(kinds or ("Role", "ClusterRole"))):
        if component(each) != USERS:
            for rule in each["rules"]:
                yield component(each), rule


def test_no_rule_is_a_wildcard_or_a_way_to_more_rights(manifests: list[Manifest]) -> None:
    for name, rule in rules(manifests):
        assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}, name
        for field, values in rule.items():
            assert "*" not in "".join(values), f"{name}: {field} {values}"
        assert set(rule["verbs"]) <= VERBS, name
        assert "rbac.authorization.k8s.io" not in rule["apiGroups"], name


def test_each_component_writes_its_own_things_only(manifests: list[Manifest]) -> None:
    for name, rule in rules(manifests):
        if set(rule["verbs"]) - READING:
            assert set(rule["resources"]) <= MAY_WRITE[name], name


def test_the_webhook_reads_and_changes_one_secret(render: Render) -> None:
    for settings, secret in (
        ((), "pumice-webhook-certs"),
        (("webhook.secretName=batch-ca",), "batch-ca"),
    ):
        manifests = render(None, *settings)
        found = [(name, rule) for name, rule in rules(manifests) if "secrets" in rule["resources"]]
        own = [rule for name, rule in found if name == "webhook"]
        assert [rule for name, rule in rules(manifests, "Role") if rule in own] == own
        for rule in own:
            assert rule["resources"] == ["secrets"]
            # Nobody can say beforehand what something that is created will be called.
            bound = rule.get("resourceNames") == [secret]
            assert bound or rule["verbs"] == ["create"]
        assert any(rule.get("resourceNames") == [secret] for rule in own)


def test_the_webhook_changes_its_own_configurations_only(render: Render) -> None:
    manifests = render()
    allowed = {
        (resource, name)
        for component_, rule in rules(manifests)
        if component_ == "webhook" and "admissionregistration.k8s.io" in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule["resourceNames"]
    }
    made = {
        (f"{each['kind'].lower()}s", each["metadata"]["name"])
        for each in of_kind(
            manifests, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
        )
    }
    assert allowed == made


def test_only_the_controller_sees_the_secrets_of_users(manifests: list[Manifest]) -> None:
    seeing = {
        name for name, rule in rules(manifests, "ClusterRole") if "secrets" in rule["resources"]
    }
    assert seeing <= {"controller"}
    verbs = [
        set(rule["verbs"])
        for name, rule in rules(manifests)
        if name == "controller" and "secrets" in rule["resources"]
    ]
    assert all(each == {"get", "create", "patch", "delete"} for each in verbs)


def test_a_lease_is_bound_to_its_name(manifests: list[Manifest]) -> None:
    for name, rule in rules(manifests):
        if "leases" in rule["resources"]:
            bound = rule.get("resourceNames") == [LEASES[name]]
            assert bound or rule["verbs"] == ["create"]
    assert not [
        rule for _, rule in rules(manifests, "ClusterRole") if "leases" in rule["resources"]
    ]


def test_the_scheduler_changes_one_config_map(manifests: list[Manifest]) -> None:
    """That with the usage of namespaces, under the name that is the default of plugin `fairshare`."""
    defaults = {each.name: each.default for each in SPEC.arguments}
    for name, rule in rules(manifests):
        if name == "scheduler" and "configmaps" in rule["resources"]:
            bound = rule.get("resourceNames") == [defaults["fairshare.stateConfigMap"]]
            assert rule["verbs"] == (["get", "patch"] if bound else ["create"])
    everywhere = rules(manifests, "ClusterRole")
    assert not [
        each
        for name, each in everywhere
        if name == "scheduler" and "configmaps" in each["resources"]
    ]


def test_the_scheduler_sees_the_whole_cluster_whatever_namespaces_are_named(render: Render) -> None:
    needed = {each.kind for each in SchedulerCaches(NO_CLIENT).all}
    resources = {(kind.group, kind.plural) for kind in needed}
    resources |= {("policy", "poddisruptionbudgets"), ("", "resourcequotas")}
    for settings in ((), ("rbac.namespaces={research,vision}",)):
        seen = {
            (group, resource)
            for name, rule in rules(render(None, *settings), "ClusterRole")
            if name == "scheduler" and set(rule["verbs"]) >= READING
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        assert seen == resources


def test_the_scheduler_changes_pods_only_where_it_takes_gates_away(render: Render) -> None:
    def verbs(*settings: str) -> set[str]:
        found = rules(render(None, *settings), "ClusterRole")
        mine = [
            rule["verbs"]
            for name, rule in found
            if name == "scheduler" and "pods" in rule["resources"]
        ]
        return set().union(*mine)

    assert verbs() == READING
    assert verbs("webhook.settings.scheduling-gates-queue-admission=true") == READING | {"patch"}


TOPOLOGY = {"hypernodes", "hypernodes/status", "nodes"}
WHERE_JOBS_RUN = {"pods", "secrets", "pods/binding", "pods/eviction", "pods/status", "configmaps"}


def test_named_namespaces_have_roles_instead_of_rights_everywhere(render: Render) -> None:
    manifests = render(None, "rbac.namespaces={research,vision}")
    everywhere = [
        (name, set(rule["resources"]) & WHERE_JOBS_RUN, set(rule["verbs"]))
        for name, rule in rules(manifests, "ClusterRole")
        if set(rule["resources"]) & WHERE_JOBS_RUN
    ]
    # Other pods take room on nodes, too.
    assert everywhere == [("scheduler", {"pods"}, READING)]
    roles = {
        (component(each), each["metadata"]["namespace"]): each["rules"]
        for each in of_kind(manifests, "Role")
    }
    bound = {
        (each["subjects"][0]["name"], each["metadata"]["namespace"], each["roleRef"]["name"])
        for each in of_kind(manifests, "RoleBinding")
    }
    whole = render()
    for name in ("controller", "scheduler"):
        for namespace in ("research", "vision"):
            given = roles[name, namespace]
            assert (f"pumice-{name}", namespace, f"pumice-{name}-{namespace}") in bound
            assert all(rule["verbs"] for rule in given)
        assert roles[name, "research"] == roles[name, "vision"]
        # Together they are what there is without the value, but for HyperNodes, which are in no namespace.
        cluster = [rule for of, rule in rules(manifests, "ClusterRole") if of == name]
        leases = [rule for rule in roles[name, "research"] if rule["resources"] == ["leases"]]
        mine = [*cluster, *(rule for rule in roles[name, "research"] if rule not in leases)]
        before = [
            rule
            for of, rule in rules(whole, "ClusterRole")
            if of == name and not (name == "controller" and set(rule["resources"]) & TOPOLOGY)
        ]
        assert sorted(map(str, mine)) == sorted(map(str, before))
        assert bool(leases) == (name == "controller")


def test_each_named_namespace_has_a_controller_of_its_own(render: Render) -> None:
    manifests = render(None, "rbac.namespaces={research,vision,research}")
    deployments = [each for each in of_kind(manifests, "Deployment") if component(each) == "controller"]  # fmt: skip
    assert [each["metadata"]["name"] for each in deployments] == [
        "pumice-controller-research",
        "pumice-controller-vision",
    ]
    for deployment, namespace in zip(deployments, ("research", "vision"), strict=True):
        given = arguments_of(deployment)
        assert f"--namespace={namespace}" in given
        assert f"--leader-elect-resource-namespace={namespace}" in given
        selected = deployment["spec"]["selector"]["matchLabels"]
        assert selected["pumice.dev/namespace"] == namespace
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert selected.items() <= labels.items()


def test_owners_of_pods_are_read_and_no_more(render: Render) -> None:
    def mine(*settings: str) -> dict[tuple[str, str], list[str]]:
        return {
            (group, resource): rule["verbs"]
            for name, rule in rules(render(None, *settings))
            if name == "controller"
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }

    without = mine("controller.owners=null")
    by_default = {key: verbs for key, verbs in mine().items() if key not in without}
    assert ("ray.io", "rayclusters") in by_default
    assert all(verbs == ["get"] for verbs in by_default.values())
    own = "controller.owners[0].apiGroups={example.com},controller.owners[0].resources={gangs}"
    for namespaces in ((), ("rbac.namespaces={research}",)):
        found = mine(own, *namespaces)
        assert found["example.com", "gangs"] == ["get"]
        assert ("ray.io", "rayclusters") not in found


def test_without_secrets_no_component_may_read_those_of_users(render: Render) -> None:
    for settings in (("rbac.secrets=false",), ("rbac.secrets=false", "rbac.namespaces={research}")):
        manifests = render(None, *settings)
        seeing = {name for name, rule in rules(manifests) if "secrets" in rule["resources"]}
        assert seeing == {"webhook"}  # its own, by name
        assert "--no-secrets" in arguments_of(one(manifests, "Deployment", "controller"))
    assert "--no-secrets" not in arguments_of(one(render(), "Deployment", "controller"))


WRITING = {"create", "update", "patch", "delete", "deletecollection"}


def of_users(manifests: list[Manifest]) -> dict[str, dict[str, set[str]]]:
    """What the chart adds to each role of users: verbs by group and resource."""
    found: dict[str, dict[str, set[str]]] = {}
    for each in of_kind(manifests, "ClusterRole"):
        roles = [key for key in each["metadata"]["labels"] if key.startswith(AGGREGATE)]
        assert bool(roles) == (component(each) == USERS)
        for role in roles:
            verbs = found.setdefault(role.removeprefix(AGGREGATE), {})
            for rule in each["rules"]:
                for resource in rule["resources"]:
                    key = f"{resource}.{rule['apiGroups'][0]}"
                    verbs.setdefault(key, set()).update(rule["verbs"])
    return found


def test_users_read_all_kinds_and_edit_those_of_their_namespace(render: Render) -> None:
    named = {f"{kind.plural}.{kind.group}": kind for kind in VOLCANO}
    allowed = of_users(render())
    assert set(allowed) == {"view", "edit", "admin"}
    assert allowed["edit"] == allowed["admin"]
    for role, given in allowed.items():
        assert {key for key in given if "/" not in key} == set(named)
        for key, verbs in given.items():
            kind = named.get(key)
            writes = role != "view" and kind is not None and kind.namespaced and kind != COMMAND
            assert verbs == (READING | WRITING if writes else READING), (role, key)


def test_a_command_of_any_namespace_closes_queues_so_users_create_none_unless_allowed(
    render: Render,
) -> None:
    allowed = of_users(render(None, "rbac.userRoles.commands=true"))
    command = "commands.bus.volcano.sh"
    assert allowed["view"][command] == READING
    assert allowed["edit"][command] == READING | {"create", "delete", "deletecollection"}
    assert of_users(render(None, "rbac.userRoles.enabled=false")) == {}
