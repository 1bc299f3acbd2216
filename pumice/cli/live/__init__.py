"""What verbs on a live cluster share: one session, what the user may read, explanations of what waits, tables."""
