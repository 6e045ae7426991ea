"""Grammars compiled beside the event loop: by content, in turn, within limits."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

import guided
from guided.errors import GrammarError, LimitError
from guided.grammar.ir import Grammar
from guided.server.scheduling import Busy, Closing, Compiler, CompilerLimits
from guided.server.scheduling import compiler as scheduling_compiler
from guided.server.scheduling.compiler import SHORT, is_ample
from guided.server.scheduling.handing_over import SECONDS
from guided.serving.requests import Request, RequestKind
from guided.vocab import Vocabulary
from tests import vocabularies

VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(97, 123)] + [None], eos_ids=[26])


@dataclass(frozen=True)
class Slow:
    """A request that is compiled when somebody says so."""

    name: str
    go: threading.Event = field(default_factory=threading.Event, compare=False)
    begun: threading.Event = field(default_factory=threading.Event, compare=False)

    def grammar(self, vocabulary: Vocabulary | None = None) -> Grammar:
        self.begun.set()
        assert self.go.wait(20)
        if self.name == "bug":
            raise KeyError("a bug")
        return guided.regex(self.name)


def test_equal_requests_are_one_constraint_and_errors_are_kept() -> None:
    async def run() -> None:
        compiler = Compiler(VOCABULARY)
        asked = [Request(RequestKind.REGEX, "ab+") for _ in range(8)]
        found = await asyncio.gather(*[compiler.compiled(each) for each in asked])
        assert len({id(each) for each in found}) == 1
        assert found[0].advance_bytes(found[0].start, b"abb")
        errors = [await _error(compiler, Request(RequestKind.REGEX, "a(")) for _ in range(2)]
        assert all(isinstance(error, GrammarError) for error in errors)
        compiler.close()
        with pytest.raises(Closing):
            await compiler.compiled(asked[0])

    asyncio.run(run())


async def _error(compiler: Compiler, request: Request) -> Exception:
    with pytest.raises(GrammarError) as caught:
        await compiler.compiled(request)
    return caught.value


def test_a_slow_grammar_delays_nobody_else() -> None:
    async def run() -> None:
        compiler = Compiler(VOCABULARY, CompilerLimits(seconds=0.1))
        slow = Slow("abc")
        waiting = asyncio.create_task(compiler.compiled(slow))
        assert await compiler.compiled(Request(RequestKind.REGEX, "x"))
        with pytest.raises(LimitError, match=r"0\.1 seconds"):
            await waiting
        slow.go.set()
        # What came too late is kept: the next who asks need not wait so long.
        while not compiler._known[slow].done():
            await asyncio.sleep(0.01)
        found = await compiler.compiled(Slow("abc"))
        assert found.advance_bytes(found.start, b"abc")
        compiler.close()

    asyncio.run(run())


def test_what_finds_no_room_is_busy_and_a_bug_is_one_request_s() -> None:
    async def run() -> None:
        compiler = Compiler(VOCABULARY, CompilerLimits(threads=1, waiting=2))
        bug = Slow("bug")
        tasks = [asyncio.create_task(compiler.compiled(bug))]
        while len(compiler._queue) or not tasks:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        waiting = [Slow("b"), Slow("c")]
        tasks += [asyncio.create_task(compiler.compiled(each)) for each in waiting]
        await asyncio.sleep(0.05)
        with pytest.raises(Busy):
            await compiler.compiled(Slow("d"))
        for each in (bug, *waiting):
            each.go.set()
        with pytest.raises(LimitError, match="a bug"):
            await tasks[0]
        assert all(await asyncio.gather(*tasks[1:]))
        compiler.close()

    asyncio.run(run())


def test_requests_used_long_ago_are_forgotten() -> None:
    async def run() -> None:
        compiler = Compiler(VOCABULARY, CompilerLimits(remembered=3))
        for letter in "abcdef":
            await compiler.compiled(Request(RequestKind.REGEX, letter))
        assert [request.text for request in compiler._known] == ["d", "e", "f"]  # type: ignore[attr-defined]
        compiler.close()

    asyncio.run(run())


def test_to_forget_one_request_not_all_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    class Counting(Future[Any]):
        def done(self) -> bool:
            asked.append(self)
            return super().done()

    async def run() -> None:
        monkeypatch.setattr(scheduling_compiler, "Future", Counting)
        compiler = Compiler(VOCABULARY, CompilerLimits(remembered=20))
        for n in range(1, 41):
            await compiler.compiled(Request(RequestKind.REGEX, "a" * n))
        assert len(compiler._known) == 20
        compiler.close()

    asyncio.run(run())
    # One of those that are kept, and the kernels' own each time; all of them would be 20 times 21.
    assert len(asked) < 150


def test_the_seconds_begin_when_the_kernels_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute of compiling kernels on a machine's first day is no reason to refuse a grammar."""
    begun, go = threading.Event(), threading.Event()

    def load() -> None:
        begun.set()
        assert go.wait(20)

    monkeypatch.setattr(scheduling_compiler, "_load_kernels", load)

    async def run() -> None:
        compiler = Compiler(VOCABULARY, CompilerLimits(seconds=0.2))
        asked = asyncio.create_task(compiler.compiled(Request(RequestKind.REGEX, "ab+")))
        await asyncio.sleep(0.5)
        assert begun.is_set() and not asked.done()
        go.set()
        constraint = await asked
        assert constraint.advance_bytes(constraint.start, b"abb")
        compiler.close()

    asyncio.run(run())


def test_the_interpreter_is_handed_over_sooner_while_grammars_are_compiled() -> None:
    usual = sys.getswitchinterval()

    async def run() -> None:
        compiler = Compiler(VOCABULARY, CompilerLimits(threads=2))
        slow, bug = Slow("abc"), Slow("bug")
        tasks = [asyncio.create_task(compiler.compiled(each)) for each in (slow, bug)]
        for _ in range(200):
            await asyncio.sleep(0.01)
            if slow.begun.is_set() and bug.begun.is_set():
                break
        assert sys.getswitchinterval() == pytest.approx(SECONDS)
        bug.go.set()
        with pytest.raises(LimitError, match="a bug"):
            await tasks[1]
        assert sys.getswitchinterval() == pytest.approx(SECONDS)
        slow.go.set()
        await tasks[0]
        assert sys.getswitchinterval() == pytest.approx(usual)
        compiler.close()

    asyncio.run(run())


def test_only_a_shortest_text_that_may_be_long_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shortest, asked = guided.Constraint.shortest_completion, list[guided.Constraint]()

    def noted(constraint: guided.Constraint, state: int) -> int:
        asked.append(constraint)
        return shortest(constraint, state)

    monkeypatch.setattr(guided.Constraint, "shortest_completion", noted)

    async def run() -> None:
        compiler = Compiler(Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES, None], eos_ids=[256]))
        for text in (f"a{{{SHORT // 2}}}", f"a{{{SHORT}}}"):
            constraint = await compiler.compiled(Request(RequestKind.REGEX, text))
            assert is_ample(constraint, SHORT) is (constraint not in asked)
        assert asked == [constraint] and not is_ample(constraint, SHORT)
        compiler.close()

    asyncio.run(run())
