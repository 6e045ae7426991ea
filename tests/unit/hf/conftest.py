"""Tiny models made on the spot, and grammars and constraints over tokenizers trained on the spot."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

import guided
from guided.grammar.ir import Choice, Grammar, Reference, Repetition, Rule, Sequence, Terminal
from guided.grammar.regular.expr import byte_range, byte_set, concat, literal, repeat, words
from guided.vocab import Vocabulary
from tests.twin.slow_constraint import SlowConstraint

CORPUS = ['{"name": "ann", "n": 12}', "[1, 22, 333]", '["a", "b", [], [1]]', "yes no maybe", "the cat sat on the mat"]


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE of 320 ids or fewer, end of text and padding apart; ids 0 to 2 are special."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(CORPUS * 20, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token="<pad>", bos_token="<s>", eos_token="</s>", padding_side="left"
    )


@pytest.fixture(scope="session")
def vocabulary(tokenizer) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer)


@pytest.fixture
def other_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes only, in another order: the same text has other ids than `tokenizer` gives it.

    A new object each time: transformers remembers a pair of tokenizers together with the draft model it was used with.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet(), reverse=True)
    bpe = Tokenizer(models.BPE({c: i for i, c in enumerate(["</s>", "<pad>", *alphabet, "zq"])}, []))
    bpe.add_special_tokens(["</s>", "<pad>"])
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=bpe, pad_token="<pad>", eos_token="</s>")


def _terminal(data: bytes) -> Terminal:
    return Terminal(literal(data))


def nested_lists() -> Grammar:
    """A list of numbers, short strings and such lists: recursive, with no longest text."""
    letters = byte_set(sum(1 << byte for byte in b"abcdefghijklmnopqrstuvwxyz "))
    number = Terminal(repeat(byte_range(48, 57), 1, 3))
    string = Terminal(concat(literal(b'"'), repeat(letters, 0, 4), literal(b'"')))
    items = Repetition(Reference(0), 0, 4, _terminal(b", "))
    array = Sequence((_terminal(b"["), items, _terminal(b"]")))
    begin = Sequence((_terminal(b"["), Repetition(Reference(0), 1, 4, _terminal(b", ")), _terminal(b"]")))
    return Grammar((Rule("value", Choice((array, number, string))), Rule("list", begin)), 1)


def record() -> Grammar:
    """One flat record: long forced stretches, so that few tokens are allowed at once."""
    name = Terminal(repeat(byte_range(97, 122), 1, 6))
    number = Terminal(repeat(byte_range(48, 57), 1, 4))
    parts = (_terminal(b'{"name": "'), name, _terminal(b'", "n": '), number, _terminal(b"}"))
    return Grammar((Rule("record", Sequence(parts)),), 0)


def answer() -> Grammar:
    """Three words: a language smaller than any number of beams."""
    return Grammar((Rule("answer", Terminal(words([b"yes", b"no", b"maybe"]))),), 0)


GRAMMARS = {"nested": nested_lists, "record": record, "answer": answer}


@pytest.fixture(scope="session")
def slow(vocabulary) -> dict[str, SlowConstraint]:
    return {name: SlowConstraint(make(), vocabulary) for name, make in GRAMMARS.items()}


def _by(name: str, slow: dict[str, SlowConstraint], vocabulary: Vocabulary):
    return slow if name == "slow" else {name: guided.compile(make(), vocabulary) for name, make in GRAMMARS.items()}


@pytest.fixture(scope="session", params=["engine", pytest.param("slow", marks=pytest.mark.slow)])
def constraints(request, slow, vocabulary):
    """The grammars compiled by the engine; the long suite takes the slow twin, too, which must pass every test."""
    return _by(request.param, slow, vocabulary)


@pytest.fixture(scope="session", params=["engine", "slow"])
def both_constraints(request, slow, vocabulary):
    """The grammars compiled by the engine and by the slow twin."""
    return _by(request.param, slow, vocabulary)


def _seeded(make):
    torch.manual_seed(0)
    model = make().eval()
    # Large weights make the random distributions peaked and different at every position.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6.0)
    # In float64 no processor's order of summation decides which of two tokens is likelier.
    return model.double()


WIDTH = 352
"""Model width: more than the tokenizer has ids, so that padding rows exist."""


def _llama(layers: int, seed: int, width: int = WIDTH) -> LlamaForCausalLM:
    def make():
        torch.manual_seed(seed)
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=width,
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=layers,
                num_attention_heads=4,
                max_position_embeddings=512,
                bos_token_id=1,
                eos_token_id=2,
                pad_token_id=0,
            )
        )

    return _seeded(make)


@pytest.fixture(scope="session")
def llama() -> LlamaForCausalLM:
    return _llama(2, 0)


@pytest.fixture(scope="session")
def draft_llama() -> LlamaForCausalLM:
    return _llama(1, 1)


@pytest.fixture
def other_llama(other_tokenizer) -> LlamaForCausalLM:
    """A draft model for `other_tokenizer`; a new one each time, since transformers prunes its head in place."""
    return _llama(1, 2, len(other_tokenizer))


@pytest.fixture(scope="session")
def gpt2() -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=WIDTH,
        n_positions=512,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    return _seeded(lambda: GPT2LMHeadModel(config))


def _t5(layers: int) -> T5ForConditionalGeneration:
    config = T5Config(
        vocab_size=WIDTH,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=layers,
        num_heads=4,
        decoder_start_token_id=0,
        eos_token_id=2,
    )
    return _seeded(lambda: T5ForConditionalGeneration(config))


@pytest.fixture(scope="session")
def t5() -> T5ForConditionalGeneration:
    return _t5(2)


@pytest.fixture(scope="session")
def draft_t5() -> T5ForConditionalGeneration:
    return _t5(1)


@pytest.fixture(scope="session")
def bart() -> BartForConditionalGeneration:
    config = BartConfig(
        vocab_size=WIDTH,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_bos_token_id=None,
        forced_eos_token_id=None,
    )
    return _seeded(lambda: BartForConditionalGeneration(config))


def generated(sequence: torch.Tensor, prompt_length: int, eos_ids) -> list[int]:
    """The generated ids of one row up to and with the first end-of-text id."""
    ids = sequence[prompt_length:].tolist()
    ends = [i for i, token in enumerate(ids) if token in eos_ids]
    return ids[: ends[0] + 1] if ends else ids


def text_of(vocabulary: Vocabulary, ids) -> bytes:
    return b"".join(vocabulary.token_bytes(t) or b"" for t in ids if t < vocabulary.size)


def random_text(constraint, rng, limit: int) -> list[int]:
    """Random allowed ids, up to an end-of-text id or ``limit``."""
    state, tokens = constraint.start, []
    while len(tokens) < limit and state != constraint.end:
        row = np.zeros(constraint.vocabulary.n_words, np.uint32)
        constraint.fill_mask(state, row)
        tokens.append(rng.choice(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()))
        state = constraint.advance(state, tokens[-1])
    return tokens
