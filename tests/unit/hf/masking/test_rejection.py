"""Tokens that are drawn before the mask is known: the law of masked scores, and the same greedy texts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from guided import tokenset
from guided.constraint.attributed import AttributedConstraint
from guided.constraint.effects.shared_rows import KeptRow, with_address
from guided.constraint.protocol import TRIES
from guided.grammar.sql import Column, DatabaseSchema, Table
from guided.hf import GuidedLogitsProcessor, load
from guided.hf.masking.rejection import Choosing, choose_by_rejection
from guided.lm import Truncation
from tests.amounts import some

N = 9
CUTS = (
    Truncation(),
    Truncation(temperature=0.6),
    Truncation(top_k=3),
    Truncation(top_p=0.7),
    Truncation(min_p=0.2),
    Truncation(temperature=1.5, top_k=5, top_p=0.8, min_p=0.1),
)
SAMPLING = SimpleNamespace(do_sample=True, return_dict_in_generate=False, output_scores=False)


class Judge:
    """Judges the tokens of a row by a set, and tells nothing of some."""

    def __init__(self, allowed: Sequence[int], unknown: Sequence[int] = ()) -> None:
        self.allowed, self.unknown = frozenset(allowed), frozenset(unknown)
        self.row = with_address(tokenset.of_ids(sorted(self.allowed), tokenset.n_words(N)))
        self.n_masks = 0

    def __call__(self, token: int) -> bool | None:
        return None if token in self.unknown else token in self.allowed

    def masks_of(self, rows: Sequence[int]) -> list[KeptRow]:
        self.n_masks += len(rows)
        return [self.row] * len(rows)


def scores_of(seed: int) -> torch.Tensor:
    return torch.randn(N, generator=torch.Generator().manual_seed(seed)) * 1.5


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("unknown", [(), (0, 3, 5)])
def test_draws_have_the_law_of_masked_scores(cut: Truncation, unknown: tuple[int, ...]) -> None:
    n = some(2_500, 10_000)
    for seed, allowed in ((1, (0, 2, 3, 7)), (2, (1, 4, 5, 6, 8)), (3, (6,))):
        torch.manual_seed(seed)
        scores, judge = scores_of(seed), Judge(allowed, unknown)
        out = choose_by_rejection(
            scores.expand(n, N), Choosing(False, cut), [judge] * n, judge.masks_of, torch.empty(n, N)
        )
        drawn = torch.multinomial(cut(out).softmax(-1), 1).ravel()
        found = torch.bincount(drawn, minlength=N) / n
        masked = torch.full((N,), -torch.inf).index_copy(0, torch.tensor(allowed), scores[list(allowed)])
        law = cut(masked).softmax(-1)
        assert ((found - law).abs() <= 5 * (law * (1 - law) / n).sqrt() + 1e-9).all(), (seed, found, law)
        assert judge.n_masks < n or unknown


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_what_is_surely_kept_is_kept_under_every_mask(cut: Truncation) -> None:
    choosing, sure = Choosing(False, cut), 0
    for seed in range(12):
        scores = (scores_of(seed) * 2).round() / 2 if seed % 2 else scores_of(seed)
        for token in range(N):
            if not choosing.surely_keeps(scores, token):
                continue
            sure += 1
            others = [other for other in range(N) if other != token]
            lines = [(token, *some) for size in range(N) for some in itertools.combinations(others, size)]
            masked = torch.full((len(lines), N), -torch.inf)
            for line, allowed in enumerate(lines):
                masked[line, list(allowed)] = scores[list(allowed)]
            assert (cut(masked)[:, token] > -torch.inf).all(), (seed, token)
    assert sure > 12


def test_the_greedy_token_is_that_of_masked_scores_ties_included() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        allowed = rng.choice(N, int(rng.integers(1, N + 1)), replace=False).tolist()
        judge = Judge(allowed, rng.choice(N, 2, replace=False).tolist())
        scores = torch.from_numpy(rng.integers(0, 4, (1, N))).float()
        masked = torch.full((1, N), -torch.inf)
        masked[0, allowed] = scores[0, allowed]
        choosing = Choosing(True, Truncation())
        out = choose_by_rejection(scores, choosing, [judge], judge.masks_of, scores.clone())
        assert out.argmax() == masked.argmax()


def test_rows_without_a_judge_or_a_find_are_their_masked_scores() -> None:
    judge = Judge([2, 4])
    scores = torch.stack([scores_of(1), torch.full((N,), -torch.inf), torch.full((N,), torch.nan)])
    judges = [None, judge, judge]
    out = choose_by_rejection(scores, Choosing(True, Truncation()), judges, judge.masks_of, scores.clone())
    assert judge.n_masks == 3
    assert torch.isfinite(out[0]).nonzero().ravel().tolist() == [2, 4]
    assert (out[0, [2, 4]] == scores[0, [2, 4]]).all()
    assert torch.isneginf(out[1]).all() and out[2].isnan().nonzero().ravel().tolist() == [2, 4]


def test_many_refusals_end_in_the_mask() -> None:
    n = 4 * TRIES
    asked: list[int] = []
    scores = torch.arange(n, 0, -1).float()[None]
    row = with_address(tokenset.of_ids([n - 1], tokenset.n_words(n)))

    def refuse(token: int) -> bool:
        asked.append(token)
        return False

    out = choose_by_rejection(scores, Choosing(True, Truncation()), [refuse], lambda _: [row], scores)
    assert asked == list(range(TRIES))
    assert torch.isfinite(out).nonzero().tolist() == [[0, n - 1]]


def test_how_a_loop_chooses_is_read_off_what_comes_behind() -> None:
    greedy = SimpleNamespace(do_sample=False, return_dict_in_generate=True, output_scores=False)
    assert Choosing.of((), greedy) == Choosing(True, Truncation())
    cuts = [TemperatureLogitsWarper(0.5), TopKLogitsWarper(7), TopPLogitsWarper(0.9), MinPLogitsWarper(0.1)]
    assert Choosing.of(cuts, SAMPLING) == Choosing(False, Truncation(0.5, 7, 0.9, 0.1))
    assert Choosing.of([TypicalLogitsWarper(0.9)], SAMPLING) is None
    assert Choosing.of([cuts[2], cuts[0]], SAMPLING) is None, "the nucleus would be that of other probabilities"
    assert Choosing.of([RepetitionPenaltyLogitsProcessor(1.2)], SAMPLING) is None
    assert Choosing.of((), SimpleNamespace(do_sample=True, return_dict_in_generate=True, output_scores=True)) is None


# In transformers' generate ----------------------------------------------------------------------------------------

SHOP = DatabaseSchema(
    (
        Table("users", (Column("id", "integer"), Column("name", "text"), Column("age", "integer"))),
        Table("orders", (Column("id", "integer"), Column("user_id", "integer"), Column("total", "real"))),
    )
)
QUESTIONS = ("How many users are there?", "Which orders have a total above 5?")
BUDGET = 300


class Counted(AttributedConstraint):
    """The language of the shop, which counts the masks that it makes."""

    n_masks = 0

    def fill_budget_mask(self, state, row, budget) -> None:
        self.n_masks += 1
        super().fill_budget_mask(state, row, budget)


def written(constraint: Counted, **options) -> list[list[int]]:
    """The tokens of the packaged model's answers, by transformers' own `generate`."""
    from guided.eval.requests import PACKAGED, sql_request

    loaded = load()
    processor = GuidedLogitsProcessor(constraint, max_new_tokens=BUDGET)
    constraint.n_masks = 0
    found = []
    for question in QUESTIONS:
        prompt = loaded.tokenizer(sql_request(PACKAGED, SHOP, question), return_tensors="pt")
        made = loaded.model.generate(
            **prompt,
            logits_processor=LogitsProcessorList([processor]),
            max_new_tokens=BUDGET,
            pad_token_id=0,
            **options,
        )
        ids = made if isinstance(made, torch.Tensor) else made.sequences
        found.append(ids[0, prompt["input_ids"].shape[1] :].tolist())
        assert processor.is_whole(found[-1])
    return found


@pytest.fixture(scope="module")
def shop() -> Counted:
    from guided.grammar.sql.query.language import query_language

    return Counted(query_language(SHOP), load().vocabulary)


def test_generate_makes_few_masks_for_a_database_and_takes_the_same_tokens(shop: Counted) -> None:
    found = written(shop, do_sample=False)
    n_tokens = sum(map(len, found))
    assert shop.n_masks < n_tokens / 4
    kept = written(shop, do_sample=False, return_dict_in_generate=True, output_scores=True)
    assert shop.n_masks >= n_tokens - len(QUESTIONS), "who looks at scores sees masked ones"
    assert kept == found
    # Another processor behind the grammar's has the last mask behind it.
    unused = next(token for token in range(shop.vocabulary.size) if shop.vocabulary.token_bytes(token) == b"\x01")
    assert written(shop, do_sample=False, suppress_tokens=[unused]) == found
    assert shop.n_masks >= n_tokens - len(QUESTIONS)


@pytest.mark.parametrize("options", [{}, {"top_k": 0}, {"top_k": 8, "top_p": 0.9}, {"temperature": 0.5, "min_p": 0.1}])
def test_draws_of_generate_are_whole_statements(shop: Counted, options: dict[str, float]) -> None:
    torch.manual_seed(0)
    found = written(shop, do_sample=True, **options)
    assert shop.n_masks < sum(map(len, found)) * 0.9
