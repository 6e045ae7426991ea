"""Vectors in blocks: every score against whole forward passes with hooks of the test's own, one text at a time."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import guided
from guided.draft import PromptLookup, speculate
from guided.errors import GuidedError, UnsupportedError
from guided.hf import LoadedModel, SteeringLogitsProcessor, TransformersModel, generate
from guided.hf.network import Caching
from guided.infer import smc
from guided.lm import Needs, TableModel, next_logits
from guided.search import beam_search
from guided.steer import Activations, Added, Contrastive, Stack, contrastive_vector, prompt_vectors
from guided.testing import check_language_model
from tests.amounts import crossed, each, some
from tests.tolerances import PASSES, SUMS

WIDTH = 32
PROMPTS = [(5, 9, 31, 7), (8,), (40, 41, 42, 40, 41, 42)]
VECTOR = torch.from_numpy(np.random.default_rng(0).standard_normal(WIDTH))
ROWS = torch.from_numpy(np.random.default_rng(1).standard_normal((3, WIDTH)))
KINDS = {
    "everywhere": (Added(VECTOR, 1),),
    "from the prompt's end": (Added(VECTOR, 2, from_prompt_end=True),),
    "in front": (Added(ROWS, 0),),
    "two blocks": (Added(ROWS, 1), Added(2 * VECTOR, 2, from_prompt_end=True)),
}


@pytest.fixture(scope="module")
def base(llama):
    return TransformersModel(llama)


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


def by_hooks(network, blocks, text, n_prompt, added):
    """Logits after each token of a text: the block's output plus what the definitions say, in one plain pass."""
    amounts = {}
    for one in added:
        for position in range(len(text)):
            if one.from_prompt_end and position < n_prompt - 1:
                continue
            if one.vectors.dim() == 1 or position < len(one.vectors):
                vector = one.vectors if one.vectors.dim() == 1 else one.vectors[position]
                rows = amounts.setdefault(one.block, torch.zeros(len(text), WIDTH, dtype=torch.float64))
                rows[position] += vector
    handles = []
    for number, rows in amounts.items():
        if number == 0:
            handles.append(network.get_input_embeddings().register_forward_hook(lambda *a, rows=rows: a[2] + rows))
        else:

            def hook(module, args, output, rows=rows):
                return (output[0] + rows, *output[1:]) if isinstance(output, tuple) else output + rows

            handles.append(blocks[number - 1].register_forward_hook(hook))
    with torch.no_grad():
        logits = network(torch.tensor([text])).logits[0]
    for handle in handles:
        handle.remove()
    return logits


@pytest.mark.parametrize("kind", each(KINDS, 2))
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_rows_of_a_batch_are_forward_passes_with_hooks(kind, name, request):
    network = request.getfixturevalue(name)
    blocks = network.model.layers if name == "llama" else network.transformer.h
    if name == "gpt2" and any(each.block == 0 for each in KINDS[kind]):
        pytest.skip("positions are added between the embedding and the first block's input")
    model = Activations(KINDS[kind]).over(TransformersModel(network))
    rnd = random.Random(3)
    sequences = model.start(PROMPTS)
    order = [2, 0, 0, 1]
    sequences.select(order)
    added = [tuple(rnd.randrange(3, 300) for _ in range(n)) for n in (3, 1, 4, 2)]
    found = sequences.extend(added)
    for row, (number, more) in enumerate(zip(order, added, strict=True)):
        prompt = PROMPTS[number]
        wanted = by_hooks(network, blocks, (*prompt, *more), len(prompt), KINDS[kind])[len(prompt) :]
        torch.testing.assert_close(found[row].logits, wanted, atol=SUMS, rtol=SUMS)
    last = model.start(PROMPTS).last.logits
    for row, prompt in enumerate(PROMPTS):
        wanted = by_hooks(network, blocks, prompt, len(prompt), KINDS[kind])[-1]
        torch.testing.assert_close(last[row], wanted, atol=SUMS, rtol=SUMS)


@pytest.mark.parametrize(("kind", "name"), crossed(KINDS, ["llama", "t5"]))
def test_the_contract_of_models_holds(kind, name, request):
    """Whatever happens to rows: forks, rollbacks, trees, new prompts; an encoder-decoder model's decoder, too."""
    check_language_model(
        TransformersModel(request.getfixturevalue(name)), needs=[Needs(added=KINDS[kind], hidden=True, layers=(1,))],
        steps=some(40, 5), rows=4,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_models_without_a_cache(kind, llama, base):
    plain = TransformersModel(llama, caching=Caching.NONE)
    for model in (plain, base):
        sequences = Activations(KINDS[kind]).over(model).start(PROMPTS)
        sequences.extend([(4, 5), (6,), ()])
        sequences.crop([5, 2, 6])
        for row, (prompt, more) in enumerate(zip(PROMPTS, [(4,), (6,), ()], strict=True)):
            wanted = by_hooks(llama, llama.model.layers, (*prompt, *more), len(prompt), KINDS[kind])[-1]
            torch.testing.assert_close(sequences.last.logits[row], wanted, atol=SUMS, rtol=SUMS)
        if any(each.from_prompt_end for each in KINDS[kind]):
            with pytest.raises(GuidedError, match="cannot be cropped"):
                sequences.crop([3, 1, 6])


def test_a_stack_is_the_difference_on_whatever_comes_in(base, draft_llama, llama):
    contrast = Contrastive(TransformersModel(draft_llama), alpha=1e-6)
    added = KINDS["from the prompt's end"]
    first = next_logits(Stack([Activations(added), contrast]).over(base), PROMPTS)
    over = next_logits(Stack([contrast]).over(Activations(added).over(base)), PROMPTS)
    torch.testing.assert_close(torch.softmax(first, -1), torch.softmax(over, -1), atol=SUMS, rtol=0)
    last = next_logits(Stack([contrast, Activations(added)]).over(base), PROMPTS)
    contrasted = next_logits(Stack([contrast]).over(base), PROMPTS)
    for row, prompt in enumerate(PROMPTS):
        changed = by_hooks(llama, llama.model.layers, prompt, len(prompt), added)[-1]
        plain = by_hooks(llama, llama.model.layers, prompt, len(prompt), ())[-1]
        wanted = contrasted[row] + changed - plain
        torch.testing.assert_close(torch.softmax(last[row], -1), torch.softmax(wanted, -1), atol=SUMS, rtol=0)


def test_contrastive_vectors_are_differences_of_means(llama, base):
    positive, negative = [(5, 6, 7), (8, 9), (3, 3, 3, 4)], [(15, 16), (17, 18, 19)]
    made = contrastive_vector(base, positive, negative, block=1, strength=-1.5)

    def mean(texts):
        with torch.no_grad():
            outs = [llama(torch.tensor([text]), output_hidden_states=True).hidden_states[1][0, -1] for text in texts]
        return torch.stack(outs).mean(0)

    torch.testing.assert_close(made.vectors, -1.5 * (mean(positive) - mean(negative)), atol=SUMS, rtol=SUMS)
    assert made.block == 1 and made.from_prompt_end
    assert not contrastive_vector(base, positive, negative, block=1, everywhere=True).from_prompt_end


@pytest.mark.parametrize("pair", [((5, 6, 7), (8, 9, 4)), ((5,), (8, 9, 4)), ((5,), (6,))])
def test_prompt_vectors_are_differences_by_position(pair, llama, base):
    made = prompt_vectors(base, *pair, block=1, strength=4.0, padding=33)
    longest = max(map(len, pair))
    filled = [[*text, *[33] * (longest - len(text))] for text in pair]
    with torch.no_grad():
        states = [llama(torch.tensor([text]), output_hidden_states=True).hidden_states[1][0] for text in filled]
    torch.testing.assert_close(made.vectors, 4.0 * (states[0] - states[1]), atol=SUMS, rtol=SUMS)


@pytest.mark.parametrize("how", ["greedy", "own", "draft", "beams"])
def test_grammars_drafts_and_beams(how, loaded, llama):
    """Greedy texts are those of masked forward passes with hooks; the loops agree."""
    grammar = guided.regex("[a-z ]{6}")
    steer = [Activations((Added(3 * VECTOR, 1, from_prompt_end=True),))]
    texts = ["the cat", "yes no maybe"]
    if how == "beams":
        made = generate(loaded, texts, grammar, steer=steer, num_beams=2, max_new_tokens=10)
        assert all(one.finished and len(one.text) == 6 for one in made)
        return
    extra = {"draft": {"draft": "lookup"}, "own": {}, "greedy": {}}[how]
    if how == "own":
        extra = {"logits_processor": [SteeringLogitsProcessor(steer, llama)]}
    made = generate(loaded, texts, grammar, steer=None if how == "own" else steer, max_new_tokens=10, **extra)
    constraint = guided.compile(grammar, loaded.vocabulary)
    for text, one in zip(texts, made, strict=True):
        ids = loaded.tokenizer.encode(text)
        start, state = len(ids), constraint.start
        for token in one.token_ids:
            row = np.zeros(-(-constraint.vocabulary.size // 32), np.uint32)
            constraint.fill_budget_mask(state, row, 10 - (len(ids) - start))
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            logits = by_hooks(llama, llama.model.layers, ids, start, steer[0].added)[-1]
            assert int(allowed[int(logits[allowed].argmax())]) == token
            ids.append(token)
            state = constraint.advance(state, token)


def test_samplers_and_searches_see_the_changed_model(base, llama, vocabulary):
    constraint = guided.compile(guided.regex("[a-c]{2}"), vocabulary)
    added = (Added(2 * VECTOR, 1),)
    model = Stack([Activations(added)]).over(base)
    best = beam_search(model, PROMPTS[0], constraint, width=9, max_tokens=6)[0]
    plain = beam_search(base, PROMPTS[0], constraint, width=9, max_tokens=6)[0]
    total, text = 0.0, list(PROMPTS[0])
    for token in best.tokens:
        total += float(torch.log_softmax(by_hooks(llama, llama.model.layers, text, 4, added)[-1], -1)[token])
        text.append(token)
    assert best.score == pytest.approx(total, abs=PASSES)
    assert plain.score != pytest.approx(total, abs=PASSES)
    one = smc(np.random.default_rng(0), model, PROMPTS[0], constraint, n=6, max_tokens=6)
    two = smc(np.random.default_rng(0), Activations(added).over(base), PROMPTS[0], constraint, n=6, max_tokens=6)
    assert [each.tokens for each in one.particles] == [each.tokens for each in two.particles]
    np.testing.assert_allclose(one.logw, two.logw, atol=PASSES)
    texts, _ = speculate(
        np.random.default_rng(0), model, [PROMPTS[0]], [constraint], PromptLookup(), max_tokens=6, greedy=True
    )
    assert len(texts[0].tokens)


def test_what_cannot_be_is_refused(base, llama, t5):
    table = TableModel.random(0, width=6)
    for what, said in (
        (lambda: Activations(()), "no vector is added"),
        (lambda: Added(torch.tensor([1.0, float("nan")]), 1), "neither a finite vector"),
        (lambda: Added(torch.zeros(2, 3, 4), 1), "neither a finite vector"),
        (lambda: next_logits(Activations((Added(VECTOR, 3),)).over(base), PROMPTS), "block 3 of"),
        (lambda: next_logits(Activations((Added(VECTOR[:5], 1),)).over(base), PROMPTS), "5 numbers.*states of 32"),
        (lambda: Stack([Activations((Added(VECTOR, 1),))]).over(table), "nothing can be added"),
        (lambda: contrastive_vector(base, [], [(1,)], block=1), "no texts"),
        (lambda: contrastive_vector(base, [(1,)], [(1,)], block=9), "does not give the outputs"),
        (lambda: prompt_vectors(base, (1, 2), (3,), block=1), "2 and 1 tokens"),
        (lambda: contrastive_vector(TransformersModel(t5), [(1,)], [(1,)], block=1), "reads its prompt apart"),
        (
            lambda: Stack([Contrastive(base)]).over(base).start([(1,)], Needs(added=(Added(VECTOR, 1),))),
            "steered already",
        ),
    ):
        with pytest.raises((GuidedError, UnsupportedError), match=said):
            what()
