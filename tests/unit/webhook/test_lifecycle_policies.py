from hypothesis import given
from hypothesis import strategies as st

from pumice.api.jobs import ACTIONS, Job, JobSpec, LifecyclePolicy
from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.jobs import policies as job_policies
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot

WORDS = st.sampled_from([*job_policies.EVENTS, *ACTIONS, "PodRunning", "", "Nope"])
POLICIES = st.lists(
    st.builds(
        LifecyclePolicy,
        event=WORDS,
        action=WORDS,
        events=st.one_of(st.none(), st.lists(WORDS, max_size=2)),
        exit_code=st.one_of(st.none(), st.just(3)),
        timeout=st.one_of(st.none(), st.just("1h")),
    ),
    max_size=4,
)


@given(POLICIES)
def test_the_short_way_is_taken_only_where_nothing_is_wrong(
    policies: list[LifecyclePolicy],
) -> None:
    case = Case(AdmissionSettings(), Snapshot(), builtin())
    job_policies._List(case, "spec.policies", partitioned=False).judge(policies)
    if job_policies._plain(policies):
        assert (case.errors, case.warnings) == ([], [])


PLAIN = [each for each in job_policies.EVENTS if each not in ("*", "PodPending", "JobUpdated")]


@given(st.permutations(PLAIN), st.integers(1, len(PLAIN)))
def test_the_short_way_is_taken_for_what_users_write(events: list[str], count: int) -> None:
    policies = [LifecyclePolicy(event=event, action="RestartJob") for event in events[:count]]
    assert job_policies._plain(policies)


def test_a_list_of_the_job_and_of_no_task() -> None:
    case = Case(AdmissionSettings(), Snapshot(), builtin())
    job = Job(spec=JobSpec(policies=[LifecyclePolicy(action="AbortJob")]))
    job_policies.lifecycle_policies(case, job)
    assert [error.code for error in case.errors] == ["POL-NOTHING"]
