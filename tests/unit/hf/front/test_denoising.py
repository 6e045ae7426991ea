"""`guided.generate` with a denoiser: the packaged one under grammars of every front end, what it says, what it refuses."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import torch

import guided
from guided.diffusion import Denoising, FixedBlocks, LowConfidence, Threshold
from guided.diffusion.baselines import Intersection, JointCommits, Lookahead
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf import load
from guided.hf.denoisers import denoiser_for
from guided.nano import Column, Table, extraction_prompt, sql_prompt
from guided.server.scheduling import Scheduler
from tests.amounts import some

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PROMPT = extraction_prompt(SCHEMA, "Ada Lovelace is 36.")


@pytest.fixture(scope="module")
def nano():
    torch.set_num_threads(1)
    return load("nano-diffusion", device="cpu")


@pytest.mark.parametrize("how", [
    Denoising(LowConfidence(1)), Denoising(LowConfidence(4), FixedBlocks(16)), Denoising(Threshold(0.9), drafts=2),
])  # fmt: skip
def test_every_text_is_whole_however_few_steps(nano, how):
    checks = {
        guided.json_schema(SCHEMA): lambda text: set(json.loads(text)) == {"name", "age"},
        guided.regex(r"[0-9]{4}-[0-9]{2}"): lambda text: re.fullmatch(r"[0-9]{4}-[0-9]{2}", text),
        guided.gbnf('root ::= "(" root ")" | "x"'): lambda text: re.fullmatch(r"\(*x\)*", text),
        guided.choice(["yes", "no"]): lambda text: text in ("yes", "no"),
    }
    for grammar, check in checks.items():
        (made,) = guided.generate(nano, [PROMPT], grammar, max_new_tokens=48, denoising=how)
        assert made.finished and check(made.text), made.text
        assert made.denoised.passes <= len(made.denoised.frames) <= 48
        if how.policy == LowConfidence(1):
            assert made.denoised.passes == 1


def test_sql_over_a_database_is_valid_in_one_step_however_short_the_canvas(nano, tmp_path):
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as shop:
        shop.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT)")
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, product TEXT, price REAL)")
        grammar = guided.sql(f"sqlite:///{path}")
        tables = [
            Table(name, tuple(Column(row[1], row[2]) for row in shop.execute(f"PRAGMA table_info({name})")))
            for name in ("customers", "orders")
        ]
        prompt = sql_prompt(tables, "Show the product and price of orders whose price is greater than 50.")
        for n_tokens, steps in ((4, 1), (12, 1))[: some(2, 4)]:
            how = Denoising(LowConfidence(steps))
            made = guided.generate(nano, prompt, grammar, max_new_tokens=n_tokens, denoising=how)
            assert made.finished
            shop.execute(f"EXPLAIN {made.text}")


def test_published_decoders_as_laws(nano):
    for law in (Intersection, JointCommits, Lookahead):
        made = guided.generate(nano, PROMPT, SCHEMA, max_new_tokens=48, law=law, denoising=Denoising(LowConfidence(8)))
        assert made.finished and set(made.value) == {"name", "age"}
    with pytest.raises(UnsupportedError, match="law is given together with sampling or lattice"):
        guided.generate(nano, PROMPT, SCHEMA, law=Intersection, do_sample=True)
    with pytest.raises(GuidedError, match="law is made of a grammar, and there is none"):
        guided.generate(nano, PROMPT, law=Intersection)
    with pytest.raises(GuidedError, match="law made None"):
        guided.generate(nano, PROMPT, SCHEMA, law=lambda constraint, pad_id: None)


def test_values_draws_and_seeds(nano):
    one = guided.generate(nano, PROMPT, SCHEMA, max_new_tokens=48)
    assert isinstance(one.value["age"], int) and one.denoised.frames
    drawn = [
        guided.generate(
            nano,
            PROMPT,
            SCHEMA,
            max_new_tokens=48,
            n=2,
            seed=seed,
            temperature=6.0,  # The packaged denoiser is sure of this text.
            do_sample=True,
            denoising=Denoising(LowConfidence(3)),
        )
        for seed in (1, 1, 2)
    ]
    texts = [[made.text for made in row] for row in drawn]
    assert texts[0] == texts[1] != texts[2] and all(made.finished for row in drawn for made in row)


def test_without_a_grammar_a_text_ends_where_the_model_ends_it(nano):
    free = guided.generate(nano, PROMPT, max_new_tokens=64, denoising=Denoising(Threshold(0.9)))
    assert free.finished and not set(free.token_ids) & set(nano.vocabulary.eos_ids)
    (cut,) = guided.generate(nano, [PROMPT], max_new_tokens=3)
    assert not cut.finished and len(cut.token_ids) == 3


def test_a_denoiser_itself_with_its_tokenizer(nano):
    made = guided.generate(denoiser_for(nano), PROMPT, SCHEMA, tokenizer=nano.tokenizer, max_new_tokens=48)
    assert made.text == guided.generate(nano, PROMPT, SCHEMA, max_new_tokens=48).text


def test_the_prompt_does_not_see_the_batch(nano):
    other = extraction_prompt(SCHEMA, "Bob, who is much older than that, is 71 years old.")
    options = {"max_new_tokens": 48, "denoising": Denoising(LowConfidence(1))}
    both = guided.generate(nano, [PROMPT, other], SCHEMA, **options)
    alone = [guided.generate(nano, prompt, SCHEMA, **options) for prompt in (PROMPT, other)]
    for one, each in zip(both, alone, strict=True):
        np.testing.assert_allclose(
            one.denoised.frames[0].confidence, each.denoised.frames[0].confidence, atol=1e-3
        )  # float32 passes in other batches: `tests.tolerances.PASSES`.


@pytest.mark.parametrize(("options", "kind", "words"), [
    ({"max_new_tokens": 3}, LimitError, "no text of the grammar has 3 tokens"),
    ({"max_new_tokens": 2000}, GuidedError, "reads at most 1024"),
    ({"sampler": guided.infer.smc}, UnsupportedError, "sampler asks for the next token"),
    ({"search": guided.search.beam_search}, UnsupportedError, "search asks for the next token"),
    ({"heal": True}, UnsupportedError, "heal asks for the next token"),
    ({"draft": True}, UnsupportedError, "draft asks for the next token"),
    ({"num_beams": 4}, UnsupportedError, "num_beams is not one for denoisers"),
    ({"denoising": "fast"}, GuidedError, "Pass a guided.diffusion.Denoising"),
    ({"lattice": 4096}, GuidedError, "lattice is 4096"),
    ({"num_return_sequences": 0}, GuidedError, "num_return_sequences is 0"),
])  # fmt: skip
def test_what_does_not_go_with_a_denoiser_is_refused(nano, options, kind, words):
    with pytest.raises(kind, match=words):
        guided.generate(nano, PROMPT, SCHEMA, **{"max_new_tokens": 48, **options})


def test_no_next_token_is_asked_of_a_denoiser(nano):
    with pytest.raises(UnsupportedError, match="scores no next token"):
        guided.hf.TransformersModel(nano)
    with pytest.raises(UnsupportedError, match="scores no next token"):
        Scheduler(nano)
