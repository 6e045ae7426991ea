"""Monitors where other constraints stand: in generation, over real tokenizers, and a monitor of one's own."""

from __future__ import annotations

import random

import numpy as np
import pytest

import guided
from guided.monitor.entities import entity_mentions
from guided.monitor.monitor import Monitor, monitored
from guided.monitor.names import IdentifierBytes, Names
from guided.monitor.substrings import substring
from guided.nano import MODEL_PATH
from guided.testing import brute_force_mask, check_constraint
from tests.amounts import some
from tests.conftest import ROOT
from tests.twin.monitor_words import VOCABULARY, ids_of, random_text


class Mentions(Monitor):
    """Behind an @ comes the name of someone who was greeted before, with a hello."""

    trigger_bytes = b"@"
    lexical_start = 0

    def read(self, lexical, byte):
        return byte == 0x40

    def triggers(self, lexical):
        return bool(lexical)

    def analyse(self, text, context):
        greeted = [
            word.split()[0].rstrip(".,@")
            for word in text.decode("utf-8", "replace").split("hello ")[1:]
            if word.split()
        ]
        return Names.of(greeted, IdentifierBytes.of()).begin() if any(map(str.isidentifier, greeted)) else None


def test_a_monitor_of_ones_own():
    constraint = monitored(Mentions(), VOCABULARY, before="hello Ann, hello Anna. ")
    for text, lives in {
        "x@Ann": True,
        "@Anna!": True,
        "@An ": False,
        "@Bob": False,
        "hello Bob @Bob": True,
        "@@": False,
    }.items():
        assert bool(constraint.advance_bytes(constraint.start, text.encode())) is lives, text
    assert constraint.forced(constraint.advance_bytes(constraint.start, b"@A")) == b"nn"
    check_constraint(constraint, walks=6, length=20)
    check_constraint(monitored(Mentions(), VOCABULARY), walks=3, length=20)


class AnyDots(Mentions):
    """Knows the same two names everywhere, behind dots, so that many tokens run over a trigger."""

    trigger_bytes = b"."

    def read(self, lexical, byte):
        return byte == 0x2E

    def analyse(self, text, context):
        return Names.of(["get", "s", "Name"], IdentifierBytes.of(), assignable=True, reserved=["is", "if"]).begin()


def test_tokens_that_run_over_triggers():
    constraint = monitored(AnyDots(), VOCABULARY)
    check_constraint(constraint, walks=some(6, 3), length=20)
    rng = random.Random(0)
    for _ in range(some(12)):
        text = random_text(constraint, rng, 25)
        assert constraint.is_accepting(constraint.advance_bytes(constraint.start, text))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", pytest.param("llama3", marks=pytest.mark.slow)])
def test_masks_over_real_tokenizers(name, data):
    from transformers import AutoTokenizer

    vocabulary = guided.Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(data / "tokenizers" / name))
    source = "The cat sat on the mat, naïvely; the cat's hat was at https://example.org/a_b."
    made = {
        "dots": (
            monitored(AnyDots(), vocabulary, before="x = 1\n"),
            [b"", b"a.", b"a.g", b"a.zz", b"a.get", b"a.zz ="],
        ),
        "substring": (substring([source, "été"], vocabulary), [b"", b"the", b" cat", "ï".encode()[:1]]),
        "entities": (entity_mentions(source, ["Cat", "Cat (pet)", "Hat"], vocabulary), [b"", b"The [", b"The [cat](C"]),
    }
    row = np.zeros(vocabulary.n_words, np.uint32)
    for what, (constraint, texts) in made.items():
        for text in texts[:: 1 if name == "llama3" else 3]:
            state = constraint.advance_bytes(constraint.start, text)
            constraint.fill_mask(state, row)
            assert (row == brute_force_mask(constraint, state)).all(), (what, text)
            assert ids_of(row).size


@pytest.mark.skipif(not (MODEL_PATH / "model.safetensors").exists(), reason="the weights are not in this checkout")
def test_generation_under_a_monitor():
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(str(MODEL_PATH)).float().eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(MODEL_PATH))
    vocabulary = guided.Vocabulary.from_tokenizer(tokenizer, size=model.config.vocab_size)
    source = "the quick brown fox jumps over the lazy dog"
    options = {"tokenizer": tokenizer, "do_sample": True}
    for seed in range(3):
        transformers.set_seed(seed)
        quoted = guided.generate(model, "A quotation: ", substring(source, vocabulary), max_new_tokens=12, **options)
        assert quoted.finished and quoted.text in source and quoted.text
        mentions = entity_mentions("the fox", ["Fox", "Dog"], vocabulary)
        marked = guided.generate(model, "Links: ", mentions, max_new_tokens=40, num_beams=2, **options)
        assert marked.finished
        assert marked.text.replace("[", "").replace("](Fox)", "").replace("](Dog)", "") == "the fox"


def test_sampling_by_rejection_agrees_with_enumeration():
    """AWRS asks a monitor only for steps; its weights add up to what enumeration finds."""
    from guided.infer import AWRS, exact, smc
    from guided.lm.table import TableModel

    likely = {ord(letter): 1.0 for letter in "abx."} | {VOCABULARY.eos_ids[0]: 1.5}

    def logprobs(tokens):
        rates = np.full(VOCABULARY.size, 1e-9)
        rates[list(likely)] = list(likely.values())
        rates[ord("a")] += len(tokens) % 3
        return np.log(rates / rates.sum())

    class Shorter(Mentions):
        trigger_bytes = b"."

        def read(self, lexical, byte):
            return byte == 0x2E

        def analyse(self, text, context):
            return Names.of(["ab", "b"], IdentifierBytes.of()).begin() if text.endswith(b"x.") else None

    model = TableModel(logprobs, width=VOCABULARY.size, eos_ids=VOCABULARY.eos_ids)
    for constraint in (substring("abxab.", VOCABULARY), monitored(Shorter(), VOCABULARY)):
        truth = exact(model, [0], constraint, max_tokens=5, max_prefixes=2_000_000, mass=0.999)
        drawn = [
            smc(np.random.default_rng(seed), model, [0], constraint, n=200, max_tokens=5, sampler=AWRS())
            for seed in range(4)
        ]
        assert abs(np.mean([population.log_ml for population in drawn]) - truth.log_ml) < 0.15


def test_everything_is_documented():
    page = (ROOT / "docs" / "MONITORS.md").read_text()
    for name in (
        "python_identifiers", "language_server", "sql_scope", "SqlMode", "knowledge_graph", "entity_mentions", "substring",
        "ngrams", "FmIndex", "best_spans", "monitored", "joint", "Agreeing",
    ):  # fmt: skip
        assert f"`{name}" in page, name
