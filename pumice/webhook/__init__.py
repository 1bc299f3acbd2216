"""Admission: validation and defaults of Jobs, Queues, PodGroups, Pods and related kinds.

The rules (`rules`) and the core that turns a review into an answer (`admission`) are pure: bytes and
a view of the cluster in, bytes out. Only `server` knows HTTP, so that the same rules answer the API
server, the embedded API server, `pumice lint` and `pumice review`.
"""
