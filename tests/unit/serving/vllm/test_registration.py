"""Where vLLM is wrapped: ours where the engine says so, and vLLM's own everywhere else."""

import json
import sys
import threading
import types
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

import guided
import guided.serving.vllm as plug_in
from guided import tokenset
from guided.serving import metrics
from guided.serving.compilation import Compiler
from guided.serving.named import VARIABLE
from tests.unit.serving.vllm import stand_ins
from tests.unit.serving.vllm.stand_ins import MODEL, SIZE, TOKENIZER, StructuredOutputsParams, put_in


@pytest.fixture
def vllm(monkeypatch):
    found = put_in(monkeypatch)
    plug_in.widen()
    plug_in.register()
    return found


def asking(vllm, **params):
    return vllm.SamplingParams(StructuredOutputsParams(**params))


def verify(vllm, sampling, backend="guided", model=MODEL, tokenizer=TOKENIZER, **options):
    sampling._validate_structured_outputs(model, vllm.Config(backend=backend, **options), tokenizer)
    return sampling


def test_the_name_is_taken(vllm):
    assert vllm.Config(backend="guided").backend == "guided"
    assert TypeAdapter(vllm.Config).validate_json('{"backend": "guided"}').backend == "guided"
    assert (
        vllm.Config(backend="guided", disable_any_whitespace=True, disable_additional_properties=True).backend
        == "guided"
    )
    for wrong in ({"backend": "guidde"}, {"disable_any_whitespace": True}, {"other": 1}):
        with pytest.raises(ValueError):
            vllm.Config(**wrong)


def test_it_is_installed_once(vllm):
    before = vllm.SamplingParams._validate_structured_outputs
    plug_in.widen()
    plug_in.register()
    assert vllm.SamplingParams._validate_structured_outputs is before


def test_nothing_is_half_installed(monkeypatch):
    vllm = put_in(monkeypatch)
    del vllm.Beams._init_beam_search_structured_output
    monkeypatch.delattr(stand_ins.BeamSearchOfflineMixin, "_init_beam_search_structured_output")
    before = vllm.SamplingParams._validate_structured_outputs
    with pytest.raises(AttributeError):
        plug_in.register()
    assert vllm.SamplingParams._validate_structured_outputs is before


def test_a_sound_request_is_marked_as_ours(vllm):
    for backend, auto in (("guided", False), ("auto", True)):
        params = verify(vllm, asking(vllm, regex="a+"), backend)
        assert not params.calls
        assert (params.structured_outputs._backend, params.structured_outputs._backend_was_auto) == ("guided", auto)
        verify(vllm, params, backend)


def test_a_refused_request_says_where_and_what_to_do(vllm):
    schema = {"type": "object", "properties": {"a": {"$ref": "http://x"}}}
    with pytest.raises(stand_ins.VLLMValidationError, match=r"guided: .*at #/properties/a/\$ref\)\. Pass") as caught:
        verify(vllm, asking(vllm, json=schema))
    assert caught.value.parameter == "structured_outputs.json"
    with pytest.raises(stand_ins.VLLMValidationError) as caught:
        verify(vllm, asking(vllm, json_object=False))
    assert caught.value.parameter == "structured_outputs"


@pytest.mark.parametrize("changes", [
    {"backend": "xgrammar"}, {"backend": "guidance"}, {"tokenizer": None},
    {"model": SimpleNamespace(is_diffusion=True)}, {"backend": "auto", "tokenizer": object()},
])  # fmt: skip
def test_what_is_not_ours_is_left_to_vllm(vllm, changes):
    assert verify(vllm, asking(vllm, regex="a+"), **changes).calls == ["vLLM's own"]


def test_auto_can_stay_vllms_own(vllm, monkeypatch):
    monkeypatch.setenv("GUIDED_VLLM_AUTO", "0")
    assert verify(vllm, asking(vllm, regex="a+"), "auto").calls == ["vLLM's own"]
    assert not verify(vllm, asking(vllm, regex="a+"), "guided").calls


def test_nothing_asked_for_is_nothing_checked(vllm):
    assert verify(vllm, vllm.SamplingParams()).calls == ["vLLM's own"]


def test_a_request_cannot_choose_another_backend(vllm):
    params = asking(vllm, regex="a+")
    params.structured_outputs._backend = "xgrammar"
    with pytest.raises(stand_ins.VLLMValidationError, match="not by 'xgrammar'"):
        verify(vllm, params)


def test_ids_that_end_a_text_are_checked_too(vllm):
    params = asking(vllm, regex="}")
    vocabulary = guided.Vocabulary.from_tokenizer(TOKENIZER)
    params.all_stop_token_ids = {i for i in range(vocabulary.size) if b"}" in (vocabulary.token_bytes(i) or b"")}
    with pytest.raises(stand_ins.VLLMValidationError):
        verify(vllm, params)


def test_whole_texts_need_tokens_that_are_known(vllm):
    params = asking(vllm, regex="[0-9]*!{4}")
    params.extra_args = {"guided_whole": True}
    verify(vllm, params)
    with pytest.raises(stand_ins.VLLMValidationError, match="when reasoning ends") as caught:
        verify(vllm, params, reasoning_parser="deepseek_r1")
    assert caught.value.parameter == "extra_args.guided_whole"
    verify(vllm, params, reasoning_parser="deepseek_r1", enable_in_reasoning=True)
    params.max_tokens = 2
    with pytest.raises(stand_ins.VLLMValidationError, match=r"2 tokens are left.* Raise max_tokens\."):
        verify(vllm, params)


def test_whole_texts_of_what_is_made_of_prompts_know_no_reasoning_either(vllm, monkeypatch):
    monkeypatch.setenv(VARIABLE, "tests.unit.serving.test_named:CONSTRAINTS")
    params = asking(vllm, grammar="%named echo")
    params.extra_args = {"guided_whole": True}
    verify(vllm, params)
    with pytest.raises(stand_ins.VLLMValidationError, match="when reasoning ends"):
        verify(vllm, params, reasoning_parser="deepseek_r1")


def test_all_that_is_refused_is_counted(vllm, monkeypatch):
    counted = []
    monkeypatch.setattr(metrics, "refused", lambda kind, error: counted.append((kind, error)))
    monkeypatch.setenv(VARIABLE, "tests.unit.serving.test_named:CONSTRAINTS")
    short = asking(vllm, regex="[0-9]*!{4}")
    short.extra_args, short.max_tokens = {"guided_whole": True}, 2
    for refused in (asking(vllm, grammar="%named other"), asking(vllm, regex="("), short):
        with pytest.raises(stand_ins.VLLMValidationError):
            verify(vllm, refused)
    assert counted == [("named", "GrammarError"), ("regex", "GrammarError"), ("regex", "LimitError")]


def engine(vllm, drafts=0):
    config = SimpleNamespace(
        model_config=MODEL,
        structured_outputs_config=vllm.Config(backend="guided"),
        num_speculative_tokens=drafts,
        scheduler_config=SimpleNamespace(max_num_seqs=4),
    )
    return vllm.Manager(config, TOKENIZER)


def running(vllm, pattern, backend="guided", reasons=False):
    params = asking(vllm, regex=pattern)
    params.structured_outputs._backend = backend
    asked = SimpleNamespace(params=params.structured_outputs, grammar=None)
    return SimpleNamespace(
        sampling_params=params, structured_output_request=asked, reasons=reasons, prompt_token_ids=[]
    )


def test_the_engine_makes_the_backend_and_its_masks(vllm):
    manager = engine(vllm)
    requests = {"a": running(vllm, "[0-9]+"), "b": running(vllm, "x", reasons=True), "c": running(vllm, "yes|no")}
    for request in requests.values():
        manager.grammar_init(request)
    assert not manager.calls and manager.grammar_bitmask(requests, [], {}) is None
    manager.calls.clear()
    masks = manager.grammar_bitmask(requests, ["c", "b", "a"], {})
    assert not manager.calls and masks.dtype == np.int32 and len(masks) == 3
    for row, name in zip(masks.view(np.uint32), "cba", strict=True):
        matcher = requests[name].structured_output_request.grammar.matcher
        own = np.empty_like(row)
        matcher.constraint.fill_mask(matcher.state, own)
        assert row.tolist() == ([0xFFFFFFFF] * len(row) if name == "b" else own.tolist())


def test_a_token_that_is_sampled_from_a_mask_of_its_grammar_is_noted_and_others_are_vllms(vllm):
    manager = engine(vllm)
    requests = {"a": running(vllm, "[0-9]+"), "b": running(vllm, "x", reasons=True)}
    for request in requests.values():
        manager.grammar_init(request)
    own, reasoning, free = *requests.values(), SimpleNamespace(structured_output_request=None)
    digit, letter = (TOKENIZER.encode(text, add_special_tokens=False)[-1] for text in "7x")
    for n in range(1, 4):
        manager.grammar_bitmask(requests, ["a", "b"], {})
        manager.calls.clear()
        assert manager.accept_tokens(own, [digit]) and not manager.calls
        tokens = [digit], [letter], [digit, digit], []
        others = [*((own, each) for each in tokens), (reasoning, [letter]), (free, [letter])]
        assert all(manager.accept_tokens(*each) for each in others) and manager.calls == ["vLLM's own"] * len(others)
        assert own.structured_output_request.grammar.matcher.n_tokens == n
    # From the first mask on, nobody need be asked whether it still reasons.
    assert own.structured_output_request.reasoning_ended
    assert not hasattr(reasoning.structured_output_request, "reasoning_ended")


def test_who_reasons_is_asked_about_at_each_step_until_all_are_constrained(vllm):
    manager = engine(vllm)
    requests = {"a": running(vllm, "[0-9]+"), "b": running(vllm, "x", reasons=True)}
    for request in requests.values():
        manager.grammar_init(request)
    for reasons in (True, False, False):
        requests["b"].reasons = reasons
        masks = manager.grammar_bitmask(requests, ["a", "b"], {})
        letter, *others = tokenset.ids(masks[1].view(np.uint32)).tolist()
        assert (len(others) > SIZE // 2) == reasons
    manager.calls.clear()
    assert manager.accept_tokens(requests["b"], [letter]) and not manager.calls
    # Another request of the same name has a grammar of its own.
    manager.grammar_init(other := running(vllm, "yes|no"))
    requests["b"] = other
    masks = manager.grammar_bitmask(requests, ["a", "b"], {})
    assert not tokenset.contains(masks[1].view(np.uint32), letter)


def test_scores_in_memory_are_masked_by_our_kernel_where_the_masks_are_ours(vllm):
    manager = engine(vllm)
    requests = {"a": running(vllm, "[0-9]+"), "b": running(vllm, "yes|no")}
    for request in requests.values():
        manager.grammar_init(request)
    masks = manager.grammar_bitmask(requests, ["b", "a"], {})
    scores = torch.zeros(3, SIZE)
    asked = SimpleNamespace(grammar_bitmask=masks, structured_output_request_ids=["b", "a"])
    calls: list[str] = []
    vllm.utils.apply_grammar_bitmask(calls, asked, SimpleNamespace(req_ids=["a", "free", "b"]), scores)
    allowed = (scores == 0).sum(1).tolist()
    assert not calls and allowed == [
        tokenset.ids(masks[1].view(np.uint32)).size,
        SIZE,
        tokenset.ids(masks[0].view(np.uint32)).size,
    ]
    # What came from another process, logits of drafts, and those on a device are vLLM's.
    for grammar_bitmask, req_ids, logits in (
        (np.array(masks), ["a", "free", "b"], scores),
        (masks, ["a", "b"], scores),
        (masks, ["a", "free", "b"], scores.to("meta")),
    ):
        asked.grammar_bitmask = grammar_bitmask
        vllm.utils.apply_grammar_bitmask(calls, asked, SimpleNamespace(req_ids=req_ids), logits)
    assert calls == ["vLLM's own"] * 3


def test_a_worker_that_is_there_already_gets_our_kernel_too(monkeypatch):
    found = put_in(monkeypatch)
    runner = types.ModuleType("vllm.v1.worker.gpu_model_runner")
    runner.apply_grammar_bitmask = found.utils.apply_grammar_bitmask
    monkeypatch.setitem(sys.modules, runner.__name__, runner)
    plug_in.register()
    assert runner.apply_grammar_bitmask is found.utils.apply_grammar_bitmask
    assert hasattr(runner.apply_grammar_bitmask, "of_guided")


@pytest.mark.parametrize("part", ["AsyncLLM", "Manager"])
def test_kernels_are_loaded_where_we_are_asked_for_by_name(vllm, monkeypatch, part):
    warmed = threading.Event()
    monkeypatch.setattr(Compiler, "warm", lambda self: warmed.set())
    config = SimpleNamespace(model_config=MODEL, structured_outputs_config=vllm.Config())
    for backend, tokenizer in (("auto", TOKENIZER), ("xgrammar", TOKENIZER), ("guided", None), ("guided", TOKENIZER)):
        assert not warmed.is_set()
        config.structured_outputs_config.backend = backend
        getattr(vllm, part)(config, tokenizer)
        warmed.wait(20 if backend == "guided" and tokenizer is not None else 0.05)
    assert warmed.is_set()


def test_drafts_go_row_by_row_through_vllm(vllm):
    manager = engine(vllm, drafts=3)
    requests = {"a": running(vllm, "[0-9]+")}
    manager.grammar_init(requests["a"])
    manager.grammar_bitmask(requests, ["a"], {"a": [1, 2, 3]})
    assert manager.calls == ["vLLM's own"]


def test_another_backend_is_vllms(vllm):
    manager = engine(vllm)
    with pytest.raises(ValueError, match="Unsupported"):
        manager.grammar_init(running(vllm, "a", backend="xgrammar"))
    manager.backend = object()
    request = running(vllm, "a", backend="xgrammar")
    manager.grammar_init(request)
    manager.grammar_bitmask({"a": request}, ["a"], {})
    assert manager.calls == ["vLLM's own", "vLLM's own"]


def test_beams(vllm):
    beams = vllm.Beams()
    beams.model_config = MODEL
    beams.llm_engine = SimpleNamespace(vllm_config=engine(vllm).vllm_config)
    backend, key, masks = beams._init_beam_search_structured_output(
        StructuredOutputsParams(choice=["a", "b"]), TOKENIZER
    )
    assert type(backend).__name__ == "GuidedBackend" and key[0] == "the key" and len(masks) == 1
    with pytest.raises(stand_ins.VLLMValidationError):
        beams._init_beam_search_structured_output(StructuredOutputsParams(regex="("), TOKENIZER)
    beams.llm_engine.vllm_config.structured_outputs_config.backend = "xgrammar"
    assert beams._init_beam_search_structured_output(StructuredOutputsParams(regex="a"), TOKENIZER) == "vLLM's own"


def test_tags_that_only_we_can_read(vllm):
    def check(form):
        vllm.protocol.validate_structural_tag_payload(json.dumps({"format": form}), parameter="response_format")

    check({"type": "const_string", "value": "a"})
    check({"type": "regex", "pattern": "(?=a)[ab]"})
    with pytest.raises(stand_ins.VLLMValidationError, match=r"guided: .*#/format/pattern") as caught:
        check({"type": "regex", "pattern": "(a"})
    assert caught.value.parameter == "response_format"


def test_every_process_imports_our_package_and_little_else():
    import subprocess

    heavy = ["vllm", "torch", "transformers", "numba", "llvmlite", "lark"]
    code = f"import sys, guided.serving.vllm; sys.exit(any(map(sys.modules.get, {heavy})))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
