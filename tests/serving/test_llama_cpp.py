"""llama-cpp-python: the vocabulary of GGUF files, the fifty cases, and what must not pass without a word."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llama_cpp")
pytest.importorskip("gguf")

import llama_cpp

import guided
from guided.errors import GuidedError, LimitError, UnsupportedError, VocabularyError
from guided.serving.llama_cpp import LlamaCppProcessor, Processors, generate, vocabulary_of_llama
from guided.vocab import Vocabulary
from tests.serving import gguf_model
from tests.serving.cases import BUDGET
from tests.serving.conftest import differing


def _open(path, **options):
    return llama_cpp.Llama(str(path), verbose=False, n_threads=1, **{"n_ctx": 512, **options})


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "nano.gguf"
    gguf_model.write_nano(path)
    return _open(path)


def test_the_vocabulary_is_that_of_the_tokenizer(llama, nano):
    assert vocabulary_of_llama(llama) == nano.vocabulary
    assert vocabulary_of_llama(llama) is vocabulary_of_llama(llama)


def _vocabulary(tmp_path, tokens, **options):
    """What is read of a GGUF with these tokens."""
    from safetensors.numpy import load_file

    weights = load_file(gguf_model.MODEL_PATH / "model.safetensors")
    gguf_model.write(tmp_path / "tokens.gguf", tokens, weights=weights, **options)
    return vocabulary_of_llama(_open(tmp_path / "tokens.gguf", n_ctx=64))


def _gpt2_alphabet():
    """The character of each byte in GPT-2's vocabulary."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + n) for n, byte in enumerate(other)}


def test_the_bytes_of_a_gpt2_vocabulary(tmp_path):
    alphabet = _gpt2_alphabet()
    texts = [bytes([byte]) for byte in range(256)]
    texts += [b" the", "日本".encode(), "日".encode()[:2], b"\n\n", b"\0\0a", b"x" * 90]
    words = [("".join(alphabet[byte] for byte in text), "normal") for text in texts]
    special = [("<|end|>", "control"), ("<tool>", "added"), ("<unused0>", "unused"), ("<|im_end|>", "control")]
    end = len(words)
    found = _vocabulary(tmp_path, words + special, eos=end, model="gpt2", pre="gpt-2")
    names = {"<|end|>": end, "<tool>": end + 1, "<|im_end|>": end + 3}
    # llama.cpp knows ends of turns by their names.
    expected = Vocabulary.from_tokens(texts + [None] * 4, eos_ids=[end, end + 3], special_tokens=names)
    assert [found.token_bytes(token) for token in range(found.size)] == texts + [None] * 4
    assert (found.eos_ids, dict(found.special_tokens)) == (expected.eos_ids, dict(expected.special_tokens))
    assert found == expected


@pytest.mark.parametrize("space_prefix", [False, True])
def test_the_bytes_of_a_sentencepiece_vocabulary(tmp_path, space_prefix):
    words = [("<unk>", "unknown"), ("<s>", "control"), ("</s>", "control")]
    words += [(f"<0x{byte:02X}>", "byte") for byte in range(256)]
    words += [("▁the", "normal"), ("▁▁", "normal"), ("日本", "normal"), ("a▁b", "normal"), ("<0x41", "normal")]
    found = _vocabulary(tmp_path, words, eos=2, space_prefix=space_prefix)
    assert found.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2} and found.eos_ids == (2,)
    assert [found.token_bytes(3 + byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    tail = [b" the", b"  ", "日本".encode(), b"a b", b"<0x41"]
    assert [found.token_bytes(259 + number) for number in range(5)] == tail
    assert found.first_token_strips_space == space_prefix


def test_the_fifty_cases(llama, answered):
    texts = [generate(llama, each.ids, each.constraint, max_tokens=BUDGET) for each in answered]
    assert not differing(texts, answered)
    assert all(text.finished for text in texts)


def test_drawn_texts_are_in_the_language(llama):
    for seed in range(5):
        llama.set_seed(seed)
        text = generate(llama, "A: ", list[int], max_tokens=20, temperature=1.5, top_k=5, repeat_penalty=1.3)
        assert text.finished and all(type(value) is int for value in text.value)


def test_the_processor_serves_create_completion_also_with_a_logit_bias(llama, nano):
    constraint = guided.compile(guided.choice(["maybe", "perhaps"]), nano.vocabulary)
    bias = dict.fromkeys(range(100, 110), 50.0)
    for options in ({}, {"logit_bias": bias}):
        processor = LlamaCppProcessor(llama, constraint, 12)
        answer = llama.create_completion(
            "A: ", max_tokens=12, temperature=0.0, logits_processor=Processors([processor]), **options
        )
        processor.check()
        assert answer["choices"][0]["text"] in ("maybe", "perhaps")


class _Broken:
    """A constraint that gives no masks."""

    def __init__(self, constraint):
        self.constraint = constraint

    def __getattr__(self, name):
        return getattr(self.constraint, name)

    def fill_mask(self, state, row):
        raise LimitError("too much work")


def test_an_error_in_a_call_is_not_lost_and_lets_no_token_through(llama, nano):
    constraint = guided.compile(guided.regex("[a-z]+"), nano.vocabulary)
    processor = LlamaCppProcessor(llama, _Broken(constraint))
    tokens = llama.generate([50, 60], temp=0.0, logits_processor=Processors([processor]))
    assert next(tokens) in nano.vocabulary.eos_ids
    with pytest.raises(LimitError, match="too much work"):
        processor.check()


def test_a_processor_that_is_used_for_another_text_says_so(llama, nano):
    constraint = guided.compile(guided.choice(["yes"]), nano.vocabulary)
    processor = LlamaCppProcessor(llama, constraint)
    scores = np.zeros(2048, np.float32)
    processor(np.array([5, 6], np.intc), scores)
    after = processor(np.array([7, 8, 9, 10], np.intc), scores)
    assert np.flatnonzero(np.isfinite(after)).tolist() == list(nano.vocabulary.eos_ids)
    with pytest.raises(GuidedError, match="do not continue the text"):
        processor.check()


def test_what_cannot_be_is_refused(llama, nano):
    with pytest.raises(GuidedError, match="the context holds 512"):
        generate(llama, [50] * 500, guided.choice(["yes"]), max_tokens=20)
    with pytest.raises(LimitError):
        generate(llama, [50], guided.regex("[a-z]{90}"), max_tokens=5)
    other = guided.compile(guided.choice(["a"]), Vocabulary.from_tokens([b"a", None], eos_ids=[1]))
    with pytest.raises(VocabularyError, match="compiled for"):
        generate(llama, [50], other)
    llama.draft_model = lambda ids: ids
    try:
        with pytest.raises(UnsupportedError, match="draft model"):
            generate(llama, [50], guided.choice(["yes"]))
    finally:
        llama.draft_model = None
