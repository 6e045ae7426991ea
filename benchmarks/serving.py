"""Serving: throughput and latency of a `Scheduler` by the number of clients; free, with one schema, with many.

Each client asks again as soon as its answer is whole, so that texts enter and leave the batch all the time.  Loads take
turns, so that whatever else the machine does falls on all of them.  Behind each come free texts of the same prompts,
which are asked for as many tokens as the constrained ones took, and for no end before (`logit_bias`).  Times between
tokens are those between events of a stream, as vLLM's benchmarks count them; beside them stands what a token of a text
takes, from its first to its last.  ``--one-by-one`` adds a load of `guided.generate`, a prompt at a time; ``--hostile``
one that has hostile schemas beside it; ``--requests N`` looks for a leak instead; ``--http URL`` asks a server.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import jsonschema
import torch

import guided
from guided.cli.models import load_model
from guided.collection import set_aside
from guided.hf import LoadedModel, generate
from guided.server.scheduling import Compiler, Failed, Finished, Job, Scheduler, Token
from guided.server.scheduling.biases import Biases
from guided.serving.requests import Request, RequestKind

MOST_TOKENS = 64
WORDS = ("name", "city", "street", "colour", "brand", "title", "owner", "model", "region", "status", "label", "kind")
HOSTILE = (
    {"type": "string", "pattern": "^(a|b)*a(a|b){14}$"},
    {"allOf": [{"type": "string", "pattern": f"[a-z]{{3}}{i}.*(x|y){{{i}}}"} for i in range(5)]},
    {"type": "object", "oneOf": [{"required": [f"a{i}", f"b{i % 7}"]} for i in range(18)]},
    {"anyOf": [
        {"type": "object", "properties": {
            f"p{i}_{j}": {"type": "string", "pattern": f"^[a-z]{{{i},{i + 20}}}x{j}$"} for j in range(20)
        }} for i in range(30)
    ]},
    {"allOf": [{"type": "string", "pattern": f"^(.*{chr(97 + i)}.*){{{i + 1}}}$"} for i in range(15)]},
)  # fmt: skip
"""Dear to compile, to make masks of, or both: with the default limits each takes 0.1 to 2.5 s."""

ALONE = 12
"""Texts of a turn of `one_by_one`."""


def schema(number: int) -> dict[str, Any]:
    """A schema of its own for each number: other names, bounds and choices, texts of 30 to 60 tokens."""
    first, second = WORDS[number % 12], WORDS[(number * 5 + 3) % 12] + str(number)
    return {
        "type": "object",
        "properties": {
            first: {"type": "string", "minLength": 2, "maxLength": 12 + number % 9},
            second: {"type": "integer", "minimum": number % 50, "maximum": 100 + number},
            "tags": {"type": "array", "items": {"enum": [f"a{number}", "b", "c"]}, "minItems": 1, "maxItems": 3},
            "ok": {"type": "boolean"},
        },
        "required": [first, second, "tags", "ok"],
        "additionalProperties": False,
    }


@dataclass
class Load:
    """What one load came to."""

    seconds: float = 0.0
    processor: float = 0.0
    """Seconds of processor time of this process, which say less about what else the machine did."""
    texts: int = 0
    tokens: int = 0
    invalid: int = 0
    firsts: list[float] = field(default_factory=list)
    """Seconds to each first token."""
    gaps: list[float] = field(default_factory=list)
    """Seconds between events of one text, each of which is a token here."""
    paces: list[float] = field(default_factory=list)
    """For each text the seconds from its first token to its last, by their number without the first."""

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds

    def add(self, other: Load) -> None:
        """Put two turns of a load together."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


SchemaOf = Callable[[int, int], dict[str, Any] | None]
"""``schema_of(client, number)``: what the client's request of this number asks for, None for a free text."""
Ask = Callable[[int, dict[str, Any] | None, int], AsyncIterator[str | None]]
"""``ask(number, schema, most)``: what each token adds to the text of the request."""


class InProcess:
    """Requests to a scheduler and a compiler in this process."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self.scheduler = Scheduler(model)
        self.compiler = Compiler(model.vocabulary)

    async def __call__(self, number: int, wanted: dict[str, Any] | None, most: int) -> AsyncIterator[str]:
        constraint = None
        if wanted is not None:
            constraint = await self.compiler.compiled(Request(RequestKind.JSON_SCHEMA, json.dumps(wanted)))
        endless = None if wanted is not None else Biases(dict.fromkeys(self.model.vocabulary.eos_ids, -100.0))
        job = Job(
            prompt(self.model, number), constraint, most, seed=number, temperature=0.7, client=str(number % 64),
            biases=endless,
        )  # fmt: skip
        async with await self.scheduler.submit(job) as stream:
            async for event in stream:
                if isinstance(event, Failed):
                    raise event.error
                if isinstance(event, Token):
                    yield event.text
                elif isinstance(event, Finished):
                    assert event.whole or wanted is None

    async def close(self) -> None:
        """End both."""
        self.compiler.close()
        await self.scheduler.close()


class ByHttp:
    """Requests to a server by streamed completions, with the server's defaults."""

    def __init__(self, url: str, model: LoadedModel) -> None:
        self.endless = {str(token): -100 for token in model.vocabulary.eos_ids}
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "localhost", parts.port or 80

    async def __call__(self, number: int, wanted: dict[str, Any] | None, most: int) -> AsyncIterator[str]:
        body: dict[str, Any] = {
            "model": "nano", "max_tokens": most, "stream": True, "temperature": 0.7, "seed": number,
            "prompt": text(number),
        }  # fmt: skip
        if wanted is not None:
            body["guided"] = {"grammar": {"type": "json_schema", "schema": wanted}}
        else:
            body["logit_bias"] = self.endless
        data = json.dumps(body).encode()
        # The answer of HTTP/1.0 ends with the connection: its lines are those of the stream, and no library is timed.
        head = f"POST /v1/completions HTTP/1.0\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(head.encode() + f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
            status = await reader.readline()
            if b" 200 " not in status:
                raise RuntimeError(f"{status!r}: {(await reader.read())[-300:]!r}")
            async for line in reader:
                if line.startswith(b"data: {"):
                    for choice in json.loads(line[6:]).get("choices", ()):
                        yield choice.get("text") or ""
        finally:
            writer.close()

    async def close(self) -> None:
        """Nothing is open."""


def text(number: int) -> str:
    """A prompt of some 40 tokens."""
    return f"Extract the record with the {WORDS[number % 12]} of customer {number}, aged {number % 90}, as JSON:\n"


def prompt(model: LoadedModel, number: int) -> tuple[int, ...]:
    """The same as ids."""
    return tuple(model.tokenizer(text(number))["input_ids"])


async def one_load(
    ask: Ask,
    clients: int,
    rounds: int,
    schema_of: SchemaOf,
    lengths: dict[int, int],
    before: int = 0,
) -> Load:
    """``clients`` that ask ``rounds`` times each, behind so many requests ``before``.

    ``lengths`` are tokens by request: noted, or asked for if free.
    """
    found = Load()
    answers: list[tuple[str, dict[str, Any]]] = []

    async def client(own: int) -> None:
        for turn in range(rounds):
            number = before + own + clients * turn
            wanted = schema_of(own, number)
            most = MOST_TOKENS if wanted is not None else lengths.get(number, MOST_TOKENS)
            pieces: list[str] = []
            first = last = time.perf_counter()
            async for piece in ask(number, wanted, most):
                now = time.perf_counter()
                (found.gaps if pieces else found.firsts).append(now - last)
                last = now
                first = first if pieces else now
                pieces.append(piece or "")
            found.paces += [(last - first) / (len(pieces) - 1)] if len(pieces) > 1 else []
            found.texts += 1
            found.tokens += len(pieces)
            if wanted is not None:
                lengths[number] = len(pieces)
                answers.append(("".join(pieces), wanted))

    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*[client(own) for own in range(clients)])
    found.seconds, found.processor = time.perf_counter() - began, time.process_time() - used
    # Behind the load: a client's work is no part of a server's, and in this process it would take the interpreter.
    found.invalid = sum(not is_valid(answer, wanted) for answer, wanted in answers)
    return found


def is_valid(answer: str, wanted: dict[str, Any]) -> bool:
    """Is it a text of the schema, by another library than ours?"""
    try:
        jsonschema.validate(json.loads(answer), wanted)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


LOADS: dict[str, SchemaOf] = {
    "all different": lambda client, number: schema(number),
    "one a client": lambda client, number: schema(2_000_000 + client),
    "all alike": lambda client, number: schema(0),
}
"""A new schema with every request; as many as there are clients, each asked for again and again; and one."""
FREE = ", free"
"""What is behind the name of a load in that of its free texts."""


async def compare(
    ask: Ask, clients: int, rounds: int, turns: int, hostile: bool, alone: LoadedModel | None
) -> dict[str, Load]:
    """Each load ``turns`` times, in turns; ``alone`` is the model that writes one by one, if any does.

    No request comes in two turns: its schema would be known.
    """
    loads = {**LOADS, **({"all different, hostile beside": LOADS["all different"]} if hostile else {})}
    found = {name + free: Load() for name in loads for free in ("", FREE)}
    one = found["one by one"] = Load()
    await one_load(ask, clients, 1, LOADS["all different"], {}, before=1_000_000)  # kernels, caches
    for turn in range(turns):
        for number, (name, schema_of) in enumerate(loads.items()):
            lengths: dict[int, int] = {}
            before = (turn * len(loads) + number) * clients * rounds
            beside = asyncio.create_task(be_hostile(ask)) if "hostile" in name else None
            found[name].add(await one_load(ask, clients, rounds, schema_of, lengths, before))
            if beside is not None:
                beside.cancel()
            found[name + FREE].add(await one_load(ask, clients, rounds, lambda *_: None, lengths, before))
        if alone is not None:
            one.add(one_by_one(alone, range(turn * ALONE, (turn + 1) * ALONE)))
    return {name: load for name, load in found.items() if load.texts}


async def be_hostile(ask: Ask) -> None:
    """Ask for hostile schemas, a new one every half second."""
    number = 0
    while True:
        wanted = {**HOSTILE[number % len(HOSTILE)], "title": f"hostile {number}"}
        try:
            async for _ in ask(100_000 + number, wanted, 64):
                pass
        except (guided.GuidedError, RuntimeError):
            pass
        number += 1
        await asyncio.sleep(0.5)


def one_by_one(model: LoadedModel, numbers: Sequence[int]) -> Load:
    """`guided.generate`, a prompt after the other; compiling is not counted."""
    found = Load()
    for number in numbers:
        constraint = guided.compile(guided.json_schema(schema(number)), model.vocabulary)
        began, used = time.perf_counter(), time.process_time()
        answer = generate(
            model, list(prompt(model, number)), constraint, max_new_tokens=MOST_TOKENS, do_sample=True, temperature=0.7,
            seed=number,
        )  # fmt: skip
        found.seconds += time.perf_counter() - began
        found.processor += time.process_time() - used
        found.texts += 1
        found.tokens += len(answer.token_ids) + 1
        found.invalid += not is_valid(answer.text, schema(number))
    return found


async def look_for_leaks(ask: Ask, requests: int, clients: int, url: str | None) -> list[tuple[int, float]]:
    """The resident memory in MiB of the server at ``url``, or of this process, after each tenth of so many requests.

    All have schemas of their own.
    """
    found: list[tuple[int, float]] = []
    for part in range(10):
        rounds = max(1, requests // 10 // clients)
        await one_load(ask, clients, rounds, LOADS["all different"], {}, before=part * requests // 10)
        gc.collect()
        found.append(((part + 1) * rounds * clients, resident() if url is None else resident_at(url)))
        print(f"  {found[-1][0]:5d} requests: {found[-1][1]:.0f} MiB", flush=True)
    return found


def resident() -> float:
    """Resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def resident_at(url: str) -> float:
    """That of a server."""
    with urlopen(f"{url.rstrip('/')}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("process_resident_memory_bytes "))) / 2**20


def percentile(values: Sequence[float], share: float) -> float | None:
    """In milliseconds, to a tenth."""
    ordered = sorted(values)
    return round(1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else None


def row(clients: int, name: str, load: Load) -> dict[str, Any]:
    """A load as a row of the table."""
    return {
        "clients": clients, "load": name, "texts": load.texts, "invalid": load.invalid, "tokens": load.tokens,
        "tokens_per_second": round(load.rate, 1),
        "processor_ms_per_token": round(1e3 * load.processor / load.tokens, 2),
        "first_p50_ms": percentile(load.firsts, 0.5), "first_p99_ms": percentile(load.firsts, 0.99),
        "between_p50_ms": percentile(load.gaps, 0.5),
        "between_p99_ms": percentile(load.gaps, 0.99), "between_longest_ms": percentile(load.gaps, 1.0),
        "a_token_p50_ms": percentile(load.paces, 0.5), "a_token_p99_ms": percentile(load.paces, 0.99),
    }  # fmt: skip


def machine() -> dict[str, Any]:
    """Where and of what this was measured."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip(), "machine": platform.machine(), "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2), "torch": torch.__version__, "threads": torch.get_num_threads(),
    }  # fmt: skip


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All that was asked for."""
    report: dict[str, Any] = {**machine(), "rows": []}
    model = load_model(options.model, device=None, offline=False, quiet=True)
    set_aside()
    ask: Any = ByHttp(options.http, model) if options.http else InProcess(model)
    if options.requests:
        report["resident_mib"] = await look_for_leaks(ask, options.requests, max(options.clients), options.http)
    else:
        alone = model if options.one_by_one else None
        for clients in options.clients:
            loads = await compare(ask, clients, options.rounds, options.turns, options.hostile, alone)
            report["rows"] += [row(clients, name, load) for name, load in loads.items()]
        if options.http:
            for each in report["rows"]:
                del each["processor_ms_per_token"]  # The client's, not the server's.
    await ask.close()
    report["load_after"] = round(os.getloadavg()[0], 2)
    return report


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--rounds", type=int, default=3, help="texts of each client in a turn")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one-by-one", action="store_true")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--http", metavar="URL")
    parser.add_argument("--json", type=Path, help="write the report here")
    options = parser.parse_args()
    report = asyncio.run(measure(options))
    for each in report["rows"]:
        print("  ".join(f"{name} {value}" for name, value in each.items()))
    print({name: value for name, value in report.items() if name != "rows"})
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
