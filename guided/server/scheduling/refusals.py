"""What a scheduler raises instead of taking a job, or in the middle of a run."""

from __future__ import annotations

from guided.errors import GuidedError

__all__ = ["Busy", "Cancelled", "Closing"]


class Busy(GuidedError):
    """As much waits as may: ask again in ``retry_after`` seconds, by when there should be room."""

    def __init__(self, what: str, retry_after: float) -> None:
        super().__init__(what, remedy=f"Ask again in {retry_after:.0f} seconds.")
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[object, ...]:
        return (Busy, (self.what, self.retry_after))


class Closing(GuidedError):
    """The scheduler ends what it runs, and takes nothing new."""

    def __init__(self) -> None:
        super().__init__("the server is shutting down", remedy="Ask again once it has started.")

    def __reduce__(self) -> tuple[object, ...]:
        return (Closing, ())


class Cancelled(GuidedError):
    """Nobody waits for this run any more."""

    def __init__(self) -> None:
        super().__init__("the run was cancelled")

    def __reduce__(self) -> tuple[object, ...]:
        return (Cancelled, ())
