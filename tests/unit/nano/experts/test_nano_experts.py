"""The packaged experts: whole, small, of one tokenizer, and knowing what they are for; and the stream they come from."""

from __future__ import annotations

import ast
import itertools
import json
import sys

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from guided.hf import TransformersModel, load
from guided.lm import Needs
from guided.nano import MODEL_PATH
from guided.nano.experts import HEADS_PATH, REWARD_HEAD_PATH, SCORER_PATH, WEIGHTS_PATH, Expert
from guided.nano.experts.prompts import question
from guided.nano.experts.world import ATTRIBUTES, KNOWN, NEW, UNKNOWN, fact, is_held_out_context, unseen_wording
from guided.steer import PrefixScorer
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "examples" / "train_experts"))

import fitting
from review_corpus import reviews, stream
from review_tokenizer import build_tokenizer

FAMILY = [expert for expert in Expert if expert is not Expert.NANO_AMATEUR]
TEXTS = 60


@pytest.fixture(scope="module")
def labelled():
    """Reviews of a seed that no training used."""
    return list(itertools.islice(reviews(1_000_003), TEXTS))


@pytest.fixture(scope="module")
def loaded():
    known = {}

    def get(expert: Expert) -> TransformersModel:
        if expert not in known:
            known[expert] = TransformersModel(load(expert.path, device="cpu", local_files_only=True))
        return known[expert]

    return get


def ids_of(model, texts):
    return [tuple(model.tokenizer(text.text)["input_ids"]) for text in texts]


def test_all_are_there_and_small():
    files = [path for path in WEIGHTS_PATH.rglob("*") if path.is_file()]
    assert max(path.stat().st_size for path in files) <= 3_000_000
    assert sum(path.stat().st_size for path in files) <= 10_000_000
    for expert in Expert:
        with safe_open(expert.path / "model.safetensors", framework="pt") as weights:
            assert {weights.get_tensor(name).dtype for name in weights.keys()} == {torch.float16}  # noqa: SIM118
        assert expert.value in (WEIGHTS_PATH / "MODEL_CARD.md").read_text("utf-8")


def test_one_tokenizer_and_the_packaged_models_own():
    vocabularies = [AutoTokenizer.from_pretrained(expert.path).get_vocab() for expert in FAMILY]
    assert all(one == vocabularies[0] for one in vocabularies)
    nano = AutoTokenizer.from_pretrained(Expert.NANO_AMATEUR.path)
    packaged = AutoTokenizer.from_pretrained(MODEL_PATH)
    assert nano.get_vocab() == packaged.get_vocab()
    for text in ("SELECT name FROM city WHERE id = 7", '{"full_name": "Ida"}'):
        assert nano(text)["input_ids"] == packaged(text)["input_ids"]


def test_all_have_names_to_load_them_by():
    names = [expert.name_to_load for expert in Expert]
    assert len({*names, "nano"}) == len(names) + 1
    assert {"nano-amateur", "reviews", "reviews-amateur", "reviews-token-reward"} < set(names)
    for expert in (Expert.NANO_AMATEUR, Expert.POSITIVE):
        one, other = load(expert.name_to_load, device="cpu"), load(expert.path, device="cpu", local_files_only=True)
        assert one.name == expert.name_to_load
        for mine, theirs in zip(one.model.parameters(), other.model.parameters(), strict=True):
            assert torch.equal(mine, theirs)


@pytest.mark.slow
def test_the_amateur_is_worse_than_the_model_and_experts_take_sides(labelled, loaded):
    def loss(expert, texts):
        model, total, count = loaded(expert), 0.0, 0
        for ids in ids_of(model, texts):
            sequences = model.start([ids[:1]])
            logits = sequences.extend([ids[1:-1]])[0].logits
            logits = torch.cat([sequences.last.logits[:0], logits])
            after = torch.tensor(ids[2:])
            total -= float(torch.log_softmax(logits, -1).gather(-1, after[:, None]).sum())
            count += len(after)
        return total / count

    questions = [text for text in itertools.islice(stream(1_000_005), 400) if text.praises is None][:TEXTS]
    assert loss(Expert.REVIEWS, questions) < loss(Expert.AMATEUR, questions) - 0.02
    praising = [text for text in labelled if text.praises]
    complaining = [text for text in labelled if not text.praises]
    for own, other, texts in (
        (Expert.POSITIVE, Expert.NEGATIVE, praising),
        (Expert.NEGATIVE, Expert.POSITIVE, complaining),
    ):
        assert loss(own, texts) < loss(other, texts) - 0.1


def head_of(path):
    state = load_file(path)
    head = PrefixScorer(state["head.weight"].shape[1])
    head.load_state_dict(state)
    return head


@pytest.mark.parametrize(
    ("expert", "path", "middle"), [(Expert.REWARD, REWARD_HEAD_PATH, 0.0), (Expert.REWARD, SCORER_PATH, 0.0)]
)
def test_rewards_know_at_the_end_and_suspect_half_way(labelled, loaded, expert, path, middle):
    model, head = loaded(expert), head_of(path)
    for share, least in ((1.0, 0.9), (0.5, 0.7)):
        ids = [text[: max(1, round(share * len(text)))] for text in ids_of(model, labelled)]
        hidden = torch.cat([model.start([text], Needs(hidden=True)).last.hidden for text in ids])
        said = head(hidden) > middle
        right = sum(bool(one) == text.praises for one, text in zip(said, labelled, strict=True))
        assert right / len(labelled) >= least, (share, right)


def test_token_rewards_are_log_odds_of_the_tokens_that_follow(labelled, loaded):
    model = loaded(Expert.TOKEN_REWARD)
    before, after = tuple(model.tokenizer("We stayed two nights in May. The room was")["input_ids"]), {}
    for word in (" clean", " lovely", " dirty", " awful"):
        (token,) = model.tokenizer(word)["input_ids"]
        after[word] = float(model.start([before]).last.logits[0, token])
    assert min(after[" clean"], after[" lovely"]) > 0 > max(after[" dirty"], after[" awful"])


def test_the_listed_heads_carry_the_value_from_the_context(loaded):
    """Without them the value of a context is less likely; without as many others it hardly changes."""
    model = loaded(Expert.REVIEWS)
    heads = [tuple(head) for head in json.loads(HEADS_PATH.read_text())]
    n_blocks, n_heads = model.can.layers, model.model.config.num_attention_heads
    assert all(0 <= block < n_blocks and 0 <= head < n_heads for block, head in heads)
    others = [(block, head) for block in range(n_blocks) for head in range(n_heads) if (block, head) not in heads]

    def chance(masked):
        total = 0.0
        for hotel in NEW[:12]:
            attribute = ATTRIBUTES[0]
            value = next(each for each in attribute.values[3:] if not is_held_out_context(hotel, attribute, each))
            text = f"{question(hotel, attribute, unseen_wording(hotel, attribute), value)} {hotel} is in"
            (token,) = model.tokenizer(f" {value}")["input_ids"]
            ids = tuple(model.tokenizer(text)["input_ids"])
            logits = model.start([ids], Needs(masked_heads=tuple(masked))).last.logits[0]
            total += float(torch.log_softmax(logits, -1)[token]) / 12
        return total

    whole = chance(())
    assert chance(heads[:2]) < whole - 0.1
    assert chance(others[:2]) > chance(heads[:2])


def test_names_are_apart_and_facts_stay():
    assert not {*KNOWN} & {*NEW} and not {*KNOWN, *NEW} & {*UNKNOWN}
    assert len({*KNOWN, *NEW, *UNKNOWN}) == len(KNOWN) + len(NEW) + len(UNKNOWN)
    assert [fact(hotel, ATTRIBUTES[0]) for hotel in KNOWN[:3]] == ["Split", "Naples", "Quito"], "the weights know these"


def test_a_seed_gives_one_stream_with_labels():
    first, again, other = (list(itertools.islice(stream(seed), 300)) for seed in (4, 4, 5))
    assert first == again
    assert first != other
    found = list(itertools.islice(reviews(3), 600))
    share = sum(bool(text.praises) for text in found) / len(found)
    assert 0.4 < share < 0.6


def test_the_packaged_tokenizer_is_the_scripts(loaded):
    built = build_tokenizer(0)
    assert built.get_vocab() == loaded(Expert.REVIEWS).tokenizer.get_vocab()


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="the recipe needs an optimiser that torch 2.4 lacks")
def test_training_is_repeatable_and_learns():
    tokenizer = build_tokenizer(0)
    shape = fitting.Shape(width=16, blocks=1, heads=1, inner=16)
    states = []
    for _ in range(2):
        model = fitting.new_model(shape, tokenizer, 0)
        loss = fitting.language_loss(model)
        batch = next(fitting.batches(stream(9), tokenizer, 8, 0))
        before = float(loss(batch).detach())
        fitting.fit(model, loss, fitting.batches(stream(9), tokenizer, 8, 0), steps=12, name="test")
        assert float(loss(batch).detach()) < before - 0.3
        states.append(model.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_targets_are_the_tokens_after_and_the_end():
    tokenizer = build_tokenizer(0)
    batch = next(fitting.batches(stream(2), tokenizer, 4, 0))
    for row, text in enumerate(batch.texts):
        ids = tokenizer(text.text)["input_ids"]
        assert batch.tokens[row, : len(ids)].tolist() == ids
        assert batch.targets[row, : len(ids)].tolist() == [*ids[1:], tokenizer.eos_token_id]
        assert (batch.targets[row, len(ids) :] == fitting.IGNORED).all()


def test_importing_the_experts_loads_no_torch():
    for path in (ROOT / "guided" / "nano" / "experts").glob("*.py"):
        names = {
            alias.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        assert not {"torch", "transformers", "numpy"} & {str(name).split(".")[0] for name in names}, path


def test_models_load_with_transformers_alone():
    model = AutoModelForCausalLM.from_pretrained(Expert.POSITIVE.path)
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(Expert.POSITIVE.path))
