from array import array

from mzseek.datasets.molecules import RawLists, build_molecule_table, resolve

# Ethanol twice, no molecule, benzene, and two acids of the same MACCS keys.
SMILES = ["CCO", "OCC", "not one", "c1ccccc1", "CCCCCCCC(=O)O", "CCCCCCCCC(=O)O"]
TABLE = build_molecule_table(SMILES, kind="maccs")


def lists(*each: tuple[int, list[int]]) -> RawLists:
    found = RawLists("lists.json")
    for key, members in each:
        found.keys.append(key)
        found.counts.append(len(members))
        found.members.extend(array("i", members))
    return found


def test_candidates_are_rows_of_the_table_in_the_file_s_order() -> None:
    found = resolve(lists((0, [3, 1]), (3, [0])), TABLE)
    ethanol, benzene = TABLE.index[0], TABLE.index[3]
    assert found.truth.tolist() == [ethanol, benzene]
    assert found.list_index.tolist() == [0, 0, 1]
    assert found.member.tolist() == [benzene, ethanol, ethanol]
    assert found.target.tolist() == [ethanol, ethanol, benzene]
    assert found.same_inchikey.tolist() == [False, True, False]
    assert found.has_truth.tolist() == [True, False]


def test_what_is_no_molecule_is_left_out_and_so_is_the_list_of_such_a_key() -> None:
    found = resolve(lists((0, [2, 0]), (2, [0, 3])), TABLE)
    assert found.truth.tolist() == [TABLE.index[0], -1]
    assert found.list_index.tolist() == [0]
    assert found.has_truth.tolist() == [True, False]


def test_twins_by_fingerprint_are_told_from_the_molecule_itself() -> None:
    found = resolve(lists((4, [4, 5])), TABLE)
    assert found.same_fingerprint.tolist() == [True, True]
    assert found.same_inchikey.tolist() == [True, False]


def test_a_candidate_that_stands_twice_is_first_once() -> None:
    found = resolve(lists((0, [1, 3, 0]), (3, [0])), TABLE)
    assert found.is_first(len(TABLE)).tolist() == [True, True, False, True]
