"""Code on pages without prompts: it runs over what it takes as given, or, of packages that are not here, is checked."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guided
from tests.amounts import ALL
from tests.conftest import ROOT
from tests.pages import blocks

DOCS = ROOT / "docs"
PACKAGE = Path(guided.__file__).parent


def sketches(page: Path) -> list[str]:
    return [block.text for block in blocks(page) if block.language == "python" and ">>>" not in block.text]


SKETCHED = {page.stem: sketches(page) for page in sorted(DOCS.glob("*.md")) if sketches(page)}


def nothing() -> dict[str, Any]:
    return {"guided": guided}


def diffusion() -> dict[str, Any]:
    from guided.diffusion import TableDenoiser

    tokens = [b"{", b"}", b",", b"a", None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[4])
    rng = np.random.default_rng(0)
    return {
        "constraint": guided.compile(guided.regex(r"\{?a+,a*\}?"), vocabulary), "brace": 0, "comma": 2, "rng": rng,
        "logp": np.log(rng.dirichlet(np.ones(5), 5)), "length": 3, "prompt": (), "reward": lambda text: 0.1 * len(text),
        "denoiser": TableDenoiser(rng.dirichlet(np.ones(5**3)).reshape([5] * 3), [4]),
    }  # fmt: skip


def models() -> dict[str, Any]:
    """The packaged models, and a short text that they are asked for."""
    pytest.importorskip("transformers")
    from transformers import GenerationConfig

    import guided.hf
    from guided.hf import TransformersModel
    from guided.nano import extraction_prompt
    from guided.search import deal_search
    from guided.steer import Contrastive, EntropyAdaptive, TextReward

    nano, amateur = guided.hf.load("nano"), guided.hf.load("nano-amateur")
    ages = {"type": "object", "properties": {"age": {"enum": [7, 8]}}, "required": ["age"]}
    schema = {**ages, "additionalProperties": False}
    prompt = extraction_prompt(schema, "Nina is 8.")
    ids = nano.tokenizer.encode(prompt)
    return {
        "guided": guided, "nano": nano, "small": amateur, "large_model": nano.model, "small_model": amateur.model,
        "model": TransformersModel(nano), "prompt": prompt, "prompt_ids": ids, "token": 5, "schema": schema,
        "constraint": guided.compile(guided.regex("Berlin( by (train|railway))?"), nano.vocabulary),
        "vocabulary": nano.vocabulary, "tokenizer": nano.tokenizer, "run_tests": lambda text: text.endswith("n"),
        "ids": nano.tokenizer.encode, "inputs": nano.tokenizer(prompt, return_tensors="pt"), "score": lambda texts: [0.0] * len(texts),
        "partial": functools.partial, "deal_search": deal_search, "Contrastive": Contrastive,
        "EntropyAdaptive": EntropyAdaptive, "TextReward": TextReward, "GenerationConfig": GenerationConfig,
    }  # fmt: skip


def shop() -> dict[str, Any]:
    pytest.importorskip("transformers")
    import guided.hf

    shutil.copy(ROOT / "examples" / "shop.db", "shop.db")
    return {"tokenizer": guided.hf.load("nano").tokenizer}


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "ARCHITECTURE": nothing,
    "DIFFUSION": diffusion,
    "GRAMMAR_NOTATIONS": nothing,
    "JSON_SCHEMA": nothing,
    "SAMPLING": models,
    "SCHEMA_TEXTS": nothing,
    "SEARCH": models,
    "SPECULATION": nothing,
    "SQL": shop,
    "STEERING": models,
}
"""By page what its blocks take as given."""
ELSEWHERE = {"FRAMEWORKS", "LLAMA_CPP", "MLX", "MONITORS", "RAY", "SERVER", "SGLANG", "VLLM"}
"""Pages about packages, services and language servers that are not here; what runs them is in `tests/serving`."""


def test_every_sketch_is_run_or_checked():
    assert {*GIVEN} | ELSEWHERE == {*SKETCHED} and not {*GIVEN} & ELSEWHERE


def fewer(sketch: str) -> str:
    """As it stands in the long suite; by default with fewer samples and rollouts, which take two seconds each."""
    return sketch if ALL else sketch.replace("n=900", "n=90").replace("rollouts=128", "rollouts=16")


@pytest.mark.parametrize("page", GIVEN)
def test_sketches_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = GIVEN[page]()
    for sketch in SKETCHED[page]:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(fewer(sketch), f"{page}.md", "exec"), session)


def definition(module: str, name: str) -> ast.AST | str | None:
    """The node that defines a name of a module of guided, a module's name, or None."""
    if (PACKAGE.parent / f"{module}.{name}".replace(".", "/")).with_suffix("").is_dir():
        return f"{module}.{name}"
    path = PACKAGE.parent / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if path.is_dir() and (path / f"{name}.py").is_file():
        return f"{module}.{name}"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and name in [ast.unparse(target) for target in node.targets]:
            return node
        if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) == name for each in node.names):
            return definition(node.module, name) if (node.module or "").startswith("guided") else node
    return None


def faults(sketch: str) -> list[str]:
    """Names of guided that are not there, and keywords that its functions do not take."""
    found, known = [], {}
    tree = ast.parse(sketch)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("guided"):
            known.update({each.name: definition(node.module, each.name) for each in node.names})
        elif isinstance(node, ast.Attribute) and (chain := ast.unparse(node)).startswith("guided."):
            at: Any = "guided"
            for name in chain.split(".")[1:]:
                at = definition(at, name) if isinstance(at, str) else at
            known[chain] = at
    found += [name for name, at in known.items() if at is None]
    for node in ast.walk(tree):
        taken = known.get(ast.unparse(node.func)) if isinstance(node, ast.Call) else None
        if isinstance(taken, ast.FunctionDef) and not taken.args.kwarg:
            names = {each.arg for each in [*taken.args.posonlyargs, *taken.args.args, *taken.args.kwonlyargs]}
            found += [f"{taken.name}({word.arg}=)" for word in node.keywords if word.arg and word.arg not in names]
    return found


@pytest.mark.parametrize("page", sorted(ELSEWHERE))
def test_sketches_name_what_is_there(page):
    assert [fault for sketch in SKETCHED[page] for fault in faults(sketch)] == []


def test_what_is_not_there_is_found():
    assert faults("import guided\nguided.serving.mlx.generates(1)\nguided.compiled(2)") == [
        "guided.serving.mlx.generates", "guided.compiled",
    ]  # fmt: skip
    assert faults("import guided\nguided.regex('a', flag=3)") == ["regex(flag=)"]
    assert faults("from guided.lm import TableModel\nTableModel(1)") == []
