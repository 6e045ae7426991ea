"""The engine without the extras: what a plain install does, where torch, transformers and Numba are not there.

The modules are there here, so a process of its own is kept from finding them.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from guided.errors import GuidedError, extra_missing
from guided.kernels.ahead import library

WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""

ENGINE = """
import numpy as np
import guided
from guided.errors import GuidedError
tokens = [bytes([byte]) for byte in range(256)] + [b"12", b'{"', None]
vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[258])
constraint = guided.compile(guided.regex("1+2"), vocabulary)
row = np.zeros(vocabulary.n_words, np.uint32)
constraint.fill_mask(constraint.start, row)
allowed = [token for token in range(259) if row[token // 32] >> token % 32 & 1]
print([tokens[token] for token in allowed])
try:
    guided.generate
except GuidedError as error:
    print(error)
print(hasattr(guided, "no_such_name"))
"""


def run(code: str, *missing: str, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(names=set(missing)) + code
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.skipif(library.found() is None, reason="no library of kernels (guided warmup)")
def test_masks_without_torch_and_numba():
    done = run(ENGINE, "torch", "transformers", "numba")
    assert done.stderr == ""
    allowed, error, other = done.stdout.splitlines()
    assert eval(allowed) == [b"1", b"12"]
    assert error == "this needs torch, which is not installed. Run: pip install 'guided-decoding[hf]'"
    assert other == "False"


@pytest.mark.skipif(library.found() is None, reason="no library of kernels (guided warmup)")
def test_the_command_line_without_torch(tmp_path):
    command = "from guided.cli import main\nmain()"
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "integer"}')
    missing = ("torch", "transformers", "numba")
    done = run(command, *missing, arguments=("check", str(schema), "--accepts", "12", "--accepts", "1x"))
    assert done.returncode == 1 and done.stderr == ""
    done = run(command, *missing, arguments=("extract", "--schema", str(schema), str(schema)))
    assert done.returncode == 2
    assert done.stderr == (
        "guided: error: this needs torch, which is not installed. Run: pip install 'guided-decoding[hf]'\n"
    )


def test_only_libraries_of_extras_are_explained():
    assert extra_missing(ModuleNotFoundError(name="os.nothing")) is None
    assert extra_missing(ModuleNotFoundError()) is None
    assert isinstance(extra_missing(ModuleNotFoundError(name="transformers.models")), GuidedError)
