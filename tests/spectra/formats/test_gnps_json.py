import json


def entry(identifier: str, peaks: object) -> dict[str, object]:
    return {
        "spectrum_id": identifier, "Precursor_MZ": "195.0877", "Adduct": "M+H",
        "Ion_Mode": "Positive", "Charge": "0", "Smiles": "CCO", "peaks_json": peaks,
        "annotation_history": [{"Adduct": "M+Na"}],
    }  # fmt: skip


def test_peaks_as_text_and_as_list(read) -> None:
    text = json.dumps([entry("A", "[[50.5,1.0],[40,2]]"), entry("B", [[50.5, 1.0], [40, 2]])])
    got, rejects = read("a.json", text)
    assert rejects == []
    for spectrum in got:
        assert spectrum.mz.tolist() == [40.0, 50.5]
        assert (spectrum.adduct, spectrum.charge) == ("[M+H]+", 1)
        assert "peaks_json" not in spectrum.metadata
    assert [s.identifier for s in got] == ["A", "B"]


def test_a_single_object_counts_as_one(read) -> None:
    got, _ = read("a.json", json.dumps(entry("A", [[50, 1]])))
    assert [s.identifier for s in got] == ["A"]


def test_bad_entries_leave_the_good_ones(read) -> None:
    good = json.dumps(entry("good", [[50, 1]]))
    last = json.dumps(entry("last", [[50, 1]]))
    bad = [
        json.dumps(entry("x", "[[50,")), json.dumps(entry("x", [[50]])), json.dumps(entry("x", [])),
        json.dumps(entry("x", [["a", 1]])), json.dumps(entry("x", None)), "17", '{"a": nonsense}',
        json.dumps(entry("x", [[50, float("nan")]])), json.dumps({"spectrum_id": "x"}),
    ]  # fmt: skip
    got, rejects = read("a.json", f"[{good}, {', '.join(bad)}, {last}]")
    assert [s.identifier for s in got] == ["good", "last"]
    assert len(rejects) == len(bad)
    assert all("record" in where and reason for where, reason in rejects)


def test_an_array_cut_short_keeps_what_was_whole(read) -> None:
    text = json.dumps([entry("A", [[50, 1]]), entry("B", [[50, 1]])])[:-40]
    got, rejects = read("a.json", text)
    assert [s.identifier for s in got] == ["A"]
    assert rejects[0].code == "truncated"


def test_one_object_a_line(read) -> None:
    lines = [json.dumps(entry(name, [[50, 1]])) for name in "ABC"]
    lines[1:1] = ["", '{"spectrum_id": "cut', "17", json.dumps({"n": 1})]
    got, rejects = read("a.json", "\n".join(lines))
    assert [s.identifier for s in got] == ["A", "B", "C"]
    assert [where.rpartition(": ")[2] for where, _ in rejects] == [
        "record 2", "record 3", "record 4",
    ]  # fmt: skip


def test_objects_of_several_lines_are_not_half_read_in_silence(read) -> None:
    text = "\n".join(json.dumps(entry(name, [[50, 1]]), indent=1) for name in "ABC")
    got, rejects = read("a.json", text)
    assert len(got) <= 1
    assert rejects[0].code == "unreadable"


def test_mzmine_library(read) -> None:
    line = {
        "softwaresource": "mzmine-4.1.0", "merged_spec_type": "SAME_ENERGY", "ms_level": 2,
        "ion_source": "ESI", "compound_name": "Caffeine", "adduct": "[M+H]+", "charge": 1,
        "polarity": "POSITIVE", "precursor_mz": 195.0877, "smiles": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
        "rt": 3.25, "collision_energy": [20.0, 45.0], "feature_id": 12, "num_peaks": 2,
        "peaks": [[110.0713, 12.5], [138.0662, 100.0]],
    }  # fmt: skip
    text = "\n".join(json.dumps(line | {"feature_id": n}) for n in (12, 13)) + "\n"
    got, rejects = read("lib.json", text)
    assert rejects == []
    assert [s.metadata["feature_id"] for s in got] == ["12", "13"]
    assert (got[0].precursor_mz, got[0].adduct, got[0].charge) == (195.0877, "[M+H]+", 1)
    assert got[0].mz.tolist() == [110.0713, 138.0662]
    assert got[0].metadata["retention_time"] == "3.25 min"
    assert got[0].metadata["ionmode"] == "positive"
    assert got[0].metadata["collision_energy"] == "20.0, 45.0"
    assert got[0].metadata["compound_name"] == "Caffeine"


def test_mona_export(read) -> None:
    mona = {
        "id": "EA000401",
        "compound": [{
            "inchi": "InChI=1S/C12H9N/c1-3", "inchiKey": "UJOBWOGCFQCDNV-UHFFFAOYSA-N",
            "names": [{"name": "Carbazole"}, {"name": "9H-Carbazole"}],
            "metaData": [{"name": "SMILES", "value": "c1ccc2c(c1)[nH]c1ccccc12"},
                         {"name": "molecular formula", "value": "C12H9N"}],
        }],
        "metaData": [
            {"name": "ms level", "value": "MS2"}, {"name": "ionization mode", "value": "negative"},
            {"name": "precursor m/z", "value": 166.0662}, {"name": "adduct", "value": "[M-H]-"},
            {"name": "collision energy", "value": 30, "unit": "NCE"},
            {"name": "retention time", "value": 7.3, "unit": "min"},
        ],
        "spectrum": "139.0542:3.5 166.0662:100", "splash": {"splash": "splash10-x"},
    }  # fmt: skip
    bad = mona | {"id": "bad", "spectrum": "139.0542 166.0662:100"}
    got, rejects = read("mona.json", json.dumps([mona, bad]))
    (carbazole,) = got
    assert (carbazole.identifier, carbazole.adduct, carbazole.charge) == ("EA000401", "[M-H]-", -1)
    assert carbazole.precursor_mz == 166.0662
    assert carbazole.mz.tolist() == [139.0542, 166.0662]
    wanted = {
        "compound_name": "Carbazole", "formula": "C12H9N", "collision_energy": "30 NCE",
        "retention_time": "7.3 min", "ionmode": "negative", "ms_level": "MS2",
        "inchikey": "UJOBWOGCFQCDNV-UHFFFAOYSA-N", "smiles": "c1ccc2c(c1)[nH]c1ccccc12",
    }  # fmt: skip
    assert wanted.items() <= carbazole.metadata.items()
    assert [skipped.code for skipped in rejects] == ["bad-peak"]


def test_one_spectrum_of_the_usi_service(read) -> None:
    text = '{"n_peaks": 1, "peaks": [[50.5, 1.0]], "precursor_charge": 0, "precursor_mz": 195.0877}'
    (got,), rejects = read("usi.json", text)
    assert rejects == []
    assert (got.precursor_mz, got.charge, got.mz.tolist()) == (195.0877, None, [50.5])


def test_one_spectrum_of_the_gnps_library_service(read) -> None:
    text = json.dumps({
        "annotations": [
            {"Adduct": "M+H", "Compound_Name": "Caffeine", "Precursor_MZ": "195.0877",
             "Ion_Mode": "Positive", "Charge": "0", "Smiles": "CCO", "SpectrumID": "CCMSLIB1"},
            {"Adduct": "M+Na", "Compound_Name": "an older name", "Precursor_MZ": "217.07"},
        ],
        "spectruminfo": {"spectrum_id": "CCMSLIB1", "ms_level": "2",
                         "peaks_json": "[[138.066, 100.0], [42.03, 5.0]]"},
        "spectrum_comments": [],
    }, indent=2)  # fmt: skip
    (got,), rejects = read("gnps.json", text)
    assert rejects == []
    assert (got.identifier, got.adduct, got.precursor_mz) == ("CCMSLIB1", "[M+H]+", 195.0877)
    assert got.metadata["compound_name"] == "Caffeine"
    assert got.mz.tolist() == [42.03, 138.066]


def test_a_large_object_of_something_else(read) -> None:
    got, rejects = read("a.json", json.dumps({str(n): n for n in range(5000)}))
    assert got == []
    assert rejects[0].code == "unreadable"


def test_a_single_spectrum_without_a_name(read) -> None:
    (got,), _ = read("a.json", '{"Precursor_MZ": 100, "peaks": [[50, 1]]}')
    assert got.identifier == "record 1"


def test_two_values_of_one_key_set_the_record_aside_where_they_are_read(read) -> None:
    plain = json.dumps(entry("A", [[50, 1]]))[:-1]
    twins = {"Smiles": '"CCN"', "Precursor_MZ": "300", "peaks_json": "[[60, 1]]", "Adduct": '"M+K"'}
    bad = [f'{plain}, "{key}": {value}}}' for key, value in twins.items()]
    good = [f'{plain}, "Smiles": "CCO"}}', f'{plain}, "note": 1, "note": 2}}'.replace('"A"', '"B"')]
    got, rejects = read("a.json", f"[{', '.join([*bad, *good])}]")
    assert [s.identifier for s in got] == ["A", "B"]
    assert [reason for _, reason in rejects] == [
        f"has two values of one key, '{key}', expected one" for key in twins
    ]
