"""Molecules: a SMILES string that continues a list of molecules, a new one each time.

The condition is the ready grammar of SMILES.  Where RDKit is installed (``pip install 'guided-decoding[chem]'``), RDKit
must read the whole as a molecule as well: the grammar knows no valences and no pairs of ring bonds.  Without RDKit the
grammar is condition and judge, which the results say.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import guided
from guided.constraint.constraint import Constraint
from guided.errors import GuidedError
from guided.eval.awrs.problems import Asker, Problem, Question, TaskName, ending_with_lines, needed
from guided.hf import LoadedModel
from guided.infer import ConstraintPotential, TextPredicate

__all__ = ["asker", "is_molecule", "read"]

SHOWN = 20
"""Molecules of the list before the one that is asked for."""
LISTS = 20
"""Lists, each drawn anew from the file."""


def read(data: Path) -> list[Problem]:
    """Lists of molecules of ``awrs/GDB17_sample.txt``.  Raises `GuidedError` for too few molecules."""
    path = needed(data / "awrs" / "GDB17_sample.txt", "the list of molecules")
    known = [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
    if len(known) < SHOWN:
        raise GuidedError(f"the list has {len(known)} molecules", where=str(path), remedy=f"Give at least {SHOWN}.")
    lists = [random.Random(number).sample(known, SHOWN) for number in range(LISTS)]
    return [Problem(TaskName.MOLECULES, f"list/{number}", each) for number, each in enumerate(lists)]


def asker(model: LoadedModel) -> Asker:
    """Asks for the next line of the list."""
    vocabulary = ending_with_lines(model)
    constraint = guided.compile(guided.grammar("smiles"), vocabulary)
    checked = is_molecule("C") is not None

    def ask(problem: Problem) -> Question:
        shown = set(problem.content)
        condition: Any = constraint

        def new(text: str) -> bool:
            valid = is_molecule(text)
            return text not in shown and (_accepted(constraint, text) if valid is None else valid)

        if checked:
            condition = ConstraintPotential(constraint) * TextPredicate(
                vocabulary, lambda text: bool(is_molecule(text))
            )
        text = "Molecules as SMILES, one a line:\n" + "".join(f"{each}\n" for each in problem.content)
        prompt = list(model.tokenizer(text)["input_ids"])
        return Question(prompt, vocabulary, condition, new, "new, RDKit" if checked else "new, the grammar")

    return ask


def _accepted(constraint: Constraint, text: str) -> bool:
    return constraint.is_accepting(constraint.advance_bytes(constraint.start, text.encode()))


@cache
def is_molecule(text: str) -> bool | None:
    """Whether RDKit reads a text as a molecule with at least one atom; None without RDKit.

    RDKit takes ``"C C"`` as ``"C"`` with a name, which no SMILES is.
    """
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        return None
    # It writes a line for every text that is none.
    rdBase.DisableLog("rdApp.*")
    if not text or text.split() != [text]:
        return False
    found = Chem.MolFromSmiles(text)
    return found is not None and found.GetNumAtoms() > 0
