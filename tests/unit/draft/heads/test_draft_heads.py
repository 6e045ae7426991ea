"""Medusa and Hydra heads: learning, files, trees, and that forced tokens and grammars shape what they draft."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import guided
from guided.draft import (
    Base,
    BestFirst,
    ChimeraHeads,
    CloverHeads,
    Context,
    DraftLoss,
    Fixed,
    Heads,
    HydraHeads,
    MedusaHeads,
    calibrate_heads,
    fit_heads,
    head_examples,
    load_heads,
    new_heads,
    speculate,
)
from guided.draft.heads.head_tree import best_nodes
from guided.errors import GuidedError, UnsupportedError, VocabularyError
from guided.lm.table import TableModel
from tests.amounts import each

WIDTH, HIDDEN, END = 12, 16, 11
_RANDOM = np.random.default_rng(0)
NEXT = _RANDOM.permutation(WIDTH - 1)
"""A language in which every token has one successor, and the branching token 0 has two."""
EMBEDDINGS = torch.from_numpy(_RANDOM.standard_normal((WIDTH, HIDDEN))).float()
BASE = Base(EMBEDDINGS, EMBEDDINGS)


def successors(token):
    return [int(NEXT[0]), END] if token in (0, END) else [int(NEXT[token])]


def logprobs(tokens):
    found = np.full(WIDTH, -9.0)
    found[successors(tokens[-1] if tokens else 1)] = 3.0
    return found - np.log(np.exp(found).sum())


MODEL = TableModel(logprobs, width=WIDTH, eos_ids=[END], hidden=lambda tokens: EMBEDDINGS[[0, *tokens][-1]].numpy())


def texts(n, length=14):
    written, _ = speculate(3, MODEL, [[1 + i % (WIDTH - 2)] for i in range(n)], [None] * n, max_tokens=length)
    return [list(text.tokens) for text in written]


@pytest.fixture(scope="module")
def examples():
    written = texts(40)
    return head_examples(MODEL, [[1 + i % (WIDTH - 2)] for i in range(40)], written, 3)


@pytest.fixture(scope="module", params=["medusa", "hydra", "clover", "chimera"])
def heads(request, examples):
    made = new_heads(request.param, 3, BASE)
    first = fit_heads(made, examples, epochs=0.1, batch=32)
    assert fit_heads(made, examples, epochs=8, batch=32, rate=1e-2) < first / 2
    calibrate_heads(made, examples)
    return made


def test_last_places_alone_teach_nothing():
    heads = new_heads("medusa", 2, BASE)
    before = [weights.clone() for weights in heads.parameters()]
    assert fit_heads(heads, head_examples(MODEL, [[1]], [[4]], 2), batch=1) == 0.0
    assert all(map(torch.equal, heads.parameters(), before))


def test_examples_are_the_places_of_texts():
    found = head_examples(MODEL, [[1], [2, 3]], [[4, 5, 6], [7]], 2, dtype=torch.float64)
    assert found.tokens.tolist() == [[4, 5, 6], [5, 6, -1], [6, -1, -1], [7, -1, -1]]
    assert torch.equal(found.hidden.float(), EMBEDDINGS[[1, 4, 5, 3]])
    with pytest.raises(GuidedError, match="no texts"):
        head_examples(MODEL, [[1]], [[]], 2)
    with pytest.raises(GuidedError):
        head_examples(MODEL, [[1]], [], 2)


def test_heads_learn_what_follows(heads):
    """The language is deterministic but after 0, so nearly all is foreseen."""
    for row in heads.settings.accuracies:
        # What is learned is not a matter of rounding: all but 0.3 % is foreseen.
        assert row[0] > 0.75 and sum(row) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("kind", each(["medusa", "hydra", "clover", "chimera"]))
def test_heads_learn_from_the_law_of_the_base(kind):
    """By divergences too, of which the law at the right place is the least: a table's, by states that give it."""
    inverse = np.linalg.pinv(EMBEDDINGS.double().numpy())
    model = TableModel(MODEL.logprobs, width=WIDTH, eos_ids=[END], hidden=lambda tokens: inverse @ logprobs(tokens))
    found = head_examples(model, [[1 + i % (WIDTH - 2)] for i in range(20)], texts(20), 2)
    made = new_heads(kind, 2, BASE)
    fit_heads(made, found, loss=DraftLoss.FORWARD_KL, epochs=60, batch=32, rate=1e-2)
    calibrate_heads(made, found)
    assert all(row[0] > 0.7 for row in made.settings.accuracies)


def test_heads_save_passes_and_change_nothing(heads):
    prompts = [[1 + i] for i in range(9)]
    plain, without = speculate(0, MODEL, prompts, [None] * 9, max_tokens=20, greedy=True)
    for drafter in (Heads(heads), BestFirst(Heads(heads))):
        found, counts = speculate(0, MODEL, prompts, [None] * 9, drafter, max_tokens=20, greedy=True, policy=Fixed(6))
        assert found == plain
        assert counts.row_passes < 0.5 * without.row_passes


def test_files_are_read_again(heads, tmp_path):
    heads.save(tmp_path / "heads.safetensors")
    again = load_heads(tmp_path / "heads.safetensors", BASE)
    assert type(again) is type(heads) and again.settings == heads.settings
    hidden, tokens = EMBEDDINGS[:4], torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8]])
    with torch.inference_mode():
        # Files hold float16: a logit of ten such weights rounds by 0.05 at most.
        assert torch.allclose(again(hidden, tokens), heads(hidden, tokens), atol=0.1)
    with pytest.raises(VocabularyError, match="another model"):
        load_heads(tmp_path / "heads.safetensors", Base(EMBEDDINGS, EMBEDDINGS.flip(0)))
    with pytest.raises(VocabularyError, match="matrix"):
        load_heads(tmp_path / "heads.safetensors", Base(EMBEDDINGS[:5], EMBEDDINGS[:5]))
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, str(tmp_path / "other.safetensors"))
    with pytest.raises(GuidedError, match="no draft heads"):
        load_heads(tmp_path / "other.safetensors", BASE)


def test_heads_work_on_half_precision(heads, tmp_path):
    heads.save(tmp_path / "heads.safetensors")
    half = EMBEDDINGS.to(torch.bfloat16)
    again = load_heads(tmp_path / "heads.safetensors", Base(half, half))
    context = Context(0, [1, int(NEXT[1])], 1, None, 1, 3, 1, half[1])
    (one,), (other,) = Heads(heads).draft(None, [context]), Heads(again).draft(None, [context])
    assert one.tree == other.tree and len(one) == 3


def test_sizes_and_kinds_are_checked():
    with pytest.raises(GuidedError):
        new_heads("eagle", 2, BASE)
    with pytest.raises(GuidedError):
        new_heads("medusa", 0, BASE)
    made = new_heads("hydra", 2, BASE)
    with pytest.raises(GuidedError):
        MedusaHeads(made.settings, BASE)
    with pytest.raises(GuidedError):
        HydraHeads(new_heads("medusa", 2, BASE).settings, BASE)
    with pytest.raises(GuidedError):
        CloverHeads(new_heads("hydra", 2, BASE).settings, BASE)
    with pytest.raises(GuidedError, match="looks 3 tokens ahead"):
        made(EMBEDDINGS[:1], torch.zeros((1, 3), dtype=torch.long))


def test_hydra_reads_what_medusa_does_not():
    hidden = EMBEDDINGS[:1]
    for kind, differs in (("medusa", False), ("hydra", True), ("clover", True), ("chimera", True)):
        made = new_heads(kind, 2, BASE)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter)
        one, other = (made(hidden, torch.tensor([[t, 5]])) for t in (1, 2))
        assert torch.equal(one, other) != differs


@pytest.mark.parametrize("hidden_size", [16, 64])
def test_clover_is_its_equations(hidden_size):
    """Row by row and attention head by attention head, in float64; 64 numbers are two attention heads."""
    rng = np.random.default_rng(5)
    base = Base(*(torch.from_numpy(rng.standard_normal((2, WIDTH, hidden_size))).float()))
    made = new_heads("clover", 3, base, blocks=2)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    weights = {name: value.detach().double().numpy() for name, value in made.state_dict().items()}
    table = base.unembeddings.double().numpy()
    silu = lambda x: x / (1 + np.exp(-x))  # noqa: E731
    start, tokens = rng.standard_normal((2, hidden_size)), [[1, 4, 7], [0, 4, 2]]
    for count in (1, 2, 3):
        got = made(torch.from_numpy(start).float(), torch.tensor([row[:count] for row in tokens])).detach().numpy()
        for row in range(2):
            h = start[row]
            for token in tokens[row][:count]:
                e = table[token] / np.sqrt((table[token] ** 2).mean() + 1e-6)
                normed = weights["norm"] * h / np.sqrt((h * h).mean() + 1e-6)
                q, k, v = (
                    weights[f"{name}.weight"] @ x for name, x in (("queries", normed), ("keys", e), ("values", e))
                )
                size = 32 if hidden_size == 64 else 16
                h = h + np.concatenate(
                    [
                        silu(q[at : at + size] @ k[at : at + size] / np.sqrt(size)) * v[at : at + size]
                        for at in range(0, hidden_size, size)
                    ]
                )
            for block in range(2):
                name = f"heads.{count - 1}.{block}"
                h = h + silu(weights[f"{name}.weight"] @ h + weights[f"{name}.bias"])
            # float32 sums of 64 products of numbers up to 20.
            np.testing.assert_allclose(got[row], table @ h, atol=1e-3, rtol=1e-5)


@pytest.mark.parametrize("kind", ["clover", "chimera"])
def test_untrained_heads_say_what_the_base_says(kind):
    """Clover's values begin at 0, as the paper has it, and so do its blocks; Chimera's trigrams and what follows them."""
    made = new_heads(kind, 2, BASE)
    hidden = EMBEDDINGS[:3]
    assert torch.equal(made(hidden, torch.tensor([[1, 2], [3, 4], [5, 6]])), hidden @ EMBEDDINGS.T)


def test_trees_take_the_likeliest_nodes():
    shares = [[0.6, 0.3, 0.05], [0.5, 0.2, 0.1]]
    every = [(a,) for a in range(3)] + [(a, b) for a in range(3) for b in range(3)]
    value = {path: np.prod([shares[depth][rank] for depth, rank in enumerate(path)]) for path in every}
    for n in range(1, 13):
        found = best_nodes(shares, n)
        assert sorted(value[p] for p in found) == pytest.approx(sorted(value.values())[-n:])
        assert all(path[:-1] in found[:i] or len(path) == 1 for i, path in enumerate(found))


def test_forced_tokens_use_up_heads_and_grammars_leave_candidates_out(heads):
    vocabulary = guided.Vocabulary.from_tokens([bytes([97 + i]) for i in range(WIDTH - 1)] + [None], eos_ids=[END])
    letters = "".join(chr(97 + i) for i in range(WIDTH - 1) if i != NEXT[NEXT[1]])
    constraint = guided.compile(guided.regex(f"[{letters}]*"), vocabulary)
    state = constraint.advance(constraint.start, int(NEXT[1]))
    drafter = Heads(heads)

    def drafted(n_unseen, constraint=None, state=1, budget=8):
        tokens = [1]
        for _ in range(n_unseen):
            tokens.append(int(NEXT[tokens[-1]]))
        return drafter.draft(None, [Context(0, tokens, 1, constraint, state, budget, n_unseen, EMBEDDINGS[1])])[0]

    free = drafted(1)
    assert free.token(0) == NEXT[NEXT[1]]
    depths = [max(len(drafted(n).tree.path(i)) for i in range(len(drafted(n)))) for n in (1, 2, 3)]
    assert depths == [3, 2, 1]
    assert len(drafted(4)) == 0
    bound = drafted(1, constraint, state)
    assert len(bound) > 0
    assert NEXT[NEXT[1]] not in bound.tree.tokens
    assert len(drafted(1, budget=3)) == 3
    without_state = Context(0, [1, 2], 1, None, 1, 8)
    assert len(drafter.draft(None, [without_state])[0]) == 0


def test_drafts_that_would_not_see_the_states_are_refused(heads):
    from guided.draft import PromptLookup, Staged, Union

    with pytest.raises(UnsupportedError, match="hidden states"):
        Staged(MODEL, Union(PromptLookup(), Heads(heads)))
    with pytest.raises(UnsupportedError):
        speculate(0, TableModel.random(0, width=WIDTH), [[1]], [None], Heads(heads))


def test_rows_of_different_places_are_drafted_together(heads):
    drafter = Heads(heads)
    contexts = [
        Context(row, [1 + row, *[int(NEXT[1 + row])] * n], 1, None, 1, 6, n, EMBEDDINGS[1 + row])
        for row, n in enumerate((1, 2, 1, 3))
    ]
    together = [one.tree for one in drafter.draft(None, contexts)]
    assert together == [Heads(heads).draft(None, [context])[0].tree for context in contexts]


@pytest.mark.parametrize("hidden_size", [16, 64])
def test_chimera_is_its_equations(hidden_size):
    """Trigram by trigram and attention head by attention head, in float64; 64 numbers are two attention heads."""
    rng = np.random.default_rng(6)
    base = Base(*(torch.from_numpy(rng.standard_normal((2, WIDTH, hidden_size))).float()))
    made = new_heads("chimera", 4, base, blocks=2)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    w = {name: value.detach().double().numpy() for name, value in made.state_dict().items()}
    read = base.embeddings.double().numpy() / float(base.embeddings.std())
    table = base.unembeddings.double().numpy()
    silu = lambda x: x / (1 + np.exp(-x))  # noqa: E731
    start, tokens = rng.standard_normal((2, hidden_size)), [[1, 4, 7, 2], [0, 4, 2, 9]]
    size = 32 if hidden_size == 64 else 16
    for count in (1, 2, 4):
        got = made(torch.from_numpy(start).float(), torch.tensor([row[:count] for row in tokens])).detach().numpy()
        for row in range(2):
            line = [w["before"], w["before"], *(read[token] for token in tokens[row][:count])]
            grams = [
                silu(w["trigrams.weight"] @ np.concatenate(line[at : at + 3]) + w["trigrams.bias"])
                for at in range(count)
            ]
            h = start[row] + grams[-1]
            found = []
            for at in range(0, hidden_size, size):
                q = (w["queries.weight"] @ h)[at : at + size]
                keys, values = (
                    [(w[f"{name}.weight"] @ x)[at : at + size] for x in (start[row], *grams)]
                    for name in ("keys", "values")
                )
                shares = np.exp([q @ key / np.sqrt(size) for key in keys])
                found.append(sum(share * value for share, value in zip(shares, values, strict=True)) / shares.sum())
            h = h + w["out.weight"] @ np.concatenate(found)
            h = h + w["outer.weight"] @ silu(w["inner.weight"] @ h + w["inner.bias"]) + w["outer.bias"]
            for block in range(2):
                name = f"heads.{count - 1}.{block}"
                h = h + silu(w[f"{name}.weight"] @ h + w[f"{name}.bias"])
            # float32 sums of 64 products of numbers up to 20.
            np.testing.assert_allclose(got[row], table @ h, atol=1e-3, rtol=1e-5)
    with pytest.raises(GuidedError):
        ChimeraHeads(new_heads("hydra", 2, BASE).settings, BASE)
