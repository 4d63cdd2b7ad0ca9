"""Rankings: one row a feature, its distinct structures the best first."""

from pathlib import Path

import pytest

from mzseek.core.errors import RunError
from mzseek.export.output import Output
from mzseek.export.writer import Settings, parse_ranking_columns

PYRIDONE, HYDROXYPYRIDINE = "O=c1cccc[nH]1", "Oc1ccccn1"
L_ALANINE, D_ALANINE = "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"


def written(target: Path, annotations, **settings) -> list[str]:
    with Output(target, Settings(**settings)) as output:
        for annotation in annotations:
            output.write(annotation)
        output.finish()
    return target.read_text().splitlines()


def test_the_best_first_and_tautomers_and_stereoisomers_once(
    tmp_path: Path, make_annotation, make_candidate
) -> None:
    smiles = ["CCO", PYRIDONE, L_ALANINE, HYDROXYPYRIDINE, D_ALANINE, "COC"]
    candidates = tuple(
        make_candidate(smiles=text, key=f"K{at}", probability=0.3 - at / 100)
        for at, text in enumerate(smiles)
    )
    # Decided for another objective, the second candidate ranks first.
    first = make_annotation("a, 1", candidates=candidates, choices={"hit": 1})
    lines = written(tmp_path / "r.csv", [first, make_annotation("2", candidates=())])
    assert lines == ["id,smiles", f'"a, 1",{PYRIDONE};CCO;{L_ALANINE};COC', "2,"]


def test_columns_have_the_names_that_are_asked_for(tmp_path: Path, make_annotation) -> None:
    names = parse_ranking_columns("molecule_id,prediction")
    lines = written(tmp_path / "r.csv", [make_annotation("7")], ranking_columns=names)
    assert lines[0] == "molecule_id,prediction"
    assert lines[1].startswith("7,Cn1c")
    with pytest.raises(RunError, match="expected two names"):
        parse_ranking_columns("id,id")
