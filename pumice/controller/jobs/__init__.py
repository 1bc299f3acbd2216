"""The life of a Job: from the manifest to its pods, and from their fate to its end.

`reconcile` is a pure function from what is observed of a Job to a plan of small steps. Everything it
asks stands in a file of its own: `phases` is the state machine, `happenings` derives events, `policies`
chooses the action that an event calls for, `due` says which action is due now, `job_pods` notes which pods
there were, `retries` how often they were restarted, `pods` knows what its pods look like, `depends` which
tasks must wait, `status` and `reasons` what its user is told.

Three rules make it safe to stop the process at any write:

1. Everything is derived from what exists. No step relies on an earlier one having been seen.
2. A decision is written to the Job's status, guarded by its resourceVersion, before anything is
   destroyed because of it. What is destroyed afterwards follows from the status alone.
3. Whatever is created has a name that follows from the Job, so creating it twice is found out.
"""
