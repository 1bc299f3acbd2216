"""Rows and queues that a session has changed, for what is kept about them."""

__all__ = ["TouchedRows"]


class TouchedRows:
    """The touched rows of a session, in the order in which they were touched.

    Attributes:
        log: Rows; one that is touched twice is there twice.
        promises: How many pods have been promised a place, undone ones included.
        releases: Whether any pod is about to leave its node.
        keys_taken: How many sort keys of queues and jobs have been asked for.
        queue_epoch: Grows when the key of a queue may have become smaller than one that was taken before.
        queues: Names of the queues of the pods about which something was decided or undone; one for each decision.
        job_epoch: The same for the key of a waiting job.
    """

    __slots__ = (
        "job_epoch",
        "keys_taken",
        "log",
        "promises",
        "queue_epoch",
        "queues",
        "releases",
    )

    def __init__(self, *, releases: bool) -> None:
        self.log: list[int] = []
        self.promises = 0
        self.releases = releases
        self.keys_taken = 0
        self.queue_epoch = 0
        self.queues: list[str] = []
        self.job_epoch = 0
