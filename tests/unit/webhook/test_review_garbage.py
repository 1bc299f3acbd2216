"""A review leaves nothing for the garbage collector, whose runs would cost more than the review."""

import gc

import pytest

from benchmarks.load import numbered
from benchmarks.questions import SUBJECTS, Subject
from benchmarks.subjects import view
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_review_leaves_no_reference_cycles(subject: Subject) -> None:
    admission = Admission(AdmissionSettings(), view(), builtin())
    admission.review(subject.path, numbered(subject.body, 1))
    gc.collect()
    gc.disable()
    try:
        for number in range(2, 5):
            admission.review(subject.path, numbered(subject.body, number))
        assert gc.collect() == 0
    finally:
        gc.enable()
