"""``--steer`` specifications: what they build, and what they say when they are wrong."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import subprocess
import sys

import pytest
import torch

from guided.cli.methods.steering import parse_steering, sources_of, steering_help, steering_stack
from guided.cli.methods.steering_methods import METHODS, Kind, Sources
from guided.errors import GuidedError, UnsupportedError
from guided.hf import TransformersModel, load
from guided.lm import TableModel, next_logits, retokenized
from guided.steer import (
    ClassifierFree,
    Contrastive,
    DeCoRe,
    Divergence,
    DoLa,
    Instructive,
    Mixture,
    PrefixAdaptive,
    Prefixed,
    Replaced,
    Stack,
    contrastive_vector,
)
from tests.amounts import each
from tests.tolerances import SINGLE
from tests.unit.cli.conftest import one_line

MODELS = {name: TableModel.random(number, width=30) for number, name in enumerate(["base", "small", "other"])}


def encode(text, special):
    return ((29,) if special else ()) + tuple(ord(c) % 29 for c in text)


@pytest.fixture
def sources():
    return Sources(
        MODELS["base"], MODELS.__getitem__, encode, lambda ids: "".join(chr(97 + token % 26) for token in ids)
    )


def first(specification, sources):
    stack = steering_stack([specification], sources)
    return stack.adaptive or stack.steerers[0]


def test_settings_reach_the_steerers(sources):
    contrastive = first("contrastive:model=small,alpha=0.2,beta=none", sources)
    assert contrastive.amateur is MODELS["small"]
    assert (contrastive.alpha, contrastive.beta, contrastive.temperature) == (0.2, None, None)
    assert first("dola:layer=0,layer=-2,divergence=jensen-shannon,final_norm=yes", sources) == DoLa(
        (0, -2), divergence=Divergence.JENSEN_SHANNON, final_norm=True
    )
    assert first("dola:bucket=low", sources) == DoLa(DoLa().layers.LOW)
    assert first("decore:head=3.5,head=0.1,cap=2", sources) == DeCoRe(((3, 5), (0, 1)), cap=2.0)
    assert first('cfg:negative="no, \\"never\\"",scale=3', sources) == ClassifierFree(
        3.0, Replaced(encode('no, "never"', True))
    )
    assert first("cfg", sources) == ClassifierFree()
    assert first("instructive:noisy=lie", sources) == Instructive(Prefixed(encode("lie", False), after=1))
    assert first("preadd:prefix=be rude,alpha=-1", sources) == PrefixAdaptive(
        Prefixed(encode("be rude", False), after=1), -1.0
    )
    mixture = first("mixture:model=small,model=other,weight=1,weight=2,weight=3", sources)
    assert isinstance(mixture, Mixture) and mixture.weights == (1.0, 2.0, 3.0)
    assert first("rad:reward=statistics:mean,top-k=3", sources).top_k == 3
    adaptive = first("adaptive:model=small,threshold=1.5,window=3,least=2", sources)
    assert (adaptive.small, adaptive.threshold, adaptive.window, adaptive.least) == (MODELS["small"], 1.5, 3, 2)
    with pytest.raises(GuidedError, match="not the first"):
        steering_stack(["cfg", "adaptive:model=small,threshold=1"], sources)


def test_order_is_kept(sources):
    stack = steering_stack(["cfg", "contrastive:model=small", "momentum"], sources)
    assert [type(each).__name__ for each in stack.steerers] == ["ClassifierFree", "Contrastive", "Momentum"]
    assert isinstance(stack, Stack) and isinstance(stack.steerers[1], Contrastive)


def test_every_method_can_be_built_and_its_settings_exist(sources, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("one two\n\nthree\n")
    samples = {
        Kind.NUMBER: "0.5", Kind.NUMBER_OR_NONE: "0.5", Kind.COUNT: "3", Kind.COUNT_OR_NONE: "none", Kind.FLAG: "no",
        Kind.MODEL: "small", Kind.TOKENS: "abc", Kind.PROMPT: "abc", Kind.LAYER: "1", Kind.HEAD: "0.0",
        Kind.REWARD: f"{__name__}:lengths", Kind.CORPUS: str(corpus), Kind.BUCKET: "high",
        Kind.DIVERGENCE: "official",
    }  # fmt: skip
    assert set(samples) == set(Kind)
    for name, method in METHODS.items():
        least = ",".join(f"{key}={samples[each.kind]}" for key, each in method.settings.items() if each.required)
        if name == "activations":  # vectors are read from blocks, which a table has not: see below
            with pytest.raises(UnsupportedError, match="gives no hidden states"):
                first(f"{name}:{least}", sources)
            continue
        steerer = first(f"{name}:{least}", sources)
        assert dataclasses.is_dataclass(steerer)
        for key, setting in method.settings.items():
            if not setting.required and key not in ("weight", "prior"):
                other = ",truthful=abc" if (name, key) == ("lol", "truth") else ""
                first(f"{name}:{least + ',' if least else ''}{key}={samples[setting.kind]}{other}", sources)


def test_vectors_are_read_from_the_model_that_is_steered():
    loaded = load("reviews")
    base, encode = TransformersModel(loaded), loaded.tokenizer.encode
    own = Sources(base, None, lambda text, special: encode(text, add_special_tokens=special), loaded.tokenizer.decode)
    steerer = first("activations:wanted=The polite,wanted=The civil one,unwanted=The rude,block=2,strength=0.5", own)
    wanted = [encode("The polite"), encode("The civil one")]
    made = contrastive_vector(base, wanted, [encode("The rude")], block=2, strength=0.5)
    assert torch.equal(steerer.added[0].vectors, made.vectors)


def lengths(texts):
    return [len(text) / 100 for text in texts]


def test_a_stack_from_words_steers(sources):
    stack = steering_stack(["contrastive:model=small", f"rad:reward={__name__}:lengths"], sources)
    assert next_logits(stack.over(MODELS["base"]), [(1, 2)]).shape == (1, 30)


@pytest.mark.parametrize(
    ("specification", "says"),
    [
        ("contrastiv:model=small", "no steering method is called 'contrastiv'.*Did you mean 'contrastive'.*cfg, instr"),
        ("", "called ''.*Known: contrastive"),
        ("contrastive", r"contrastive needs model .*Write contrastive:model=MODEL,\[alpha=NUMBER\]"),
        ("contrastive:model=small,alfa=1", "no setting 'alfa'.*Did you mean 'alpha'.*Write contrastive:"),
        ("contrastive:small", "'small' is not KEY=VALUE.*Write contrastive"),
        ("contrastive:model=small,alpha=1,alpha=2", "alpha is given twice"),
        ("contrastive:model=small,alpha=high", "'high' is not NUMBER"),
        ("contrastive:model=small,alpha=2", "alpha=2.0 is not from 0 to 1"),
        ("momentum:top_k=2.5", "'2.5' is not COUNT"),
        ("decore:head=3", "'3' is not BLOCK.HEAD"),
        ("dola:bucket=middle", r"'middle' is not low\|high"),
        ("dola:bucket=low,layer=1", "a bucket and layers"),
        ("dola:final_norm=maybe", r"is not yes\|no"),
        ('cfg:negative="never', "quote is not closed"),
        ("rad:reward=no.such.module:f", "no reward function"),
        ("rad:reward=statistics:no_such", "no reward function"),
        ("rad:reward=statistics", "no reward function"),
        ("rad:reward=math:pi", "no function"),
        ("grad:corpus=no-such-file", "corpus cannot be read"),
    ],
)
def test_what_is_wrong_is_said(specification, says, sources):
    with pytest.raises(GuidedError) as error:
        steering_stack([specification], sources)
    assert re.search(says, str(error.value)), str(error.value)


def test_nothing_is_loaded_before_all_specifications_are_read(sources):
    def load(name):
        raise AssertionError("loaded")

    with pytest.raises(GuidedError, match="no steering method"):
        steering_stack(["contrastive:model=small", "nonsense"], dataclasses.replace(sources, load_model=load))


def test_help_lists_every_method(guided_cli):
    lines = steering_help().splitlines()
    for name, method in METHODS.items():
        place = next(n for n, line in enumerate(lines) if line.split(":")[0] == f"  {name}")
        assert lines[place + 1].strip() == method.summary
    assert "  cfg:[scale=NUMBER],[negative=PROMPT]" in lines
    assert "NOT LOSSLESS" in METHODS["adaptive"].summary
    result = guided_cli("extract", "--steer", "help")
    assert (result.exit_code, result.stdout.rstrip("\n")) == (0, steering_help())
    assert "--steer" in guided_cli("sql", "--steer", "help").stdout


def test_examples_of_the_help_can_be_read():
    for line in steering_help().splitlines():
        words = line.split()
        for option, specification in itertools.pairwise(words):
            if words[:1] == ["guided"] and option == "--steer":
                parse_steering(specification)


def test_sources_of_the_packaged_model():
    from guided import hf

    loaded = hf.load("nano")
    calls = []

    def load(name):
        calls.append(name)
        return loaded

    sources = sources_of(loaded, load)
    stack = steering_stack(
        ['cfg:negative="Text: no"', "contrastive:model=nano,beta=0", "dexperts:expert=nano,anti=nano,top_p=1"], sources
    )
    assert calls == ["nano"]
    prompt = tuple(sources.encode("The cat", True))
    assert sources.decode(prompt) == "The cat"
    logits = next_logits(stack.over(sources.base, same_tokenizer=True), [prompt])
    plain = next_logits(sources.base, [prompt])
    assert logits.shape == plain.shape and not torch.equal(logits, plain)


def test_a_packaged_amateur_by_its_name(guided_cli, tmp_path):
    schema, letter = tmp_path / "s.json", tmp_path / "letter.txt"
    schema.write_text(json.dumps({"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}},
                                  "required": ["name"], "additionalProperties": False}))  # fmt: skip
    letter.write_text("Ada Lovelace lives in London.\n")
    texts = []
    for steer in (
        "contrastive:model=nano-amateur,alpha=0.3",
        "adaptive:model=nano-amateur,threshold=0.5",
        *each(
            ["adaptive:model=nano-amateur,threshold=inf", "adaptive:model=nano-amateur,threshold=-1,least=0"],
        ),
    ):
        result = guided_cli("extract", "-s", schema, letter, "--steer", steer, "--offline", "--max-new-tokens", 40)
        assert (result.exit_code, result.stderr) == (0, ""), steer
        texts.append(json.loads(result.stdout))
        assert set(texts[-1]) == {"name"}
    alone = guided_cli("extract", "-s", schema, letter, "-m", "nano-amateur", "--offline", "--max-new-tokens", 40)
    assert alone.exit_code == 0, alone.stderr
    refused = guided_cli(
        *("extract", "-s", schema, letter, "--steer", "adaptive:model=nano-amateur,threshold=1"), "--draft", "lookup"
    )
    assert refused.exit_code == 3 and "drafts would save nothing" in one_line(refused.stderr)


def test_quotes_and_commas():
    assert parse_steering('context:context="a, b",alpha=1').settings == {"context": ("a, b",), "alpha": ("1",)}
    assert parse_steering("context:context= a ").settings == {"context": ("a",)}
    assert parse_steering('context:context=" a "').settings == {"context": (" a ",)}
    assert parse_steering(r'context:context="a\\b"').settings == {"context": ("a\\b",)}


def test_importing_the_words_loads_no_torch():
    code = "import sys, guided.cli.methods.steering as s; s.steering_help(); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "False"


def test_a_model_of_another_tokenizer(model_folder):
    """It is read in the steered model's tokens, also behind marks that have no text there."""
    from guided import hf

    loaded, other = hf.load(model_folder), hf.load("nano-amateur")
    sources = sources_of(loaded, {"nano-amateur": other}.__getitem__)
    steered = steering_stack(["mixture:model=nano-amateur,weight=0,weight=1"], sources).over(
        sources.base, same_tokenizer=True
    )
    prompt = list(sources.encode("The cat", False))
    alone, marked = (next_logits(steered, [row])[0] for row in (prompt, [*loaded.vocabulary.eos_ids, *prompt]))
    assert torch.equal(alone, marked)
    start = [other.tokenizer.eos_token_id]  # it has no beginning of its own
    model = hf.TransformersModel(other)
    view = retokenized(model, other.vocabulary, loaded.vocabulary, context=start)
    wanted = next_logits(view, [prompt])[0].log_softmax(-1)
    finite = torch.isfinite(alone[: len(wanted)]) & torch.isfinite(wanted)
    assert finite.any() and torch.allclose(alone[: len(wanted)][finite].double(), wanted[finite], atol=SINGLE)


@pytest.mark.slow
def test_a_model_of_another_tokenizer_from_the_command_line(guided_cli, person, letter, model_folder):
    result = guided_cli(
        "extract", "-s", person, letter, "--model", model_folder, "--steer", "contrastive:model=nano-amateur,alpha=0.1",
        "--offline", "--max-new-tokens", 24,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert set(json.loads(result.stdout)) == {"name", "age"}
