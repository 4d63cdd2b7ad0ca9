"""A strict validator of mzTab-M 2.0.0, written from the published specification.

It knows nothing of the writer. Rules are quoted by section where they are not plain: mandatory
metadata in their order (6.2), mandatory columns in their order (6.3 to 6.5), "is nullable", types,
lists of equal length (5.6), references between sections, and the syntax of parameters (6). Optional
metadata that mzseek never writes are unknown to it.
"""

import re
from pathlib import Path

# Metadata in the order of the specification; which are mandatory; what form values have.
PARAM = r"\[(?P<label>[^,\[\]]*), ?(?P<accession>[^,\[\]]*), ?(?P<name>\"[^\"]*\"|[^,\"\[\]]*), ?"
PARAM += r"(?P<value>\"[^\"]*\"|[^,\"\[\]]*)\]"
URI = r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+"
FIELDS: list[tuple[str, bool, str]] = [
    (r"mzTab-version", True, r"2\.0\.0-M"),
    (r"mzTab-ID", True, r".+"),
    (r"title", False, r".+"),
    (r"description", False, r".+"),
    (r"software\[\d+\]", True, PARAM),
    (r"software\[\d+\]-setting\[\d+\]", False, r".+"),
    (r"quantification_method", True, PARAM),
    (r"ms_run\[\d+\]-location", True, rf"null|{URI}"),
    (r"ms_run\[\d+\]-format", False, PARAM),
    (r"ms_run\[\d+\]-id_format", False, PARAM),
    (r"ms_run\[\d+\]-scan_polarity\[\d+\]", True, PARAM),
    (r"assay\[\d+\]", True, r".+"),
    (r"assay\[\d+\]-ms_run_ref", True, r"ms_run\[\d+\](\|ms_run\[\d+\])*"),
    (r"study_variable\[\d+\]", True, r".+"),
    (r"study_variable\[\d+\]-assay_refs", True, r"assay\[\d+\](\|assay\[\d+\])*"),
    (r"study_variable\[\d+\]-description", True, r".+"),
    (r"cv\[\d+\]-label", True, r"\S+"),
    (r"cv\[\d+\]-full_name", True, r".+"),
    (r"cv\[\d+\]-version", True, r".+"),
    (r"cv\[\d+\]-uri", True, URI),
    (r"database\[\d+\]", True, PARAM),
    (r"database\[\d+\]-prefix", True, r"\S+"),
    (r"database\[\d+\]-version", True, r".+"),
    (r"database\[\d+\]-uri", True, rf"null|{URI}"),
    (r"small_molecule-quantification_unit", True, PARAM),
    (r"small_molecule_feature-quantification_unit", True, PARAM),
    (r"small_molecule-identification_reliability", False, PARAM),
    (r"id_confidence_measure\[\d+\]", True, PARAM),
]
# Of these the elements of one thing stand together, ordered within: ms_run[1] before ms_run[2].
GROUPED = ("software", "ms_run", "assay", "study_variable", "cv", "database")

INTEGER, DECIMAL, TEXT = r"\d+", r"-?\d+(\.\d+)?|NaN", r"[^\t]+"
IDS, ADDUCT = r"\d+(\|\d+)*", r"\[\d*M([+-][\w\d]+)*\]\d*[+-]"
LEVELS = {"MS:1002955": r"[1345]|2[ab]?", "MS:1002896": r"[0-4]", None: r"[1-4]"}
# Columns of each section: name, whether null is allowed, form. "*" stands for a list by number.
SML = [
    ("SML_ID", False, INTEGER), ("SMF_ID_REFS", True, IDS), ("database_identifier", True, TEXT),
    ("chemical_formula", True, TEXT), ("smiles", True, TEXT), ("inchi", True, TEXT),
    ("chemical_name", True, TEXT), ("uri", True, TEXT), ("theoretical_neutral_mass", True, TEXT),
    ("adduct_ions", True, rf"({ADDUCT})(\|({ADDUCT}))*"), ("reliability", True, TEXT),
    ("best_id_confidence_measure", True, PARAM), ("best_id_confidence_value", True, DECIMAL),
    ("abundance_assay[*]", True, DECIMAL), ("abundance_study_variable[*]", True, DECIMAL),
    ("abundance_variation_study_variable[*]", True, DECIMAL),
]  # fmt: skip
SMF = [
    ("SMF_ID", False, INTEGER), ("SME_ID_REFS", True, IDS),
    ("SME_ID_REF_ambiguity_code", True, r"[123]"), ("adduct_ion", True, ADDUCT),
    ("isotopomer", True, PARAM), ("exp_mass_to_charge", False, DECIMAL),
    ("charge", False, r"[1-9]\d*"), ("retention_time_in_seconds", True, DECIMAL),
    ("retention_time_in_seconds_start", True, DECIMAL),
    ("retention_time_in_seconds_end", True, DECIMAL), ("abundance_assay[*]", True, DECIMAL),
]  # fmt: skip
SME = [
    ("SME_ID", False, INTEGER), ("evidence_input_id", False, TEXT),
    ("database_identifier", True, TEXT), ("chemical_formula", True, TEXT), ("smiles", True, TEXT),
    ("inchi", True, TEXT), ("chemical_name", True, TEXT), ("uri", True, URI),
    ("derivatized_form", True, PARAM), ("adduct_ion", True, ADDUCT),
    ("exp_mass_to_charge", False, DECIMAL), ("charge", False, r"[1-9]\d*"),
    ("theoretical_mass_to_charge", False, DECIMAL),
    ("spectra_ref", False, r"ms_run\[\d+\](:[^|]+)?(\|ms_run\[\d+\](:[^|]+)?)*"),
    ("identification_method", False, PARAM), ("ms_level", False, PARAM),
    ("id_confidence_measure[*]", True, DECIMAL), ("rank", False, r"[1-9]\d*"),
]  # fmt: skip
SECTIONS = {"SMH": ("SML", SML), "SFH": ("SMF", SMF), "SEH": ("SME", SME)}
# Lists whose elements belong together, column by column.
PARALLEL = ("database_identifier", "chemical_formula", "smiles", "inchi", "chemical_name", "uri",
            "theoretical_neutral_mass")  # fmt: skip
OPTIONAL = re.compile(r"opt_(global|assay\[\d+\]|study_variable\[\d+\]|ms_run\[\d+\])_[\w\-:\[\]]+",
                      re.ASCII)  # fmt: skip

Row = dict[str, str]


class Checked:
    """A file that was taken apart, with all that is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.faults: list[str] = []
        self.metadata: dict[str, str] = {}
        self.rows: dict[str, list[Row]] = {"SML": [], "SMF": [], "SME": []}
        self._read(path.read_bytes())
        if not self.faults:
            self._check_metadata()
            self._check_sections()
            self._check_references()

    def fault(self, what: str) -> None:
        self.faults.append(what)

    def _read(self, data: bytes) -> None:
        """Lines by their first three letters: sections in order, with a blank line between."""
        columns: list[str] = []
        section, blank, order = "MTD", True, ["MTD"]
        for number, raw in enumerate(data.decode("utf-8").split("\n"), 1):
            cells = raw.split("\t")
            kind = cells[0]
            if not raw:
                blank = True
                continue
            if kind == "COM":
                continue
            if "\r" in raw:
                self.fault(f"line {number}: {raw[:40]!r}")
            if "" in cells:
                self.fault(f"line {number}: an empty cell")
            if kind == "MTD" and order == ["MTD"] and len(cells) == 3:
                if cells[1] in self.metadata:
                    self.fault(f"line {number}: {cells[1]} twice")
                self.metadata[cells[1]] = cells[2]
            elif kind in SECTIONS:
                section, columns = SECTIONS[kind][0], cells[1:]
                order.append(section)
                if not blank:
                    self.fault(f"line {number}: no blank line before the section")
                self._check_header(section, columns, SECTIONS[kind][1])
            elif kind == section and kind in self.rows and len(cells) == len(columns) + 1:
                self.rows[kind].append(dict(zip(columns, cells[1:], strict=True)))
            else:
                self.fault(f"line {number}: {kind} of {len(cells)} cells in section {section}")
            blank = False
        if order != ["MTD", "SML", "SMF", "SME"]:
            self.fault(f"sections are {order}")

    def _numbered(self, name: str) -> list[int]:
        found = [m for key in self.metadata if (m := re.fullmatch(rf"{name}\[(\d+)\](-\w+)?", key))]
        return sorted({int(match[1]) for match in found})

    def _check_header(self, section: str, columns: list[str], expected: list) -> None:
        of = {"assay": "assay", "variable": "study_variable", "measure": "id_confidence_measure"}
        wanted: list[str] = []
        for name, _, _ in expected:
            kind = next((key for end, key in of.items() if name.endswith(f"{end}[*]")), None)
            wanted += [name.replace("*", str(n)) for n in self._numbered(kind)] if kind else [name]
        own, optional = columns[: len(wanted)], columns[len(wanted) :]
        if own != wanted:
            self.fault(f"{section}: columns are {own}, expected {wanted}")
        for name in optional:
            if not OPTIONAL.fullmatch(name):
                self.fault(f"{section}: {name!r} is no optional column")
        if len(set(columns)) < len(columns):
            self.fault(f"{section}: a column twice")

    def _check_metadata(self) -> None:
        places = []
        for key, value in self.metadata.items():
            place = next((n for n, f in enumerate(FIELDS) if re.fullmatch(f[0], key)), None)
            if place is None:
                self.fault(f"metadata {key!r} is unknown")
                continue
            if not re.fullmatch(FIELDS[place][2], value):
                self.fault(f"metadata {key} is {value!r}")
            group = next((g for g in GROUPED if key.startswith(f"{g}[")), None)
            first = next((n for n, f in enumerate(FIELDS) if group and f[0].startswith(group)), 0)
            number = int(re.search(r"\[(\d+)\]", key)[1]) if group else 0
            places.append((first if group else place, number, place))
        if places != sorted(places):
            self.fault("metadata are not in the order of the specification")
        for pattern, mandatory, _ in FIELDS:
            if mandatory and not any(re.fullmatch(pattern, key) for key in self.metadata):
                self.fault(f"metadata lack {pattern}")
        for group in GROUPED:
            numbers = self._numbered(group)
            if numbers != list(range(1, len(numbers) + 1)):
                self.fault(f"{group} has numbers {numbers}")
            needed = [f[0] for f in FIELDS if f[1] and f[0].startswith(rf"{group}\[")]
            for number in numbers:
                for pattern in needed:
                    exact = pattern.replace(r"\d+", str(number), 1)
                    if not any(re.fullmatch(exact, key) for key in self.metadata):
                        self.fault(f"metadata lack {exact}")
        if not self.faults:
            self._check_metadata_references()

    def _check_metadata_references(self) -> None:
        labels = {v for k, v in self.metadata.items() if re.fullmatch(r"cv\[\d+\]-label", k)}
        for key, value in self.metadata.items():
            form = next(f[2] for f in FIELDS if re.fullmatch(f[0], key))
            if form == PARAM and (match := re.fullmatch(PARAM, value)):
                self._check_param(match, labels, key)
            if key.endswith("_ref") or key.endswith("_refs"):
                for named in value.split("|"):
                    kind, number = re.fullmatch(r"(\w+)\[(\d+)\]", named).groups()
                    if int(number) not in self._numbered(kind):
                        self.fault(f"metadata {key} names {named}")
        grouped = {
            name
            for key, value in self.metadata.items() if key.endswith("-assay_refs")
            for name in value.split("|")
        }  # fmt: skip
        if grouped != {f"assay[{n}]" for n in self._numbered("assay")}:
            self.fault("study variables do not hold all assays")

    def _check_param(self, match: re.Match[str], labels: set[str], where: str) -> None:
        label, accession = match["label"].strip(), match["accession"].strip()
        if bool(label) != bool(accession) or not match["name"].strip():
            self.fault(f"{where}: parameter {match[0]} is incomplete")
        if label and (label not in labels or not re.fullmatch(rf"{label}:\w+", accession)):
            self.fault(f"{where}: parameter {match[0]} is of a vocabulary that is not listed")

    def _check_sections(self) -> None:
        labels = {v for k, v in self.metadata.items() if re.fullmatch(r"cv\[\d+\]-label", k)}
        for section, expected in SECTIONS.values():
            for row in self.rows[section]:
                for name, nullable, form in expected:
                    for column in [c for c in row if c == name or _is_of(c, name)]:
                        value = row[column]
                        if value == "null" and nullable:
                            continue
                        match = re.fullmatch(form, value)
                        if value == "null" or match is None:
                            self.fault(f"{section} {row[f'{section}_ID']}: {column} is {value!r}")
                        elif form == PARAM:
                            self._check_param(match, labels, column)
            ids = [row[f"{section}_ID"] for row in self.rows[section]]
            if len(set(ids)) < len(ids):
                self.fault(f"{section}: an identifier twice")

    def _check_references(self) -> None:
        ids = {kind: {row[f"{kind}_ID"] for row in rows} for kind, rows in self.rows.items()}
        system = self.metadata.get("small_molecule-identification_reliability")
        accession = re.fullmatch(PARAM, system)["accession"] if system else None
        prefixes = {v for k, v in self.metadata.items() if k.endswith("-prefix")}
        used: dict[str, set[str]] = {"SMF": set(), "SME": set()}
        for row in self.rows["SML"]:
            self._point(row, "SMF", ids, used)
            if not re.fullmatch(LEVELS[accession], row["reliability"]):
                self.fault(f"reliability {row['reliability']} is not of {accession}")
            lengths = {row[name].count("|") for name in PARALLEL if row[name] != "null"}
            if len(lengths) > 1:
                self.fault(f"SML {row['SML_ID']}: lists of different lengths")
            for each in row["database_identifier"].split("|"):
                if each != "null" and each.partition(":")[0] not in prefixes:
                    self.fault(f"SML {row['SML_ID']}: {each} is of no database")
            for each in row["theoretical_neutral_mass"].split("|"):
                if not re.fullmatch(rf"null|{DECIMAL}", each):
                    self.fault(f"SML {row['SML_ID']}: mass {each}")
            for each in row["uri"].split("|"):
                if not re.fullmatch(rf"null|{URI}", each):
                    self.fault(f"SML {row['SML_ID']}: uri {each}")
        for row in self.rows["SMF"]:
            self._point(row, "SME", ids, used)
            several = "|" in row["SME_ID_REFS"]
            if several != (row["SME_ID_REF_ambiguity_code"] != "null"):
                self.fault(f"SMF {row['SMF_ID']}: ambiguity code")
        for kind in ("SMF", "SME"):
            if used[kind] != ids[kind]:
                self.fault(f"{kind}: rows that nothing refers to: {ids[kind] - used[kind]}")
        runs = {f"ms_run[{n}]" for n in self._numbered("ms_run")}
        for row in self.rows["SME"]:
            if row["database_identifier"].partition(":")[0] not in prefixes - {"null"}:
                self.fault(f"SME {row['SME_ID']}: {row['database_identifier']} is of no database")
            named = {each.partition(":")[0] for each in row["spectra_ref"].split("|")}
            if not named <= runs:
                self.fault(f"SME {row['SME_ID']}: spectra of {named - runs}")

    def _point(self, row: Row, kind: str, ids: dict[str, set[str]], used: dict) -> None:
        named = set(row[f"{kind}_ID_REFS"].split("|")) - {"null"}
        if not named <= ids[kind]:
            self.fault(f"{kind}_ID_REFS {named - ids[kind]} do not exist")
        used[kind] |= named


def _is_of(column: str, name: str) -> bool:
    before, star, after = name.partition("*")
    return bool(star) and bool(re.fullmatch(re.escape(before) + r"\d+" + re.escape(after), column))
