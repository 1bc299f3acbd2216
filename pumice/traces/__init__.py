"""Days of a cluster in virtual time: traces of jobs and their readers, the run, and what is measured."""
