"""LMDeploy's real manager of grammars (0.18.0), with XGrammar's classes replaced by ours.

Only its two modules are loaded: the package around them asks for a GPU.
"""

from __future__ import annotations

import importlib
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")
if find_spec("lmdeploy") is None:
    pytest.skip("lmdeploy is not installed", allow_module_level=True)

import torch
import xgrammar

import guided
import guided.serving.xgrammar
from tests.serving.conftest import allowed_after

WIDTH = 2080


@pytest.fixture(scope="module")
def lmdeploy():
    """The modules that compile and run grammars, in packages that do not run their own beginnings."""
    kept = {
        name: getattr(xgrammar, name) for name in ("CompiledGrammar", "Grammar", "GrammarCompiler", "GrammarMatcher")
    }
    found = xgrammar.TokenizerInfo.from_huggingface
    modules = set(sys.modules)
    root = Path(find_spec("lmdeploy").submodule_search_locations[0])
    for name in ("lmdeploy", "lmdeploy.pytorch", "lmdeploy.pytorch.engine"):
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    guided.serving.xgrammar.install()
    yield (
        importlib.import_module("lmdeploy.pytorch.engine.guided_process"),
        importlib.import_module("lmdeploy._guided_decoding"),
    )
    for name, kind in kept.items():
        setattr(xgrammar, name, kind)
    xgrammar.TokenizerInfo.from_huggingface = staticmethod(found)
    for name in set(sys.modules) - modules:
        if name.startswith("lmdeploy"):
            del sys.modules[name]


REQUESTS = [
    ({"type": "json_schema", "json_schema": {"schema": {"type": "integer", "multipleOf": 7}}},
     lambda: guided.json_schema({"type": "integer", "multipleOf": 7})),
    ({"type": "regex_schema", "regex_schema": "[0-9]{2}(?<=7)"}, lambda: guided.regex("[0-9]{2}(?<=7)")),
    ({"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "content": {"type": "regex", "pattern": "x+"},
                                           "end": "</a>"}}, lambda: guided.regex("<a>x+</a>")),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "grammar"), REQUESTS)
def test_requests_go_through(lmdeploy, nano, asked, grammar):
    process, compilation = lmdeploy
    compilation.ensure_response_format_compilable(asked)
    manager = process.GuidedDecodingManager(nano.tokenizer, WIDTH)
    context = [{"session_id": 1, "seq_id": 0}, {"session_id": 2, "seq_id": 0}]
    processors = manager.get_processors(context, ({"type": "text"}, asked))
    assert set(processors) == {1}
    constraint = guided.compile(grammar(), nano.vocabulary)
    tokens = []
    while not manager.is_terminated(processors[1]):
        masks = manager.allocate_batched_bitmap(2)
        manager.fill_bitmap(processors[1], masks, 1)
        logits = torch.zeros(2, WIDTH)
        manager.apply_batched_bitmap(logits, masks)
        left = set(torch.nonzero(logits[1] == 0).ravel().tolist())
        assert left == allowed_after(constraint, tokens) and (logits[0] == 0).all()
        tokens.append(min(left, key=lambda token: constraint.shortest_completion(_after(constraint, [*tokens, token]))))
        manager.accept_token(processors[1], tokens[-1])
    assert tokens[-1] in nano.vocabulary.eos_ids


def _after(constraint, tokens):
    state = constraint.start
    for token in tokens:
        state = constraint.advance(state, token)
    return state


def test_what_is_refused_is_said_before_the_engine_sees_it(lmdeploy):
    _, compilation = lmdeploy
    with pytest.raises(ValueError, match="backreference"):
        compilation.ensure_response_format_compilable({"type": "regex_schema", "regex_schema": r"(\w+)\1"})
