"""MLX-LM: the fifty cases alone, in a batch and with drafts."""

from __future__ import annotations

import pytest

pytest.importorskip("mlx_lm")

import mlx.core as mx
import mlx_lm

import guided
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.nano import MODEL_PATH
from guided.serving.mlx import MlxProcessor, generate, generate_batch, vocabulary_of_mlx
from tests.serving.cases import BUDGET
from tests.serving.conftest import differing


@pytest.fixture(scope="module")
def loaded():
    model, tokenizer = mlx_lm.load(str(MODEL_PATH))
    # In float32, as guided.generate runs it: in float16 other tokens are likeliest now and then.
    model.set_dtype(mx.float32)
    return model, tokenizer


def test_the_vocabulary_is_that_of_the_tokenizer(loaded, nano):
    assert vocabulary_of_mlx(loaded[1]) == nano.vocabulary


def test_the_fifty_cases(loaded, answered):
    texts = [generate(*loaded, each.ids, each.constraint, max_tokens=BUDGET) for each in answered]
    assert not differing(texts, answered)
    assert all(text.finished for text in texts)


def test_the_fifty_cases_in_one_batch(loaded, answered):
    prompts, constraints = [each.ids for each in answered], [each.constraint for each in answered]
    texts = generate_batch(*loaded, prompts, constraints, max_tokens=BUDGET, completion_batch_size=16)
    assert not differing(texts, answered)


@pytest.mark.parametrize("drafts", [1, 4])
def test_drafts_change_nothing(loaded, answered, drafts):
    options = {"draft_model": loaded[0], "num_draft_tokens": drafts}
    texts = [generate(*loaded, each.ids, each.constraint, max_tokens=BUDGET, **options) for each in answered[::7]]
    assert not differing(texts, answered[::7])


def test_drawn_texts_are_in_the_language(loaded):
    from mlx_lm.sample_utils import make_sampler

    mx.random.seed(3)
    texts = generate_batch(*loaded, ["A: "] * 8, list[int], max_tokens=16, sampler=make_sampler(temp=2.0))
    assert all(text.finished for text in texts) and len({text.text for text in texts}) > 1
    assert all(type(value) is int for text in texts for value in text.value)


def test_budgets_hold_to_the_last_token(loaded, nano):
    constraint = guided.compile(guided.regex("[a-z]{3,}"), nano.vocabulary)
    for budget in (5, 6, 9):
        text = generate(*loaded, "A: ", constraint, max_tokens=budget)
        assert text.finished and len(text.token_ids) < budget
    texts = generate_batch(*loaded, ["A: "] * 3, constraint, max_tokens=[5, 6, 9])
    assert all(text.finished for text in texts)


def test_what_cannot_be_is_refused(loaded, nano):
    yes = guided.choice(["yes"])
    with pytest.raises(LimitError):
        generate(*loaded, "A: ", guided.regex("[a-z]{90}"), max_tokens=5)
    with pytest.raises(GuidedError, match="2 grammars and 1 budgets for 1 prompts"):
        generate_batch(*loaded, ["A: "], [yes, yes])
    with pytest.raises(UnsupportedError, match="processors are those of its grammars"):
        generate_batch(*loaded, ["A: "], yes, logits_processors=[])
    processor = MlxProcessor(guided.compile(yes, nano.vocabulary))
    logits = mx.zeros((1, 2048))
    processor(mx.array([5, 6]), logits)
    with pytest.raises(GuidedError, match="do not continue the text"):
        processor(mx.array([7, 8, 9]), logits)
