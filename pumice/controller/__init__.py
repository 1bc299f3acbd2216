"""The controllers: pure functions from what is observed to a plan of small steps, and a worker that carries plans out.

Each controller has a room: `jobs`, `cronjobs`, `jobflows`, `queues`, `other_owners` (pods of other owners: PodGroups, and
what plugins want for them) and `hypernodes`. Beside them is what they share: `plan` (the steps),
`objects` (what plugins want) and `podgroups`. `worker` is the shell: it watches, gets a plan, carries it out,
and keeps no state that a restart could lose.
"""
