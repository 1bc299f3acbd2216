"""What a session has changed so far, for those who keep columns by row."""

__all__ = ["Ledger"]


class Ledger:
    """The touched rows of a session, in the order in which they were touched.

    Attributes:
        log: Rows; one that is touched twice is there twice.
        promises: How many pods have been promised a place, undone ones included.
        releases: Whether any pod is about to leave its node.
        evictions: How many pods were made to leave their node, undone ones included.
    """

    __slots__ = ("evictions", "log", "promises", "releases")

    def __init__(self, *, releases: bool) -> None:
        self.log: list[int] = []
        self.promises = 0
        self.evictions = 0
        self.releases = releases
