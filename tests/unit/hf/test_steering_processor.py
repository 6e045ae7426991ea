"""Steering with transformers models: as a logits processor, whatever `generate` does, and as a steered model."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import guided
from guided.errors import GuidedError, VocabularyError
from guided.hf import GuidedLogitsProcessor
from guided.hf.language_model import TransformersModel
from guided.hf.steering import SteeringLogitsProcessor
from guided.lm import Needs, TableModel, next_logits
from guided.steer import (
    RAD,
    Bucket,
    ClassifierFree,
    ContextAware,
    Contrastive,
    ContrastiveSearch,
    ControlledDecoding,
    DeCoRe,
    DExperts,
    DoLa,
    DynamicFocus,
    FSDVectors,
    Instructive,
    LayersOverLayers,
    ModelReward,
    Momentum,
    Prefixed,
    ProxyTuning,
    Replaced,
    RewardError,
    SelfDebiasing,
    Stack,
    TextReward,
    Without,
)
from guided.steer.formulas.combining import candidates
from guided.steer.formulas.contrast import contrastive_reasoning
from guided.steer.formulas.layers import dola
from guided.steer.formulas.prompts import classifier_free
from guided.steer.formulas.rewards import rad
from tests.amounts import crossed, each, mostly_slow, some

LIMIT = 12
PROMPTS = [(5, 9, 31, 7), (8, 6), (40, 41, 42, 40, 41, 42, 40, 41)]


@pytest.fixture(scope="module")
def base(llama):
    return TransformersModel(llama)


@pytest.fixture(scope="module")
def amateur(draft_llama):
    return TransformersModel(draft_llama)


@pytest.fixture(scope="module")
def steerers(base, amateur):
    text = lambda ids: " ".join(map(str, ids))  # noqa: E731
    reward = TextReward(lambda texts: [len(each) % 7 / 7 for each in texts], text)
    head = ModelReward(lambda hidden: torch.sigmoid(hidden[:, :4].sum(-1)), amateur)
    return {
        "contrastive": Contrastive(amateur),
        "dexperts": DExperts(amateur, base, alpha=0.5),
        "proxy": ProxyTuning(amateur, base, alpha=0.3),
        "context": ContextAware(Without((41, 42))),
        "cfg": ClassifierFree(),
        "instructive": Instructive(Prefixed((3, 4))),
        "debias": SelfDebiasing((Prefixed((9,)), Prefixed((3, 4)))),
        "dola": DoLa((0, 1)),
        "lol": LayersOverLayers(amateur, 0),
        "decore": DeCoRe(((0, 1), (1, 2))),
        "focus": DynamicFocus(sigma=4.0),
        "rad": RAD(reward, top_k=5),
        "rad-model": RAD(head, top_k=5),
        "controlled": ControlledDecoding(ModelReward(lambda hidden: hidden[:, 0]), top_k=4),
        "momentum": Momentum(),
        "search": ContrastiveSearch(),
        "fsd-vectors": FSDVectors(),
    }


NAMES = [
    "contrastive", "dexperts", "proxy", "context", "cfg", "instructive", "debias", "dola", "lol", "decore", "focus",
    "rad", "rad-model", "controlled", "momentum", "search", "fsd-vectors",
]  # fmt: skip


def generate(model, prompts, processor, **options):
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    found = model.generate(
        ids,
        attention_mask=(ids != 0).long(),
        logits_processor=[processor],
        max_new_tokens=LIMIT,
        pad_token_id=0,
        **{"do_sample": False, **options},
    )
    return [row[width:].tolist() for row in found]


def greedy(model, prompt):
    """Greedy search with the steered model, one token at a time."""
    sequences = model.start([prompt])
    tokens = []
    while len(tokens) < LIMIT and not set(tokens[-1:]) & model.eos_ids:
        tokens.append(int(sequences.last.logits[0].argmax()))
        sequences.extend([tokens[-1:]])
    return tokens


@pytest.mark.parametrize("name", mostly_slow(NAMES[1::2] + NAMES[::2], len(NAMES) // 4))
def test_a_padded_batch_is_steered_row_by_row(name, llama, base, steerers):
    model = Stack([steerers[name]]).over(base)
    processor = SteeringLogitsProcessor(steerers[name], base, pad_token_id=0)
    for prompt, found in zip(PROMPTS, generate(llama, PROMPTS, processor), strict=True):
        wanted = greedy(model, prompt)
        assert found[: len(wanted)] == wanted


BEAMS = [(name, {"num_beams": 2}) for name in ("contrastive", "cfg", "dola", "focus")]


@pytest.mark.parametrize(
    ("name", "options"),
    [*crossed(NAMES, [{}], share=4), *BEAMS],
    ids=lambda value: value if isinstance(value, str) else "beams" if value else "greedy",
)
def test_the_attention_mask_of_generate_says_what_is_padding(name, options, llama, base, steerers):
    """Without ``pad_token_id``; also where a prompt begins with the very id that others are padded with."""
    prompts = [*PROMPTS, (0, 0, 9, 31)]
    found = []
    for batch in (prompts, *([prompt] for prompt in prompts)):
        width = max(map(len, batch))
        ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in batch])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in batch])
        out = llama.generate(
            ids,
            attention_mask=mask,
            logits_processor=[SteeringLogitsProcessor(steerers[name], base)],
            max_new_tokens=5,
            do_sample=False,
            pad_token_id=0,
            **options,
        )
        found += [row[width:].tolist() for row in out]
    together, alone = found[: len(prompts)], found[len(prompts) :]
    assert [row[: len(one)] for row, one in zip(together, alone, strict=True)] == alone


def test_padding_that_nothing_tells_is_refused(base, steerers):
    """A loop of one's own has no mask: rows that begin with the model's padding id are not taken for prompts."""
    ids = torch.tensor([[0, 0, 5, 9], [40, 41, 42, 40]])
    scores = torch.randn(2, base.width, generator=torch.Generator().manual_seed(0))
    for rows in (slice(0, 2), slice(0, 1)):
        with pytest.raises(GuidedError, match=r"row 0 begins with the model's padding id 0 .*pad_token_id=0 .*-1 if"):
            SteeringLogitsProcessor(steerers["cfg"], base)(ids[rows], scores[rows])
    with pytest.raises(GuidedError, match="padding id 0"):
        SteeringLogitsProcessor(steerers["cfg"], base, prompt_length=4)(ids, scores)
    told = SteeringLogitsProcessor(steerers["cfg"], base, pad_token_id=0)(ids, scores)
    alone = SteeringLogitsProcessor(steerers["cfg"], base)(ids[:1, 2:], scores[:1])
    torch.testing.assert_close(told[:1], alone, atol=1e-4, rtol=1e-4)
    own = SteeringLogitsProcessor(steerers["context"], base, pad_token_id=-1)(ids, scores)
    torch.testing.assert_close(own[1:], SteeringLogitsProcessor(steerers["context"], base)(ids[1:], scores[1:]))


@pytest.mark.parametrize(
    ("name", "how"),
    crossed(["contrastive", "cfg", "dola", "rad-model", "search", "momentum"], ["lookup", "assistant"], share=6),
)
def test_drafts_change_nothing(name, how, llama, draft_llama, base, steerers):
    processor = SteeringLogitsProcessor(steerers[name], base)
    prompt = PROMPTS[2]
    plain = generate(llama, [prompt], processor)
    options = {"prompt_lookup_num_tokens": 3} if how == "lookup" else {"assistant_model": draft_llama}
    assert (
        generate(llama, [prompt], processor, **options) == plain == [greedy(Stack([steerers[name]]).over(base), prompt)]
    )


class Recorded(SteeringLogitsProcessor):
    """Keeps what it was asked and what it said."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.calls = []

    def __call__(self, input_ids, scores):
        found = super().__call__(input_ids, scores)
        self.calls.append((input_ids.clone(), scores.clone(), found.clone()))
        return found


@pytest.mark.parametrize("name", each(["contrastive", "cfg", "decore", "rad-model", "search"], 2))
def test_beams_and_calls_in_any_order(name, llama, base, steerers):
    processor = Recorded(steerers[name], base, pad_token_id=0)
    generate(llama, PROMPTS[:2], processor, num_beams=3)
    assert len(processor.calls) == LIMIT
    again = SteeringLogitsProcessor(steerers[name], base, pad_token_id=0, prompt_length=4)
    calls = list(processor.calls)
    random.Random(0).shuffle(calls)
    for ids, scores, found in calls:
        rows = random.Random(1).sample(range(len(ids)), 4)
        before = scores.clone()
        torch.testing.assert_close(again(ids[rows], scores[rows]), found[rows], atol=1e-3, rtol=1e-3)
        assert torch.equal(scores, before)


@pytest.mark.parametrize(
    "options", [{}, {"num_beams": 3}, {"prompt_lookup_num_tokens": 3}], ids=["greedy", "beams", "lookup"]
)
def test_steering_within_a_schema(options, llama, base, amateur, steerers, tokenizer, vocabulary):
    """Mask, then steer: plausible sets and candidates are of allowed tokens, so that some are always left."""
    schema = guided.json_schema({"type": "array", "items": {"enum": ["a", 12, True]}, "minItems": 1, "maxItems": 2})
    constraint = guided.compile(schema, vocabulary)
    steering = SteeringLogitsProcessor([Contrastive(amateur), steerers["cfg"], steerers["rad"]], base)
    prompt = tuple(tokenizer.encode("the cat sat on"))
    ids = torch.tensor([prompt])
    found = llama.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        logits_processor=[GuidedLogitsProcessor(constraint, max_new_tokens=LIMIT), steering],
        max_new_tokens=LIMIT,
        do_sample=False,
        pad_token_id=0,
        **options,
    )[0, len(prompt) :].tolist()
    assert 1 <= len(json.loads(tokenizer.decode(found, skip_special_tokens=True))) <= 2
    if "num_beams" in options:
        return
    state, wanted = constraint.start, ()
    while state != constraint.end:
        row = np.zeros(vocabulary.n_words, np.uint32)
        constraint.fill_budget_mask(state, row, LIMIT - len(wanted))
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        logits = torch.full((1, base.width), -torch.inf, dtype=torch.float64)
        logits[0, allowed] = next_logits(base, [prompt + wanted])[0, allowed]
        logits = contrastive_reasoning(logits, next_logits(amateur, [prompt + wanted]))
        logits = classifier_free(logits, next_logits(base, [prompt[-1:] + wanted]))
        best = candidates(logits, 5)
        values = torch.tensor([steerers["rad"].reward.of([(*prompt, *wanted, token) for token in best[0].tolist()])])
        wanted += (int(rad(logits, best, values).argmax()),)
        state = constraint.advance(state, wanted[-1])
        assert state, "an allowed token was left"
    assert found == list(wanted)


def test_a_loop_of_ones_own(llama, base, steerers):
    processor = SteeringLogitsProcessor([steerers["cfg"], steerers["momentum"]], base)
    model = Stack([steerers["cfg"], steerers["momentum"]]).over(base)
    for prompt in PROMPTS:
        ids = list(prompt)
        for _ in range(4):
            with torch.no_grad():
                scores = llama(torch.tensor([ids])).logits[:, -1]
            ids.append(int(processor(torch.tensor([ids]), scores).argmax()))
        assert ids[len(prompt) :] == greedy(model, prompt)[:4]


def test_contrastive_against_plain_forward_passes(llama, draft_llama, base, amateur):
    """Nothing of ours but the formula's name."""
    model = Stack([Contrastive(amateur, alpha=0.1, beta=0.5)]).over(base)
    for prompt in PROMPTS:
        with torch.no_grad():
            expert = llama(torch.tensor([prompt])).logits[0, -1].double()
            weak = draft_llama(torch.tensor([prompt])).logits[0, -1].double()
        p = torch.softmax(expert, -1)
        score = torch.where(p >= 0.1 * p.max(), 1.5 * expert - 0.5 * weak, -torch.inf)
        found = next_logits(model, [prompt])[0].double()
        torch.testing.assert_close(torch.softmax(found, -1), torch.softmax(score, -1), atol=1e-4, rtol=0)


@pytest.mark.parametrize("negative", [None, (9, 17, 4)])
def test_guidance_is_that_of_transformers(negative, llama, base):
    for prompt in PROMPTS:
        ids = torch.tensor([prompt])
        options = {} if negative is None else {"negative_prompt_ids": torch.tensor([negative])}
        theirs = llama.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            guidance_scale=1.7,
            max_new_tokens=LIMIT,
            do_sample=False,
            pad_token_id=0,
            output_logits=True,
            output_scores=True,
            return_dict_in_generate=True,
            **options,
        )
        steerer = ClassifierFree(1.7) if negative is None else ClassifierFree(1.7, Replaced(negative))
        sequences = Stack([steerer]).over(base).start([prompt])
        for token, scores in zip(theirs.sequences[0, len(prompt) :].tolist(), theirs.scores, strict=True):
            torch.testing.assert_close(
                torch.softmax(sequences.last.logits, -1), torch.softmax(scores, -1), atol=1e-4, rtol=0
            )
            sequences.extend([[token]])


def test_three_steerers_on_rows_of_different_lengths_are_each_row_alone(base, steerers):
    rnd = random.Random(0)
    for _ in range(some(8)):
        names = rnd.sample(NAMES, 3)
        model = Stack([steerers[name] for name in names]).over(base)
        sequences = model.start(PROMPTS)
        added = [[rnd.randrange(3, 300) for _ in range(rnd.randrange(4))] for _ in PROMPTS]
        sequences.extend(added)
        sequences.select([2, 0, 0, 1])
        together = sequences.last.logits
        for row, number in enumerate([2, 0, 0, 1]):
            single = model.start([PROMPTS[number]])
            for token in added[number]:
                single.extend([[token]])
            torch.testing.assert_close(
                torch.softmax(together[row], -1),
                torch.softmax(single.last.logits[0], -1),
                atol=1e-4,
                rtol=0,
                msg=str(names),
            )


def test_layers_with_and_without_the_last_norm_stay_apart(base):
    one, two = DoLa((0,), final_norm=True), DoLa((0,), relative_top=0.0, final_norm=False)
    found = next_logits(Stack([one, two]).over(base), [PROMPTS[0]])
    first = next_logits(Stack([one]).over(base), [PROMPTS[0]])
    early = base.start([PROMPTS[0]], Needs(layers=(0,), final_norm=False)).last.layers[0]
    torch.testing.assert_close(found, dola(first, early[None], relative_top=0.0), atol=1e-3, rtol=1e-4)


def test_a_model_says_whether_its_embeddings_are_tied(llama):
    assert not TransformersModel(llama).can.tied_embeddings
    tied = LlamaForCausalLM(
        LlamaConfig(**{**llama.config.to_dict(), "num_hidden_layers": 4, "tie_word_embeddings": True})
    )
    model = TransformersModel(tied.eval())
    assert model.can.tied_embeddings
    layers = Stack([DoLa(Bucket.LOW)]).over(model).plan.declarations[0].branches[0].needs.layers
    assert layers == (2,), "transformers leaves the embedding out, too"


def test_what_is_refused(base, amateur, t5, steerers):
    with pytest.raises(GuidedError, match="encoder"):
        SteeringLogitsProcessor(steerers["cfg"], TransformersModel(t5))
    with pytest.raises(VocabularyError, match="other 9"):
        SteeringLogitsProcessor(Contrastive(TableModel.random(0, width=9, eos_ids=[2])), base)
    processor = SteeringLogitsProcessor(steerers["contrastive"], base)
    with pytest.raises(VocabularyError, match="model that generates"):
        processor(torch.tensor([[1, 2]]), torch.zeros(1, 99))
    broken = TextReward(lambda texts: [0.0], str)
    with pytest.raises(RewardError):
        SteeringLogitsProcessor(RAD(broken), base)(torch.tensor([[1, 2]]), torch.zeros(1, base.width))


def test_half_precision_scores_keep_their_dtype(base, steerers):
    processor = SteeringLogitsProcessor(steerers["cfg"], base)
    scores = torch.randn(1, base.width).half()
    found = processor(torch.tensor([[5, 9]]), scores)
    assert found.dtype == torch.float16 and found.data_ptr() != scores.data_ptr()
    empty = SteeringLogitsProcessor(Stack(), base)(torch.tensor([[5, 9]]), scores)
    assert torch.equal(empty, scores) and empty.data_ptr() != scores.data_ptr()
