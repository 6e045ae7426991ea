"""The factory for TensorRT-LLM over abstract classes with the methods that its own have; the package needs a GPU."""

from abc import ABC, abstractmethod
from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest
from transformers import AutoTokenizer

from guided.nano import MODEL_PATH
from guided.serving.tensorrt_llm import matcher_factory


class GrammarMatcher(ABC):
    @abstractmethod
    def accept_token(self, token_id): ...

    @abstractmethod
    def rollback(self, num_tokens): ...

    @abstractmethod
    def fill_next_token_bitmask(self, next_token_bitmask, index): ...

    @abstractmethod
    def is_terminated(self): ...


class GrammarMatcherFactory(ABC):
    @abstractmethod
    def create(self, guided_decoding_params): ...


class GuideType(Enum):
    JSON = 0
    JSON_SCHEMA = 1
    REGEX = 2
    EBNF_GRAMMAR = 3
    STRUCTURAL_TAG = 4
    OTHER = 5


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(MODEL_PATH)


@pytest.fixture(scope="module")
def factory(tokenizer):
    interface = SimpleNamespace(GrammarMatcher=GrammarMatcher, GrammarMatcherFactory=GrammarMatcherFactory)
    config = SimpleNamespace(
        tokenizer_str=tokenizer.backend_tokenizer.to_str(), stop_token_ids=[tokenizer.eos_token_id]
    )
    return matcher_factory(interface)(config, 2080, max_num_draft_tokens=4)


@pytest.mark.parametrize(
    ("kind", "guide", "text"),
    [
        (GuideType.JSON, None, '{"a": 1}'),
        (GuideType.JSON_SCHEMA, '{"multipleOf": 7, "type": "integer"}', "21"),
        (GuideType.REGEX, "(?=.*7)[0-9]+", "173"),
        (GuideType.EBNF_GRAMMAR, 'root ::= "a" root | "b"', "aab"),
        (GuideType.STRUCTURAL_TAG, '{"format": {"type": "const_string", "value": "hey"}}', "hey"),
    ],
)
def test_each_type_of_guide(factory, tokenizer, kind, guide, text):
    matcher = factory.create(SimpleNamespace(guide_type=kind, guide=guide))
    masks = np.zeros((2, 65), np.int32)
    tokens = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    for token in tokens:
        matcher.fill_next_token_bitmask(masks, 1)
        assert masks[1, token >> 5] >> (token & 31) & 1
        assert not matcher.is_terminated() and matcher.accept_token(token)
    assert matcher.is_terminated() and not matcher.accept_token(tokens[-1])
    matcher.rollback(len(tokens))
    assert matcher.accept_token(tokens[0])


def test_refusals(factory):
    for kind, guide, says in ((GuideType.REGEX, "(", "offset"), (GuideType.OTHER, "", "OTHER")):
        with pytest.raises(ValueError, match=says):
            factory.create(SimpleNamespace(guide_type=kind, guide=guide))
    with pytest.raises(ValueError, match="tokenizer"):
        type(factory)(SimpleNamespace(tokenizer_str=None), 5)
