"""Steering by transformers' names: the texts are those of the steerers, and of references written here."""

from __future__ import annotations

import pytest
import torch
from transformers import GenerationConfig

import guided
from guided.draft import Drafting, Fixed, PromptLookup
from guided.errors import GuidedError, UnsupportedError
from guided.hf import LoadedModel, custom_generate, generate
from guided.hf.speculation import draft_generate
from guided.infer import importance
from guided.search import beam_search
from guided.steer import Bucket, ClassifierFree, ContrastiveSearch, DoLa, Momentum, Replaced
from tests.amounts import ALL, each

BUDGET = 8
PROMPTS = ["the cat", "yes no maybe", "[1, 22"]
WAYS = {
    "penalty_alpha": ({"penalty_alpha": 0.6, "top_k": 4}, [ContrastiveSearch(0.6, 4)]),
    "dola_layers": ({"dola_layers": "low"}, [DoLa(Bucket.LOW)]),
    "numbers": ({"dola_layers": [0, 1]}, [DoLa((0, 1))]),
    "guidance_scale": ({"guidance_scale": 1.7}, [ClassifierFree(1.7)]),
    "two": ({"guidance_scale": 1.7, "dola_layers": "high"}, [DoLa(Bucket.HIGH), ClassifierFree(1.7)]),
}


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module")
def grammar():
    return guided.regex("[a-z ]{7}")


def ids_of(made):
    return [one.token_ids for one in made]


@pytest.mark.parametrize("name", each(WAYS, 2))
@pytest.mark.parametrize("bound", [False, True], ids=["free", "grammar"])
def test_options_and_configurations_are_the_steerers(name, bound, loaded, grammar, monkeypatch):
    options, steer = WAYS[name]
    goal = grammar if bound else None
    wanted = generate(loaded, PROMPTS, goal, steer=steer, max_new_tokens=BUDGET)
    assert ids_of(wanted) != ids_of(generate(loaded, PROMPTS, goal, max_new_tokens=BUDGET))
    assert ids_of(generate(loaded, PROMPTS, goal, max_new_tokens=BUDGET, **options)) == ids_of(wanted)
    config = GenerationConfig(**options)
    assert ids_of(generate(loaded, PROMPTS, goal, max_new_tokens=BUDGET, generation_config=config)) == ids_of(wanted)
    for option, value in options.items():
        monkeypatch.setattr(loaded.model.generation_config, option, value)
    assert ids_of(generate(loaded, PROMPTS, goal, max_new_tokens=BUDGET)) == ids_of(wanted)
    off = dict.fromkeys(options)  # An option has the last word, as it does in transformers.
    plain = generate(loaded, PROMPTS, goal, max_new_tokens=BUDGET, **off)
    assert ids_of(plain) != ids_of(wanted)


def test_drafts_samplers_and_searches_take_them(loaded, grammar):
    draft = Drafting(PromptLookup(), Fixed(3))
    for name in ("penalty_alpha", "dola_layers", "guidance_scale", "two"):
        options, steer = WAYS[name]
        wanted = generate(loaded, PROMPTS, grammar, steer=steer, max_new_tokens=BUDGET)
        assert ids_of(generate(loaded, PROMPTS, grammar, draft=draft, max_new_tokens=BUDGET, **options)) == ids_of(
            wanted
        )
        if name == "penalty_alpha":
            continue
        for how in ({"sampler": importance, "n": 4, "seed": 3}, {"search": beam_search, "n": 2}):
            given = generate(loaded, "the cat", grammar, max_new_tokens=BUDGET, **how, **options)
            said = generate(loaded, "the cat", grammar, max_new_tokens=BUDGET, **how, steer=steer)
            assert given == said


def test_they_speak_before_what_is_steered(loaded, grammar):
    steer = [Momentum(0.5, 6)]
    wanted = generate(loaded, PROMPTS, grammar, steer=[ClassifierFree(2.5), *steer], max_new_tokens=BUDGET)
    made = generate(loaded, PROMPTS, grammar, steer=steer, guidance_scale=2.5, max_new_tokens=BUDGET)
    assert ids_of(made) == ids_of(wanted)


def test_contrastive_search_is_the_papers(loaded):
    """Su et al. 2022, equation 5, by whole forward passes: no cache, no formula of ours."""
    llama, tokenizer, alpha, k = loaded.model, loaded.tokenizer, 0.6, 4
    for prompt in PROMPTS[: None if ALL else 1]:
        ids = tokenizer.encode(prompt)
        start = len(ids)
        with torch.no_grad():
            for _ in range(BUDGET):
                probabilities = torch.softmax(llama(torch.tensor([ids])).logits[0, -1], -1)
                best, scores = torch.topk(probabilities, k).indices.tolist(), []
                for token in best:
                    out = llama(torch.tensor([[*ids, token]]), output_hidden_states=True).hidden_states[-1][0]
                    out = torch.nn.functional.normalize(out, dim=-1)
                    scores.append((1 - alpha) * probabilities[token] - alpha * (out[:-1] @ out[-1]).max())
                ids.append(best[int(torch.stack(scores).argmax())])
                if ids[-1] == tokenizer.eos_token_id:
                    break
        made = generate(loaded, prompt, penalty_alpha=alpha, top_k=k, max_new_tokens=BUDGET)
        assert list(made.token_ids) == [token for token in ids[start:] if token != tokenizer.eos_token_id]


@pytest.mark.parametrize("draft", [None, Drafting(PromptLookup(), Fixed(3))], ids=["transformers", "own loop"])
def test_negative_prompts_by_row(draft, loaded):
    rows = [tuple(loaded.tokenizer.encode(text)) for text in ("no", "the mat sat", "[[[")]
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    wanted = [
        generate(loaded, prompt, steer=[ClassifierFree(2.0, Replaced(row))], max_new_tokens=BUDGET).token_ids
        for prompt, row in zip(PROMPTS, rows, strict=True)
    ]
    if draft is None:  # Rows that differ in length: transformers' own processor numbers positions of padding, too.
        single = [
            generate(loaded, prompt, guidance_scale=2.0, negative_prompt_ids=torch.tensor([row]), max_new_tokens=BUDGET)
            for prompt, row in zip(PROMPTS, rows, strict=True)
        ]
        assert ids_of(single) == wanted
        return
    options = {"guidance_scale": 2.0, "negative_prompt_ids": ids, "negative_prompt_attention_mask": mask}
    assert ids_of(generate(loaded, PROMPTS, draft=draft, max_new_tokens=BUDGET, **options)) == wanted
    with pytest.raises(GuidedError, match="3 negative prompts for 2 prompts"):
        generate(loaded, PROMPTS[:2], draft=draft, max_new_tokens=BUDGET, **options)
    with pytest.raises(GuidedError, match="one prompt has two negative prompts"):
        generate(loaded, [PROMPTS[0]] * 3, draft=draft, max_new_tokens=BUDGET, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"penalty_alpha": 0.6, "top_k": 4, "do_sample": True}, "penalty_alpha.*do_sample"),
        ({"penalty_alpha": 0.6, "top_k": 4, "num_beams": 2}, "penalty_alpha.*num_beams"),
        ({"penalty_alpha": 0.6, "n": 2}, "penalty_alpha.*do_sample"),
        ({"penalty_alpha": 1.5, "top_k": 4}, "alpha=1.5"),
        ({"penalty_alpha": 0.6, "sampler": importance}, "penalty_alpha is contrastive search"),
        ({"dola_layers": "middle"}, "dola_layers='middle' is no bucket"),
        ({"dola_layers": [9]}, "no layer 9"),
        ({"dola_layers": []}, "no layers were given"),
    ],
    ids=lambda part: part if isinstance(part, str) else "-".join(part),
)
def test_what_transformers_passes_over_is_refused(options, said, loaded, grammar):
    with pytest.raises(GuidedError, match=said):
        generate(loaded, "the cat", grammar, max_new_tokens=BUDGET, **options)


def test_what_says_nothing_changes_nothing(loaded, grammar):
    wanted = ids_of(generate(loaded, PROMPTS, grammar, max_new_tokens=BUDGET))
    for options in ({"penalty_alpha": 0.0}, {"guidance_scale": 1.0}, {"penalty_alpha": 0.6, "top_k": 1}):
        assert ids_of(generate(loaded, PROMPTS, grammar, max_new_tokens=BUDGET, **options)) == wanted


def test_other_ways_into_transformers_say_that_they_do_not_read_them(loaded, vocabulary, grammar):
    constraint = guided.compile(grammar, vocabulary)
    ids = torch.tensor([loaded.tokenizer.encode("the cat")])
    for how in (draft_generate(constraint), custom_generate(constraint)):
        for options in ({"dola_layers": "low"}, {"penalty_alpha": 0.6, "top_k": 4}):
            with pytest.raises(UnsupportedError, match="is not read here"):
                loaded.model.generate(
                    ids, attention_mask=torch.ones_like(ids), custom_generate=how, pad_token_id=0,
                    max_new_tokens=BUDGET, **options,
                )  # fmt: skip
