"""Pictures show what the simulations of their pages say, and are stale when these say something else."""

import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tools import pictures

DOCS = ROOT / "docs"


def test_a_picture_says_where_pods_are_before_and_after_each_cycle() -> None:
    [victims] = [each for each in pictures.PICTURES if each.name == "victims.svg"]
    told = pictures.drawn(DOCS, victims).partition('<desc id="desc">')[2].partition("<")[0]
    assert told.split("; ") == [
        "before, node-1: batch-0, batch-1, batch-2",
        "before, waiting: urgent-0",
        "cycle 1, node-1: batch-0, batch-1, batch-2",
        "cycle 1, waiting: urgent-0",
        "cycle 2, node-1: batch-0, batch-1, urgent-0",
    ]


def test_a_page_may_have_a_picture_of_another_simulation() -> None:
    [racks] = [each for each in pictures.PICTURES if each.name == "victims-racks.svg"]
    told = pictures.drawn(DOCS, racks).partition('<desc id="desc">')[2].partition("<")[0]
    assert told.split("; ")[-4:] == [
        "cycle 2, node-1: sweep-0",
        "cycle 2, node-2: empty",
        "cycle 2, node-3: urgent-0",
        "cycle 2, node-4: urgent-1",
    ]


@pytest.mark.parametrize("picture", pictures.PICTURES, ids=lambda each: each.name)
def test_each_is_on_its_page_with_words_for_who_cannot_see_it(picture: pictures.Picture) -> None:
    page = DOCS / picture.page
    [line] = [each for each in page.read_text().splitlines() if f"]({picture.name})" in each]
    assert len(line.partition("]")[0]) > 40


def test_a_picture_of_what_the_page_does_not_say_any_more_is_stale(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(DOCS / "scheduler", docs / "scheduler")
    assert pictures.main([str(docs), "--check"]) == 0
    page = docs / "scheduler/shares.md"
    page.write_text(
        page.read_text().replace(
            "metadata: {name: research}\nspec: {weight: 1}",
            "metadata: {name: research}\nspec: {weight: 3}",
        )
    )
    assert pictures.main([str(docs), "--check"]) == 1
