"""`guided.generate` with `steer=`: one pass a step for all that steerers ask of the model, with a grammar and without."""

from __future__ import annotations

import pytest
import torch
from transformers import LogitsProcessor

import guided
from guided.draft import Drafting, Fixed, PromptLookup
from guided.hf import GuidedLogitsProcessor, LoadedModel, SteeringLogitsProcessor, TransformersModel, generate
from guided.lm import next_logits
from guided.steer import ClassifierFree, Contrastive, ContrastiveSearch, DExperts, DoLa, EntropyAdaptive, Stack
from tests.amounts import each

BUDGET = 12


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture
def passes(llama):
    """Counts the forward passes of the model, whoever makes them."""
    counts = []
    hook = llama.register_forward_hook(lambda *_: counts.append(1))
    yield counts
    hook.remove()


@pytest.fixture(scope="module")
def grammar():
    return guided.regex("[a-z ]{9}")


STEERERS = {
    "another prompt": lambda: ClassifierFree(scale=1.5),
    "early layers": lambda: DoLa((1,)),
    "hidden states": lambda: ContrastiveSearch(),
}


@pytest.mark.parametrize("name", STEERERS)
def test_the_model_runs_once_a_step(name, loaded, grammar, passes):
    made = generate(loaded, "the cat", grammar, steer=[STEERERS[name]()], max_new_tokens=BUDGET)
    passes.clear()
    again = generate(loaded, "the cat", grammar, steer=[STEERERS[name]()], max_new_tokens=BUDGET)
    assert again == made and made.finished
    ahead = len(made.token_ids) + 1 if name == "hidden states" else 0  # one more over the candidates
    assert len(passes) <= len(made.token_ids) + 1 + ahead


@pytest.mark.parametrize("name", STEERERS)
def test_the_text_is_that_of_transformers_loop(name, loaded, grammar):
    made = generate(loaded, "the cat", grammar, steer=[STEERERS[name]()], max_new_tokens=BUDGET)
    ids = torch.tensor([loaded.tokenizer.encode("the cat")])
    masking = GuidedLogitsProcessor(grammar, loaded.tokenizer, max_new_tokens=BUDGET)
    out = loaded.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=BUDGET, do_sample=False, pad_token_id=0,
        logits_processor=[masking, SteeringLogitsProcessor([STEERERS[name]()], loaded.model)],
    )  # fmt: skip
    assert tuple(out[0, ids.shape[1] :].tolist())[: len(made.token_ids)] == made.token_ids


def greedy(loaded, stack, prompt):
    model = stack.over(TransformersModel(loaded))
    text = []
    while len(text) < BUDGET and not set(text[-1:]) & model.eos_ids:
        text.append(int(next_logits(model, [[*prompt, *text]])[0].argmax()))
    return tuple(text)


@pytest.mark.parametrize("how", each(["plain", "draft", "beams"], 2))
def test_free_texts_are_steered(how, loaded, draft_llama):
    steerer = Contrastive(draft_llama, alpha=0.1)
    options = {
        "draft": {"draft": Drafting(PromptLookup(), Fixed(4))}, "beams": {"num_beams": 2}, "plain": {},
    }[how]  # fmt: skip
    made = generate(loaded, ["the cat", "yes no maybe"], steer=steerer, max_new_tokens=BUDGET, **options)
    for prompt, one in zip(["the cat", "yes no maybe"], made, strict=True):
        wanted = greedy(loaded, Stack([steerer]), loaded.tokenizer.encode(prompt))
        if how != "beams":
            assert one.token_ids == tuple(token for token in wanted if token != loaded.tokenizer.eos_token_id)
            assert one.finished == (wanted[-1] == loaded.tokenizer.eos_token_id)
        assert 0 < len(one.token_ids) <= BUDGET


def test_free_texts_without_steering_are_those_of_transformers(loaded):
    ids = torch.tensor([loaded.tokenizer.encode("the cat")])
    out = loaded.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=BUDGET, do_sample=False, pad_token_id=0
    )
    made = generate(loaded, "the cat", max_new_tokens=BUDGET)
    assert made.token_ids == tuple(out[0, ids.shape[1] :].tolist())[: len(made.token_ids)]
    assert made.value == made.text if made.finished else not made.finished


def test_a_processor_of_the_user_speaks_before_steering(loaded, grammar):
    """It may keep a state, so transformers' own loop runs; the grammar still has the last word."""

    class Loud(LogitsProcessor):
        def __call__(self, input_ids, scores):
            scores = scores.clone()
            scores[:, 5] += 100.0
            return scores

    made = generate(
        loaded, "the cat", grammar, steer=[ClassifierFree()], max_new_tokens=BUDGET, logits_processor=[Loud()]
    )
    assert made.finished and len(made.text) == 9


def test_options_of_transformers_come_before_steering(loaded, grammar, passes):
    """Repetition penalty, then steering, then the grammar: as processors in this order."""
    from transformers import RepetitionPenaltyLogitsProcessor

    steer = ClassifierFree(scale=1.5)
    prompts = ["the cat", "yes no maybe"]
    made = generate(loaded, prompts, grammar, steer=steer, max_new_tokens=BUDGET, repetition_penalty=1.7)
    drafted = generate(
        loaded, prompts, grammar, steer=steer, max_new_tokens=BUDGET, repetition_penalty=1.7, draft="lookup"
    )
    assert [one.token_ids for one in drafted] == [one.token_ids for one in made]
    for prompt, one in zip(prompts, made, strict=True):
        ids = torch.tensor([loaded.tokenizer.encode(prompt)])
        masking = GuidedLogitsProcessor(grammar, loaded.tokenizer, max_new_tokens=BUDGET)
        out = loaded.model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=BUDGET, do_sample=False, pad_token_id=0,
            logits_processor=[
                RepetitionPenaltyLogitsProcessor(1.7), masking, SteeringLogitsProcessor([steer], loaded.model),
            ],
        )  # fmt: skip
        assert tuple(out[0, ids.shape[1] :].tolist())[: len(one.token_ids)] == one.token_ids
    plain = generate(loaded, prompts, grammar, steer=steer, max_new_tokens=BUDGET)
    assert [one.text for one in plain] != [one.text for one in made]


def test_draws_are_seeded_by_torch_too(loaded, grammar):
    def drawn(**options):
        return generate(
            loaded,
            "the cat",
            grammar,
            steer=[ClassifierFree()],
            max_new_tokens=BUDGET,
            do_sample=True,
            top_k=0,
            **options,
        ).text

    torch.manual_seed(3)
    first = drawn()
    torch.manual_seed(3)
    assert drawn() == first
    assert drawn(seed=1) == drawn(seed=1)
    assert len({drawn(seed=seed) for seed in range(5)}) > 1


def test_bare_models_are_steered_with_bare_models(llama, draft_llama, tokenizer, loaded, grammar):
    small = TransformersModel(draft_llama, tokenizer)
    wanted = generate(loaded, "the cat", grammar, steer=Contrastive(small), max_new_tokens=BUDGET)
    for amateur in (draft_llama, LoadedModel("small", draft_llama, tokenizer)):
        made = generate(
            llama, "the cat", grammar, tokenizer=tokenizer, steer=Contrastive(amateur), max_new_tokens=BUDGET
        )
        assert made == wanted
    both = generate(loaded, "the cat", grammar, steer=DExperts(llama, draft_llama), max_new_tokens=BUDGET)
    assert both.finished
    assert generate(loaded, "the cat", grammar, steer=EntropyAdaptive(draft_llama, 1.0), max_new_tokens=BUDGET).finished
    assert Stack([Contrastive(draft_llama)]).over(llama).width == llama.config.vocab_size


def test_the_model_as_its_own_expert_shares_its_passes(loaded, grammar, passes, draft_llama):
    steer = DExperts(loaded.model, draft_llama)
    generate(loaded, "the cat", grammar, steer=steer, max_new_tokens=BUDGET)
    passes.clear()
    made = generate(loaded, "the cat", grammar, steer=steer, max_new_tokens=BUDGET)
    assert len(passes) <= len(made.token_ids) + 1
