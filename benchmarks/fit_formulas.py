"""Fit the parameters of formula ranking: src/mzseek/data/formulas.json.

    python benchmarks/fit_formulas.py SHARED --work FOLDER --out src/mzseek/data/formulas.json

Five fits, each on spectra or molecules of the train fold; temperatures on those of validation:

1. prior: a small network (torch), which tells formulas of molecules of `molecules.tsv.gz` from
   other formulas of the same mass. Molecules of the validation and test folds are left out.
2. errors: shares of the cases of mass errors, by instrument (expectation maximisation).
3. parts: which parts of an ion are fragments (log-linear).
4. common: log-weights of common fragments and losses.
5. weights: of all evidence, by ion mode (conditional logit), the isotope pattern's with simulated
   survey scans; then temperatures.

One spectrum a molecule and ion, of every second to sixth molecule. Fits 1 to 4 are kept in FOLDER
and used again if they are there.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from formula_spectra import SETS, fold_spectra, true_formula, with_simulated_scan
from mzseek.chem import inchikey_block
from mzseek.chem.adducts import ELECTRON_MASS, parse_adduct
from mzseek.chem.formulas import parse_formula
from mzseek.core.errors import MzseekError
from mzseek.decision import fit_temperature
from mzseek.formulas import broken_rule, enumerate_formulas, formula_text
from mzseek.formulas.enumeration import MASSES, VALENCES, counts_of, parts_of_mass
from mzseek.formulas.model import (
    FEATURES,
    OTHER,
    RECALIBRATED,
    FormulaModel,
    PolarityWeights,
    by_counts,
)
from mzseek.formulas.prior import FormulaPrior, descriptors
from mzseek.formulas.scoring import SpectrumEvidence, score_formulas
from mzseek.formulas.subformulas import (
    ERROR_CASES,
    EXPECTED,
    LEAST_FRAGMENT,
    LEAST_LOSS,
    NEIGHBOURHOOD,
    PART_WEIGHTS,
    Ions,
    chosen_peaks,
    matched,
    part_descriptors,
)
from mzseek.spectra import Spectrum
from mzseek.spectra.records import ORBITRAP, QTOF, instrument_kind

# How often molecules of a source are drawn: those that people measure more often.
SOURCES = {"uspto": 0.1, "moses500k": 0.03, "herg": 0.1, "zinc": 0.03, "hmdb": 1.0, "hmdb5": 0.5,
           "phyto": 1.0, "chemicals": 1.5, "chemblnp": 1.0, "msg": 4.0, "bio20k": 4.0,
           "massbank": 5.0}  # fmt: skip
DRAWN, DECOYS, EPOCHS, HIDDEN, BATCH = 40_000, 96, 24, (48, 16), 128
FITTED, MOST_MASS, TOLERANCE_PPM = 16_000, 800.0, 5.0
LEAST_SHARE = 0.01  # of the strongest peak, of peaks that parts are fitted on
NEAR_PPM = {QTOF: 8.0, ORBITRAP: 1.5}
FIXED = ("ion", "related")  # a share is a prior already; survey scans are not in the train fold
FIRST_WEIGHTS = {"strong": 0.5, "medium": 0.5, "weak": 0.5, "faint": 0.5}
RIDGE = 1e-3


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("shared", type=Path)
    asked.add_argument("--work", type=Path, required=True)
    asked.add_argument("--out", type=Path, required=True)
    given = asked.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)

    def kept(name: str, fit: Callable[[], Any]) -> Any:
        path = given.work / f"{name}.json"
        if not path.exists():
            path.write_text(json.dumps(fit()))
        return json.loads(path.read_text())

    prior = kept("prior", lambda: fit_prior(given.shared))
    train = list(fold_spectra(given.shared, "train"))
    errors = kept("errors", lambda: fit_errors(train[::6]))
    parts = np.array(kept("parts", lambda: fit_parts(train[::3])))
    common = kept("common", lambda: fit_common(train[::2], parts))
    modes = {
        sign: PolarityWeights(
            np.array([FIRST_WEIGHTS.get(name, 1.0) for name in FEATURES]),
            1.0,
            ion_shares(train, sign),
            {kind: by_counts(weights) for kind, weights in common[str(sign)].items()},
        )
        for sign in (1, -1)
    }
    cases = {name: np.array(shares) for name, shares in errors.items()}
    model = FormulaModel(FormulaPrior.from_dict(prior), modes, cases, parts)
    fitted = fit_weights(model, train, list(fold_spectra(given.shared, "val")))
    given.out.write_text(json.dumps(fitted.to_dict(), separators=(",", ":")) + "\n")


def fit_prior(shared: Path) -> Any:
    """Fit the network to known formulas against others of their mass, some drawn at random."""
    import torch

    rng = np.random.default_rng(7)
    truth = drawn_formulas(shared, rng)[:FITTED]
    decoys = np.zeros((len(truth), DECOYS, truth.shape[1]), np.int64)
    offsets = np.full((len(truth), DECOYS), -np.inf)
    for at, counts in enumerate(truth):
        mass = float(counts @ MASSES)
        blurred = mass * (1 + 2e-6 * rng.standard_normal())
        others = enumerate_formulas(blurred, mass * TOLERANCE_PPM * 1e-6)
        others = others[(others != counts).any(1)]
        few = others[rng.permutation(len(others))[:DECOYS]]
        decoys[at, : len(few)] = few
        offsets[at, : len(few)] = np.log(max(len(others) / DECOYS, 1.0))
    lists = np.concatenate([truth[:, None], decoys], 1)
    width = descriptors(truth[:1]).shape[1]
    values = descriptors(lists.reshape(-1, truth.shape[1])).reshape(*lists.shape[:2], width)
    x = torch.tensor(values, dtype=torch.float32)
    offset = torch.tensor(np.concatenate([np.zeros((len(truth), 1)), offsets], 1)).float()
    mean = x[:2000].reshape(-1, width).mean(0)
    spread = x[:2000].reshape(-1, width).std(0) + 0.05
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = torch.nn.Sequential(
        torch.nn.Linear(width, HIDDEN[0]), torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN[0], HIDDEN[1]), torch.nn.ReLU(), torch.nn.Linear(HIDDEN[1], 1),
    )  # fmt: skip

    def loss(rows: Any) -> Any:
        scores = network((x[rows] - mean) / spread)[..., 0] + offset[rows]
        return (torch.logsumexp(scores, 1) - scores[:, 0]).mean()

    held = len(truth) // 10
    optimizer = torch.optim.Adam(network.parameters(), 3e-3, weight_decay=1e-5)
    steps = EPOCHS * ((len(truth) - held) // BATCH)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps + 1)
    for epoch in range(EPOCHS):
        order = held + np.random.default_rng(epoch).permutation(len(truth) - held)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            optimizer.zero_grad()
            loss(torch.tensor(order[start : start + BATCH])).backward()
            optimizer.step()
            rate.step()
        with torch.no_grad():
            print(f"prior, epoch {epoch}: held-out loss {float(loss(torch.arange(held))):.3f}",
                  flush=True)  # fmt: skip
    layers = [layer for layer in network if hasattr(layer, "weight")]
    weights = [layer.weight.detach().double().numpy().T for layer in layers]
    biases = [layer.bias.detach().double().numpy() for layer in layers]
    centre, scale = mean.double().numpy(), spread.double().numpy()
    biases[0] = biases[0] - (centre / scale) @ weights[0]
    weights[0] = weights[0] / scale[:, None]
    return FormulaPrior(weights, biases).to_dict()


def drawn_formulas(shared: Path, rng: np.random.Generator) -> np.ndarray:
    """Draw molecules by source, without those of the validation and test folds."""
    held: set[str] = set()
    for name in SETS:
        table = pd.read_csv(shared / "data" / f"{name}.tsv.gz", sep="\t",
                            usecols=["inchikey", "fold"])  # fmt: skip
        held |= set(table[table.fold != "train"].inchikey.str[:14])
    pool = pd.read_csv(shared / "data" / "molecules.tsv.gz", sep="\t")
    weight = pool.source.map(SOURCES).fillna(0.0).to_numpy()
    weight = weight * ((pool.mass > 60) & (pool.mass < 1000)).to_numpy()
    drawn = pool.iloc[rng.choice(len(pool), DRAWN, replace=False, p=weight / weight.sum())]
    counts = []
    for formula, smiles in zip(drawn.formula, drawn.smiles, strict=True):
        try:
            parsed = parse_formula(formula)
            if parsed.charge or broken_rule(parsed) or inchikey_block(smiles) in held:
                continue
            row = counts_of(parsed)
        except MzseekError:
            continue
        if row[10:].sum() == 0 and row @ MASSES < MOST_MASS:
            counts.append(row)
    return np.array(counts)


def ion_of(spectrum: Spectrum) -> Ions | None:
    """Return the true ion of a spectrum; None where its elements cannot be enumerated."""
    try:
        counts = counts_of(parse_formula(spectrum.metadata["formula"]))
        ions = Ions.of(counts[None], parse_adduct(str(spectrum.adduct)))
    except MzseekError:
        return None
    return ions if (ions.counts >= 0).all() else None


def sign_of(spectrum: Spectrum) -> int:
    return 1 if parse_adduct(str(spectrum.adduct)).charge > 0 else -1


def fit_errors(spectra: Sequence[Spectrum]) -> Any:
    """Fit the share of each case of mass errors, by instrument."""
    neutral = np.zeros(len(PART_WEIGHTS))
    neutral[PART_WEIGHTS.index("radical")] = -1.6
    by_kind: dict[str, list[np.ndarray]] = defaultdict(list)
    for spectrum in spectra:
        ions, kind = ion_of(spectrum), instrument_kind(spectrum.metadata)
        if ions is None or kind is None:
            continue
        peaks = chosen_peaks(spectrum.mz, spectrum.intensities, spectrum.precursor_mz)
        match = matched(peaks, ions, sign_of(spectrum), float(ions.masses[0]), 30.0, neutral)
        by_kind[kind].append(np.log(1 - EXPECTED + EXPECTED * match.ratios[0]).sum(0))
    shares = {}
    for kind, rows in by_kind.items():
        logs, share = np.array(rows), np.full(len(ERROR_CASES), 1 / len(ERROR_CASES))
        for _ in range(200):
            belongs = logs + np.log(share + 1e-12)
            belongs = np.exp(belongs - belongs.max(1, keepdims=True))
            share = (belongs / belongs.sum(1, keepdims=True)).mean(0)
        shares[kind] = share
    shares[OTHER] = (shares[ORBITRAP] + shares[QTOF]) / 2
    # A recalibrated file has no bias left; how wide its errors are, its tolerance does not tell.
    unbiased = np.array([bias == 0 for bias, _ in ERROR_CASES])
    shares[RECALIBRATED] = np.where(unbiased, shares[OTHER], 0) / shares[OTHER][unbiased].sum()
    return {
        kind: (np.maximum(share, 0.002) / np.maximum(share, 0.002).sum()).round(4).tolist()
        for kind, share in shares.items()
    }


def explained_peaks(spectrum: Spectrum, ions: Ions) -> list[tuple[bool, Any, Any, np.ndarray]]:
    """Return for each peak the parts of the ion near it: fragments, losses, and errors in ppm."""
    ion, sign = ions.counts[0], sign_of(spectrum)
    peaks = chosen_peaks(spectrum.mz, spectrum.intensities, spectrum.precursor_mz)
    found = []
    for mz, share in zip(peaks.mz.tolist(), peaks.shares.tolist(), strict=True):
        if share < LEAST_SHARE:
            continue
        atoms, mass = mz + sign * ELECTRON_MASS, float(ions.masses[0])
        is_loss = atoms > mass / 2
        centre, least = (mass - atoms, LEAST_LOSS) if is_loss else (atoms, LEAST_FRAGMENT)
        parts = parts_of_mass(centre - NEIGHBOURHOOD, centre + NEIGHBOURHOOD, ion, least)
        fragments, losses = (ion - parts, parts) if is_loss else (parts, ion - parts)
        possible = (fragments >= 0).all(1) & (losses >= 0).all(1)
        possible &= 2 + fragments @ VALENCES >= LEAST_FRAGMENT
        possible &= 2 + losses @ VALENCES >= LEAST_LOSS
        fragments, losses = fragments[possible], losses[possible]
        errors = (fragments @ MASSES - atoms) / atoms * 1e6
        if len(fragments):
            found.append((is_loss, fragments, losses, errors))
    return found


def fit_parts(spectra: Sequence[Spectrum]) -> Any:
    """Fit which parts of an ion are fragments, on peaks of Orbitraps with a part within 3 ppm."""
    rows, near, sizes = [], [], []
    for spectrum in spectra:
        ions = ion_of(spectrum)
        if ions is None or instrument_kind(spectrum.metadata) != ORBITRAP:
            continue
        for _, fragments, losses, errors in explained_peaks(spectrum, ions):
            is_near = np.abs(errors) < 3
            if is_near.any() and len(errors) > 1:
                rows.append(part_descriptors(fragments, losses))
                near.append(is_near)
                sizes.append(len(errors))
    x, y, counts = np.concatenate(rows), np.concatenate(near), np.array(sizes)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = x @ weights
        high = np.repeat(np.maximum.reduceat(scores, first), counts)
        value = np.exp(scores - high)
        total, right = np.add.reduceat(value, first), np.add.reduceat(value * y, first)
        gradient = np.add.reduceat((value * y)[:, None] * x, first) / right[:, None]
        gradient -= np.add.reduceat(value[:, None] * x, first) / total[:, None]
        size = len(counts)
        return (
            float(-np.log(right / total).sum() / size + 1e-4 * weights @ weights),
            -gradient.sum(0) / size + 2e-4 * weights,
        )

    found = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B")
    weights = found.x
    weights[PART_WEIGHTS.index("constant")] = 0.0
    weights[PART_WEIGHTS.index("constant")] = -(x @ weights).mean()  # the average part weighs 1
    print(f"parts: {len(counts):,} peaks, loss {loss(np.zeros(len(weights)))[0]:.3f} without, "
          f"{found.fun:.3f} with weights")  # fmt: skip
    return weights.round(4).tolist()


def fit_common(spectra: Sequence[Spectrum], weights: np.ndarray) -> Any:
    """Fit log-weights of fragments and losses that are seen more or less often than expected."""
    data = []
    for spectrum in spectra:
        ions, kind = ion_of(spectrum), instrument_kind(spectrum.metadata)
        if ions is None:
            continue
        for is_loss, fragments, losses, errors in explained_peaks(spectrum, ions):
            names = [formula_text(c) for c in (losses if is_loss else fragments)]
            near = 1 / (1 + (errors / NEAR_PPM.get(str(kind), 4.0)) ** 2 / 5) ** 3
            plain = np.exp(part_descriptors(fragments, losses) @ weights)
            key = str(sign_of(spectrum)), "losses" if is_loss else "fragments"
            data.append((key, names, plain, near, spectrum.metadata["inchikey"]))
    added: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for _ in range(6):
        seen, expected, molecules = Counter[Any](), Counter[Any](), defaultdict(set)
        for key, names, plain, near, molecule in data:
            value = plain * np.exp([added[key].get(name, 0.0) for name in names])
            share = value * near / ((value * near).sum() + 0.02)
            for name, before, after in zip(names, value / (value.sum() + 1), share, strict=True):
                expected[key, name] += before
                seen[key, name] += after
                molecules[key, name].add(molecule)
        for key, name in seen:
            enough = seen[key, name] + expected[key, name] >= 8
            if name and enough and len(molecules[key, name]) >= 6:
                step = np.log((seen[key, name] + 4) / (expected[key, name] + 4))
                added[key][name] = float(np.clip(added[key].get(name, 0.0) + step, -3, 3))
    return {
        sign: {
            kind: {n: round(v, 2) for n, v in sorted(added[sign, kind].items()) if abs(v) > 0.35}
            for kind in ("fragments", "losses")
        }
        for sign in ("1", "-1")
    }


def ion_shares(spectra: Sequence[Spectrum], sign: int) -> dict[str, float]:
    """Return how common ions are among the molecules of the train fold."""
    counts = Counter(str(s.adduct) for s in spectra if sign_of(s) == sign)
    return {name: count / counts.total() for name, count in counts.most_common()}


Lists = list[tuple[np.ndarray, np.ndarray]]  # features and labels of the formulas of each spectrum


def scored_lists(model: FormulaModel, spectra: Sequence[Spectrum], sign: int) -> Lists:
    """Return features of the formulas of spectra of an ion mode, with the true one among them."""
    lists = []
    for spectrum in spectra:
        if sign_of(spectrum) != sign or ion_of(spectrum) is None:
            continue
        try:
            scored = score_formulas(
                SpectrumEvidence.of([spectrum]), [str(spectrum.adduct)], TOLERANCE_PPM, model
            )
        except MzseekError:
            continue
        truth = true_formula(spectrum)
        labels = np.array([formula_text(counts) == truth for counts in scored.counts], bool)
        if labels.any():
            lists.append((scored.features, labels))
    return lists


def fit_weights(
    model: FormulaModel, train: Sequence[Spectrum], validation: Sequence[Spectrum]
) -> FormulaModel:
    """Fit the weights of each ion mode, then that of isotope patterns, then temperatures."""
    modes = {}
    for sign, mode in model.modes.items():
        plain = scored_lists(model, train[::2], sign)
        free = [at for at, name in enumerate(FEATURES) if name not in (*FIXED, "isotopes")]
        weights = logit(plain, mode.weights.copy(), free)
        model = replace(model, modes=model.modes | {sign: replace(mode, weights=weights)})
        simulated = [
            with_simulated_scan(s, (0.03, 0.15))
            for s in train[::6]
            if sign_of(s) == sign and ion_of(s) is not None
        ]
        weights = logit(scored_lists(model, simulated, sign), weights, [FEATURES.index("isotopes")])
        lists = scored_lists(model, validation, sign)
        temperature = fit_temperature(
            np.concatenate([features @ weights for features, _ in lists]),
            [len(labels) for _, labels in lists],
            np.concatenate([labels for _, labels in lists]),
        )
        modes[sign] = replace(mode, weights=weights, temperature=temperature)
        print(sign, dict(zip(FEATURES, weights.round(2).tolist(), strict=True)),
              f"temperature {temperature:.3f}")  # fmt: skip
    return replace(model, modes=modes)


def logit(lists: Lists, weights: np.ndarray, free: list[int]) -> np.ndarray:
    """Fit some weights by the likelihood of the true formulas among those of their lists."""
    centred = np.concatenate([features - features[labels.argmax()] for features, labels in lists])
    counts = np.array([len(labels) for _, labels in lists])
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    fixed = np.delete(np.arange(len(weights)), free)
    base, x = centred[:, fixed] @ weights[fixed], centred[:, free]

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        scores = base + x @ values
        high = np.maximum.reduceat(scores, first)
        value = np.exp(scores - np.repeat(high, counts))
        total = np.add.reduceat(value, first)
        share = value / np.repeat(total, counts)
        return (
            float((high + np.log(total)).mean() + RIDGE * values @ values),
            (x * share[:, None]).sum(0) / len(counts) + 2 * RIDGE * values,
        )

    weights[free] = minimize(loss, weights[free], jac=True, method="L-BFGS-B").x
    return weights


if __name__ == "__main__":
    main()
