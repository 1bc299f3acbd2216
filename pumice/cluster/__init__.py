"""Access to an API server. No other package talks to one.

All reads from and writes to a cluster use this package: `sources` finds the server and the credentials, `client` sends
REST requests, `cache` keeps a copy of all objects of a kind, `leader` elects one process of several, `events` records
events for users, `workqueue` and `lifecycle` run the work. `embedded` is an API server that lives in this process.

The package has no logic of Jobs or queues. It uses JSON and msgspec structs, never the generated kubernetes models (a
pod event costs 4 µs as a struct and 208 µs as a model).
"""
