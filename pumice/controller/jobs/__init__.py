"""Jobs: from the manifest to pods, phases and the end of the Job.

`reconcile` is a pure function from what is observed of a Job to a plan of small steps. Each part has a file: `phases`
is the state machine, `job_events` derives events, `policies` chooses the action for an event, `due` finds the action
that is due now, `job_pods` records the pods that existed, `restart_budgets` counts their restarts, `pods` builds pods,
`depends` finds tasks that must wait, `status` and `reasons` compose what users see.

Three rules make it safe to stop the process at any write:

1. Everything is derived from what exists. No step relies on an earlier one having been seen.
2. A decision is written to the Job's status, guarded by its resourceVersion, before anything is
   destroyed because of it. What is destroyed afterwards follows from the status alone.
3. Each created object has a name that follows from the Job, so a second creation is refused.
"""
