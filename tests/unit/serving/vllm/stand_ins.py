"""What our part of vLLM's plug-in asks of vLLM, as small as that: names, arguments and what is called from where.

The real classes are asked in tests/serving/vllm; here they stand for themselves, so that our logic is tested without.
"""

import sys
import types
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from pydantic import ConfigDict, model_validator
from pydantic.dataclasses import dataclass as pydantic_dataclass
from transformers import AutoTokenizer

import guided.serving.vllm  # noqa: F401 (its modules are taken out of it below)
from guided.nano import MODEL_PATH

TOKENIZER = AutoTokenizer.from_pretrained(MODEL_PATH)
SIZE = len(TOKENIZER)
MODEL = SimpleNamespace(is_diffusion=False, get_vocab_size=lambda: SIZE)


class VLLMValidationError(Exception):
    def __init__(self, message: str, *, parameter: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.parameter = parameter


@dataclass
class StructuredOutputsParams:
    json: Any = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    structural_tag: str | None = None
    _backend: str | None = field(default=None, init=False)
    _backend_was_auto: bool = field(default=False, init=False)


@dataclass
class SamplingParams:
    structured_outputs: Any = None
    all_stop_token_ids: set[int] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    extra_args: dict[str, Any] | None = None
    max_tokens: int | None = 16

    def _validate_structured_outputs(self, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        self.calls.append("vLLM's own")


class StructuredOutputManager:
    """vLLM's, as far as it goes round our backend; rows are filled one by one, drafts accepted and taken back."""

    def __init__(self, vllm_config: Any, tokenizer: Any) -> None:
        self.reasoner_cls = object
        self.vllm_config, self.tokenizer, self.backend = vllm_config, tokenizer, None
        self._grammar_bitmask: Any = None
        self.calls: list[str] = []

    def grammar_init(self, request: Any) -> None:
        if request.structured_output_request is None:
            return
        if self.backend is None:
            raise ValueError("Unsupported structured output backend")
        request.structured_output_request.grammar = self._create_grammar(request)

    def _create_grammar(self, request: Any) -> Any:
        self.calls.append("vLLM's own")

    def _get_constraint_bounds(self, request: Any, spec_tokens: Any) -> Any:
        return SimpleNamespace(constraint_start=int(request.reasons))

    def grammar_bitmask(self, requests: Any, structured_output_request_ids: Any, scheduled: Any) -> Any:
        self.calls.append("vLLM's own")

    def accept_tokens(self, request: Any, new_token_ids: list[int]) -> bool:
        self.calls.append("vLLM's own")
        return True


def apply_grammar_bitmask(scheduler_output: Any, grammar_output: Any, input_batch: Any, logits: Any) -> None:
    scheduler_output.append("vLLM's own")


class AsyncLLM:
    def __init__(self, vllm_config: Any, tokenizer: Any) -> None:
        self.input_processor = SimpleNamespace(tokenizer=tokenizer)


class AdapterLogitsProcessor:
    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        pass


class SlotLogitsProcessor:
    """That of the V2 runner, whose requests have slots."""


@dataclass(frozen=True)
class LogitsProcRequestState:
    all_token_ids: Any
    prompt_len: Any


class BeamSearchOfflineMixin:
    def _init_beam_search_structured_output(self, structured_outputs: Any, tokenizer: Any) -> Any:
        return "vLLM's own"


def validate_structural_tag_payload(payload: Any, *, parameter: str) -> None:
    """The check of vLLM's server, which is XGrammar's: here of one that knows no look-around."""
    if "(?" in payload or "const_string" not in payload:
        raise VLLMValidationError(f"Invalid {parameter} structural_tag specification.", parameter=parameter)


def config_class() -> Any:
    """A new ``StructuredOutputsConfig``: the real one is changed once and for all, and a test needs its own."""

    @pydantic_dataclass(config=ConfigDict(extra="forbid"))
    class StructuredOutputsConfig:
        backend: Literal["auto", "xgrammar", "guidance"] = "auto"
        disable_any_whitespace: bool = False
        disable_additional_properties: bool = False
        reasoning_parser: str = ""
        enable_in_reasoning: bool = False

        @model_validator(mode="after")
        def _validate_structured_output_config(self) -> Any:
            if self.disable_any_whitespace and self.backend not in ("xgrammar", "guidance"):
                raise ValueError("disable_any_whitespace is only supported for xgrammar and guidance backends.")
            if self.disable_additional_properties and self.backend != "guidance":
                raise ValueError("disable_additional_properties is only supported for the guidance backend.")
            return self

    return StructuredOutputsConfig


def put_in(monkeypatch: pytest.MonkeyPatch, version: str = "0.32.0") -> SimpleNamespace:
    """Let ``import vllm`` find these, and our modules be imported anew over them; the classes, for the test to ask."""

    class Params(SamplingParams):
        _validate_structured_outputs = SamplingParams._validate_structured_outputs

    class Manager(StructuredOutputManager):
        __init__ = StructuredOutputManager.__init__
        grammar_init = StructuredOutputManager.grammar_init
        _create_grammar = StructuredOutputManager._create_grammar
        grammar_bitmask = StructuredOutputManager.grammar_bitmask
        accept_tokens = StructuredOutputManager.accept_tokens

    class FrontEnd(AsyncLLM):
        __init__ = AsyncLLM.__init__

    class Beams(BeamSearchOfflineMixin):
        _init_beam_search_structured_output = BeamSearchOfflineMixin._init_beam_search_structured_output

    config = config_class()
    contents: dict[str, dict[str, Any]] = {
        "vllm": {"SamplingParams": Params},
        "vllm.version": {"__version__": version},
        "vllm.exceptions": {"VLLMValidationError": VLLMValidationError},
        "vllm.sampling_params": {"SamplingParams": Params},
        "vllm.config": {},
        "vllm.config.structured_outputs": {
            "StructuredOutputsConfig": config, "StructuredOutputsBackend": Literal["auto", "xgrammar", "guidance"],
        },
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.async_llm": {"AsyncLLM": FrontEnd},
        "vllm.v1.sample": {},
        "vllm.v1.sample.logits_processor": {"AdapterLogitsProcessor": AdapterLogitsProcessor},
        "vllm.v1.worker": {},
        "vllm.v1.worker.gpu": {},
        "vllm.v1.worker.gpu.sample": {},
        "vllm.v1.worker.gpu.sample.logits_processor": {
            "LogitsContext": SimpleNamespace,
            "LogitsProcessor": SlotLogitsProcessor,
            "LogitsProcRequestState": LogitsProcRequestState,
        },
        "vllm.v1.structured_output": {"StructuredOutputManager": Manager},
        "vllm.v1.structured_output.utils": {"apply_grammar_bitmask": apply_grammar_bitmask},
        "vllm.v1.structured_output.backend_types": {
            "StructuredOutputBackend": object, "StructuredOutputGrammar": object,
        },
        "vllm.v1.structured_output.request": {"get_structured_output_key": lambda params: ("the key", params)},
        "vllm.entrypoints": {},
        "vllm.entrypoints.generate": {},
        "vllm.entrypoints.generate.base": {},
        "vllm.entrypoints.generate.base.protocol": {"validate_structural_tag_payload": validate_structural_tag_payload},
        "vllm.entrypoints.generate.beam_search": {},
        "vllm.entrypoints.generate.beam_search.offline": {"BeamSearchOfflineMixin": Beams},
    }  # fmt: skip
    for name, content in contents.items():
        module = types.ModuleType(name)
        module.__path__ = []
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, last = name.rpartition(".")
        if parent:
            monkeypatch.setattr(sys.modules[parent], last, module, raising=False)
    for name in ("applying", "backend", "steering", "validation"):
        monkeypatch.delitem(sys.modules, f"guided.serving.vllm.{name}", raising=False)
        monkeypatch.delattr(sys.modules["guided.serving.vllm"], name, raising=False)
    return SimpleNamespace(
        SamplingParams=Params,
        Manager=Manager,
        AsyncLLM=FrontEnd,
        Beams=Beams,
        Config=config,
        utils=sys.modules["vllm.v1.structured_output.utils"],
        protocol=sys.modules["vllm.entrypoints.generate.base.protocol"],
    )
