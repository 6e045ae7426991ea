"""`guided doctor`: what is installed, what is slow here, and what to do about it.

It looks and measures, and changes nothing.  What it says of a machine is of this process: another with other variables
of the environment may find other kernels and caches.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path

import typer

from guided.cli.commands.version import SHOWN
from guided.cli.configuration import ConfigurationChoice
from guided.cli.methods.options import AsJson
from guided.cli.output import print_json, print_text
from guided.errors import GuidedError

__all__ = ["Finding", "Verdict", "doctor", "findings"]

SLOW_MASK = 1e-3
"""Seconds for a mask that was made before: hundreds of times the 1.5 us that compiled kernels take (AMD EPYC)."""

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
TEXT = '{"name": "Ada Lovelace", "age": 36}'


class Verdict(Enum):
    """How a part of the installation is."""

    FINE = "fine"
    NOTE = "note"
    SLOW = "slow"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part; ``remedy`` says what to do where it is not fine, and is empty where it is."""

    part: str
    verdict: Verdict
    what: str
    remedy: str = ""


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Say what is installed, which kernels, caches and defaults are used, and what is slow here and why.

    Exit code 0: nothing is slow or wrong. 1: something is, and its line says what to do. Send the output with a report
    of a problem: it names no model and no text, but folders of this machine.

    **Examples:**

        guided doctor
        guided doctor --json | jq -r '.findings[] | select(.verdict != "fine") | .remedy'
    """
    found = [*findings(), _defaults(context)]
    if as_json:
        print_json({"findings": [{**asdict(each), "verdict": each.verdict.value} for each in found]})
    else:
        for each in found:
            mark = {Verdict.FINE: "ok", Verdict.NOTE: "note", Verdict.SLOW: "SLOW", Verdict.WRONG: "WRONG"}[
                each.verdict
            ]
            print_text(f"{mark:<5} {each.part:<11} {each.what}" + (f". {each.remedy}" if each.remedy else ""))
    if any(each.verdict in (Verdict.SLOW, Verdict.WRONG) for each in found):
        raise typer.Exit(1)


def findings() -> Iterator[Finding]:
    """Look at one part after the other."""
    yield _versions()
    yield _kernels()
    yield _models()
    yield _cache()
    yield from _masks()


def _versions() -> Finding:
    import guided

    found = [
        f"guided {guided.__version__}",
        f"Python {platform.python_version()} on {sys.platform} {platform.machine()}",
    ]
    for name in SHOWN:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return Finding("versions", Verdict.FINE, ", ".join(found))


def _kernels() -> Finding:
    from guided.kernels.ahead import library

    path = library.found()
    if os.environ.get(library.CHOICE) == "numba":
        return Finding(
            "kernels", Verdict.SLOW, f"{library.CHOICE}=numba: each process loads Numba, and may compile",
            f"Unset {library.CHOICE}",
        )  # fmt: skip
    if path is not None:
        return Finding("kernels", Verdict.FINE, f"compiled ahead: {path}")
    if importlib.util.find_spec("numba") is None:
        remedy = "Run: pip install 'guided-decoding[numba]', then: guided warmup"
        return Finding("kernels", Verdict.SLOW, "no library for this processor and these sources, and no Numba", remedy)
    remedy = "Run: guided warmup"
    return Finding("kernels", Verdict.SLOW, "no library for this processor and these sources: Numba compiles", remedy)


def _models() -> Finding:
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        remedy = "For models run: pip install 'guided-decoding[hf]'"
        return Finding(
            "models", Verdict.NOTE, "torch and transformers are not both installed: the engine alone", remedy
        )
    import torch

    if torch.cuda.is_available():
        return Finding("models", Verdict.FINE, f"GPU: {torch.cuda.get_device_name()}")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = torch.get_num_threads()
    what = f"no GPU; torch uses {threads} of {processors} processors"
    if threads > processors:
        return Finding("models", Verdict.SLOW, what, f"Set OMP_NUM_THREADS={processors}: threads wait for one another")
    return Finding("models", Verdict.FINE, what)


def _defaults(context: typer.Context) -> Finding:
    """Which file of defaults the other commands read here, if they can."""
    chosen: ConfigurationChoice = context.obj
    try:
        file = chosen.file()
        if file is not None and context.parent is not None:
            file.defaults(context.parent.command, context.parent)
    except GuidedError as error:
        where = f" (at {error.where})" if error.where else ""
        return Finding("defaults", Verdict.WRONG, f"{error.what}{where}", (error.remedy or "").rstrip("."))
    what = "guided's own: no guided.toml and no [tool.guided] of a pyproject.toml here or above"
    return Finding("defaults", Verdict.FINE, what if file is None else f"from {file.path}")


def _cache() -> Finding:
    from guided.vocab.cache import cache_directory

    folder = cache_directory()
    if folder is None:
        remedy = "Let XDG_CACHE_HOME name a folder that can be written"
        return Finding("vocabulary", Verdict.NOTE, "no cache: a large tokenizer is read anew by each process", remedy)
    size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) if folder.exists() else 0
    return Finding("vocabulary", Verdict.FINE, f"cache {folder}, {size / 1e6:.1f} MB")


def _masks() -> Iterator[Finding]:
    """A schema compiled and a text followed, twice: the second time every mask was made before."""
    import numpy as np

    import guided

    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    began = time.perf_counter()
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[256])
    constraint = guided.Constraint(guided.json_schema(SCHEMA), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    constraint.fill_mask(constraint.start, row)
    first = time.perf_counter() - began
    yield Finding("first mask", Verdict.FINE, f"{first * 1e3:.0f} ms after the first constraint was asked for")
    for _ in range(2):
        began, state = time.perf_counter(), constraint.start
        for token in TEXT.encode():
            constraint.fill_mask(state, row)
            state = constraint.advance(state, token)
    each = (time.perf_counter() - began) / len(TEXT)
    what = f"{each * 1e6:.1f} us for a mask and a step, known before"
    if each > SLOW_MASK:
        yield Finding(
            "masks",
            Verdict.SLOW,
            what,
            "Other work on this machine, or kernels that are interpreted (NUMBA_DISABLE_JIT)",
        )
    else:
        yield Finding("masks", Verdict.FINE, what)
