"""The report as text: names are escaped, everything is in it, and many jobs do not make it large. tests/browser opens it."""

import html
import re
import xml.etree.ElementTree as ElementTree

import msgspec
import numpy as np
import pytest

from pumice.traces.comparison import differences
from pumice.traces.measures import measure
from pumice.traces.records import Past
from pumice.traces.report import MeasuredRun, report
from pumice.traces.report.charts import Floats, area, line, steps, time_axis
from tests.kit.pasts import drawn, nothing, record, small

HOSTILE = """<img src=x onerror=alert(1)>"'{{ 7 * 7 }}</title><script>alert(2)</script>"""


def column(values: list[int]) -> Floats:
    return np.array(values, dtype=np.float64)


def page(past: Past, name: str = "base") -> str:
    return report(name, [MeasuredRun(name, past, measure(past))])


def test_hostile_names_are_escaped_everywhere() -> None:
    past = small()
    past.nodes = [HOSTILE, HOSTILE]
    past.resources = [*past.resources, HOSTILE]
    past.samples.waiting[HOSTILE] = past.samples.waiting["nodes"]
    past.samples.queues = {HOSTILE: past.samples.queues["red"]}
    past.jobs = [
        msgspec.structs.replace(
            each,
            reason=HOSTILE,
            start=None if each.outcome == "Refused" else each.start,
            job=msgspec.structs.replace(
                each.job, queue=HOSTILE, name=HOSTILE, user=HOSTILE, priority=HOSTILE
            ),
        )
        for each in past.jobs
    ]
    text = page(past, HOSTILE)
    assert not re.search(r"<script|<img|</title><|onerror=alert\(1\)>", text)
    assert "49" not in re.findall(r"<h1>(.*)</h1>", text)[0]
    assert (
        text.count(html.escape(HOSTILE).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")) > 9
    )


def test_nothing_is_fetched_and_every_chart_has_a_title_and_a_description() -> None:
    text = page(drawn(2, 30))
    assert not re.search(
        r"https?://|url\(|@import|<script|<link(?! rel=\"icon\" href=\"data:,\")", text
    )
    svgs = re.findall(r'<svg viewBox="0 0 7.*?</svg>', text, re.DOTALL)
    assert len(svgs) == 6
    for svg in svgs:
        drawing = ElementTree.fromstring(svg)
        assert [child.tag for child in drawing[:2]] == ["title", "desc"]
        assert all(child.text for child in drawing[:2])
        assert (
            " ".join(child.attrib["id"] for child in drawing[:2])
            == drawing.attrib["aria-labelledby"]
        )


def test_a_large_run_is_drawn_in_cells_and_stays_small() -> None:
    """The size follows from rows and steps of time, not from the number of jobs: 100,000 jobs on 1,500 nodes are 170 KB."""
    past = drawn(1, 3000, nodes=200, moments=2000, queues=60)
    text = page(past)
    assert len(text) < 500_000
    assert "Each row is 5 nodes" in text
    assert "other queues" in text


def test_many_nodes_and_queues_and_long_reasons_do_not_make_it_large() -> None:
    past = drawn(1, 60, nodes=20_000, moments=3, queues=300)
    past.jobs = [msgspec.structs.replace(each, reason="why " * 5000) for each in past.jobs]
    text = page(past)
    assert len(text) < 200_000
    assert "Each row is 417 nodes" in text


@pytest.mark.parametrize("past", [nothing(), drawn(4, 1)], ids=["no job", "one job"])
def test_runs_with_next_to_nothing_have_a_report(past: Past) -> None:
    assert "</html>" in page(past)


def test_a_job_that_never_ran_and_a_run_that_was_stopped_are_in_it() -> None:
    past = nothing()
    past.is_whole = False
    past.jobs = [record("a", outcome="Waiting", reason="no node has 9 cpu")]
    text = page(past)
    assert "default/a (Waiting): no node has 9 cpu" in text
    assert "was stopped before its end" in text


def test_two_runs_have_one_axis_and_what_differs() -> None:
    base, other = small(), small()
    other.jobs[2].end = 80.0
    runs = [
        MeasuredRun(name, past, measure(past))
        for name, past in (("a.conf", base), ("b.conf", other))
    ]
    text = report("trace", runs, differences(runs[0].measures, runs[1].measures))
    assert text.count(">80s</text>") == 2 * 5  # all charts but that of waits
    assert (
        '<tr><th scope="row">default/c</th><td>red</td><td>37s</td><td>77s</td><td>+40s</td></tr>'
        in text
    )
    assert '<data value="40.0">+40s</data>' in text


def test_lines_are_drawn_in_steps_and_many_samples_become_means() -> None:
    _, labels = time_axis(0.0, 10.0)
    assert [label for _, label in labels][:2] == ["0s", "2s"]
    edges, (values,) = steps([0.0, 5.0], [column([1, 3])], 0.0, 10.0)
    assert (edges.tolist(), values.tolist()) == ([0, 5, 10], [1, 3])
    assert line(edges, values) == "M0 1H5V3H10"
    assert area(edges, values * 0, values) == "M0 1H5V3H10L10 0H0Z"
    many = [number / 100 for number in range(1000)]
    edges, (values,) = steps(many, [column([number % 2 for number in range(1000)])], 0.0, 10.0)
    assert len(values) == 400
    assert values.mean() == pytest.approx(0.5)
