"""A token budget: whatever the model prefers, the text is whole when the tokens are used up, never cut."""

from __future__ import annotations

import pytest
import torch

from guided.errors import LimitError
from guided.hf import GuidedLogitsProcessor
from tests.amounts import each
from tests.twin.earley import accepts
from tests.twin.slow_constraint import reference_generate
from tests.unit.hf.conftest import generated, text_of

NAMES = ["nested", "record", "answer"]
METHODS = [
    {"do_sample": False},
    {"do_sample": True, "num_return_sequences": 3, "temperature": 3.0, "top_k": 0},
    {"do_sample": False, "num_beams": 3},
    {"do_sample": False, "prompt_lookup_num_tokens": 4},
]


def least(constraint) -> int:
    return constraint.shortest_completion(constraint.start) + 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", METHODS, ids=["greedy", "sampling", "beams", "lookup"])
def test_every_budget_gives_whole_texts(name, options, constraints, llama):
    constraint = constraints[name]
    ids = torch.tensor([[1, 70, 71, 72, 70, 71]])
    shortest = least(constraint)
    for budget in [*each(range(shortest, shortest + 8), 8), shortest + 20]:
        processor = GuidedLogitsProcessor(constraint, max_new_tokens=budget)
        torch.manual_seed(budget)
        out = llama.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            logits_processor=[processor],
            max_new_tokens=budget,
            **options,
        )
        for row in out:
            new = generated(row, ids.shape[1], constraint.vocabulary.eos_ids)
            assert new[-1] in constraint.vocabulary.eos_ids, (budget, new)
            assert len(new) <= budget
            assert accepts(constraint.grammar, text_of(constraint.vocabulary, new))


def test_the_budget_only_forbids_what_does_not_fit(constraints, llama):
    constraint = constraints["nested"]
    ids = torch.tensor([[1, 70, 71]])

    @torch.no_grad()
    def scores(new):
        return llama(torch.cat([ids, torch.tensor([new], dtype=torch.long)], 1)).logits[0, -1].numpy()

    for budget in range(least(constraint), 12):
        expected = reference_generate(constraint, scores, budget=budget)
        out = llama.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            logits_processor=[GuidedLogitsProcessor(constraint, max_new_tokens=budget)],
            max_new_tokens=budget,
            do_sample=False,
        )
        assert generated(out[0], 3, constraint.vocabulary.eos_ids) == expected


def test_a_row_that_broke_its_budget_may_only_end(constraints):
    constraint = constraints["nested"]
    bracket = constraint.vocabulary.tokens.index(b"[")
    processor = GuidedLogitsProcessor(constraint, max_new_tokens=4, prompt_length=1)
    scores = processor(torch.tensor([[1, bracket, bracket, bracket]]), torch.zeros(1, 352))
    assert torch.nonzero(scores[0] == 0).flatten().tolist() == list(constraint.vocabulary.eos_ids)


@pytest.mark.parametrize("name", NAMES)
def test_one_token_less_than_the_shortest_text_is_refused(name, constraints):
    budget = least(constraints[name]) - 1
    with pytest.raises(LimitError):
        GuidedLogitsProcessor(constraints[name], max_new_tokens=budget)
