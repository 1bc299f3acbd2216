"""The page on policies lists the codes that the policies have, and no others."""

from pumice.plugins import builtin
from pumice.webhook.rules.catalogue import ALL
from tests.docs.pages import ROOT
from tests.support.policies import LESS, MORE, POLICIES, covered

PAGE = ROOT / "docs/policies.md"
PLURALS = {
    "Job": "jobs",
    "Queue": "queues",
    "PodGroup": "podgroups",
    "Pod": "pods",
    "JobFlow": "jobflows",
    "HyperNode": "hypernodes",
}


def listed() -> dict[str, set[str]]:
    """Codes of the page's table, by the plural of their kind."""
    found: dict[str, set[str]] = {plural: set() for plural in PLURALS.values()}
    text = PAGE.read_text().partition("## What is checked")[2].partition("\n\n[")[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        kind = cells[0].partition(":")[0]
        if kind in PLURALS:
            found[PLURALS[kind]] |= set(cells[1].replace("`", "").split())
    return found


def test_the_table_lists_the_codes_in_the_messages_of_the_policies() -> None:
    assert listed() == covered()


def test_the_page_says_where_policies_differ_from_the_rules() -> None:
    text = PAGE.read_text().partition("differ from the rules in this")[2].partition("Defaults")[0]
    assert {code for code in LESS | MORE if f"`{code}`" not in text} == set()


def test_every_code_of_a_policy_is_one_of_the_catalogue() -> None:
    known = {rule.code for rule in ALL}
    assert {code for codes in covered().values() for code in codes} - known == set()


def test_policies_know_the_plugins_that_are_built_in() -> None:
    registry = builtin()
    helpers = (POLICIES / "_helpers.tpl").read_text()
    assert ", ".join(f"'{name}'" for name in sorted(registry.names)) in helpers
    jobs = (POLICIES / "jobs.yaml").read_text()
    for needed in {each for name in registry.names for each in registry.requires(name)}:
        needing = sorted(name for name in registry.names if needed in registry.requires(name))
        names = ", ".join(f"'{name}'" for name in needing)
        assert f"[{names}].exists(p, p in variables.plugins) && !('{needed}' in" in " ".join(
            jobs.split()
        )
