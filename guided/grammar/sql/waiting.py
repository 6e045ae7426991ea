"""Waiting for a query that runs elsewhere: until it ends, its time is over, or Ctrl-C; stopped, and its end awaited."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedError
from typing import TypeVar

from guided.errors import GuidedError, LimitError

__all__ = ["LostConnectionError", "call_within", "out_of_time"]

Made = TypeVar("Made")

GRACE_SECONDS = 10.0
"""How long a query that was told to stop may take to do so; PostgreSQL and MariaDB take milliseconds."""


class LostConnectionError(GuidedError):
    """A query was told to stop and did not; its connection cannot be used again."""


def out_of_time(seconds: float) -> LimitError:
    """The error of a query that took longer."""
    return LimitError(
        f"the query took more than {seconds:g} s and was stopped",
        remedy="Ask for less (a join without a condition?), or give it more time.",
    )


def call_within(work: Callable[[], Made], stop: Callable[[], None], seconds: float) -> Made:
    """What ``work`` returns or raises, called in a thread; `LimitError` when that takes more than ``seconds``.

    ``stop``, called from this thread, must make ``work`` end soon.  It has ended when this function returns or raises,
    also after Ctrl-C; else it raises `LostConnectionError`.
    """
    done: Future[Made] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="guided-query", daemon=True).start()
    try:
        return done.result(seconds)
    except WaitedError as error:
        if done.done():  # the work's own error, or it ended at this moment
            return done.result()
        _stop(done, stop)
        raise out_of_time(seconds) from error
    except BaseException:
        if not done.done():
            _stop(done, stop)
        raise


def _stop(done: Future[Made], stop: Callable[[], None]) -> None:
    try:
        stop()
        done.exception(GRACE_SECONDS)
    except Exception as error:
        raise LostConnectionError(
            f"the query was told to stop and goes on: {error or 'no answer'}",
            remedy="Look for it on the server; its connection was closed here.",
        ) from error
