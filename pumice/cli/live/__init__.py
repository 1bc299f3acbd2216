"""What verbs on a live cluster share: one session, what the user may read, accounts of what waits, tables."""
