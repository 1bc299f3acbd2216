"""What `pumice run` is made of: the objects that are run, the Jobs followed to their end, what is printed."""
