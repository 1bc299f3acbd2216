"""The only door to an API server.

Everything that Pumice reads from a cluster or writes to it passes through here: `sources` finds out
where the server is and how to sign in, `client` speaks its REST, `cache` keeps a picture of one kind
current, `leader` elects one process of several, `events` tells users what happened, `workqueue`
and `lifecycle` run the work. `embedded` is an API server that lives in this process.

Nothing here knows a rule of Jobs or queues; it carries JSON and msgspec structs, never the generated
kubernetes models (a pod event costs 4 µs as a struct and 208 µs as a model).
"""
