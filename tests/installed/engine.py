"""The wheel in an environment that has nothing else: the engine masks, and what needs more says so.

Not collected by pytest: `make test-wheel` runs it by the environment's own Python, in a folder of its own, with
site-packages that cannot be written.  It uses assertions only, as pytest is not there.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

MOST_BYTES = 250e6
"""Of all of site-packages, pip included."""

MOST_SECONDS = 3.0
"""From the first import to the first mask; ten times what it takes on an idle machine."""


def main() -> None:
    """Make one mask by the clock, and refuse what an installed engine must not be."""
    began = time.perf_counter()
    import numpy as np

    import guided

    tokens = [bytes([byte]) for byte in range(256)]
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[256])
    constraint = guided.compile(guided.regex("1+2"), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    constraint.fill_mask(constraint.start, row)
    seconds = time.perf_counter() - began
    busy = time.process_time()

    package = Path(guided.__file__).parent
    size = sum(path.stat().st_size for path in package.parent.rglob("*") if path.is_file())
    print(
        f"guided {guided.__version__} on Python {sys.version.split()[0]}: {size / 1e6:.0f} MB, {seconds:.2f} s to the mask, "
        f"{busy:.2f} s of processor time since Python was started"
    )
    if [token for token in range(257) if row[token // 32] >> token % 32 & 1] != [ord("1")]:
        raise SystemExit("the mask of 1+2 is wrong")
    if "site-packages" not in package.parts:
        raise SystemExit(f"this is not the wheel: {package}")
    if any(importlib.util.find_spec(name) for name in ("torch", "transformers", "numba")):
        raise SystemExit("an engine's environment has torch, transformers or numba")
    if not (package / "py.typed").exists():
        raise SystemExit("py.typed is missing")
    if size > MOST_BYTES or seconds > MOST_SECONDS:
        raise SystemExit(f"more than {MOST_BYTES / 1e6:.0f} MB or {MOST_SECONDS} s")

    try:
        guided.generate  # noqa: B018
    except guided.GuidedError as error:
        print(error)
    else:
        raise SystemExit("guided.generate is there without torch")
    done = subprocess.run(
        [Path(sys.executable).parent / "guided", "doctor"], capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr)
    if done.returncode:
        raise SystemExit(f"guided doctor exits with {done.returncode}")


if __name__ == "__main__":
    main()
