"""Features of files: whole, in any order of spectra, nothing lost."""

import numpy as np
import pytest

from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.reading import Features, Named, SpectrumFiles
from mzseek.core.errors import InputError
from mzseek.spectra import Spectrum, read_spectra

from .conftest import a_feature


def mgf(path, records):
    text = ""
    for number, fields in enumerate(records):
        lines = "".join(f"{key}={value}\n" for key, value in fields.items())
        high = sum(map(ord, str(sorted(fields.items())))) + number / 7  # each another spectrum
        text += f"BEGIN IONS\n{lines}50.0 1.0\n60.0 {high}\nEND IONS\n\n"
    path.write_text(text)
    return path


def shown(found):
    return [(each.name, each.named_by, len(each.spectra)) for each in found]


RECORDS = [
    {"FEATURE_ID": "7", "PEPMASS": "100.0", "TITLE": "a"},
    {"FEATURE_ID": "8", "PEPMASS": "200.0"},
    {"FEATURE_ID": "7", "PEPMASS": "100.0", "TITLE": "b"},
    {"PEPMASS": "300.0", "TITLE": "alone"},
    {"PEPMASS": "300.0", "TITLE": "alone"},
]


def test_spectra_of_one_id_are_one_feature_wherever_they_stand(tmp_path):
    files = Features([mgf(tmp_path / "a.mgf", RECORDS)])
    assert (len(files), files.records, files.skipped) == (4, 5, 0)
    assert sorted(shown(files)) == [
        ("7", "feature_id", 2), ("8", "feature_id", 1), ("alone", "title", 1),
        ("alone #2", "title", 1),
    ]  # fmt: skip
    assert shown(files) == shown(files)  # it can be read again


def test_the_same_id_in_two_files_is_two_features(tmp_path):
    paths = [mgf(tmp_path / name, RECORDS[:1]) for name in ("a.mgf", "b.mgf")]
    assert shown(Features(paths)) == [
        ("a.mgf:7", "feature_id", 1), ("b.mgf:7", "feature_id", 1),
    ]  # fmt: skip


def test_order_of_spectra_does_not_show_in_a_feature(tmp_path):
    def feature(records, name):
        (one,) = Features([mgf(tmp_path / name, records)])
        return [each.metadata["title"] for each in one.spectra]

    records = [{"FEATURE_ID": "7", "PEPMASS": f"100.00{n}", "TITLE": str(n)} for n in (3, 1, 2)]
    assert feature(records, "a.mgf") == feature(records[::-1], "b.mgf") == ["1", "2", "3"]


def test_each_by_itself(tmp_path):
    files = Features([mgf(tmp_path / "a.mgf", RECORDS)], AnnotateConfig(group="none"))
    assert len(list(files)) == 5


def test_by_precursor_and_retention_time(tmp_path):
    records = [
        {"PEPMASS": mz, "RTINSECONDS": seconds}
        for mz, seconds in (("100.0", "10"), ("200.0", "10"), ("100.0005", "15"), ("100.0", "90"))
    ]
    grouping = AnnotateConfig(group="precursor")
    files = Features([mgf(tmp_path / "a.mgf", records)], grouping)
    assert sorted(len(each.spectra) for each in files) == [1, 1, 2]
    assert sorted(len(f.spectra) for f in Features(
        [mgf(tmp_path / "b.mgf", records[::-1])], grouping)) == [1, 1, 2]  # fmt: skip


def test_without_retention_times_nothing_is_put_together(tmp_path):
    records = [{"PEPMASS": "100.0"}, {"PEPMASS": "100.0"}]
    files = Features([mgf(tmp_path / "a.mgf", records)], AnnotateConfig(group="precursor"))
    assert len(list(files)) == 2


def test_bad_records_are_told_once(tmp_path):
    rejects = []
    path = mgf(tmp_path / "a.mgf", [RECORDS[0], {"PEPMASS": "nothing"}])
    files = Features([path], skipped=rejects)
    assert len(list(files)) == 1 == len(list(files))
    assert files.skipped == len(rejects) == 1
    assert "nothing" in rejects[0][1]


def test_spectra_in_memory():
    spectra = [
        Spectrum(
            np.array([50.0]),
            np.ones(1),
            100.0,
            None,
            None,
            name,
            {**facts, "collision_energy": name},
        )
        for name, facts in (("a", {"feature_id": "1"}), ("b", {}), ("c", {"feature_id": "1"}))
    ]
    assert shown(list(Features(spectra))) == [("b", "identifier", 1), ("1", "feature_id", 2)]


def test_an_id_that_is_none_puts_nothing_together(tmp_path):
    """MassSpecGym's files have FEATURE_ID=-1 in every record."""
    records = [{"FEATURE_ID": "-1", "PEPMASS": mz, "TITLE": mz} for mz in ("100.1234", "200.1234")]
    files = Features([mgf(tmp_path / "a.mgf", records)])
    assert [name for name, _, number in shown(files) if number == 1] == ["100.1234", "200.1234"]


def test_fragments_of_fragments_are_set_aside_each_once(tmp_path):
    records = [
        {"FEATURE_ID": "7", "PEPMASS": "300.1234", "MSLEVEL": "2", "TITLE": "whole"},
        {"FEATURE_ID": "7", "PEPMASS": "172.1234", "MSLEVEL": "3", "TITLE": "part"},
    ]
    rejects = []
    path = mgf(tmp_path / "a.mgf", records)
    files = Features([path], skipped=rejects)
    assert shown(files) == [("7", "feature_id", 1)] == shown(files)
    assert files.records + files.skipped == 2
    assert rejects == [(f"{path}: part", rejects[0][1])]
    assert "is an MS3 spectrum" in rejects[0][1]


def test_a_file_that_is_given_twice_is_refused(tmp_path):
    path = tmp_path / "a.mgf"
    path.write_text("BEGIN IONS\nPEPMASS=100\n50 1\nEND IONS\n")
    with pytest.raises(InputError, match=r"a.mgf: is given twice"):
        Features([path, tmp_path / "." / "a.mgf"])


def msp(path, times):
    text = "".join(
        f"Name: x\nPrecursorMZ: 100.0\nRetentionTime: {time}\nIon_mode: P\nNum Peaks: 1\n50 1\n\n"
        for time in times
    )
    path.write_text(text)
    return path


def test_times_without_a_unit_group_nothing_until_the_unit_is_given(tmp_path):
    path = msp(tmp_path / "a.msp", ("635.4", "640"))
    files = Features([path], AnnotateConfig(group="precursor"))
    assert [each.retention_time for each in files] == [None, None]
    assert files.warnings() == [
        f"2 records of {path} state a retention time without a unit: it is not used, also not to "
        "group spectra by precursor and retention time (give --rt-unit min or --rt-unit s)"
    ]
    files = Features([path], AnnotateConfig(group="precursor", rt_unit="s"))
    assert [each.retention_time for each in files] == [637.7]
    assert files.warnings() == []
    assert len(Features([path], AnnotateConfig(group="precursor", rt_unit="min"))) == 2


def test_a_unit_that_is_given_does_not_replace_one_of_the_file(tmp_path):
    path = mgf(tmp_path / "a.mgf", [{"PEPMASS": "100.0", "CHARGE": "1+", "RTINSECONDS": "60"}])
    (feature,) = Features([path], AnnotateConfig(rt_unit="min"))
    assert feature.retention_time == 60.0


def test_contradictions_are_one_line_a_file(tmp_path):
    records = [{"PEPMASS": f"{n}00.1", "SCANS": n, "CHARGE": "1+", "ION": "[M-H]-"} for n in (1, 2)]
    path = mgf(tmp_path / "a.mgf", records)
    assert Features([path]).warnings() == [
        f"2 records of {path} contradict themselves about the polarity; the first: 1, charge 1+ "
        "beside adduct [M-H]-: the adduct was used"
    ]


@pytest.mark.parametrize("by", ["id", "precursor", "none"])
def test_features_of_unknown_polarity_are_counted(tmp_path, by):
    records = [{"FEATURE_ID": "1", "PEPMASS": "100.0", "RTINSECONDS": "1"},
               {"FEATURE_ID": "1", "PEPMASS": "100.0", "RTINSECONDS": "2", "CHARGE": "1-"},
               {"FEATURE_ID": "2", "PEPMASS": "200.0"}]  # fmt: skip
    files = Features([mgf(tmp_path / "a.mgf", records)], AnnotateConfig(group=by))
    counts = "2 of 3 features have" if by == "none" else "1 of 2 features has"
    assert files.warnings() == [
        f"{counts} no ion mode in the file (polarity unknown): read as positive (if they are "
        "negative, say --adduct '[M-H]-')"
    ]


def test_ids_of_two_files_of_a_folder_are_two_features(tmp_path):
    for name in ("a.mgf", "b.mgf"):
        mgf(tmp_path / name, RECORDS[:1])
    assert shown(Features([tmp_path])) == [
        ("a.mgf:7", "feature_id", 1), ("b.mgf:7", "feature_id", 1),
    ]  # fmt: skip


def test_blocks_of_a_sirius_file_are_one_feature(tmp_path):
    text = ">compound A\n>parentmass 100.05\n>ionization [M+H]+\n"
    text += ">collision 10\n50 1\n>collision 20\n50 2\n>ms1\n100.05 1\n"
    (tmp_path / "a.ms").write_text(text)
    rejects = []
    files = Features([tmp_path / "a.ms"], skipped=rejects)
    assert shown(files) == [("A", "feature_id", 2)]
    assert len(rejects) == 1


def test_an_id_is_named_with_as_much_of_the_path_as_tells_files_apart(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
    paths = [mgf(tmp_path / folder / "a.mgf", RECORDS[:2]) for folder in ("x", "y")]
    paths[1].write_text(paths[1].read_text().replace("FEATURE_ID=8", "FEATURE_ID=9"))
    found = list(Features(paths))
    assert [each.name for each in found] == ["x/a.mgf:7", "8", "y/a.mgf:7", "9"]
    assert [each.table_names for each in found[:2]] == [("x/a.mgf:7",), ("8", "x/a.mgf:8")]
    assert found[0].notes == ("other features have the id 7, too: this one is called x/a.mgf:7",)
    assert [each.name for each in Features(paths[::-1])] == [
        "y/a.mgf:7", "9", "x/a.mgf:7", "8",
    ]  # fmt: skip


def test_features_of_one_file_and_id_share_rows_of_tables(tmp_path):
    files = Features([mgf(tmp_path / "a.mgf", RECORDS[3:])])
    assert [each.table_names for each in files] == [
        ("alone", "a.mgf:alone"), ("alone #2", "a.mgf:alone", "alone"),
    ]  # fmt: skip


def test_profiles_are_one_line_a_file(tmp_path):
    points = "".join(f"{100 + n / 100:.2f} {2 + np.cos(n / 5):.4f}\n" for n in range(200))
    path = tmp_path / "a.mgf"
    path.write_text(f"BEGIN IONS\nPEPMASS=200.1\nCHARGE=1+\n{points}END IONS\n")
    files = Features([path])
    assert files.warnings() == [
        f"1 record of {path} is in profile mode: peaks are taken as they are, and answers are "
        "unsure; centroid them first"
    ]
    (feature,) = files
    assert feature.notes[0].startswith("1 spectrum is in profile mode")


def test_a_file_is_parsed_once(tmp_path, monkeypatch):
    path, parsed = mgf(tmp_path / "a.mgf", RECORDS), []

    def counted(*arguments, **options):
        parsed.append(arguments[0])
        return read_spectra(*arguments, **options)

    monkeypatch.setattr("mzseek.annotation.reading.read_spectra", counted)
    files = SpectrumFiles(path)
    assert len(files.first(2)[0]) == 2
    features = Features(files)
    assert len(list(features)) == len(list(features)) == len(features)
    assert parsed == [path]
    monkeypatch.setattr("mzseek.annotation.reading._HELD_PEAKS", 150)  # one record of them
    assert shown(Features(SpectrumFiles(path))) == shown(features)
    assert parsed == [path] * 3


@pytest.mark.parametrize("records", [1, 3])
def test_a_file_with_other_records_at_the_second_reading_is_refused(tmp_path, records, monkeypatch):
    monkeypatch.setattr("mzseek.annotation.reading._HELD_PEAKS", 0)
    text = "BEGIN IONS\nTITLE={0}\nFEATURE_ID={0}\nPEPMASS=100\n50 1\nEND IONS\n"
    path = tmp_path / "a.mgf"
    path.write_text("".join(text.format(n) for n in range(2)))
    files = Features([path])
    assert len(list(files)) == 2
    path.write_text("".join(text.format(n) for n in range(records)))
    with pytest.raises(InputError, match=r"a\.mgf: has changed while it was read"):
        list(files)


def test_what_is_met_is_struck_off():
    named = Named({"a": ["1", "2"], "b": ["2", "3"]})
    features = [a_feature("2"), a_feature("9")]
    assert list(named.meet(features)) == features
    assert named.metadata() == {
        "a": {"named": 2, "not_met": 1, "first": ["1"], "ambiguous": 0, "first_ambiguous": []},
        "b": {"named": 2, "not_met": 1, "first": ["3"], "ambiguous": 0, "first_ambiguous": []},
    }
    assert named.lines() == [
        "a: 1 of its 2 features is not among the spectra: '1'",
        "b: 1 of its 2 features is not among the spectra: '3'",
    ]
    assert named
    list(named.meet([a_feature("1"), a_feature("3")]))
    assert not named
    assert named.lines() == []


def test_only_the_first_are_shown_in_the_order_of_the_table():
    named = Named({"a": [str(at) for at in range(9, 0, -1)] + ["x" * 100]})
    (line,) = named.lines()
    assert line.endswith("'9', '8', '7', '6', '5', …")
    assert "10 of its 10 features are" in line
    assert len(Named({"a": ["x" * 100]}).lines()[0]) < 100


def test_no_tables():
    assert not Named({})
    assert (Named({}).metadata(), Named({}).lines()) == ({}, [])


def test_ids_of_several_files_are_named_with_their_file():
    one, two = (
        a_feature(f"{file}:1", id="1", names=(f"{file}:1",), where=f"d/{file}")
        for file in ("a.mgf", "b.mgf")
    )
    named = Named({"mine.csv": ["1", "2"], "the table of formulas": ["b.mgf:1"]})
    list(named.meet([one, two]))
    assert named.metadata() == {
        "mine.csv": {
            "named": 2, "not_met": 1, "first": ["2"], "ambiguous": 1, "first_ambiguous": ["1"],
        },
        "the table of formulas": {
            "named": 1, "not_met": 0, "first": [], "ambiguous": 0, "first_ambiguous": [],
        },
    }  # fmt: skip
    assert named.renamed() == {
        "count": 2,
        "first": [{"id": "1", "name": "a.mgf:1", "file": "d/a.mgf"},
                  {"id": "1", "name": "b.mgf:1", "file": "d/b.mgf"}],
    }  # fmt: skip
    assert named.lines() == [
        "2 features have ids that other features have, too, and were renamed: '1' is 'a.mgf:1', "
        "'1' is 'b.mgf:1'",
        "mine.csv: 1 of its 2 features is not among the spectra: '2'",
        "mine.csv: 1 of its 2 features is in several files, and not used: instead of '1' write "
        "'a.mgf:1' or 'b.mgf:1'",
    ]
