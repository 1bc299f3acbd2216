from pumice.api.jobs import Job, JobSpec, LifecyclePolicy
from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.jobs import policies as job_policies
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot


def test_a_list_of_the_job_and_of_no_task() -> None:
    case = Case(AdmissionSettings(), Snapshot(), builtin())
    job = Job(spec=JobSpec(policies=[LifecyclePolicy(action="AbortJob")]))
    job_policies.lifecycle_policies(case, job)
    assert [error.code for error in case.errors] == ["POL-NOTHING"]
