import sys
from types import SimpleNamespace

import pytest

from mzseek.core.errors import MetricError
from mzseek.metrics import mces_at_1

ASPIRIN = "CC(=O)OC1=CC=CC=C1C(=O)O"
PARACETAMOL = "CC(=O)NC1=CC=C(O)C=C1"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list:
    """A stand-in for the package, with what it was asked."""
    calls: list = []

    def mces(one: str, other: str, **options: object) -> tuple:
        calls.append((one, other, options))
        return 0, float(len(calls)), 0.1, 1

    solvers = SimpleNamespace(listSolvers=lambda onlyAvailable: ["GLPK_CMD", "PULP_CBC_CMD"])
    monkeypatch.setitem(sys.modules, "myopic_mces", SimpleNamespace(MCES=mces))
    monkeypatch.setitem(sys.modules, "pulp", solvers)
    return calls


def test_without_the_package_one_line_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "myopic_mces", None)
    with pytest.raises(MetricError, match=r"^MCES needs .*: pip install 'mzseek\[mces\]'$"):
        mces_at_1(["CCO"], ["CCO"])


def test_without_a_solver_one_line_says_what_to_install(asked, monkeypatch) -> None:
    none = SimpleNamespace(listSolvers=lambda onlyAvailable: [])
    monkeypatch.setitem(sys.modules, "pulp", none)
    with pytest.raises(MetricError, match=r"^MCES needs a solver .*'mzseek\[mces\]'$"):
        mces_at_1(["CCO"], ["CCN"])


def test_pairs_are_computed_once_and_hits_not_at_all(asked) -> None:
    got = mces_at_1(["CCO", "OCC", "CCO", "CCC"], ["CCN", "CCN", "OCC", "CCN"], threshold=7)
    assert got.tolist() == [2, 2, 0, 1]
    assert sorted(call[:2] for call in asked) == [("CCC", "CCN"), ("CCO", "CCN")]
    assert asked[0][2]["threshold"] == 7
    assert asked[0][2]["solver"] == "PULP_CBC_CMD"


def test_what_is_refused(asked, monkeypatch) -> None:
    with pytest.raises(MetricError, match="1 predicted and 2 true"):
        mces_at_1(["CCO"], ["CCO", "CCN"])
    with pytest.raises(MetricError, match="query 1, true molecule: SMILES 'C1CC'"):
        mces_at_1(["CCO", "CCO"], ["CCO", "C1CC"])
    with pytest.raises(MetricError, match="threshold is 0"):
        mces_at_1(["CCO"], ["CCO"], threshold=0)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("cannot execute cbc\nand more")

    monkeypatch.setattr(sys.modules["myopic_mces"], "MCES", broken)
    with pytest.raises(MetricError, match=r"^MCES distance of CCO and CCN: cannot execute cbc$"):
        mces_at_1(["CCO"], ["CCN"])


def test_the_real_package_counts_bonds() -> None:
    pytest.importorskip("myopic_mces")
    # Ethanol and ethylamine share one bond; propane and propene differ by half a double bond.
    got = mces_at_1(
        ["CCO", "CCC", ASPIRIN, ASPIRIN, "C[C@H](N)C(=O)O"],
        ["CCN", "CC=C", PARACETAMOL, ASPIRIN, "C[C@@H](N)C(=O)O"],
    )
    assert got.tolist() == [2, 1, 7, 0, 0]


def test_the_real_package_gives_a_bound_beyond_the_threshold() -> None:
    pytest.importorskip("myopic_mces")
    bound = mces_at_1([ASPIRIN], [PARACETAMOL], threshold=2).item()
    exact = mces_at_1([ASPIRIN], [PARACETAMOL], threshold=-1).item()
    assert 2 <= bound <= exact == 7
