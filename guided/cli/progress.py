"""Progress for people, on standard error: loading, compiling kernels, batches.

Bars are for terminals.  Elsewhere a line says that kernels are compiled, since that takes long; nothing else is said.

Numba says by an event when it compiles a function that its disk cache does not have; that, and nothing else, is what
"compiling" shows here, so that from the second run on nobody sees it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from guided.cli.output import print_note, stderr_console

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["counted_stages", "counting", "kernel_compilation", "steps"]


def _progress() -> Progress:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = stderr_console()
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def steps(total: int, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A bar of ``total`` steps; call the function with what is done next, before doing it."""
    if quiet:
        yield lambda _: None
        return
    with _progress() as progress:
        task = progress.add_task("", total=total, note="")
        done = -1

        def advance(what: str) -> None:
            nonlocal done
            done += 1
            progress.update(task, description=what, completed=done)

        yield advance


@contextmanager
def counting(what: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar over ``total`` items, or a count where that is not known; call the function with how many more are done."""
    if quiet:
        yield lambda _: None
        return
    with _progress() as progress:
        of = "" if total is None else f"/{total}"
        task = progress.add_task(what, total=total, note=f"0{of}")
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            progress.update(task, completed=done, note=f"{done}{of}")

        yield advance


@contextmanager
def counted_stages(
    what: str, total: int, *, quiet: bool = False
) -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """A bar over ``total`` items: ``stage(text)`` while they are prepared, ``advance(text)`` after each.

    ``advance`` shows what was done last, and how long the rest may take.
    """
    if quiet or not total:
        yield (lambda _: None), (lambda _: None)
        return
    from rich.progress import TimeRemainingColumn

    with _progress() as progress:
        progress.columns = (*progress.columns, TimeRemainingColumn())
        task = progress.add_task(what, total=None, note="")
        done = 0

        def stage(text: str) -> None:
            progress.update(task, description=text)

        def advance(text: str) -> None:
            nonlocal done
            done += 1
            progress.update(task, description=text, total=total, completed=done, note=f"{done}/{total} {what}")

        yield stage, advance


@contextmanager
def kernel_compilation(*, quiet: bool = False) -> Iterator[list[str]]:
    """Yields the names of the kernels compiled so far, in order; from the first one on a bar or a line shows it.

    None is where they come from a library.
    """
    from guided.kernels.jit import JUST_IN_TIME

    if not JUST_IN_TIME:
        yield []
        return
    from numba.core import event

    from guided.kernels.just_in_time import compiled_kernel, kept_elsewhere, logger

    compiled: list[str] = []
    here = threading.get_ident()
    progress = _progress()
    shown: list[Any] = []

    def ours(of: Any) -> str | None:
        # Numba compiles parts of its own library too, and other threads may compile for other callers.
        return compiled_kernel(of) if threading.get_ident() == here else None

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, of: Any) -> None:
            name = ours(of)
            if quiet or name is None:
                return
            if not shown:
                if progress.disable:
                    print_note(f"compiling kernels, once on this machine: a minute or two{kept_elsewhere()}")
                progress.start()
                shown.append(progress.add_task("compiling kernels, once on this machine", total=None, note=""))
            progress.update(shown[0], note=name)

        def on_end(self, of: Any) -> None:
            if name := ours(of):
                compiled.append(name)

    was_silent, logger.disabled = logger.disabled, True
    try:
        with event.install_listener("numba:compile", Listener()):
            yield compiled
    finally:
        logger.disabled = was_silent
        if shown:
            progress.stop()
