"""One scheduling cycle: its run, its end, and the reasons and phases that follow from it."""
