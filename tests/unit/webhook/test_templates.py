"""Pod templates: every row of the tables, and the page that lists the exceptions."""

from pathlib import Path

import pytest

from tests.unit.webhook.template_rows import (
    BASE,
    TemplateRow,
    disagreement,
    judged,
    relative,
    template_rows,
)

ROWS = list(template_rows())


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_template_is_judged_as_the_table_says(row: TemplateRow) -> None:
    case = row.judged()
    found = "\n".join(map(str, case.errors))
    assert list(dict.fromkeys(error.code for error in case.errors)) == row.codes, found
    assert list(dict.fromkeys(warning.code for warning in case.warnings)) == row.warnings
    if row.paths is not None:
        assert [relative(error.path) for error in case.errors] == row.paths
    if row.warned is not None:
        assert sorted(relative(warning.path) for warning in case.warnings) == row.warned
    for part in row.message:
        assert part in found


@pytest.mark.parametrize(
    ("cost", "codes"),
    [
        ("-" + "0" * 5000, []),
        ("-" + "0" * 5000 + "2147483648", []),
        ("-" + "0" * 5000 + "2147483649", ["TPL-ANNOTATION-VALUE"]),
        ("1" * 5000, ["TPL-ANNOTATION-VALUE"]),
    ],
    ids=["zeros", "least", "below", "ones"],
)
def test_a_deletion_cost_may_have_more_digits_than_python_reads(
    cost: str, codes: list[str]
) -> None:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": cost}
    case = judged({"metadata": {"annotations": annotations}, "spec": BASE["spec"]})
    assert [error.code for error in case.errors] == codes


def test_the_tables_are_large_and_hold_good_templates_and_bad() -> None:
    bad = sum(bool(row.codes) for row in ROWS)
    assert len(ROWS) >= 190
    assert bad >= 80
    assert len(ROWS) - bad >= 80
    assert len({row.name.partition(": ")[2].partition(": ")[0] for row in ROWS}) == len(ROWS)


def test_the_page_lists_every_template_on_which_the_api_server_answers_otherwise() -> None:
    page = (Path(__file__).parents[3] / "docs" / "pod-templates.md").read_text(encoding="utf-8")
    head = "| a template with | Pumice | API server | why |\n|---|---|---|---|\n"
    listed = page.partition(head)[2].partition("\n\n")[0].splitlines()
    assert listed == [disagreement(row) for row in ROWS if row.disagrees]
