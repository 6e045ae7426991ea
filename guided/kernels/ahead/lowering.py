"""All kernels as one module of LLVM, not optimised yet.  Only for a process that does nothing else.

Numba compiles each kernel by itself, with all that it calls once more, for the processor that it runs on.  Here it only
lowers them: what it would optimise and load is gathered instead.  (Numba 0.68; the seams are its own, so a release that
moves them makes no library, and says so.)
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pkgutil import walk_packages
from typing import Any

import llvmlite.binding as llvm
from numba.core import codegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

import guided.kernels
from guided.kernels import just_in_time
from guided.kernels.ahead.parameters import Parameter, parameters, signature

__all__ = ["Lowered", "lowered", "merged"]


@dataclass(frozen=True)
class Lowered:
    """A kernel that Python calls, for one kind of arguments: its place, and its function in the module."""

    place: str
    signature: str
    of: tuple[Parameter, ...]
    returns: Any
    symbol: str


def lowered() -> tuple[list[Lowered], list[str]]:
    """Every kernel that Python calls, and the modules that define them and what they call."""
    made: list[Any] = []
    _gather_in(made)
    just_in_time.lower_only()
    # Numba's compiler keeps most of what it makes, which Python would look through again and again.
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    kernels = [_lowered(kernel, text) for kernel in _entries() for text in just_in_time.signatures_of(kernel)]
    return kernels, [str(library._final_module) for library in made]


def _gather_in(made: list[Any]) -> None:
    """Have Numba gather what it would optimise, link and load."""

    def finalize(self: Any) -> None:
        self._raise_if_finalized()
        self._finalized = True
        made.append(self)

    codegen.CPUCodeLibrary.finalize = finalize
    codegen.JITCodeLibrary.get_pointer_to_function = lambda self, name: 1
    codegen.JITCPUCodegen.set_env = lambda self, name, environment: None


def _entries() -> Iterator[Any]:
    """The kernels that Python calls, each once, in the order of their places."""
    names = sorted(module.name for module in walk_packages(guided.kernels.__path__, "guided.kernels."))
    seen: set[Any] = set()
    for module in [importlib.import_module(name) for name in names if not name.startswith("guided.kernels.ahead")]:
        for value in vars(module).values():
            if isinstance(value, Dispatcher) and just_in_time.signatures_of(value) and value not in seen:
                seen.add(value)
                yield value


def _lowered(kernel: Any, text: str) -> Lowered:
    of = parameters(text)
    types = signature(of)
    kernel.compile(types)
    made = kernel.overloads[types]
    with global_compiler_lock:
        made.library._ensure_finalized()
    function = kernel.py_func
    returns = made.signature.return_type
    return Lowered(f"{function.__module__}.{function.__name__}", text, of, returns, made.fndesc.llvm_func_name)


def merged(modules: list[str], kept: set[str]) -> llvm.ModuleRef:
    """The modules as one; the functions ``kept`` are seen from outside, and others only as long as they are called."""
    whole = llvm.parse_assembly(modules[0])
    _define_weakly(whole)
    for text in modules[1:]:
        module = llvm.parse_assembly(text)
        _define_weakly(module)
        whole.link_in(module)
    for function in whole.functions:
        if not function.is_declaration and function.name not in kept:
            function.linkage = "linkonce_odr"
    return whole


def _define_weakly(module: llvm.ModuleRef) -> None:
    """What is defined once only is dropped by LLVM where the modules before have no use for it."""
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "weak_odr"
