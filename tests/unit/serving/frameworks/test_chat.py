"""`Chat`: conversations, options and what is refused; and response formats as grammars."""

import json

import pytest

import guided
from guided import hf
from guided.serving.frameworks.chat import Answer, Chat, chat_of, prompt_of, whole
from guided.serving.frameworks.completions import Completions, grammar_of_format

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "multipleOf": 7, "maximum": 99, "minimum": 0}},
    "required": ["n"],
}
ASKED = [
    {"role": "system", "content": "Answer."},
    {"role": "user", "content": [{"type": "text", "text": "Ann is 35."}]},
]


@pytest.fixture(scope="module")
def chat():
    return Chat(hf.load("nano", device="cpu"), max_new_tokens=40)


def test_an_answer_is_that_of_generate(chat):
    grammar = grammar_of_format({"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}})
    made = chat.answer(ASKED, grammar)
    plain = guided.generate(chat.loaded, "Answer.\n\nAnn is 35.", grammar, max_new_tokens=40)
    assert (made.text, made.finished, made.n_generated) == (plain.text, True, len(plain.token_ids))
    assert made.n_prompt == len(chat.loaded.tokenizer("Answer.\n\nAnn is 35.")["input_ids"])
    assert set(json.loads(made.text)) == {"n"}
    assert chat.value(ASKED, grammar) == json.loads(made.text)


def test_draws_follow_temperature_and_seed(chat):
    drawn = [chat.answer(ASKED, temperature=1.0, seed=seed, max_new_tokens=12).text for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    sampling = Chat(chat.loaded, 12, {"do_sample": True})
    assert sampling.answer(ASKED, temperature=0).text == chat.answer(ASKED, max_new_tokens=12).text


def test_stop_texts_cut_free_text_only(chat):
    hello = [{"role": "user", "content": "Hello"}]
    free = chat.answer(hello, max_new_tokens=12).text
    assert len(free) > 4
    made = chat.answer(hello, max_new_tokens=12, stop=[free[2:4], free[3:5]])
    assert made.text == free[: free.find(free[2:4])] and made.finished
    with pytest.raises(guided.UnsupportedError, match="stop text"):
        chat.answer(hello, SCHEMA, stop=["}"])


def test_what_is_cut_is_no_value(chat):
    assert not chat.answer([{"role": "user", "content": "Hello"}], max_new_tokens=3).finished
    with pytest.raises(guided.LimitError):
        chat.value(ASKED, SCHEMA, max_new_tokens=3)
    with pytest.raises(guided.GuidedError, match="cut"):
        whole(Answer("{", False, 1, 1))


def test_models_with_a_template_get_messages():
    class Tokenizer:
        chat_template = "x"

    assert prompt_of(Tokenizer(), ASKED) == [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": "Ann is 35."},
    ]


@pytest.mark.parametrize("content", [[{"type": "image_url"}], 3, [{"type": "text", "text": "a"}, {"type": "image"}]])
def test_more_than_text_is_refused(content):
    with pytest.raises(guided.UnsupportedError, match="more than text"):
        prompt_of(object(), [{"role": "user", "content": content}])


def test_no_messages():
    with pytest.raises(guided.GuidedError, match="no messages"):
        prompt_of(object(), [])


def test_a_chat_of_a_model(chat):
    assert chat_of(chat) is chat
    assert chat_of(chat.loaded).loaded is chat.loaded


def test_response_formats():
    assert grammar_of_format({"type": "text"}) is None
    vocabulary = guided.Vocabulary.from_tokens([bytes([i]) for i in range(255)] + [None], eos_ids=[255])

    def takes(response_format, text):
        constraint = guided.compile(grammar_of_format(response_format), vocabulary)
        state = constraint.advance_bytes(constraint.start, text.encode())
        return bool(state) and constraint.is_accepting(state)

    assert takes({"type": "json_object"}, '{"a": 1}') and not takes({"type": "json_object"}, "[]")
    for schema in (
        {"type": "json_schema", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
    ):
        assert takes(schema, '{"n": 14}') and not takes(schema, '{"n": 15}') and not takes(schema, '{"n": 14, "b": 1}')
    with pytest.raises(guided.GrammarError, match="no schema"):
        grammar_of_format({"type": "json_schema"})
    with pytest.raises(guided.UnsupportedError, match="xml"):
        grammar_of_format({"type": "xml"})


@pytest.mark.parametrize("option", [{"tools": [{}]}, {"stream": True}, {"logit_bias": {"1": 2}}, {"n": 2}])
def test_options_that_are_not_known_are_refused(chat, option):
    with pytest.raises(guided.UnsupportedError, match=next(iter(option))):
        Completions(chat).create(messages=ASKED, model="m", **option)
