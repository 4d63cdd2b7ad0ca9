r"""Fit and measure proposed structures: molecules removed from database and library.

    python benchmarks/proposals.py rates massbank.tsv.gz massbank_more.tsv.gz --out rates.json
    python benchmarks/proposals.py collect massbank.tsv.gz massbank_more.tsv.gz --fold val \
        --rates rates.json --out val.jsonl
    python benchmarks/proposals.py fit val.jsonl --rates rates.json --out model.json
    python benchmarks/proposals.py collect massbank.tsv.gz massbank_more.tsv.gz --fold test \
        --out test.jsonl
    python benchmarks/proposals.py measure test.jsonl
    python benchmarks/proposals.py speed my.mgf

`rates` counts how many products of known molecules are known themselves, for each transformation.
`collect` takes one spectrum of each molecule and ion mode of a fold, and proposes structures with
the molecule removed from database, library and analogs; all other molecules stay. `fit` makes the
parameters that come with mzseek, `measure` the table of the docs. A relative is a bundled molecule
that one transformation turns into the molecule. Controls: products in random order, and the
proposals of the spectrum that is nearest in mass.
"""

import argparse
import json
import time
import zlib
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
from rdkit import Chem, RDLogger
from scipy.optimize import minimize
from scipy.special import logsumexp

from mzseek.annotation.annotator import Annotator
from mzseek.annotation.candidates import Molecule, Source
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature
from mzseek.annotation.proposing import list_features, scored_products
from mzseek.annotation.query import FeatureQuery, ask
from mzseek.annotation.reading import Features
from mzseek.annotation.references import Neighbours, neighbours, packed_fingerprint
from mzseek.annotation.scoring import score
from mzseek.bundle.bundle import Bundle
from mzseek.chem import inchikey_block
from mzseek.chem.molecules import describe_structure, standardise
from mzseek.core.errors import MoleculeError
from mzseek.datasets.files import read_table
from mzseek.evidence.queries import ExcludedAnalogs, Molecules
from mzseek.metrics.intervals import bootstrap
from mzseek.proposals.generation import generate, products
from mzseek.proposals.proposal import FEATURES, LIST_FEATURES, ProposalModel, default_model
from mzseek.proposals.transformations import transformations
from mzseek.similarity.packed import packed_tanimoto
from mzseek.spectra import Spectrum

HELD_OUT = ("val", "test")
SHOWN = 50  # proposals that count
_PSEUDO = 200.0  # products of a transformation that has none counted
_RIDGE = 0.01
_SMALL = 40  # atoms of the molecules that transformations are counted on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    rates = commands.add_parser("rates")
    rates.add_argument("tables", type=Path, nargs="+")
    rates.add_argument("--molecules", type=int, default=400)
    rates.add_argument("--out", type=Path, required=True)
    rates.set_defaults(run=count_rates)
    collected = commands.add_parser("collect")
    collected.add_argument("tables", type=Path, nargs="+")
    collected.add_argument("--fold", default="val")
    collected.add_argument("--skip", type=int, default=0)
    collected.add_argument("--most", type=int, default=200, help="spectra")
    collected.add_argument("--rates", type=Path, help="instead of those of the model")
    collected.add_argument("--out", type=Path, required=True)
    collected.set_defaults(run=collect)
    fitted = commands.add_parser("fit")
    fitted.add_argument("rows", type=Path)
    fitted.add_argument("--rates", type=Path, required=True)
    fitted.add_argument("--out", type=Path, required=True)
    fitted.set_defaults(run=fit)
    measured = commands.add_parser("measure")
    measured.add_argument("rows", type=Path)
    measured.set_defaults(run=measure)
    timed = commands.add_parser("speed")
    timed.add_argument("spectra", type=Path)
    timed.add_argument("--most", type=int, default=50, help="features")
    timed.set_defaults(run=speed)
    given = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")
    given.run(given)


def count_rates(given: argparse.Namespace) -> None:
    """Count how many products of each transformation are bundled molecules."""
    held_out = keys_of_folds(given.tables)
    table = Bundle.open().molecules.table
    rows = [
        (smiles, sources)
        for key, smiles, sources in zip(
            *(table[name].to_pylist() for name in ("key", "smiles", "sources")), strict=True
        )
        if key not in held_out
    ]
    known = {smiles for smiles, _ in rows}
    measured = [smiles for smiles, sources in rows if "massbank" in sources]
    measured.sort(key=lambda smiles: zlib.crc32(smiles.encode()))
    made, real = Counter(), Counter()
    small = (smiles for smiles in measured if Chem.MolFromSmiles(smiles).GetNumAtoms() <= _SMALL)
    for number, smiles in enumerate(islice(small, given.molecules), 1):
        parent = Chem.MolFromSmiles(smiles)
        for transformation in transformations():
            of_parent = set(map(Chem.MolToSmiles, products(transformation, parent)))
            made[transformation.name] += len(of_parent)
            real[transformation.name] += len(of_parent & known - {smiles})
        if number % 20 == 0:
            print(number, sum(made.values()), sum(real.values()), flush=True)
            counts = {one.name: [made[one.name], real[one.name]] for one in transformations()}
            given.out.write_text(json.dumps({"molecules": number, "counts": counts}, indent=1))


def keys_of_folds(tables: list[Path]) -> set[str]:
    """First InChIKey blocks of the molecules of the validation and test folds."""
    keys: set[str] = set()
    for path in tables:
        table = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t"))
        for fold, key in zip(table["fold"].to_pylist(), table["inchikey"].to_pylist(), strict=True):
            if fold in HELD_OUT:
                keys.add(key[:14])
    return keys


def draw(given: argparse.Namespace) -> list[tuple[Spectrum, Molecule]]:
    """One spectrum of each molecule and ion mode of a fold, drawn by its identifier."""
    drawn: dict[tuple[str, int], tuple[int, Spectrum]] = {}
    for path in given.tables:
        for spectrum in read_table(path, lambda where, reason: None):
            if spectrum.metadata["fold"] == given.fold:
                lot = zlib.crc32(spectrum.identifier.encode())
                key = (spectrum.metadata["inchikey"], spectrum.polarity)
                if key not in drawn or lot < drawn[key][0]:
                    drawn[key] = lot, spectrum
    chosen = [spectrum for _, spectrum in sorted(drawn.values(), key=lambda one: one[0])]
    queries = []
    for spectrum in chosen[given.skip : given.skip + given.most]:
        one = describe_structure(spectrum.metadata["smiles"])
        queries.append((spectrum, Molecule(one.smiles, one.key, one.formula, one.mass)))
    return queries


def collect(given: argparse.Namespace) -> None:
    """Propose structures for each query without its molecule, and write what came of it."""
    model = default_model()
    if given.rates:
        rates, default_rate = smoothed(json.loads(given.rates.read_text())["counts"])
        model = replace(model, rates=rates, default_rate=default_rate)
    annotator = Annotator(AnnotateConfig())
    known = dict(
        zip(*(annotator.bundle.molecules.table[n].to_pylist() for n in ("smiles", "key")),
            strict=True)
    )  # fmt: skip
    started = time.perf_counter()
    with given.out.open("w") as file:
        for number, (spectrum, truth) in enumerate(draw(given)):
            row = examine(annotator, spectrum, truth, model)
            row["relative"] = bool(relatives(truth, known))
            file.write(json.dumps(row) + "\n")
            if number % 10 == 0:
                print(number, f"{time.perf_counter() - started:.0f} s", flush=True)
                file.flush()


def speed(given: argparse.Namespace) -> None:
    """Print seconds of one core per feature, without and with proposals."""
    for number in (0, SHOWN):
        annotator = Annotator(AnnotateConfig(propose=number))
        features = list(islice(Features(given.spectra, annotator.config), given.most + 1))
        annotator.annotate_batch(features[:1])  # compile, and decompress the bundle
        started = time.process_time()
        for feature in features[1:]:
            annotator.annotate_batch([feature])
        seconds = (time.process_time() - started) / len(features[1:])
        print(f"--propose {number}: {seconds:.2f} s of a core per feature")


class Without(Source):
    """A source without one molecule."""

    def __init__(self, source: Source, key: str) -> None:
        self._source, self._key, self.label = source, key, source.label

    def __len__(self) -> int:
        return len(self._source)

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Return molecules whose mass is at most `reach` away."""
        return [one for one in self._source.within(mass, reach) if one.key != self._key]

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the source."""
        return self._source.metadata()


def examine(
    annotator: Annotator, spectrum: Spectrum, truth: Molecule, model: ProposalModel
) -> dict[str, Any]:
    """Proposals for a spectrum whose molecule is in neither database nor library."""
    source = Without(annotator.source, truth.key)
    feature = Feature(spectrum.identifier, "given", (spectrum,))
    query = ask(feature, source, annotator.config)
    tolerance = annotator.config.precursor_tolerance
    [found] = neighbours([query], annotator.libraries, tolerance, annotator.bundle.names)
    near = Neighbours(
        *({key: one for key, one in part.items() if key != truth.key}
          for part in (found.matches, found.analogs, found.similar))
    )  # fmt: skip
    bundle = annotator.bundle
    fitted = (annotator.fitted, bundle.confidence, bundle.fingerprint)
    products = scored_products(query, near, source, *fitted, model, hidden=[truth.smiles])
    row: dict[str, Any] = {
        "id": spectrum.identifier, "truth": truth.key, "smiles": truth.smiles,
        "mode": spectrum.polarity, "mass": truth.mass, "adduct": spectrum.adduct,
        "nearest": near.nearest, "candidate": best_candidate(query, truth, *fitted),
        "products": [],
    }  # fmt: skip
    if products is not None:
        molecules = [one for listed in products.query.molecules for one in listed]
        row |= {
            "generated": len(molecules) + len(products.unscored),
            "was_generated": truth.key in {*products.unscored, *(m.key for m in molecules)},
            "products": [one.smiles for one in molecules],
            "position": next((i for i, m in enumerate(molecules) if m.key == truth.key), -1),
            "features": products.features.round(5).tolist(),
            "explained": products.scored.explained.round(5).tolist(),
            "absolute": products.scored.absolute.sum(1).round(5).tolist(),
        }
    return row


def best_candidate(query: FeatureQuery, truth: Molecule, *fitted: Any) -> str | None:
    """SMILES of the best candidate of the database."""
    if not query.n_candidates:
        return None
    model, confidence, fingerprint = fitted
    molecules = [one for listed in query.molecules for one in listed]
    table = Molecules([*(one.smiles for one in molecules), truth.smiles], fingerprint, jobs=1)
    excluded = [ExcludedAnalogs(table, np.arange(len(table)))]
    [scored], _ = score([query], model, confidence, fingerprint, excluded_analogs=excluded)
    return molecules[int(np.argmax(scored.scores))].smiles


def relatives(truth: Molecule, known: dict[str, str]) -> list[str]:
    """Bundled molecules that one transformation turns into a molecule."""
    parent = Chem.MolFromSmiles(truth.smiles)
    near = set()
    for transformation in transformations():
        for product in products(transformation, parent):
            try:
                near.add(Chem.MolToSmiles(standardise(product)))
            except MoleculeError:
                continue
    reach = 1e-3
    return [
        smiles
        for smiles in sorted(near & known.keys())
        if known[smiles] != truth.key
        and any(one.molecule.key == truth.key for one in generate([smiles], truth.mass, reach))
    ]


def smoothed(counts: dict[str, list[int]]) -> tuple[dict[str, float], float]:
    """Share of products that are known of each transformation, drawn to the share of all."""
    overall = sum(real for _, real in counts.values()) / sum(made for made, _ in counts.values())
    return {
        name: (real + _PSEUDO * overall) / (made + _PSEUDO)
        for name, (made, real) in counts.items()
        if made
    }, overall


def fit(given: argparse.Namespace) -> None:
    """Fit the weights of proposals, then the probability that the molecule is among them."""
    rows = read(given.rows)
    counts = json.loads(given.rates.read_text())
    rates, default_rate = smoothed(counts["counts"])
    inside = [row for row in rows if row["products"] and row["position"] >= 0]
    lists = [(np.array(row["features"]), row["position"]) for row in inside]

    def loss(weights: np.ndarray) -> float:
        total = _RIDGE * float(weights @ weights)
        for features, position in lists:
            log_odds = features @ weights
            total += logsumexp(log_odds) - log_odds[position]
        return total

    weights = minimize(loss, np.zeros(len(FEATURES)), method="BFGS").x
    model = ProposalModel(
        dict(zip(FEATURES, weights.round(5).tolist(), strict=True)), {}, {}, 0.0, {}
    )
    made = [row for row in rows if row["products"]]
    values = np.array([list_values(row, model) for row in made])
    is_in = np.array([row["position"] >= 0 for row in made], float)
    mean, spread = values.mean(0), values.std(0) + 1e-9
    standard = np.column_stack([np.ones(len(values)), (values - mean) / spread])

    def logistic(parameters: np.ndarray) -> float:
        log_odds = standard @ parameters
        return float(
            (np.logaddexp(0, log_odds) - is_in * log_odds).sum() + parameters[1:] @ parameters[1:]
        )

    found = minimize(logistic, np.zeros(standard.shape[1]), method="BFGS").x
    slopes = found[1:] / spread
    included = {"intercept": float(found[0] - slopes @ mean)}
    included |= dict(zip(LIST_FEATURES, slopes.tolist(), strict=True))
    fitted_on = {
        "spectra": len(rows), "molecules": len({row["truth"] for row in rows}), "fold": "val",
        "with the molecule among the scored products": len(inside),
        "molecules that transformations were counted on": counts["molecules"],
    }  # fmt: skip
    model = replace(
        model, included={name: round(value, 5) for name, value in included.items()},
        rates={name: float(f"{rate:.3g}") for name, rate in sorted(rates.items())},
        default_rate=float(f"{default_rate:.3g}"), fitted_on=fitted_on,
    )  # fmt: skip
    given.out.write_text(json.dumps(model.to_dict(), indent=1) + "\n")
    print(json.dumps({"weights": model.weights, "included": model.included}, indent=1))


def list_values(row: dict[str, Any], model: ProposalModel) -> np.ndarray:
    """Features of a list of products, as `Products.list_features` computes them."""
    features = np.array(row["features"])
    return list_features(
        features, np.array(row["explained"]), np.array(row["absolute"]),
        model.log_odds(features), row["nearest"],
    )  # fmt: skip


def read(path: Path) -> list[dict[str, Any]]:
    """Rows that `collect` has written."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def measure(given: argparse.Namespace) -> None:
    """Print the table of the docs."""
    rows, model = read(given.rows), default_model()
    for row in rows:
        row["order"], row["p"], row["included"] = ranking(row, model)
    others = {
        row["id"]: min(
            (other for other in rows if other["truth"] != row["truth"] and other["products"]),
            key=lambda other, row=row: (abs(other["mass"] - row["mass"]), other["id"]),
        )
        for row in rows
    }
    print(f"{len(rows)} spectra of {len({row['truth'] for row in rows})} molecules")
    parts = {"all": rows, "with a known relative": [row for row in rows if row["relative"]]}
    for name, part in parts.items():
        print(f"\n{name}: {len(part)} spectra")
        show("generated", part, lambda row: row.get("was_generated", False))
        show("scored", part, lambda row: row.get("position", -1) >= 0)
        for k in (1, 10, SHOWN):
            show(f"among the first {k}", part, lambda row, k=k: rank(row) <= k)
            show(f"control: random order, {k}", part, lambda row, k=k: chance(row, k))
            show(f"control: by rate, without the spectrum, {k}", part,
                 lambda row, k=k: rank_by_rate(row) <= k)  # fmt: skip
        show("control: proposals of another spectrum", part,
             lambda row: row["truth"] in shown_keys(others[row["id"]]))  # fmt: skip
    both = [row for row in rows if row["products"] and row["candidate"]]
    print(f"\nTanimoto (morgan2), {len(both)} spectra with proposals and candidates")
    show("best proposal", both, lambda row: likeness(row, [row["products"][row["order"][0]]]))
    show("best candidate", both, lambda row: likeness(row, [row["candidate"]]))
    difference = [
        likeness(row, [row["products"][row["order"][0]]]) - likeness(row, [row["candidate"]])
        for row in both
    ]
    print_interval("difference", difference, both, (-1.0, 1.0))
    show(
        "control: a random proposal",
        both,
        lambda row: np.mean(
            [
                likeness(row, [smiles])
                for smiles in row["products"][:: max(len(row["products"]) // 10, 1)]
            ]
        ),
    )
    show(
        "control: best proposal of another spectrum",
        both,
        lambda row: likeness(row, [others[row["id"]]["products"][others[row["id"]]["order"][0]]]),
    )
    included = np.array([row["included"] for row in rows])
    right = np.array([rank(row) <= SHOWN for row in rows], float)
    print(
        f"\nprobability that the molecule is among the first {SHOWN}: mean {included.mean():.3f}, "
        f"observed {right.mean():.3f}, calibration error {100 * ece(included, right):.1f}"
    )
    with_truth = [row for row in rows if 0 < rank(row) <= SHOWN]
    first = np.array([row["p"][row["order"][0]] / row["p"][row["order"][:SHOWN]].sum()
                      for row in with_truth])  # fmt: skip
    hits = np.array([rank(row) == 1 for row in with_truth], float)
    print(
        f"probability of the first, where the molecule is among them: mean {first.mean():.3f}, "
        f"observed {hits.mean():.3f}, calibration error {100 * ece(first, hits):.1f}"
    )


def ranking(row: dict[str, Any], model: ProposalModel) -> tuple[np.ndarray, np.ndarray, float]:
    """Order of products, their probabilities, and that the molecule is among those shown."""
    if not row["products"]:
        return np.zeros(0, int), np.zeros(0), 0.0
    log_odds = model.log_odds(np.array(row["features"]))
    p = np.exp(log_odds - logsumexp(log_odds))
    order = np.argsort(-log_odds, kind="stable")
    return order, p, p[order[:SHOWN]].sum() * model.probability_included(list_values(row, model))


def rank(row: dict[str, Any]) -> float:
    """Rank of the molecule among its proposals; infinite where it is none."""
    if row.get("position", -1) < 0:
        return np.inf
    return int(np.flatnonzero(row["order"] == row["position"])[0]) + 1


def rank_by_rate(row: dict[str, Any]) -> float:
    """Rank of the molecule where only the rates of transformations count."""
    if row.get("position", -1) < 0:
        return np.inf
    rates = np.array(row["features"])[:, FEATURES.index("rate")]
    own = rates[row["position"]]
    return float((rates > own).sum() + (1 + (rates == own).sum()) / 2)


def chance(row: dict[str, Any], k: int) -> float:
    """Probability that the molecule is among the first of a random order."""
    return min(k / len(row["products"]), 1.0) if row.get("position", -1) >= 0 else 0.0


def shown_keys(row: dict[str, Any]) -> set[str]:
    return {inchikey_block(row["products"][index]) for index in row["order"][:SHOWN]}


def likeness(row: dict[str, Any], smiles: list[str]) -> float:
    words = np.stack([packed_fingerprint(text) for text in [row["smiles"], *smiles]])
    return float(packed_tanimoto(words[:1], words[1:]).max())


def show(name: str, rows: list[dict[str, Any]], value: Any) -> None:
    print_interval(name, [float(value(row)) for row in rows], rows)


def print_interval(
    name: str,
    values: list[float],
    rows: list[dict[str, Any]],
    bounds: tuple[float, float] = (0.0, 1.0),
) -> None:
    one = bootstrap(values, groups=[row["truth"] for row in rows], bounds=bounds)
    print(f"{name:45} {100 * one.mean:5.1f}  ({100 * one.low:.1f} to {100 * one.high:.1f})")


def ece(probabilities: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error over bins of equal width."""
    place = np.minimum((probabilities * bins).astype(int), bins - 1)
    gaps = [abs((probabilities - right)[place == bin].sum()) for bin in np.unique(place)]
    return float(np.sum(gaps) / max(len(right), 1))


if __name__ == "__main__":
    main()
