"""Pod templates: every row of the tables, and the page that lists the exceptions."""

from pathlib import Path

import pytest

from tests.unit.webhook.template_rows import TemplateRow, disagreement, relative, template_rows

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
