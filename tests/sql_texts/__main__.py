"""The command: draws texts of one dialect, has each prepared, and writes a log of one JSON object a line."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import guided
from tests.databases import DIALECTS, Source, databases_of_a_session
from tests.sql_texts.engines import Verdict
from tests.sql_texts.judging import DRAWN, Judged, judged

TEXTS_OF_A_LANGUAGE = 200
TEXTS_OF_ENDS = 4
TEXTS_OF_A_LINE = 50
"""Behind so many the log says how far it is."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sql_texts", description=__doc__)
    parser.add_argument("--dialect", choices=DIALECTS, required=True)
    parser.add_argument("--drawn", choices=DRAWN, default="terminals")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--steps", type=int, help="end behind so many masks or terminals, however many texts that are")
    parser.add_argument("--bytes", action="store_true", help="tokens are bytes, not those of the packaged model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    of_bytes = [*(bytes([byte]) for byte in range(256)), None]
    vocabulary = guided.Vocabulary.from_tokens(of_bytes, eos_ids=[256]) if arguments.bytes else None
    counts: Counter[str] = Counter()
    distinct: set[int] = set()
    started, cpu = time.time(), time.process_time()
    with databases_of_a_session() as databases, arguments.log.open("a", encoding="utf-8") as log:
        source = databases(arguments.dialect)

        def note(record: dict[str, Any]) -> None:
            log.write(json.dumps(record, ensure_ascii=False) + "\n")
            log.flush()

        def note_counts() -> None:
            seconds = {"seconds": round(time.time() - started), "cpu": round(time.process_time() - cpu)}
            note({**counts, "distinct": len(distinct), **seconds})

        for drawn, verdict, said in _texts(arguments, source, vocabulary):
            counts["texts"] += 1
            counts["steps"] += drawn.steps
            counts["dead" if drawn.dead else verdict.name.lower()] += 1
            distinct.add(hash(drawn.text))
            if drawn.dead or verdict is not Verdict.PREPARED:
                seed = arguments.seed + counts["texts"] - 1
                kind = verdict.name.lower()
                note({"seed": seed, "verdict": kind, "text": drawn.text, "dead": drawn.dead, "said": said})
            if counts["texts"] % TEXTS_OF_A_LINE == 0:
                note_counts()
            enough = (
                counts["texts"] >= arguments.texts if arguments.steps is None else counts["steps"] >= arguments.steps
            )
            if enough:
                break
        note_counts()


def _texts(arguments: argparse.Namespace, source: Source, vocabulary: guided.Vocabulary | None) -> Iterator[Judged]:
    """Texts without end, of the language of one database after another."""
    of_a_language = TEXTS_OF_ENDS if arguments.drawn == "ends" else TEXTS_OF_A_LANGUAGE
    for seed in count(arguments.seed, of_a_language):
        number = seed // of_a_language
        yield from judged(source, arguments.dialect, arguments.drawn, seed, of_a_language, number, vocabulary)


if __name__ == "__main__":
    main()
