"""The reviews that the benchmark of admission sends, and the request for the constant."""

from dataclasses import dataclass

from benchmarks.subjects import applied_job, distinct_job, job, pod, queue, review

CONSTANT = "/constant"
"""Path of the server that answers a constant."""

BATCH = ("batch.volcano.sh", "v1alpha1", "jobs", "Job")


@dataclass(frozen=True)
class Subject:
    """A review.

    Attributes:
        name: In the table.
        path: Endpoint.
        body: The review.
        fresh: Whether each review has a different number where the body has the mark, so that it has values that
            no cache knows. Otherwise all reviews are equal.
    """

    name: str
    path: str
    body: bytes
    fresh: bool = False

    @property
    def file(self) -> str:
        """Name of the review's file."""
        return "-".join(self.name.replace("/", " ").replace(",", " ").split())


SUBJECTS = (
    Subject("/jobs/mutate", "/jobs/mutate", review(*BATCH, job(defaulted=False)), fresh=True),
    Subject("/jobs/validate", "/jobs/validate", review(*BATCH, job(defaulted=True)), fresh=True),
    Subject(
        "/jobs/mutate, applied",
        "/jobs/mutate",
        review(*BATCH, applied_job(defaulted=False)),
        fresh=True,
    ),
    Subject(
        "/jobs/validate, applied",
        "/jobs/validate",
        review(*BATCH, applied_job(defaulted=True)),
        fresh=True,
    ),
    Subject(
        "/jobs/validate, distinct", "/jobs/validate", review(*BATCH, distinct_job()), fresh=True
    ),
    Subject(
        "/queues/validate",
        "/queues/validate",
        review("scheduling.volcano.sh", "v1beta1", "queues", "Queue", queue()),
    ),
    Subject("/pods/mutate, not ours", "/pods/mutate", review("", "v1", "pods", "Pod", pod())),
)
BESIDE = Subject("a constant", CONSTANT, SUBJECTS[0].body)
