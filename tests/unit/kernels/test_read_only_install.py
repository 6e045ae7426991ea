"""Neither the installation nor a home can be written: kernels are kept in a folder of our own, and that is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = "def twice(x):\n    return 2 * x\n"
PROGRAM = """
import json, os, sys
from numba.core import caching

ensure = caching._CacheLocator.ensure_cache_path
def only_temporary(self):
    # What a read-only file system says, also to root.
    if not self.get_cache_path().startswith(os.environ["TMPDIR"]):
        raise OSError("read-only file system")
    ensure(self)
caching._CacheLocator.ensure_cache_path = only_temporary

from guided.kernels import just_in_time
import kernel
made = just_in_time.python_calls(kernel.twice, ())
assert made(3) == 6
print(json.dumps([made.stats.cache_path, len(made.stats.cache_hits), just_in_time.kept_elsewhere()]))
"""


def run(tmp_path: Path) -> list[object]:
    (tmp_path / "source").mkdir(exist_ok=True)
    (tmp_path / "source" / "kernel.py").write_text(KERNEL)
    os.utime(tmp_path / "source" / "kernel.py", (1e9, 1e9))
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(tmp_path / "source")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners of folders")
def test_kernels_are_kept_where_nobody_else_can_write(tmp_path):
    (tmp_path / "tmp").mkdir()
    place, hits, said = run(tmp_path)
    folder = next((tmp_path / "tmp").iterdir())
    assert str(place).startswith(str(folder)) and hits == 0
    assert str(folder) in str(said) and "NUMBA_CACHE_DIR" in str(said)
    assert folder.stat().st_mode & 0o777 == 0o700
    _, hits, _ = run(tmp_path)
    assert hits == 1, "the second process reads what the first one compiled"
    # A folder that others can write to is not ours: what lies there would be run.
    folder.chmod(0o777)
    place, hits, _ = run(tmp_path)
    assert not str(place).startswith(str(folder)) and hits == 0
