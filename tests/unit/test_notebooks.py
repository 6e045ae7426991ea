"""The notebooks of ``examples/notebooks``: short, without outputs, and every cell runs, in a shell of IPython."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import guided
from tests.amounts import each

pytest.importorskip("torch")
pytest.importorskip("transformers")
nbformat = pytest.importorskip("nbformat")
shells = pytest.importorskip("IPython.core.interactiveshell")
matplotlib = pytest.importorskip("matplotlib")

FOLDER = Path(guided.__file__).parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_CODE_CELLS = 9

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="an installed package has no examples")


@pytest.fixture(scope="module")
def shell():
    # The shell puts a module of its own in the place of the program's, which processes that are spawned look at.
    program = sys.modules["__main__"]
    yield shells.InteractiveShell.instance()
    shells.InteractiveShell.clear_instance()
    sys.modules["__main__"] = program


@pytest.fixture
def pictures(monkeypatch):
    """How many things are drawn in each picture that is shown; nothing needs a screen."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    found: list[int] = []

    def show():
        figure = pyplot.gcf()
        figure.canvas.draw()
        found.append(sum(len(axes.lines) + len(axes.patches) + len(axes.containers) for axes in figure.axes))
        pyplot.close(figure)

    monkeypatch.setattr(pyplot, "show", show)
    return found


def test_there_is_one_for_each_thing_to_see():
    assert [path.stem for path in NOTEBOOKS] == ["distortion", "drafts", "particles", "sampling", "steering"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_short_and_has_no_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert 0 < len(code) <= MOST_CODE_CELLS
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert notebook.cells[0].cell_type == "markdown" and notebook.cells[0].source.startswith("# ")


@pytest.mark.parametrize("path", each(NOTEBOOKS, 5), ids=lambda path: path.stem)
def test_every_cell_runs_and_it_shows_a_picture(path, shell, pictures):
    shell.reset(new_session=True)
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        result = shell.run_cell(cell.source, store_history=True)
        result.raise_error()
        if hasattr(result.result, "_repr_html_"):
            assert result.result._repr_html_().startswith('<div class="guided">')
    assert pictures and all(pictures)
