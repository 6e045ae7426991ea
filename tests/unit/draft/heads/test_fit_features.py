"""Training of heads that write features: losses by their formulas, unrolled steps as drafts read them, learning, files."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from guided.draft import (
    BlockSizes,
    DraftLoss,
    Eagle,
    Eagle3Head,
    EagleHead,
    Fixed,
    draft_losses,
    feature_examples,
    fit_features,
    load_published,
    most_frequent,
    speculate,
)
from guided.draft.heads.fit_features import _loss, unrolled
from guided.errors import GuidedError
from guided.lm.table import TableModel
from tests.amounts import each
from tests.tolerances import SINGLE, SUMS
from tests.unit.draft.heads.test_draft_heads import BASE, EMBEDDINGS, HIDDEN, MODEL, WIDTH, texts

INVERSE = np.linalg.pinv(EMBEDDINGS.double().numpy())
TARGET = TableModel(
    MODEL.logprobs, width=WIDTH, eos_ids=MODEL.eos_ids, hidden=lambda tokens: INVERSE @ MODEL.logprobs(tokens)
)
"""A model whose law is what the base's output matrix makes of its states."""
SIZES = BlockSizes(HIDDEN, 24, 2, 1, 8)


def heads_of(kind, ids=None):
    torch.manual_seed(4)
    if kind == "eagle":
        return EagleHead(SIZES, BASE, ids=ids)
    return Eagle3Head(SIZES, BASE, HIDDEN if kind == "eagle 3" else 3 * HIDDEN, ids=ids)


def test_losses_are_their_formulas():
    rng = np.random.default_rng(0)
    draft, target = rng.normal(size=(2, 3, 5))
    tokens = [1, 4, 0]
    q, p = (np.exp(x) / np.exp(x).sum(1, keepdims=True) for x in (draft, target))
    expected = {
        DraftLoss.TOKENS: [-np.log(q[i, t]) for i, t in enumerate(tokens)],
        DraftLoss.FORWARD_KL: (p * np.log(p / q)).sum(1),
        DraftLoss.REVERSE_KL: (q * np.log(q / p)).sum(1),
        # The share of drafts that verification refuses.
        DraftLoss.TOTAL_VARIATION: 1 - np.minimum(p, q).sum(1),
    }
    for loss in DraftLoss:
        found = draft_losses(loss, torch.tensor(draft), torch.tensor(target), torch.tensor(tokens))
        assert found.numpy() == pytest.approx(np.array(expected[loss]), rel=SUMS)


@pytest.mark.parametrize("loss", DraftLoss)
def test_losses_of_drafts_that_know_fewer_ids(loss):
    """They are the losses on the ids that both know, and their gradients are finite."""
    draft = torch.tensor([[0.3, -torch.inf, 1.0, -0.4], [0.1, -torch.inf, 0.0, 2.0]], dtype=torch.float64)
    target = torch.tensor([[1.0, 9.0, 0.5, 0.0], [0.0, 9.0, -torch.inf, 1.0]], dtype=torch.float64)
    draft.requires_grad_()
    tokens = torch.tensor([2, 1])
    found = draft_losses(loss, draft, target, tokens)
    kept = [0, 2, 3]
    small = draft_losses(loss, draft[:, kept], target[:, kept], torch.tensor([1, 0]))
    expected = small if loss is not DraftLoss.TOKENS else small * torch.tensor([1.0, 0.0])
    if loss is DraftLoss.REVERSE_KL:
        # q has mass where p has none: infinitely far, and said so.
        assert torch.isinf(found[1]) and torch.isinf(small[1])
        found, expected = found[:1], expected[:1]
    assert torch.allclose(found, expected)
    found.sum().backward()
    assert torch.isfinite(draft.grad[: len(found), kept]).all()


@pytest.mark.parametrize("kind", ["eagle", "eagle 3"])
def test_unrolled_steps_read_what_drafts_read(kind):
    """Step s at place i is the output of a draft whose features of the target end s places before."""
    head = heads_of(kind)
    generator = torch.Generator().manual_seed(1)
    features, tokens = torch.randn(2, 7, HIDDEN, generator=generator), torch.randint(WIDTH, (2, 7), generator=generator)
    with torch.no_grad():
        outputs = unrolled(head, features, tokens, 4)
        for row, step, place in [(r, s, p) for r in range(2) for s in range(4) for p in range(s, 7)]:
            n = place - step + 1
            caches = head.caches()
            at = torch.arange(n)
            own = head(features[row : row + 1, :n], tokens[row : row + 1, :n], at, at[None] <= at[:, None], caches)
            own = own[:, -1:]
            for later in range(n, place + 1):
                seen = torch.ones(1, later + 1, dtype=torch.bool)
                own = head(own, tokens[row : row + 1, later : later + 1], torch.tensor([later]), seen, caches)
            assert torch.allclose(outputs[step][row, place], own[0, 0], atol=SINGLE)


@pytest.fixture(scope="module")
def examples():
    prompts = [[1 + i % (WIDTH - 2), 2] for i in range(40)]
    return feature_examples(TARGET, prompts, texts(40))


def test_examples_are_the_states_of_texts(examples):
    assert examples.features[0] is examples.hidden[0]
    for tokens, begin, states in zip(examples.tokens, examples.begins, examples.features, strict=True):
        expected = np.stack([MODEL.logprobs(tokens[: i + 1].tolist()) for i in range(len(tokens))])
        assert begin == 2 and torch.allclose(states @ EMBEDDINGS.T, torch.tensor(expected).float(), atol=SINGLE)
    with pytest.raises(GuidedError, match="no texts"):
        feature_examples(MODEL, [[1]], [[2]])
    with pytest.raises(GuidedError, match="have 1 texts"):
        feature_examples(MODEL, [[1], [2]], [[2, 3]])


@pytest.fixture(scope="module", params=["eagle", "eagle 3"])
def learned(request, examples):
    """A head that has learned from tokens, its losses at the beginning and at the end."""
    head = heads_of(request.param)
    before = measured(head, examples, DraftLoss.TOKENS)
    fit_features(head, examples, BASE.unembeddings, loss=DraftLoss.TOKENS, epochs=25, rate=1e-2, steps=2)
    return request.param, head, before, measured(head, examples, DraftLoss.TOKENS)


def measured(head, examples, loss):
    with torch.no_grad():
        return float(_loss(head, examples, range(len(examples)), BASE.unembeddings, loss, 2, 0.0))


def test_heads_learn_and_save_passes(learned, tmp_path):
    _, head, before, after = learned
    assert after < before / 3
    prompts = [[1 + i] for i in range(9)]
    plain, without = speculate(0, TARGET, prompts, [None] * 9, max_tokens=20, greedy=True)
    drafter = Eagle(head, depth=4, top=2)
    found, counts = speculate(0, TARGET, prompts, [None] * 9, drafter, max_tokens=20, greedy=True, policy=Fixed(6))
    assert found == plain
    assert counts.row_passes < 0.6 * without.row_passes
    likely, fewer = speculate(
        0, TARGET, prompts, [None] * 9, Eagle(head, depth=4, top=2, floor=0.3), max_tokens=20, greedy=True,
        policy=Fixed(6),
    )  # fmt: skip
    assert likely == plain
    assert 0 < fewer.drafted < counts.drafted
    assert fewer.acceptance > counts.acceptance
    head.save(tmp_path)
    again = load_published(tmp_path, BASE, layers=6)
    assert again.settings() == head.settings()
    half = {name: value.half().float() for name, value in head.state_dict().items()}
    assert all(torch.equal(value, half[name]) for name, value in again.state_dict().items())


@pytest.fixture(scope="module", params=["eagle", "eagle 3"])
def begun(request, examples):
    """A head that has hardly begun to learn."""
    head = heads_of(request.param)
    fit_features(head, examples, BASE.unembeddings, loss=DraftLoss.TOKENS, epochs=4, rate=5e-3, steps=2)
    return request.param, head


@pytest.mark.parametrize("loss", each([loss for loss in DraftLoss if loss is not DraftLoss.TOKENS], 3))
def test_every_loss_is_made_smaller(begun, loss, examples):
    kind, warm = begun
    head = heads_of(kind)
    head.load_state_dict(warm.state_dict())
    before = measured(head, examples, loss)
    regression = 0.05 if kind == "eagle" else 0.0
    fit_features(head, examples, BASE.unembeddings, loss=loss, epochs=12, steps=2, regression=regression, rate=5e-3)
    assert measured(head, examples, loss) < before / 2


@pytest.mark.parametrize("kind", ["eagle", "eagle 3"])
def test_heads_of_frequent_ids_draft_these_and_change_nothing(kind, examples, tmp_path):
    """VocabTrim: a part of the ids is scored; texts are those of the target all the same."""
    ids = most_frequent(texts(40), WIDTH, 6)
    head = heads_of(kind, ids)
    assert head.trimmed(torch.zeros(1, HIDDEN)).shape == (1, 6)
    fit_features(head, examples, BASE.unembeddings, epochs=4, rate=5e-3, steps=2)
    head.save(tmp_path)
    head = load_published(tmp_path, BASE, layers=6)
    assert head.ids.tolist() == ids.tolist()
    whole = head.logits(torch.ones(1, HIDDEN))
    assert torch.isfinite(whole[0]).nonzero()[:, 0].tolist() == ids.tolist()
    assert torch.equal(whole[:, ids], head.trimmed(torch.ones(1, HIDDEN)))
    drafted = set()

    class Kept(Eagle):
        def draft(self, chance, contexts):
            found = super().draft(chance, contexts)
            drafted.update(token for one in found for token in one.tree.tokens)
            return found

    prompts = [[1 + i] for i in range(9)]
    plain, without = speculate(0, TARGET, prompts, [None] * 9, max_tokens=20, greedy=True)
    drafter = Kept(head, depth=4, top=2)
    found, counts = speculate(0, TARGET, prompts, [None] * 9, drafter, max_tokens=20, greedy=True, policy=Fixed(6))
    assert found == plain and drafted and drafted <= set(ids.tolist())
    assert counts.row_passes < without.row_passes


def test_settings_that_are_none_are_refused(examples):
    with pytest.raises(GuidedError, match="0 steps"):
        fit_features(heads_of("eagle"), examples, BASE.unembeddings, steps=0)
    fused = TableModel(MODEL.logprobs, width=WIDTH, eos_ids=MODEL.eos_ids, hidden=lambda tokens: np.zeros(3 * HIDDEN))
    wide = feature_examples(fused, [[1]], [[2, 3, 4]])
    with pytest.raises(GuidedError, match="regression"):
        fit_features(heads_of("fused"), wide, BASE.unembeddings, regression=1.0)
    with pytest.raises(GuidedError):
        Eagle(heads_of("eagle"), depth=0)
