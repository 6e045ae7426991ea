"""What works in which engine: the table of docs/SERVING.md, each of whose entries is a test or says why there is none.

``python -m tests.unit.serving.test_features`` writes the page's table.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "SERVING.md"

FILES = {
    "[vLLM](VLLM.md)": "serving/vllm/test_offline.py serving/vllm/test_server.py serving/vllm/test_steering.py",
    "[SGLang](SGLANG.md)": "serving/test_sglang.py",
    "[transformers](CONTINUOUS_BATCHING.md)": "serving/test_transformers.py unit/hf/continuous/test_generate_batch.py",
    "[MLX-LM](MLX.md)": "serving/test_mlx.py",
    "[llama.cpp](LLAMA_CPP.md)": "serving/test_llama_cpp.py",
    "[LMDeploy](XGRAMMAR.md)": "serving/test_lmdeploy.py unit/serving/xgrammar/test_stand_in.py",
}
"""The engines, and where their tests are."""

NONE = "the engine has none"

FEATURES: dict[str, tuple[str, ...]] = {
    "the text of `guided.generate`, greedily": (
        "test_it_is_the_text_of_our_own_greedy_generate", "test_the_fifty_cases", "test_the_fifty_cases",
        "test_the_fifty_cases", "test_the_fifty_cases", "by its masks",
    ),
    "a grammar for each request of a batch": (
        "test_a_batch_of_different_schemas", "test_the_fifty_cases", "test_each_text_is_that_of_generate",
        "test_the_fifty_cases_in_one_batch", "one text at a time", "test_requests_go_through",
    ),
    "a whole text in few tokens": (
        "test_a_whole_text_in_few_tokens", "test_whole_texts_are_had_on_request", "test_budgets_are_those_of_requests",
        "test_budgets_hold_to_the_last_token", "test_what_cannot_be_is_refused", "no place to ask for it",
    ),
    "drafts": (
        "test_drafts", "test_trees_of_drafts", NONE, "test_drafts_change_nothing", "refused by name", "not tested",
    ),
    "reasoning before the text": (
        "test_reasoning_is_free_and_the_rest_is_not", "test_reasoning_comes_before_the_constrained_text",
        "`guided.think`", "`guided.think`", "`guided.think`", "`guided.think`",
    ),
    "structural tags": (
        "test_legacy_structural_tags", "test_structural_tags_of_the_older_notation", "as a grammar", "as a grammar",
        "as a grammar", "test_requests_go_through",
    ),
    "tool calls of its server": (
        "test_tools_that_must_be_called", "test_tool_calls_of_sglangs_parsers", "as a grammar", "its server takes no grammar", "as a grammar",
        "as structural tags",
    ),
    "refusals before the model runs": (
        "test_refusals_say_where", "test_what_is_refused_is_said", "test_what_cannot_be_is_refused",
        "test_what_cannot_be_is_refused", "test_what_cannot_be_is_refused",
        "test_what_is_refused_is_said_before_the_engine_sees_it",
    ),
    "several texts of one request": (
        "test_several_samples_of_one_request", "as the engine's",
        "test_several_texts_of_one_request_in_a_manager_of_ones_own", "as a batch", "one after another",
        "as the engine's",
    ),
    "a limit in a text fails it alone": (
        "in its unit tests", "test_a_limit_in_the_middle_of_a_text_fails_that_request_alone",
        "test_a_request_without_masks_ends_alone", "an error of the call",
        "test_an_error_in_a_call_is_not_lost_and_lets_no_token_through", "an end of text",
    ),
    "a processor for single requests": (
        "test_the_texts_are_those_of_our_own_loop", "test_a_grammar_in_a_request",
        "test_masks_follow_a_request_that_is_forked_started_over_and_whose_id_comes_again", "test_the_fifty_cases",
        "test_the_processor_serves_create_completion_also_with_a_logit_bias", "not made",
    ),
}  # fmt: skip
"""A test of the engine, or what is to be said instead."""

BEGIN, END = "<!-- written by tests/unit/serving/test_features.py -->\n", "<!-- to here -->\n"


def table() -> str:
    """The table in Markdown."""
    lines = [["", *FILES], ["---"] * (len(FILES) + 1)]
    lines += [[name, *("yes" if _is_test(cell) else cell for cell in cells)] for name, cells in FEATURES.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _is_test(cell: str) -> bool:
    return cell.startswith("test_")


def _tests_of(files: str) -> set[str]:
    return {
        node.name
        for path in files.split()
        for node in ast.parse((TESTS / path).read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("number", range(len(FILES)))
def test_every_entry_is_a_test_of_that_engine(number):
    known = _tests_of([*FILES.values()][number])
    named = {cells[number] for cells in FEATURES.values() if _is_test(cells[number])}
    assert named and not named - known


def test_the_page_has_this_table():
    assert all(len(cells) == len(FILES) for cells in FEATURES.values())
    page = PAGE.read_text()
    assert page[page.index(BEGIN) + len(BEGIN) : page.index(END)] == table()


def write() -> None:
    """Put the table into the page."""
    page = PAGE.read_text()
    start, stop = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(page[:start] + table() + page[stop:])


if __name__ == "__main__":
    write()
