"""Byte views of token models against brute force: the sum over every token sequence that covers a text."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
import torch

from guided.errors import GuidedError, UnsatisfiableError, VocabularyError
from guided.lm import ByteModel, TableModel, byte_vocabulary, next_logits, retokenized, transformed
from guided.testing import check_language_model
from guided.vocab import Vocabulary
from tests import vocabularies
from tests.amounts import each, mostly_slow
from tests.tolerances import DOUBLE, SUMS

# "aba" is a b a, ab a, a ba, aba, and with the second spelling of "ab" more; ids 7 and 8 are in no text.
TOKENS = [b"a", b"b", b"ab", b"ba", b"aba", b"ab", None, None, None]
TEXTS = Vocabulary.from_tokens(TOKENS, eos_ids=[6])
OTHER = Vocabulary.from_tokens([b"b", b"aa", b"a", b"bab", None], eos_ids=[4])


def table(seed: int) -> TableModel:
    return TableModel.random(seed, width=len(TOKENS), eos_ids=[6])


class Brute:
    """Probabilities of texts by enumeration, with nothing shared with the lattice."""

    def __init__(self, model, tokens=TOKENS, eos=6, context=()):
        self.model, self.tokens, self.eos, self.context = model, tokens, eos, tuple(context)
        self.prefix = cache(self.prefix)
        self.whole = cache(self.whole)

    def p(self, history, token):
        probabilities = np.exp(next_logits(self.model, [(*self.context, *history)])[0].numpy())
        usable = [t for t in range(len(self.tokens)) if self.tokens[t] or t == self.eos]
        return probabilities[token] / probabilities[usable].sum()

    def prefix(self, text, history=()):
        """Probability that what follows the history begins with the text."""
        if not text:
            return 1.0
        total = 0.0
        for token, spelled in enumerate(self.tokens):
            if not spelled:
                continue
            if spelled.startswith(text):
                total += self.p(history, token)
            elif text.startswith(spelled):
                total += self.p(history, token) * self.prefix(text[len(spelled) :], (*history, token))
        return total

    def whole(self, text, history=()):
        """Probability that what follows the history is the text and its end."""
        if not text:
            return self.p(history, self.eos)
        return sum(
            self.p(history, token) * self.whole(text[len(spelled) :], (*history, token))
            for token, spelled in enumerate(self.tokens)
            if spelled and text.startswith(spelled)
        )


def texts(longest, letters=b"ab"):
    return [bytes(text) for n in range(longest + 1) for text in itertools.product(letters, repeat=n)]


@pytest.mark.parametrize("seed", mostly_slow(range(3), 1))
def test_next_bytes_equal_brute_force(seed):
    model = table(seed)
    brute, view = Brute(model), ByteModel(model, TEXTS, beam=None)
    every = texts(5)
    rows = view.start(every)
    found = rows.last.logits.exp().numpy()
    assert found.sum(1) == pytest.approx(np.ones(len(every)), abs=DOUBLE)
    for number, text in enumerate(every):
        here = brute.prefix(text)
        assert math.exp(rows.log_prefix(number)) == pytest.approx(here, rel=DOUBLE)
        assert found[number, 97] == pytest.approx(brute.prefix(text + b"a") / here, rel=SUMS)
        assert found[number, 98] == pytest.approx(brute.prefix(text + b"b") / here, rel=SUMS)
        assert found[number, 256] == pytest.approx(brute.whole(text) / here, rel=SUMS)
        assert found[number].sum() == pytest.approx(found[number, [97, 98, 256]].sum(), abs=DOUBLE)


def test_texts_have_all_the_probability_there_is():
    """Ended texts and longer beginnings of one length share out everything."""
    view = ByteModel(table(7), TEXTS, beam=None)
    rows = view.start([[*text, 256] for text in texts(3)] + [list(text) for text in texts(4) if len(text) == 4])
    assert math.fsum(math.exp(rows.log_prefix(row)) for row in range(len(rows))) == pytest.approx(1, abs=DOUBLE)


def test_a_context_comes_before_all_text():
    model = table(4)
    brute = Brute(model, context=(3, 8))
    rows = ByteModel(model, TEXTS, beam=None, context=(3, 8)).start([b"aba"])
    assert math.exp(rows.log_prefix(0)) == pytest.approx(brute.prefix(b"aba"), rel=DOUBLE)


@pytest.mark.parametrize(("beam", "prune"), each([(1, 0.0), (2, 0.0), (3, 0.0), (None, 0.2), (4, 0.05)], 2))
def test_beams_give_lower_bounds_that_sum_to_one(beam, prune):
    model = table(1)
    brute = Brute(model)
    every = texts(5)
    rows = ByteModel(model, TEXTS, beam=beam, prune=prune).start(every)
    assert rows.last.logits.exp().sum(1).numpy() == pytest.approx(np.ones(len(every)), abs=DOUBLE)
    bounds = np.array([math.exp(rows.log_prefix(row)) for row in range(len(rows))])
    exact = np.array([brute.prefix(text) for text in every])
    assert (bounds <= exact * (1 + 1e-12)).all() and (bounds < 0.99 * exact).any()
    widest = ByteModel(model, TEXTS, beam=64).start(every)
    assert [widest.log_prefix(row) for row in range(len(widest))] == pytest.approx(np.log(exact), rel=DOUBLE)


def test_beams_keep_a_place_where_a_token_may_end():
    """The likeliest token is long; without the other hypothesis only its own next byte could follow."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"aaaa", None], eos_ids=[3])
    model = TableModel.of({}, otherwise=[0.05, 0.04, 0.9, 0.01], eos_ids=[3])
    rows = ByteModel(model, vocabulary, beam=1).start([b"aa"])
    assert torch.isfinite(rows.last.logits[0, [97, 98, 256]]).all()
    rows.extend([b"b"])
    assert rows.tokens(0) == tuple(b"aab")


def test_the_contract():
    tokens = [*vocabularies.SINGLE_BYTES, b"\x00\x01", b"\x01\x00\x00", None]
    model = TableModel.random(5, width=259, order=3)
    view = ByteModel(model, Vocabulary.from_tokens(tokens, eos_ids=[258]), beam=6)
    check_language_model(view, prompts=[[0, 1], [1, 0, 0], [0, 1, 0, 0]], rows=4, length=6, steps=25)


def test_ends_and_impossible_bytes():
    view = ByteModel(table(0), TEXTS)
    rows = view.start([b"ab"])
    rows.extend([[256, 256]])
    assert rows.last.logits[0].exp().tolist() == [0.0] * 256 + [1.0]
    rows.extend([[97]])
    assert rows.last.logits[0, 256] == 0 and rows.log_prefix(0) == pytest.approx(math.log(Brute(table(0)).whole(b"ab")))
    with pytest.raises(UnsatisfiableError, match="probability 0"):
        view.start([b"abc"])
    for options in ({"beam": 0}, {"prune": 1.0}):
        with pytest.raises(GuidedError, match=next(iter(options))):
            ByteModel(table(0), TEXTS, **options)
    with pytest.raises(VocabularyError, match="end"):
        ByteModel(TableModel.random(0, width=9, eos_ids=[2]), TEXTS)
    with pytest.raises(VocabularyError, match="beyond"):
        ByteModel(TableModel.random(0, width=4, eos_ids=[3]), TEXTS)


def test_the_model_is_asked_once_a_byte():
    model = table(2)
    view = ByteModel(model, TEXTS, beam=8)
    rows = view.start([b"", b"a", b"b"])
    before = model.calls.passes
    rows.extend([b"a", b"b", b"a"])
    assert model.calls.passes - before == 1
    rows.select([0, 0, 0, 2])
    before = model.calls.passes
    rows.extend([b"ab", b"ab", b"a", b""])
    assert model.calls.passes - before == 2


def test_transforms_come_before_the_view():
    model = transformed(table(3), top_k=2)
    rows = ByteModel(model, TEXTS, beam=None).start(texts(3)[1:3])
    brute = Brute(model)
    assert [math.exp(rows.log_prefix(row)) for row in (0, 1)] == pytest.approx(
        [brute.prefix(b"a"), brute.prefix(b"b")], rel=DOUBLE
    )


def test_tokens_of_another_vocabulary():
    model = table(6)
    brute = Brute(model)
    other = retokenized(model, TEXTS, OTHER, beam=None, threshold=0)
    sequences = [tokens for n in range(3) for tokens in itertools.product(range(4), repeat=n)]
    rows = other.start(sequences)
    for number, tokens in enumerate(sequences):
        text = b"".join(OTHER.token_bytes(token) for token in tokens)
        here = brute.prefix(text)
        for token in range(4):
            longer = brute.prefix(text + OTHER.token_bytes(token))
            found = math.exp(rows.last.logits[number, token])
            # Zeros are exact.
            assert found == pytest.approx(longer / here, rel=SUMS, abs=1e-300)
        assert math.exp(rows.last.logits[number, 4]) == pytest.approx(brute.whole(text) / here, rel=SUMS)


def test_scores_along_any_tokenisation_add_up_to_the_text():
    other = retokenized(table(8), TEXTS, OTHER, beam=None, threshold=0)
    totals = []
    for tokens in ([2, 0, 2, 0, 4], [2, 3, 4]):
        rows, total = other.start([[]]), 0.0
        for token in tokens:
            total += float(rows.last.logits[0, token])
            rows.extend([[token]])
        totals.append(total)
    assert totals[0] == pytest.approx(totals[1], rel=DOUBLE)
    assert math.exp(totals[0]) == pytest.approx(Brute(table(8)).whole(b"abab"), rel=SUMS)


def test_thresholds_cut_off_and_nothing_else():
    exact = retokenized(table(9), TEXTS, OTHER, beam=None, threshold=0).start([[2]]).last.logits[0]
    cut = retokenized(table(9), TEXTS, OTHER, beam=None, threshold=0.1).start([[2]]).last.logits[0]
    kept = torch.isfinite(cut)
    assert not bool(kept.all()) and torch.allclose(cut[kept], exact[kept], atol=DOUBLE)
    assert bool((exact[~kept] < math.log(0.1)).all())


def test_retokenized_rows():
    model = TableModel.random(3, width=5, eos_ids=[4])
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b"ab", None], eos_ids=[4])
    target = Vocabulary.from_tokens([b"a", b"bc", b"b", b"c", None], eos_ids=[4])
    check_language_model(retokenized(model, vocabulary, target, beam=None, threshold=0), steps=15, rows=4, length=6)


def test_the_vocabulary_of_bytes():
    vocabulary = byte_vocabulary()
    assert vocabulary.size == ByteModel.width and vocabulary.eos_ids == (256,) and vocabulary.byte_complete
