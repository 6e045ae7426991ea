"""Hard constraints inside steering: the mask as a steerer, DeAL and blocks under a grammar, against brute force."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import guided
from guided.errors import GuidedError, LimitError, VocabularyError
from guided.lm import TableModel, next_logits
from guided.search import beam_search
from guided.steer import Contrastive, Masked, Stack, best_of_blocks, deal
from guided.vocab import Vocabulary
from tests.unit.steer.steering_twin import AMATEUR, BASE, WIDTH


def count_a(texts):
    return [float(sum(token == 0 for token in text)) for text in texts]


LANGUAGE = guided.compile(
    guided.regex("(ab|c)+a?|bca"), Vocabulary.from_tokens([b"a", b"b", b"c", b"ab", b"bc", None], eos_ids=[WIDTH - 1])
)


def brute_masked(scores, text, limit):
    """What may follow a text: all tokens after which some whole text fits, by trying all."""
    pieces = [LANGUAGE.vocabulary.token_bytes(token) for token in range(WIDTH - 1)]

    def fits(tokens, left):
        data = b"".join(pieces[token] for token in tokens)
        if re.fullmatch(rb"(ab|c)+a?|bca", data):
            return left >= 1
        return left > 1 and any(fits((*tokens, token), left - 1) for token in range(WIDTH - 1))

    left = limit - len(text) - 1
    whole = re.fullmatch(rb"(ab|c)+a?|bca", b"".join(pieces[token] for token in text)) is not None
    allowed = [fits((*text, token), left) for token in range(WIDTH - 1)] + [whole]
    return torch.where(torch.tensor(allowed), scores, -torch.inf)


def test_masked_is_the_mask_of_what_fits():
    end = WIDTH - 1
    model = Stack([Masked(LANGUAGE, 4)]).over(BASE)
    for text in [(), (0,), (2,), (3,), (2, 2), (0, 1, 2), (1, 2, 0), (2, end)]:
        ours = model.start([(1, 2)])
        for token in text:
            ours.extend([[token]])
        plain = next_logits(BASE, [(1, 2, *text)])[0]
        if text[-1:] == (end,):
            wanted = torch.where(torch.arange(WIDTH) == end, plain, -torch.inf)
        else:
            wanted = brute_masked(plain, text, 4)
        assert torch.equal(ours.last.logits[0], wanted), text
    # What is no text of the language any more is left alone, as in a draft that will be rejected.
    assert torch.isfinite(Stack([Masked(LANGUAGE, 4)]).over(BASE).start([(1,)]).extend([[0, 0]])[0].logits[1]).all()
    free = guided.compile(guided.regex("[abc]*"), LANGUAGE.vocabulary)
    assert torch.equal(next_logits(Stack([Masked(free, 9)]).over(BASE), [(1, 2)]), next_logits(BASE, [(1, 2)]))


def test_texts_that_cannot_end_in_time_are_left_alone_but_a_language_without_one_is_an_error():
    masked = Stack([Masked(LANGUAGE, 3)]).over(BASE).start([(1, 2)])
    late = masked.extend([[2, 2, 2, 2]])[0].logits
    assert torch.equal(late[3], next_logits(BASE, [(1, 2, 2, 2, 2, 2)])[0]), "a draft that is longer than the limit"
    assert not torch.isfinite(late[0]).all()
    with pytest.raises(LimitError):
        next_logits(Stack([Masked(LANGUAGE, 1)]).over(BASE), [(1, 2)])


def test_states_are_the_same_when_they_were_forgotten(monkeypatch):
    texts = [tuple(3 if n % 3 else 2 for n in range(length)) for length in (1, 9, 4, 9, 2, 9, 9)]
    scores = next_logits(BASE, [(1,)]).expand(len(texts), -1)
    wanted = Masked(LANGUAGE, 30).excluded(scores, texts)
    monkeypatch.setattr("guided.steer.masking._REMEMBERED", 5)
    masked = Masked(LANGUAGE, 30)
    assert torch.equal(masked.excluded(scores, texts), wanted)
    assert sum(map(len, masked._memo._states)) <= 5 + 9


def test_likely_sets_after_a_mask_are_of_allowed_tokens():
    sure = TableModel(lambda tokens: np.log([0.95, 0.01, 0.01, 0.01, 0.01, 0.01]), width=WIDTH, eos_ids=[WIDTH - 1])
    only_b = guided.compile(guided.regex("b+"), LANGUAGE.vocabulary)
    contrast = Contrastive(AMATEUR, alpha=0.5)
    after = Stack([Masked(only_b, 5), contrast]).over(sure).start([(1,)]).last.logits[0]
    before = Stack([contrast, Masked(only_b, 5)]).over(sure).start([(1,)]).last.logits[0]
    assert torch.isfinite(after).tolist() == [False, True, False, False, False, False]
    assert not torch.isfinite(before).any()


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_deal_under_a_constraint(weight):
    limit = 5

    def masked_logprobs(prefix):
        text = tuple(prefix[2:])
        return brute_masked(torch.log_softmax(next_logits(BASE, [prefix])[0], -1), text, limit)

    beams = [((), 0.0, 0.0)]
    over = lambda tokens: tokens[-1:] == (WIDTH - 1,)  # noqa: E731
    while not all(over(tokens) for tokens, _, _ in beams):
        pool = [beam for beam in beams if over(beam[0])]
        for tokens, total, _ in beams:
            row = masked_logprobs((1, 2, *tokens)) if not over(tokens) else torch.full((WIDTH,), -torch.inf)
            for token in range(WIDTH):
                if row[token] == -torch.inf:
                    continue
                text = rolled = (*tokens, token)
                for _ in range(2):
                    if weight and not over(rolled):
                        rolled = (*rolled, int(masked_logprobs((1, 2, *rolled)).argmax()))
                value = count_a([(1, 2, *rolled)])[0] if weight else 0.0
                pool.append((text, total + float(row[token]), total + float(row[token]) + weight * value))
        beams = sorted(pool, key=lambda beam: -beam[2])[:3]
    ours = deal(
        BASE,
        (1, 2),
        count_a,
        n_beams=3,
        top_k=WIDTH,
        look_ahead=2,
        weight=weight,
        max_new_tokens=limit,
        constraint=LANGUAGE,
    )
    assert [beam.tokens for beam in ours] == [tokens for tokens, _, _ in beams]
    np.testing.assert_allclose([beam.score for beam in ours], [score for _, _, score in beams])
    if not weight:
        found = beam_search(BASE, (1, 2), LANGUAGE, width=3, n_best=1, max_tokens=limit)
        assert found[0].tokens in [beam.tokens for beam in ours]


def test_blocks_under_a_constraint():
    for seed in range(12):
        result = best_of_blocks(
            BASE, (1, 2), count_a, np.random.default_rng(seed), n_blocks=3, block_tokens=2, max_new_tokens=5,
            constraint=LANGUAGE,
        )  # fmt: skip
        data = b"".join(LANGUAGE.vocabulary.token_bytes(token) or b"" for token in result.tokens)
        assert re.fullmatch(rb"(ab|c)+a?|bca", data) and result.tokens[-1] == WIDTH - 1
    with pytest.raises(LimitError):
        best_of_blocks(BASE, (1,), count_a, np.random.default_rng(0), max_new_tokens=1, constraint=LANGUAGE)
    nothing = Stack([Masked(guided.compile(guided.regex("c+"), LANGUAGE.vocabulary), 9)]).over(BASE)
    other = guided.compile(guided.regex("b+"), LANGUAGE.vocabulary)
    with pytest.raises(GuidedError, match="put Masked first"):
        best_of_blocks(nothing, (1,), count_a, np.random.default_rng(0), max_new_tokens=4, constraint=other)
    far = Vocabulary.from_tokens([*(b"abcdefg"[i : i + 1] for i in range(7)), None], eos_ids=[7])
    with pytest.raises(VocabularyError, match="the constraint's ends"):
        Stack([Masked(guided.compile(guided.regex("a"), far), 3)]).over(BASE)
    with pytest.raises(GuidedError, match="max_tokens"):
        Masked(LANGUAGE, 0)
