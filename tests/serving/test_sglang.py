"""SGLang's real grammar manager, masks, draft trees, reasoning, tool parsers and processors, around our backend.

The engine itself needs kernels that are not to be had for such a machine: the model is transformers', the rest SGLang's.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

pytest.importorskip("sglang.srt.constrained.grammar_manager")

import numpy as np
import torch
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
from sglang.srt.constrained import base_grammar_backend as base
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo
from sglang.srt.speculative.spec_utils import traverse_tree

import guided
import guided.hf
from guided.errors import LimitError, UnsupportedError
from guided.serving.sglang import logit_processor, register, registration
from guided.serving.sglang.asked import WHOLE
from guided.serving.sglang.backend import KEPT, GuidedBackend
from guided.serving.sglang.grammar import GuidedGrammar
from tests.serving.cases import BUDGET
from tests.serving.conftest import allowed_after, differing

END = 1
WIDTH = 2080
"""More than the tokenizer has: the model's matrix may be padded."""


@pytest.fixture(scope="module", autouse=True)
def registered():
    """As SGLang's `load_plugins` does it."""
    register()
    HookRegistry.apply_hooks()


def _serving(**changed):
    options = {
        "constrained_json_whitespace_pattern": None, "constrained_json_disable_any_whitespace": False,
        "reasoning_parser": None, "enable_strict_thinking": False,
    }  # fmt: skip
    return SimpleNamespace(**{**options, **changed})


def _made(monkeypatch, nano, **serving):
    """What SGLang makes of ``--grammar-backend guided``."""
    monkeypatch.setattr(registration, "get_serving", lambda: _serving(**serving))
    monkeypatch.setattr(base, "get_exec", lambda: SimpleNamespace(kernel=SimpleNamespace(grammar_backend="guided")))
    return base.create_grammar_backend(None, nano.tokenizer, WIDTH, {END})


@pytest.fixture
def backend(monkeypatch, nano):
    made = _made(monkeypatch, nano)
    assert isinstance(made, GuidedBackend)
    return made


class _Request:
    """As much of a request as the manager looks at."""

    def __init__(self, kind, text, most=BUDGET, reasoning=False, **custom):
        fields = {"json_schema": None, "regex": None, "ebnf": None, "structural_tag": None, kind: text}
        self.sampling_params = SimpleNamespace(
            **fields, ebnf_full_assistant=False, custom_params=custom or None, max_new_tokens=most
        )
        self.origin_input_ids, self.require_reasoning, self.rid = [5], reasoning, "request"
        self.grammar, self.grammar_key, self.grammar_wait_ct, self.abort = None, None, 0, None

    def set_finish_with_abort(self, message):
        self.abort = message

    def finished(self):
        return self.abort is not None


def _manager(backend):
    """The scheduler's manager of grammars, as it is in one process."""
    manager = GrammarManager.__new__(GrammarManager)
    manager.grammar_backend, manager.grammar_queue = backend, []
    manager._enable_strict_thinking = False
    manager.scheduler = SimpleNamespace(model_config=SimpleNamespace())
    manager.grammar_sync_size, manager.pp_rank, manager.pp_size, manager.pp_group = 1, 0, 1, None
    manager.SGLANG_GRAMMAR_POLL_INTERVAL, manager.SGLANG_GRAMMAR_MAX_POLL_ITERATIONS = 20.0, 10
    return manager


def _serve(manager, request):
    """Bring a request through the manager, as the scheduler does."""
    if manager.process_req_with_grammar(request):
        assert manager.get_ready_grammar_requests() == [request]
    return request


def _masks(grammars):
    """The masks of a step, as the sampler asks for them."""
    info = SimpleNamespace(grammars=grammars, vocab_size=WIDTH, temperatures=grammars, device="cpu")
    SamplingBatchInfo.update_regex_vocab_mask(info)
    return info.grammar_mask


def _allowed(mask, row=0):
    logits = torch.zeros(len(mask.vocab_mask), WIDTH)
    mask.apply(logits)
    return set(torch.nonzero(logits[row] == 0).ravel().tolist())


def test_the_name_is_a_choice_and_is_registered_once(monkeypatch):
    register()
    assert GRAMMAR_BACKEND_CHOICES.count("guided") == 1 and "guided" in base.GRAMMAR_BACKEND_REGISTRY


def test_another_release_is_left_alone(monkeypatch, caplog):
    monkeypatch.setattr("guided.serving.sglang.version", lambda name: "0.6.0")
    monkeypatch.setattr(registration, "install", lambda: pytest.fail("installed"))
    register()
    assert "this is SGLang 0.6.0" in caplog.text


def test_the_fifty_cases(nano, backend, answered):
    """All in one batch; each case's grammar goes round SGLang by a regex that is replaced by the case's own."""
    model = guided.hf.TransformersModel(nano)
    manager = _manager(backend)
    grammars = []
    for each in answered:
        request = _serve(manager, _Request("regex", "[a-z]+", **{WHOLE: True}))
        matcher = type(request.grammar.matcher)(each.constraint, BUDGET)
        grammars.append(GuidedGrammar(matcher, request.grammar.request, request.grammar.grammar_stats))
    rows = model.start([each.ids for each in answered])
    tokens = [[] for _ in grammars]
    for _ in range(BUDGET):
        logits = torch.full((len(grammars), WIDTH), 9.0)
        logits[:, : model.width] = torch.as_tensor(np.asarray(rows.last.logits), dtype=torch.float32)
        _masks(grammars).apply(logits)
        found = logits.argmax(1).tolist()
        for grammar, token, text in zip(grammars, found, tokens, strict=True):
            if not grammar.is_terminated():
                grammar.accept_token(token)
                text.append(token)
        rows.extend(
            [
                [min(token, END)] if grammar.is_terminated() else [token]
                for grammar, token in zip(grammars, found, strict=True)
            ]
        )
    texts = [SimpleNamespace(token_ids=tuple(text[:-1])) for text in tokens]
    assert not differing(texts, answered) and all(text[-1] == END for text in tokens)


@pytest.mark.parametrize(("kind", "text", "grammar"), [
    ("json_schema", '{"type": "integer", "multipleOf": 7}', {"type": "integer", "multipleOf": 7}),
    ("json_schema", "$$ANY$$", lambda: guided.json_schema(True)),
    ("regex", "[0-9]{2}(?<=7)", lambda: guided.regex("[0-9]{2}(?<=7)")),
    ("ebnf", 'root ::= "a" [0-9]+', lambda: guided.gbnf('root ::= "a" [0-9]+')),
])  # fmt: skip
def test_requests_of_all_kinds_are_compiled_cached_and_copied(nano, backend, kind, text, grammar):
    manager = _manager(backend)
    first, second = (_serve(manager, _Request(kind, text)) for _ in range(2))
    assert first.abort is None and first.grammar is not second.grammar
    assert not first.grammar.grammar_stats.is_cache_hit and second.grammar.grammar_stats.is_cache_hit
    constraint = guided.compile(grammar() if callable(grammar) else grammar, backend.vocabulary)
    begun = allowed_after(constraint, [])
    assert _allowed(_masks([first.grammar])) == begun
    token = min(begun)
    first.grammar.accept_token(token)
    assert _allowed(_masks([first.grammar])) == allowed_after(constraint, [token])
    assert _allowed(_masks([second.grammar])) == begun


def test_rows_without_a_grammar_and_of_finished_texts_are_free(backend):
    manager = _manager(backend)
    bound, done = (_serve(manager, _Request("regex", "x")).grammar for _ in range(2))
    done.accept_token(min(_allowed(_masks([done]))))
    done.accept_token(END)
    assert done.is_terminated()
    mask = _masks([None, bound, done])
    assert len(_allowed(mask, 0)) == WIDTH == len(_allowed(mask, 2)) and 0 < len(_allowed(mask, 1)) < 4
    done.rollback(1)
    assert _allowed(_masks([done])) == {END}


def test_what_is_refused_is_said(backend):
    manager = _manager(backend)
    for kind, text, says in [
        ("regex", r"(\w+)\1", "backreference"),
        ("json_schema", '{"type": "integer", "multipleOf": 0}', "multipleOf"),
        ("json_schema", "{", "JSON"),
        ("ebnf", "root ::= (", "line 1"),
        ("structural_tag", "[]", "no JSON object"),
        ("structural_tag", '{"type": "structural_tag", "format": {"type": "nothing"}}', "nothing"),
    ]:
        for _ in range(2):
            request = _serve(manager, _Request(kind, text))
            assert request.abort.startswith(f"Failed to compile {kind.removesuffix('_schema')} grammar: ")
            assert says in request.abort, request.abort


def test_a_token_that_is_not_allowed_aborts(backend):
    grammar = _serve(_manager(backend), _Request("regex", "[0-9]")).grammar
    with pytest.raises(ValueError, match="not allowed"):
        grammar.accept_token(END)
    assert not grammar.is_terminated()


def test_whole_texts_are_had_on_request(backend):
    manager = _manager(backend)
    assert _serve(manager, _Request("regex", "[a-z]{30,}", most=4)).abort is None
    assert "Raise max_new_tokens" in _serve(manager, _Request("regex", "[a-z]{30,}", most=4, **{WHOLE: True})).abort
    grammar = _serve(manager, _Request("regex", "[a-z]+", most=1 + 1, **{WHOLE: True})).grammar
    grammar.accept_token(min(_allowed(_masks([grammar]))))
    assert _allowed(_masks([grammar])) == {END}


def test_trees_of_drafts(nano, backend):
    grammar = _serve(_manager(backend), _Request("regex", "[0-9]{3}")).grammar
    one, two, letter = (nano.tokenizer.convert_tokens_to_ids(text) for text in "12a")
    # 0: root; 1 and 3 below it; 2 below 1; 4 below 3.
    drafts = torch.tensor([0, one, two, letter, one])
    child, sibling = torch.tensor([1, 2, -1, 4, -1]), torch.tensor([-1, 3, -1, -1, -1])
    masks = grammar.allocate_vocab_mask(WIDTH, 5, "cpu")
    before = masks.clone()
    traverse_tree(child, sibling, drafts, grammar, masks, WIDTH)
    constraint = grammar.matcher.constraint
    for row, path in {0: [], 1: [one], 2: [one, two]}.items():
        assert _allowed(base.GrammarMask(grammar, masks), row) == allowed_after(constraint, path)
    assert torch.equal(masks[3:], before[3:]) and grammar.matcher.n_tokens == 0


def test_jumps(nano, backend):
    grammar = _serve(_manager(backend), _Request("regex", "(yes|yet), sir")).grammar
    helper = grammar.try_jump_forward(nano.tokenizer)
    assert grammar.jump_forward_str_state(helper) == ("ye", -1)
    y, e = (nano.tokenizer.convert_tokens_to_ids(text) for text in "ye")
    grammar.jump_and_retokenize([], [y, e], -1)
    assert grammar.try_jump_forward(nano.tokenizer) is None and grammar.matcher.n_tokens == 2
    with pytest.raises(ValueError, match="after a jump"):
        grammar.jump_and_retokenize([y, e], [y, y], -1)
    assert grammar.matcher.n_tokens == 2


class _Reasoner:
    """A parser of reasoning whose end is a token of the packaged model's vocabulary."""

    def __init__(self, model_type, stream_reasoning, tokenizer):
        self.detector = SimpleNamespace(
            get_think_end_token_ids=lambda tokenizer: [2], think_end_token="<unk>", think_excluded_tokens=["a"],
            get_answer_frame=lambda: None,
        )  # fmt: skip


@pytest.mark.parametrize("strict", [False, True])
def test_reasoning_comes_before_the_constrained_text(monkeypatch, nano, strict):
    monkeypatch.setattr(registration, "ReasoningParser", _Reasoner)
    backend = _made(monkeypatch, nano, reasoning_parser="some", enable_strict_thinking=strict)
    assert isinstance(backend, ReasonerGrammarBackend)
    manager = _manager(backend)
    grammar = _serve(manager, _Request("regex", "[0-9]", reasoning=True)).grammar
    grammar.maybe_init_reasoning(True)
    excluded = set(nano.tokenizer.encode("a", add_special_tokens=False)) if strict else set()
    assert _allowed(_masks([grammar])) == set(range(WIDTH)) - excluded
    grammar.accept_token(100)
    grammar.accept_token(2)
    digits = _allowed(_masks([grammar]))
    assert {nano.vocabulary.token_bytes(token) for token in digits} == {b"%d" % digit for digit in range(10)}
    grammar.accept_token(min(digits))
    assert _allowed(_masks([grammar])) == {END}
    grammar.rollback(1)
    assert _allowed(_masks([grammar])) == digits


def test_framed_answers(nano, backend):
    grammar = backend.dispatch_regex("[0-9]{2}")
    framed = backend.compile_framed_grammar(
        grammar,
        lambda content: {"type": "structural_tag", "format": {
            "type": "sequence", "elements": [{"type": "const_string", "value": "A"}, content],
        }},
    )  # fmt: skip
    expected = guided.compile(guided.regex("A[0-9]{2}"), backend.vocabulary)
    assert _allowed(_masks([framed])) == allowed_after(expected, [])
    backend.reserve_framing_tokens([END, 2])
    with pytest.raises(UnsupportedError, match="are text to the tokenizer"):
        backend.reserve_framing_tokens([100])


LEGACY = {
    "type": "structural_tag", "triggers": ["<f="],
    "structures": [{"begin": "<f=x>", "schema": {"type": "integer"}, "end": "</f>"}, {"begin": "<f=y>", "end": "</f>"}],
}  # fmt: skip


def _accepts(grammar, text):
    constraint = grammar.matcher.constraint
    return constraint.is_accepting(constraint.advance_bytes(constraint.start, text.encode()))


def test_structural_tags_of_the_older_notation(backend):
    grammar = backend.dispatch_structural_tag(json.dumps(LEGACY))
    for text, right in {"a": 1, "<f=x>3</f>": 1, "<f=x>a</f>": 0, '<f=y>{"a": []}</f> b': 1, "<f=z>": 0}.items():
        assert _accepts(grammar, text) == bool(right), text
    grammar = backend.dispatch_structural_tag(json.dumps({**LEGACY, "at_least_one": True}))
    assert _accepts(grammar, "<f=x>3</f>a") and not _accepts(grammar, "a")


TOOLS = [
    {"type": "function", "function": {"name": name, "strict": True, "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"], "additionalProperties": False}}}
    for name in ("weather", "hotel")
]  # fmt: skip

CALLS = {
    "qwen25": '<tool_call>\n{"name":"weather", "arguments":{"city": "Rome", "days": 3}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>",
    "mistral": '[TOOL_CALLS] [{"name":"weather", "arguments":{"city": "Rome"}}]',
    "llama3": '<|python_tag|>{"name":"weather", "arguments":{"city": "Rome"}}',
}


@pytest.mark.parametrize("parser", CALLS)
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_tool_calls_of_sglangs_parsers(backend, parser, choice):
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    found = FunctionCallParser([Tool(**tool) for tool in TOOLS], parser).get_structure_constraint(choice)
    if found is None:
        pytest.skip(f"SGLang constrains no {choice} calls of {parser}")
    kind, value = found
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value if isinstance(value, dict) else value.model_dump(by_alias=True))
    )
    grammar = backend._init_value_dispatch((kind.removesuffix("_schema"), text), False)
    assert isinstance(grammar, GuidedGrammar), getattr(grammar, "error_message", grammar)
    if kind == "structural_tag":
        assert _accepts(grammar, CALLS[parser])
        assert not _accepts(grammar, CALLS[parser].replace("weather", "flights"))


def test_grammars_kept_are_bounded(backend):
    grammar = backend.dispatch_regex("a")
    for number in range(KEPT + 10):
        backend.set_cache(("regex", str(number)), grammar)
    assert len(backend.cache) == KEPT and ("regex", "9") not in backend.cache


def test_a_limit_in_the_middle_of_a_text_fails_that_request_alone(monkeypatch, backend):
    manager = _manager(backend)
    broken, sound = (_serve(manager, _Request("regex", "[0-9]+")).grammar for _ in range(2))

    class Broken:
        def __init__(self, constraint):
            self.constraint = constraint

        def __getattr__(self, name):
            return getattr(self.constraint, name)

        def fill_mask(self, state, row):
            if state != self.end:
                raise LimitError("too much work")
            self.constraint.fill_mask(state, row)

    broken.matcher.constraint = Broken(broken.matcher.constraint)
    mask = _masks([broken, sound])
    assert _allowed(mask, 0) == {END} and len(_allowed(mask, 1)) > 5
    with pytest.raises(ValueError, match="too much work"):
        broken.accept_token(END)


class _Asking:
    """As much of SGLang's request as a processor looks at."""

    def __init__(self, nano, most=20):
        self.rid, self.output_ids, self.tokenizer, self.eos_token_ids = "a", [], nano.tokenizer, {END}
        self.sampling_params, self.to_finish = SimpleNamespace(max_new_tokens=most), None


@pytest.fixture
def processor(monkeypatch):
    monkeypatch.setattr(logit_processor, "get_schedule", lambda: SimpleNamespace(disable_overlap_schedule=True))
    return CustomLogitProcessor.from_str(logit_processor.GuidedLogitProcessor.to_str())


def test_a_grammar_in_a_request(nano, processor):
    request, other = _Asking(nano), _Asking(nano)
    other.rid = "b"
    constraint = guided.compile(guided.regex("[0-9]{2}(?<=7)"), nano.vocabulary)
    while not request.output_ids or request.output_ids[-1] != END:
        params = [{"guided": {"regex": "[0-9]{2}(?<=7)"}, "__req__": request}, None, {"other": 1, "__req__": other}]
        logits = processor(torch.zeros(3, WIDTH), params)
        allowed = set(torch.nonzero(logits[0] == 0).ravel().tolist())
        assert allowed == allowed_after(constraint, request.output_ids) and (logits[1:] == 0).all()
        request.output_ids.append(max(allowed))
    assert request.to_finish is None


@pytest.mark.parametrize(("asked", "says"), [
    ({"regex": r"(\w+)\1"}, "backreference"), ({"grammar": "x"}, "Name one of"), ("x", "Name one of"),
    ({"regex": "[a-z]{90}"}, "shortest"),
])  # fmt: skip
def test_a_request_that_cannot_be_served_is_aborted_alone(nano, processor, asked, says):
    request, other = _Asking(nano, most=5), _Asking(nano)
    other.rid = "b"
    params = [{"guided": asked, "__req__": request}, {"guided": {"regex": "[0-9]"}, "__req__": other}]
    logits = processor(torch.zeros(2, WIDTH), params)
    assert says in request.to_finish.message and other.to_finish is None
    assert torch.nonzero(logits[0] == 0).ravel().tolist() == [END] and 0 < (logits[1] == 0).sum() < 30


def test_servers_that_overlap_or_draft_are_refused(monkeypatch, nano, processor):
    request = _Asking(nano)
    params = {"guided": {"regex": "[0-9]"}, "__req__": request}
    processor(torch.zeros(2, WIDTH), [params, params])
    assert "--disable-overlap-schedule" in request.to_finish.message
    request = _Asking(nano)
    monkeypatch.setattr(logit_processor, "get_schedule", lambda: SimpleNamespace(disable_overlap_schedule=False))
    processor(torch.zeros(1, WIDTH), [{**params, "__req__": request}])
    assert "--disable-overlap-schedule" in request.to_finish.message
