"""Making the libraries: lower once, then optimise, generate and link for each level.

An optimised module is what Numba would make of it: the same passes in the same order, over all kernels at once.
"""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm

from guided.kernels.ahead.levels import Level
from guided.kernels.ahead.library import FOLDER, SUFFIX, library_name, source_digest
from guided.kernels.ahead.linking import link, linker
from guided.kernels.ahead.lowering import Lowered, lowered, merged
from guided.kernels.ahead.wrappers import wrappers

__all__ = ["build"]

_OLDEST = 20
"""The first version of LLVM whose pointers have no type, as `wrappers` writes them."""


def build(levels: list[Level], folder: Path = FOLDER) -> list[Path]:
    """The libraries of these sources, made in a folder; those of other sources are taken away."""
    if llvm.llvm_version_info < (_OLDEST,):
        raise RuntimeError(f"making the library takes llvmlite with LLVM {_OLDEST} or newer: pip install -U numba")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for level in levels:
        linker(level)
    kernels, modules = lowered()
    made = []
    for level in levels:
        path = folder / library_name(level)
        link(_objects(kernels, modules, level), level, path)
        made.append(path)
    for old in folder.glob(f"*{SUFFIX}"):
        if source_digest() not in old.name:
            old.unlink()
    return made


def _objects(kernels: list[Lowered], modules: list[str], level: Level) -> bytes:
    kept = {kernel.symbol for kernel in kernels}
    target = llvm.Target.from_triple(level.triple)
    machine = target.create_target_machine(
        cpu=level.processor, features=level.features, opt=3, reloc="pic", codemodel="default"
    )
    whole = merged(modules, kept)
    whole.triple = level.triple
    whole.data_layout = str(machine.target_data)
    _optimise(whole, machine)
    whole.link_in(llvm.parse_assembly(wrappers(kernels)))
    for function in whole.functions:
        if not function.is_declaration and not function.name.startswith("PyInit_"):
            function.linkage = "internal"
    whole.verify()
    return bytes(machine.emit_object(whole))


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """The passes of Numba: a cheap round, then all."""
    for speed in (0, 3):
        options = llvm.create_pipeline_tuning_options(speed)
        options.loop_vectorization = speed > 0
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager()
        if not speed:
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.run(module, builder)
