"""`guided.generate`: prompts of every form, batches, what it hands on, and what it refuses."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import LogitsProcessor

from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf import Generation, GuidedLogitsProcessor, LoadedModel, generate
from guided.hf.loading import end_ids
from tests.twin.earley import accepts

TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}A:"


@pytest.fixture
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


def test_one_prompt_gives_one_text(constraints, loaded):
    result = generate(loaded, "the cat", constraints["nested"], do_sample=False, max_new_tokens=30)
    assert isinstance(result, Generation)
    assert result.finished
    assert accepts(constraints["nested"].grammar, result.text.encode())
    vocabulary = constraints["nested"].vocabulary
    assert b"".join(vocabulary.token_bytes(t) for t in result.token_ids) == result.text.encode()


def test_it_is_the_processor_in_transformers_generate(constraints, loaded):
    ids = torch.tensor([loaded.tokenizer.encode("the cat")])
    processor = GuidedLogitsProcessor(constraints["nested"], max_new_tokens=30)
    out = loaded.model.generate(
        ids, attention_mask=torch.ones_like(ids), logits_processor=[processor], max_new_tokens=30, do_sample=False
    )
    result = generate(loaded.model, "the cat", constraints["nested"], tokenizer=loaded.tokenizer, max_new_tokens=30)
    assert [*result.token_ids, loaded.tokenizer.eos_token_id] == out[0, ids.shape[1] :].tolist()


def test_a_batch_equals_its_prompts_one_by_one(constraints, loaded):
    prompts = ["the cat sat on the mat", "no", "[1, 2"]
    names = ["nested", "record", "answer"]
    grammars = [constraints[name] for name in names]
    together = generate(loaded, prompts, grammars, do_sample=False, max_new_tokens=40)
    alone = [generate(loaded, p, g, do_sample=False, max_new_tokens=40) for p, g in zip(prompts, grammars, strict=True)]
    assert together == alone
    assert generate(loaded, prompts[:1], grammars[0], do_sample=False, max_new_tokens=40) == alone[:1]


def test_several_sequences_for_each_prompt(constraints, loaded):
    grammars = [constraints["record"], constraints["answer"]]
    torch.manual_seed(0)
    results = generate(loaded, ["yes", "the"], grammars, do_sample=True, num_return_sequences=3, max_new_tokens=40)
    assert len(results) == 6
    for i, result in enumerate(results):
        assert result.finished
        assert accepts(grammars[i // 3].grammar, result.text.encode())
    assert isinstance(generate(loaded, "yes", grammars[1], num_return_sequences=1), list)


def test_encoder_decoder_models(constraints, t5, bart, tokenizer):
    for model in (t5, bart):
        results = generate(
            model,
            ["the cat sat on the mat", "no"],
            constraints["record"],
            tokenizer=tokenizer,
            num_beams=2,
            do_sample=False,
            max_new_tokens=30,
        )
        assert all(r.finished and accepts(constraints["record"].grammar, r.text.encode()) for r in results)


def test_a_text_cut_by_another_criterion_says_so(constraints, loaded):
    result = generate(loaded, "the cat", constraints["record"], do_sample=False, stop_strings=["nam"])
    assert not result.finished
    assert "nam" in result.text
    assert not accepts(constraints["record"].grammar, result.text.encode())


def test_chat_templates(constraints, loaded):
    tokenizer = copy.deepcopy(loaded.tokenizer)
    with pytest.raises(GuidedError, match="no chat template"):
        generate(loaded.model, "hi", constraints["answer"], tokenizer=tokenizer, chat=True)
    tokenizer.chat_template = TEMPLATE
    options = {"do_sample": False, "max_new_tokens": 30, "tokenizer": tokenizer}
    plain = generate(loaded.model, "user: hi\nA:", constraints["nested"], **options)
    assert generate(loaded.model, "hi", constraints["nested"], chat=True, **options) == plain
    messages = [{"role": "user", "content": "hi"}]
    assert generate(loaded.model, messages, constraints["nested"], **options) == plain
    assert generate(loaded.model, [messages, messages], constraints["nested"], **options) == [plain] * 2


def test_an_empty_prompt_is_the_beginning_of_text(constraints, loaded):
    result = generate(loaded, "", constraints["nested"], do_sample=False, max_new_tokens=30)
    assert result == generate(loaded, "<s>", constraints["nested"], do_sample=False, max_new_tokens=30)
    tokenizer = copy.deepcopy(loaded.tokenizer)
    tokenizer.bos_token = None
    with pytest.raises(GuidedError, match="the prompt has no tokens"):
        generate(loaded.model, "", constraints["nested"], tokenizer=tokenizer)


def test_other_processors_run_before_the_grammar(constraints, loaded):
    class Prefer(LogitsProcessor):
        def __call__(self, input_ids, scores):
            scores = scores.clone()
            scores[:, 100:] = 1e4
            return scores

    result = generate(loaded, "the", constraints["nested"], logits_processor=[Prefer()], do_sample=False)
    assert result.finished
    assert max(result.token_ids) >= 100


def test_a_tokenizer_without_padding(constraints, loaded):
    tokenizer = copy.deepcopy(loaded.tokenizer)
    tokenizer.pad_token = None
    options = {"do_sample": False, "max_new_tokens": 30}
    wanted = generate(loaded, ["the cat", "no"], constraints["nested"], **options)
    assert generate(loaded.model, ["the cat", "no"], constraints["nested"], tokenizer=tokenizer, **options) == wanted
    assert tokenizer.pad_token is None


def test_what_is_refused(constraints, loaded):
    grammar = constraints["record"]
    with pytest.raises(TypeError, match=r"guided\.hf\.load"):
        generate("nano", "hi", grammar)
    with pytest.raises(GuidedError, match="without its tokenizer"):
        generate(loaded.model, "hi", grammar)
    with pytest.raises(GuidedError, match="no prompt given"):
        generate(loaded, [], grammar)
    with pytest.raises(GuidedError, match="2 grammars for 4 prompts"):
        generate(loaded, ["a"] * 4, [grammar, grammar])
    with pytest.raises(LimitError, match="max_new_tokens=3 is too few"):
        generate(loaded, "hi", grammar, max_new_tokens=3)
    with pytest.raises(GuidedError, match="room for 512"):
        generate(loaded, "hi", grammar, max_new_tokens=600)
    with pytest.raises(UnsupportedError, match="max_length"):
        generate(loaded, "hi", grammar, max_length=20)


def test_end_ids_come_from_tokenizer_and_configuration(llama, tokenizer):
    model = copy.copy(llama)
    model.generation_config = copy.deepcopy(llama.generation_config)
    for declared, wanted in ((None, [2]), (2, [2]), ([2, 1], [1, 2]), ([70], [2]), ([0, 70], [0, 2])):
        model.generation_config.eos_token_id = declared
        assert end_ids(model, tokenizer) == wanted
    bare = copy.deepcopy(tokenizer)
    bare.eos_token = None
    model.generation_config.eos_token_id = 1
    assert end_ids(model, bare) == [1]
    model.generation_config.eos_token_id = None
    assert end_ids(model, bare) is None
