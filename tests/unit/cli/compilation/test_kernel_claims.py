"""`guided warmup`: two processes compile each kernel once, and every part of the work runs by itself."""

from __future__ import annotations

import ast
import importlib
import threading
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import guided
from guided.cli.compilation import kernel_calls
from guided.cli.compilation.kernel_claims import _ClaimedCache, all_kernels, shared_kernels
from tests.just_in_time import needs_numba


class Kept:
    """A cache of two processes: variants by signature."""

    cache_path = "somewhere"

    def __init__(self):
        self.variants = {}

    def load_overload(self, signature, target_context):
        return self.variants.get(signature)

    def save_overload(self, signature, compiled):
        self.variants[signature] = compiled


@pytest.fixture
def kept() -> Kept:
    return Kept()


def test_who_comes_second_waits_and_loads(tmp_path, kept):
    first, second = (_ClaimedCache(kept, tmp_path / "kernel", lambda: True) for _ in range(2))
    assert first.load_overload("signature", None) is None
    found = []
    waiting = threading.Thread(target=lambda: found.append(second.load_overload("signature", None)))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    first.save_overload("signature", "compiled")
    waiting.join(10)
    assert found == ["compiled"]
    assert not any(tmp_path.iterdir())


def test_another_variant_of_a_claimed_kernel_waits_too_and_is_then_compiled(tmp_path, kept):
    first, second = (_ClaimedCache(kept, tmp_path / "kernel", lambda: True) for _ in range(2))
    first.load_overload("one", None)
    found = []
    waiting = threading.Thread(target=lambda: found.append(second.load_overload("other", None)))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    first.save_overload("one", "compiled")
    waiting.join(10)
    assert found == [None]
    assert (tmp_path / "kernel").exists()
    second.save_overload("other", "compiled")
    assert not any(tmp_path.iterdir())


def test_variants_that_are_compiled_within_each_other_are_one_claim(tmp_path, kept):
    cache = _ClaimedCache(kept, tmp_path / "kernel", lambda: True)
    assert cache.load_overload("outer", None) is None
    assert cache.load_overload("inner", None) is None
    cache.save_overload("inner", "compiled")
    assert (tmp_path / "kernel").exists()
    cache.save_overload("outer", "compiled")
    assert not any(tmp_path.iterdir())


def test_claims_of_a_process_that_is_gone_count_no_more(tmp_path, kept):
    lives = [True]
    _ClaimedCache(kept, tmp_path / "kernel", lambda: True).load_overload("signature", None)
    cache = _ClaimedCache(kept, tmp_path / "kernel", lambda: lives[0])
    found = []
    waiting = threading.Thread(target=lambda: found.append(cache.load_overload("signature", None)))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    lives[0] = False
    waiting.join(10)
    assert found == [None]
    cache.save_overload("signature", "compiled")
    assert kept.variants == {"signature": "compiled"}


@needs_numba
def test_kernels_have_their_own_caches_again_afterwards(tmp_path):
    kernels = list(all_kernels())
    caches = [kernel._cache for kernel in kernels]
    with shared_kernels(tmp_path, lambda: True):
        assert all(isinstance(kernel._cache, _ClaimedCache) for kernel in kernels)
        assert kernels[0]._cache.cache_path == caches[0].cache_path
        assert len({kernel._cache._claim for kernel in kernels}) == len(kernels)
    assert [kernel._cache for kernel in kernels] == caches


@pytest.mark.parametrize("part", [kernel_calls.masks, kernel_calls.alone, kernel_calls.steps])
def test_each_part_runs_by_itself(part):
    part()


@needs_numba
def test_the_kernels_of_an_index_are_called():
    from guided.kernels.tokens import fm_index

    kernel_calls._index(kernel_calls._vocabulary())
    for name in fm_index.__all__:
        assert getattr(fm_index, name).signatures, name


@needs_numba
def test_rows_are_copied_and_applied_with_the_types_that_tensors_have():
    import torch

    from guided.kernels.masking.apply import apply_rows, copy_rows

    vocabulary = kernel_calls._vocabulary()
    kernel_calls._apply(vocabulary)
    before = set(apply_rows.signatures), set(copy_rows.signatures)
    constraint = guided.compile(guided.regex("a"), vocabulary)
    rows = guided.allocate_masks(2, vocabulary.size)
    guided.fill_masks([constraint, constraint], [constraint.end, constraint.end], rows)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        scores = torch.zeros(2, vocabulary.size, dtype=dtype)
        guided.apply_masks(scores, rows, out=torch.empty_like(scores))
        guided.apply_masks(scores, rows)
    assert (set(apply_rows.signatures), set(copy_rows.signatures)) == before


@needs_numba
def test_python_calls_no_kernel_that_is_for_kernels_alone():
    package = Path(guided.__file__).parent
    called = set()
    for path in package.rglob("*.py"):
        if path.relative_to(package).parts[0] == "kernels":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("guided.kernels."):
                modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
                called |= {(node.module, alias.name) for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                called.add((modules[node.value.id], node.attr))
    folders = {".".join(path.with_suffix("").relative_to(package.parent).parts) for path in package.rglob("*.py")}
    kernels = [getattr(importlib.import_module(module), name, None) for module, name in called if module in folders]
    kernels = [kernel for kernel in kernels if isinstance(kernel, Dispatcher)]
    assert len(kernels) > 30
    for kernel in kernels:
        assert not kernel.targetoptions.get("no_cpython_wrapper"), kernel
    assert np.any([kernel.targetoptions.get("no_cpython_wrapper") for kernel in all_kernels()])
