"""The processor called by hand: a function of the ids, whatever order, batch or device the calls come in."""

from __future__ import annotations

import copy
import pickle
import random
import threading

import numpy as np
import pytest
import torch

import guided
from guided.constraint.prefixes import PrefixStates
from guided.errors import GuidedError, LimitError, VocabularyError
from guided.hf import GuidedLogitsProcessor
from guided.vocab import Vocabulary
from tests import vocabularies
from tests.twin.slow_constraint import SlowConstraint
from tests.unit.hf.conftest import WIDTH, random_text

PROMPT = [1, 70, 71, 72]


def allowed_by(processor, rows, width=WIDTH) -> np.ndarray:
    scores = processor(torch.tensor(rows), torch.zeros(len(rows), width))
    assert set(scores.unique().tolist()) <= {0.0, -np.inf}
    return (scores == 0).numpy()


def expected(constraint, tokens, width=WIDTH) -> np.ndarray:
    state = constraint.start
    for token in tokens:
        state = constraint.advance(state, token) if state != constraint.end else state
    mask = np.zeros(width, bool)
    if state:
        row = np.zeros(constraint.vocabulary.n_words, np.uint32)
        constraint.fill_mask(state, row)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        mask[: constraint.vocabulary.size] = bits[: constraint.vocabulary.size]
    else:
        mask[list(constraint.vocabulary.eos_ids)] = True
    return mask


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("name", ["nested", "record"])
def test_any_order_of_calls_gives_the_same_masks(name, explicit, constraints, tokenizer):
    constraint = constraints[name]
    rng = random.Random(5)
    texts = [random_text(constraint, rng, 12) for _ in range(6)]
    prefixes = [text[:n] for text in texts for n in range(len(text) + 1)]
    rng.shuffle(prefixes)
    options = {"prompt_length": len(PROMPT)} if explicit else {}
    processor = GuidedLogitsProcessor(constraint, tokenizer, **options)
    allowed_by(processor, [PROMPT])
    for _ in range(2):
        for prefix in prefixes:
            found = allowed_by(processor, [PROMPT + prefix])[0]
            assert (found == expected(constraint, prefix)).all()


def test_rows_are_independent_of_their_neighbours(constraints, tokenizer):
    constraint = constraints["nested"]
    rng = random.Random(2)
    processor = GuidedLogitsProcessor(constraint, tokenizer)
    for _ in range(10):
        # Beams: the same prompt, texts of one length, permuted, repeated, some dead.
        texts = [random_text(constraint, rng, 4) for _ in range(20)]
        rows = [text[:4] for text in texts if len(text) >= 4]
        rows += [[200, 201, 202, 203], rows[0]]
        rng.shuffle(rows)
        allowed_by(processor, [PROMPT])
        found = allowed_by(processor, [PROMPT + row for row in rows])
        for mask, row in zip(found, rows, strict=True):
            assert (mask == expected(constraint, row)).all()


def test_a_memo_that_forgets_everything_changes_nothing(constraints):
    constraint = constraints["record"]
    rng = random.Random(9)
    tiny, ample = PrefixStates(constraint, memo_bytes=40), PrefixStates(constraint)
    for _ in range(30):
        text = random_text(constraint, rng, 20)
        for n in rng.sample(range(len(text) + 1), min(len(text), 6)):
            tokens = np.array(text[:n], np.int64)
            assert tiny.after(tokens) == ample.after(tokens)
    assert sum(map(len, tiny._order)) <= 40


def test_ids_outside_the_vocabulary_are_dead_and_padding_after_the_end_is_not(constraints):
    constraint = constraints["answer"]
    states = PrefixStates(constraint)
    for token in (-100, constraint.vocabulary.size, 10**9):
        assert states.after(np.array([token])) == 0
    whole = [*constraint_ids(constraint, b"no"), constraint.vocabulary.eos_ids[0]]
    assert states.after(np.array([*whole, 0, 50, -100])) == constraint.end


def constraint_ids(constraint, data: bytes) -> list[int]:
    tokens = constraint.vocabulary.tokens
    return [tokens.index(bytes([byte])) for byte in data]


def test_threads_share_one_object(constraints, tokenizer):
    processor = GuidedLogitsProcessor(constraints["nested"], tokenizer)
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        prompt = [1, 100 + seed]
        try:
            for _ in range(10):
                text = random_text(constraints["nested"], rng, 10)
                for n in range(len(text)):
                    mask = allowed_by(processor, [prompt + text[:n]])[0]
                    if not (mask == expected(constraints["nested"], text[:n])).all():
                        wrong.append((prompt, text[:n]))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class TestLoopsByHand:
    """Calls outside of `generate`: where a new prompt begins is inferred."""

    def fresh(self, constraints, tokenizer):
        constraint = constraints["record"]
        return constraint, GuidedLogitsProcessor(constraint, tokenizer), expected(constraint, [])

    def test_a_new_prompt_starts_anew(self, constraints, tokenizer):
        _, processor, start = self.fresh(constraints, tokenizer)
        for prompt in ([1, 60], [1, 60, 61], [1], [1, 99, 98, 97], [1, 60]):
            assert (allowed_by(processor, [prompt])[0] == start).all(), prompt

    def test_a_conversation_goes_on_from_its_own_output(self, constraints, tokenizer):
        constraint, processor, start = self.fresh(constraints, tokenizer)
        text = random_text(constraint, random.Random(0), 40)
        assert text[-1] in constraint.vocabulary.eos_ids
        for n in range(len(text)):
            allowed_by(processor, [PROMPT + text[:n]])
        second = [*PROMPT, *text, *constraint_ids(constraint, b"more")]
        assert (allowed_by(processor, [second])[0] == start).all()
        assert (allowed_by(processor, [second + text[:3]])[0] == expected(constraint, text[:3])).all()

    def test_after_the_end_only_the_end(self, constraints, tokenizer):
        constraint, processor, _ = self.fresh(constraints, tokenizer)
        text = random_text(constraint, random.Random(0), 40)
        allowed_by(processor, [PROMPT])
        for padding in ([], [0], [0, 0, 0], [2, 2]):
            found = allowed_by(processor, [PROMPT + text + padding])[0]
            assert np.flatnonzero(found).tolist() == list(constraint.vocabulary.eos_ids)

    def test_interleaved_loops(self, constraints, tokenizer):
        constraint, processor, _ = self.fresh(constraints, tokenizer)
        rng = random.Random(4)
        loops = [([1, 40 + i], random_text(constraint, rng, 30)) for i in range(5)]
        order = [(i, n) for i, (_, text) in enumerate(loops) for n in range(len(text))]
        for prompt, _ in loops:
            allowed_by(processor, [prompt])
        rng.shuffle(order)
        for i, n in order:
            prompt, text = loops[i]
            assert (allowed_by(processor, [prompt + text[:n]])[0] == expected(constraint, text[:n])).all()

    def test_reset_makes_the_next_call_a_prompt(self, constraints, tokenizer):
        constraint, processor, start = self.fresh(constraints, tokenizer)
        token = int(np.flatnonzero(start)[0])
        allowed_by(processor, [PROMPT])
        assert (allowed_by(processor, [[*PROMPT, token]])[0] == expected(constraint, [token])).all()
        processor.reset()
        assert (allowed_by(processor, [[*PROMPT, token]])[0] == start).all()

    def test_a_stated_prompt_length_is_final(self, constraints, tokenizer):
        constraint = constraints["record"]
        processor = GuidedLogitsProcessor(constraint, tokenizer, prompt_length=2)
        token = int(np.flatnonzero(expected(constraint, []))[0])
        assert (allowed_by(processor, [[1, 9, token]])[0] == expected(constraint, [token])).all()
        with pytest.raises(GuidedError, match="only 1 ids"):
            allowed_by(processor, [[1]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("ids_type", [torch.int64, torch.int32])
def test_every_type_of_scores_and_ids(dtype, ids_type, constraints, tokenizer):
    constraint = constraints["nested"]
    processor = GuidedLogitsProcessor(constraint, tokenizer)
    scores = torch.randn(2, WIDTH).to(dtype)
    result = processor(torch.tensor([PROMPT, PROMPT], dtype=ids_type), scores)
    mask = torch.from_numpy(expected(constraint, []))
    assert result.dtype is dtype
    assert torch.equal(result[:, mask], scores[:, mask])
    assert (result[:, ~mask] == -torch.inf).all()


def test_scores_too_narrow_for_the_vocabulary(constraints, tokenizer):
    processor = GuidedLogitsProcessor(constraints["nested"], tokenizer)
    with pytest.raises(VocabularyError, match="the model scores 290 ids"):
        allowed_by(processor, [PROMPT], width=290)


def test_scores_narrower_by_ids_without_text_are_fine(constraints):
    grammar = constraints["answer"].grammar
    vocabulary = Vocabulary.from_tokens([*(bytes([b]) for b in range(97, 123)), None, None, None], eos_ids=[26])
    processor = GuidedLogitsProcessor(SlowConstraint(grammar, vocabulary))
    assert np.flatnonzero(allowed_by(processor, [[3]], width=27)[0]).tolist() == [12, 13, 24]


def test_several_end_ids(constraints):
    grammar = constraints["answer"].grammar
    tokens = [*(bytes([b]) for b in range(97, 123)), None, None, None]
    processor = GuidedLogitsProcessor(SlowConstraint(grammar, Vocabulary.from_tokens(tokens, eos_ids=[26, 28])))
    allowed_by(processor, [[3]])
    no = [13, 14]
    assert np.flatnonzero(allowed_by(processor, [[3, *no]])[0]).tolist() == [26, 28]
    assert np.flatnonzero(allowed_by(processor, [[3, *no, 28]])[0]).tolist() == [26, 28]


def test_rows_that_cannot_be_shared_out(constraints, tokenizer):
    processor = GuidedLogitsProcessor([constraints["nested"], constraints["answer"]], tokenizer)
    with pytest.raises(GuidedError, match="3 rows cannot be shared out among 2 grammars"):
        allowed_by(processor, [PROMPT] * 3)


def test_what_is_not_a_grammar(tokenizer, constraints):
    with pytest.raises(TypeError, match=r"'\[0-9\]\+' is no grammar"):
        GuidedLogitsProcessor("[0-9]+", tokenizer)
    with pytest.raises(GuidedError, match="no grammar given"):
        GuidedLogitsProcessor([], tokenizer)
    with pytest.raises(GuidedError, match="needs a tokenizer"):
        GuidedLogitsProcessor(constraints["nested"].grammar)


def test_constraints_of_different_vocabularies(constraints):
    other = vocabularies.of_bytes()
    foreign = SlowConstraint(constraints["answer"].grammar, other)
    with pytest.raises(VocabularyError, match="was compiled for"):
        GuidedLogitsProcessor([constraints["answer"], foreign])
    with pytest.raises(VocabularyError, match="was compiled for"):
        GuidedLogitsProcessor(constraints["answer"], other)


def test_a_constraint_of_another_tokenizer_is_refused_by_its_first_id(tokenizer):
    known = guided.Vocabulary.from_tokenizer(tokenizer)
    shifted = Vocabulary.from_tokens([None, *known.tokens], eos_ids=[0])
    for of in (Vocabulary.from_tokens([b"?" * 9, None], eos_ids=[1]), shifted):
        foreign = guided.compile(guided.regex("[?]{9}|[a-z]+"), of)
        with pytest.raises(VocabularyError, match=r"another tokenizer: id \d+ is b'.*' there, and .* here") as raised:
            GuidedLogitsProcessor(foreign, tokenizer)
        assert "guided.compile(grammar, tokenizer)" in str(raised.value)


def test_a_constraint_of_the_same_texts_is_taken_whatever_ends_them(tokenizer):
    of = guided.Vocabulary.from_tokenizer(tokenizer, eos_ids=[2])
    assert GuidedLogitsProcessor(guided.compile(guided.regex("a"), of), tokenizer).vocabulary is of


def test_a_tokenizer_is_not_read_again_to_be_compared(tokenizer, monkeypatch):
    """Whatever ends its texts: that takes 50 ms of 128,000 ids, and seconds the first time."""
    tokenizer = copy.deepcopy(tokenizer)
    constraint = guided.compile(guided.regex("a"), guided.vocab.vocabulary_of(tokenizer, [2]))

    def read(*args, **options):
        raise AssertionError("read again")

    monkeypatch.setattr(Vocabulary, "from_tokenizer", read)
    assert GuidedLogitsProcessor(constraint, tokenizer).vocabulary is constraint.vocabulary
    # Of what is read each time nothing is remembered.
    assert GuidedLogitsProcessor(constraint, object()).vocabulary is constraint.vocabulary


def test_a_budget_without_any_text_is_refused_at_once(constraints, tokenizer):
    needed = constraints["answer"].shortest_completion(constraints["answer"].start) + 1
    GuidedLogitsProcessor(constraints["answer"], tokenizer, max_new_tokens=needed)
    with pytest.raises(LimitError, match=f"takes {needed} tokens") as error:
        GuidedLogitsProcessor([constraints["answer"]] * 2, tokenizer, max_new_tokens=needed - 1)
    assert f"max_new_tokens={needed} or more" in str(error.value)


def test_is_whole(constraints, tokenizer):
    constraint = constraints["answer"]
    processor = GuidedLogitsProcessor(constraint, tokenizer)
    no = constraint_ids(constraint, b"no")
    assert processor.is_whole(no)
    assert processor.is_whole([*no, 2, 0, 0])
    assert not processor.is_whole(no[:1])
    assert not processor.is_whole([*no, no[0]])
    assert not processor.is_whole([])


def test_copies_and_pickles_are_equal_processors(tokenizer):
    grammar = guided.choice(["yes", "no"])
    original = GuidedLogitsProcessor(grammar, tokenizer, max_new_tokens=7, prompt_length=4)
    wanted = allowed_by(original, [PROMPT])
    for twin in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert (twin.max_new_tokens, twin.prompt_length) == (7, 4)
        assert (allowed_by(twin, [PROMPT]) == wanted).all()


def test_equal_grammars_share_one_constraint(tokenizer):
    processor = GuidedLogitsProcessor([guided.choice(["yes", "no"]), guided.choice(["yes", "no"])], tokenizer)
    assert processor.constraints[0] is processor.constraints[1]


def test_prefixes_that_end_alike_are_told_apart():
    vocabulary = vocabularies.of_bytes()
    constraint = guided.compile(guided.regex("x{40}y|z{1,60}"), vocabulary)
    states = PrefixStates(constraint)
    same = [ord("x")] * 39
    texts = [[ord("x"), *same], [ord("z"), *same], [ord("x"), *same, ord("y")], [ord("z")] * 40]
    for _ in range(2):
        for text in texts:
            expected = constraint.start
            for token in text:
                expected = constraint.advance(expected, token)
            assert states.after(np.asarray(text, np.int64)) == expected
    assert states.after(np.asarray(texts[0], np.int64)) != 0
    assert states.after(np.asarray(texts[1], np.int64)) == 0
