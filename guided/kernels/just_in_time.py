"""How Numba compiles kernels, where no library holds them: when they are first called, once on a machine."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit, typeof, types
from numba.core import event
from numba.extending import intrinsic

__all__ = [
    "called", "compiled_kernel", "direct", "inlined", "inner", "kept_elsewhere", "logger", "lower_only",
    "python_calls", "signatures_of",
]  # fmt: skip

logger = logging.getLogger("guided")
"""Says once a process that kernels are compiled: nobody should wait minutes without knowing what for."""


_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "no_cfunc_wrapper": True,
    "error_model": "numpy",
    "_nrt": False,
}
"""No kernel divides by 0, so none has to be ready to raise that: first masks take a twentieth less.

And none makes an array (`guided.kernels.data.local_arrays`), so none counts references (``_nrt``): that was a tenth of
the time of compiling them, and of what a call from Python with arrays takes.
"""


def lower_only() -> None:
    """From now on, mark kernels that are not called: nothing is kept of them, and none gets what Python calls it by."""
    _OPTIONS.update(cache=False, no_cpython_wrapper=True)


_signatures: dict[Any, tuple[str, ...]] = {}


def python_calls(kernel: Callable[..., Any], signatures: tuple[str, ...]) -> Any:
    """Compile a kernel that Python calls, for the types of what it is called with.

    The ``signatures`` are those for which it is compiled ahead.
    """
    made = _compiled(kernel)
    _signatures[made] = signatures
    return made


def signatures_of(kernel: Any) -> tuple[str, ...]:
    """With which types Python calls a kernel; empty for those that only kernels call."""
    return _signatures.get(kernel, ())


def inner(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel that only kernels call: without what Python would call it by.

    That unpacks each array of an argument and packs each of a result, a third of the time of compiling a small kernel.
    A call from Python would end the process.
    """
    return _compiled(kernel, no_cpython_wrapper=True)


def inlined(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel that is written out wherever others call it: what each round of a long loop begins with."""
    return _compiled(kernel, no_cpython_wrapper=True, forceinline=True)


def _compiled(kernel: Callable[..., Any], **options: Any) -> Any:
    global _elsewhere
    try:
        return _once(njit(kernel, **{**_OPTIONS, **options}))
    except RuntimeError as error:
        # Numba keeps kernels beside their source, else in the user's cache, and refuses where it can write to neither.
        if _elsewhere is not None or "locator" not in str(error):
            raise
    _elsewhere = _own_folder()
    # For processes that this one starts, too.
    os.environ["NUMBA_CACHE_DIR"] = config.CACHE_DIR = str(_elsewhere)
    return _once(njit(kernel, **{**_OPTIONS, **options}))


def _once(kernel: Any) -> Any:
    """Have a kernel that others call be compiled once for all integers: they are its ``int64``.

    Numba compiles it for each constant and each width by itself.
    """
    template = kernel.get_call_template

    def get_call_template(arguments: Any, named: Any) -> Any:
        _, folded = kernel._compiler.fold_argument_types(arguments, named)
        return template([_widened(kind) for kind in folded], {})

    kernel.get_call_template = get_call_template
    return kernel


def _widened(kind: Any) -> Any:
    """The type of an argument, without the value of a constant."""
    plain = typeof(kind.value) if isinstance(kind, types.Omitted) else types.unliteral(kind)
    is_narrow = isinstance(plain, types.Integer) and plain.bitwidth < types.int64.bitwidth
    return types.int64 if is_narrow else plain


@intrinsic
def called(typing_context):  # type: ignore[no-untyped-def]
    """Have the kernel that this is written in be called: LLVM would write it out in each that calls it."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


_elsewhere: Path | None = None


def kept_elsewhere() -> str:
    """Where compiled kernels are kept if neither beside the package nor in the user's cache, in words; else empty."""
    if _elsewhere is None:
        return ""
    return (
        f"; neither the installation nor the home folder can be written, so they are kept in {_elsewhere}"
        " (NUMBA_CACHE_DIR names another folder)"
    )


def _own_folder() -> Path:
    """A folder for temporary files that is ours alone: compiled kernels are code, which nobody else may put there."""
    sources = Path(__file__).parent.rglob("*.py")
    # Numba does not see that a kernel which another one calls has changed.
    stamp = max(source.stat().st_mtime_ns for source in sources)
    own = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"guided-kernels-{own}-{stamp:x}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == own and not found.st_mode & 0o077:
            return folder
    return Path(tempfile.mkdtemp(prefix="guided-kernels-"))


_entry_points: dict[Any, Callable[..., Any]] = {}


def direct(kernel: Any) -> Callable[..., Any]:
    """A kernel as it is called where the types of its arguments are known: half of what a call from Python costs.

    Numba's dispatcher asks each argument for its type, 0.4 us where one is an array.  This is what it would choose,
    once the kernel has been called and only ever for one kind of arguments; until then it is the dispatcher itself.
    """
    if kernel not in _entry_points:
        made = list(getattr(kernel, "overloads", {}).values())
        if len(made) == 1 and made[0].entry_point is not None:
            _entry_points[kernel] = made[0].entry_point
    return _entry_points.get(kernel, kernel)


def compiled_kernel(of: Any) -> str | None:
    """The kernel that one of Numba's events of compiling is about; None where it is a function of somebody else's."""
    kernel = of.data["dispatcher"].py_func
    return str(kernel.__name__) if str(kernel.__module__).startswith("guided.") else None


class _Announcement(event.Listener):  # type: ignore[misc]
    """Numba has an event when it compiles what its cache on disk does not hold, and none when it reads the cache."""

    said = False

    def on_start(self, of: Any) -> None:
        if not self.said and compiled_kernel(of):
            self.said = True
            logger.warning(
                "guided: compiling kernels, once on this machine: a minute or two (`guided warmup` does it ahead)%s",
                kept_elsewhere(),
            )

    def on_end(self, of: Any) -> None:
        pass


event.register("numba:compile", _Announcement())
