"""The command: draws texts of one dialect, has each prepared, and writes a log of one JSON object a line."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import guided
from tests.databases import DIALECTS, databases_of_a_session
from tests.sql_texts.engines import Verdict
from tests.sql_texts.judging import DRAWN, judged

TEXTS_OF_A_LANGUAGE = 500
TEXTS_OF_ENDS = 4


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

        of_a_language = TEXTS_OF_ENDS if arguments.drawn == "ends" else TEXTS_OF_A_LANGUAGE
        for seed in count(arguments.seed, of_a_language):
            for drawn, verdict, said in judged(
                source, arguments.dialect, arguments.drawn, seed, of_a_language, vocabulary
            ):
                counts["texts"] += 1
                counts["steps"] += drawn.steps
                counts["dead" if drawn.dead else verdict.name.lower()] += 1
                distinct.add(hash(drawn.text))
                if verdict is Verdict.REFUSED:
                    note({"text": drawn.text, "dead": drawn.dead, "said": said})
            seconds = {"seconds": round(time.time() - started), "cpu": round(time.process_time() - cpu)}
            note({**counts, "distinct": len(distinct), **seconds})
            if arguments.steps is None and counts["texts"] >= arguments.texts:
                break
            if arguments.steps is not None and counts["steps"] >= arguments.steps:
                break


if __name__ == "__main__":
    main()
