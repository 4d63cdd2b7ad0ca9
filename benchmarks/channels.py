"""What of a score is evidence: channels and trained losses in one table, with controls.

usage: channels.py fit PREPARED OUT [--seeds 0 1 2] [--network RUN] [--jobs N]
       channels.py measure PREPARED OUT [--trained RUN …] [--lists mass formula matched] [--jobs N]
       channels.py show OUT [--figure FILE.svg]

``fit`` makes a run of each combination of channels in OUT/runs: each channel alone, fragments +
analogs, the same with the prior, and controls whose spectra are those of
other molecules. A seed is that of the fragments' network; what has no network is fitted once.
With --network, a trained run is a channel, too: rankers are then fitted on val alone, with it and
without.

``measure`` asks these runs, and trained ones, about the test fold: hit rates, their gain over the
prior alone, all spectra of a molecule together, bits over a uniform prior and over the prior alone;
on the first lists also probabilities: Tanimoto of the decision, calibration, 90 % sets. A trained
run may be older than the lists that it is asked about, as long as they were added to a copy of the
data that it was trained on. It gets new predictions in its folder: give it a copy.

``show`` prints the tables in Markdown and draws the figure. What is there already is not done
again, so that a script that was killed goes on.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from mzseek.datasets.prepared import Prepared
from mzseek.decision import reliability
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.information_gain import information_gain
from mzseek.evaluation.posterior_report import decode
from mzseek.evaluation.posteriors import calibrate, set_results
from mzseek.evaluation.scored import Scoring
from mzseek.evidence import channel_from
from mzseek.evidence.fitting import fit as fit_channels
from mzseek.evidence.options import SPECTRA, FitOptions
from mzseek.io import atomic_file
from mzseek.runs.run import Run

OWN, SWAPPED = SPECTRA
PRIOR = "prior"
BOTH = ("fragments", "analogs")
# What is fitted: channels, and whose spectra are predicted from.
FITTED = {
    PRIOR: ((PRIOR,), OWN),
    "fragments": (("fragments",), OWN),
    "analogs": (("analogs",), OWN),
    "fragments+analogs": (BOTH, OWN),
    "fragments+analogs+prior": ((*BOTH, PRIOR), OWN),
    "fragments-swapped": (("fragments",), SWAPPED),
    "analogs-swapped": (("analogs",), SWAPPED),
    "fragments+analogs-swapped": (BOTH, SWAPPED),
}
# With a trained run among them, fitted on val alone: a table of its own.
ON_VAL = {
    "on-val": (BOTH, OWN),
    "on-val+network": ((*BOTH, "network"), OWN),
}
# What the figure shows, and where labels stand that would lie upon each other.
DRAWN = ("iou", "bce", "cosine", "fp-cos", "emb-cos", "prior", "fragments", "analogs",
         "fragments+analogs")  # fmt: skip
LABEL_AT = {
    "fragments": (-58, 4),
    "bce": (-8, 10),
    "cosine": (-42, 8),
    "emb-cos": (5, -11),
    "prior": (-60, -12),
}
WORDS = {
    PRIOR: "blind: prior alone",
    "fragments+analogs": "fragments + analogs",
    "fragments+analogs+prior": "fragments + analogs + prior",
    "fragments-swapped": "fragments, another molecule's spectrum",
    "analogs-swapped": "analogs, another molecule's spectrum",
    "fragments+analogs-swapped": "fragments + analogs, another molecule's spectrum",
    "on-val": "fragments + analogs, ranker fitted on val alone",
    "on-val+network": "the same + network",
    "emb-cos-blind": "blind: emb-cos without the spectrum",
    "fp-cos-temperature4": "fp-cos, τ = 4",
}
CONTROLS = (PRIOR, "emb-cos-blind", *(name for name in FITTED if name.endswith(SWAPPED)))
HITS = ("hit_rate@1", "hit_rate@5", "hit_rate@20")
STATED = 0.9


def say(text):
    """A line with the time, at once: the log may be all that is left."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


# Fitting


def fit(prepared, out, seeds, jobs, network=None):
    """A run for each combination, and for each seed where a network over pairs is in it."""
    (out / "runs").mkdir(parents=True, exist_ok=True)
    fit_those(prepared, out, FITTED, seeds, jobs)
    if network is not None:
        fit_those(prepared, out, ON_VAL, seeds[:1], jobs, network)


def fit_those(prepared, out, combinations, seeds, jobs, network=None):
    """Runs that are not there yet; a ranker beside one with a trained run is fitted on val, too."""
    for name, (labels, spectra) in combinations.items():
        has_seed = "fragments" in labels
        for seed in seeds if has_seed else seeds[:1]:
            folder = out / "runs" / (f"{name}.seed{seed}" if has_seed else name)
            if folder.exists():
                continue
            channels = [
                channel_of(label, seed if label == "fragments" else None, network)
                for label in labels
            ]
            on_val = network is not None and "network" not in labels
            how = FitOptions(spectra=spectra, fit_on=("val",) if on_val else None)
            say(f"fitting {folder.name}")
            fit_channels(prepared, channels, folder, how, jobs=jobs, progress=Steps(), say=say)
    say("everything is fitted")


def channel_of(label, seed, network):
    """A channel by its name; the trained run is called network."""
    if label == "network":
        return channel_from("run", {"path": str(network)})
    return channel_from(label, {} if seed is None else {"seed": seed})


class Steps:
    """Progress, a line for each stage and every tenth of it."""

    def __init__(self):
        self._told = None

    def __call__(self, stage, done, total=None):
        """Take note, as `mzseek.parallel.engine.Progress` does."""
        at = stage, 10 * done // total if total else 0
        if at != self._told:
            self._told = at
            say(f"{stage}: {done} of {total}")


# Measuring


def measure(prepared, out, trained, lists, jobs):
    """Everything that tables show, a file for each run, kind of lists and question."""
    prior = Run.open(out / "runs" / PRIOR)
    fitted = sorted((out / "runs").iterdir(), key=lambda path: path.name != PRIOR)
    asked = [(setting, question) for setting in lists for question in (hits, bits)]
    asked.insert(2, (lists[0], beliefs))  # what is wanted most comes first
    for setting, question in asked:
        for folder in [*fitted, *trained]:
            path = out / "results" / folder.name / f"{setting}.{question.__name__}.json"
            if path.exists():
                continue
            found = question(Run.open(folder), prior, Scoring("test", setting), prepared, jobs)
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as partial:
                partial.write_text(json.dumps(found, indent=1))
            say(f"{folder.name}: {question.__name__} on {setting}")


def hits(run, prior, how, prepared, _):
    """Hit rates with their intervals and gains, per spectrum and over molecules."""
    data = prepared.folder
    alone, together = evaluate(run, how, data=data), evaluate(run, how, pooled=True, data=data)
    gains = alone.gain_over(evaluate(prior, how, data=data))
    return {
        "spectra": len(alone.values[HITS[0]]),
        "molecules": len(together.spectra),
        "alone": told(alone.intervals()),
        "gain": told({name: gains[name] for name in HITS}),
        "together": told(together.intervals()),
        "random": alone.random_order,
        "random_together": together.random_order,
    }


def bits(run, prior, how, prepared, _):
    """Bits over a uniform prior, over the prior in whose place the run stands, and beside it."""
    data = prepared.folder
    uniform = information_gain(run, None, how, data=data)
    found = {name: told(uniform.intervals())[name] for name in ("to_be_had", "run")}
    if run.folder.resolve() != prior.folder.resolve():
        over = information_gain(run, prior, how, data=data)
        found |= {f"{name}_over_prior": told(over.intervals())[name] for name in ("run", "prior")}
        found |= {"given_prior": told(over.intervals())["given_prior"], "weights": over.weights}
    return found


def beliefs(run, prior, how, prepared, jobs):
    """Tanimoto of what is decided for it, and whether probabilities hold."""
    found = calibrate(run, how, data=prepared.folder)
    decoded = decode(found.evaluated, prepared, ("hit", "tanimoto"), processes=jobs)
    curve = reliability(*found.evaluated.merged())
    worst = curve.worst()
    sets = next(each for each in set_results(found) if each.stated == STATED)
    result = {
        "tanimoto": {
            f"{goal}/{within}": told(decoded.interval(goal, "tanimoto", within))
            for goal in ("hit", "tanimoto")
            for within in ("candidates", "all")
        },
        "error": curve.error,
        "bins": curve.to_list(),
        "worst": None if worst is None else abs(curve.confidence[worst] - curve.accuracy[worst]),
        "sets": sets.to_dict(),
    }
    if run.folder.resolve() == prior.folder.resolve():
        even = decode(found.evaluated.uniform(), prepared, ("tanimoto",), processes=jobs)
        result["uniform"] = told(even.interval("tanimoto", "tanimoto", "all"))
    return result


def told(what):
    """Intervals as plain data."""
    if isinstance(what, dict):
        return {name: told(each) for name, each in what.items()}
    return {"mean": what.mean, "low": what.low, "high": what.high}


# Showing


class Results:
    """What was measured, the seeds of a model together."""

    def __init__(self, folder):
        self.seeds = defaultdict(list)
        for own in sorted(folder.iterdir()):
            files = {path.stem: json.loads(path.read_text()) for path in own.glob("*.json")}
            self.seeds[model_of(own.name)].append(files)

    def find(self, model, file, *keys):
        """Values of all seeds; none where it was not measured."""
        found = []
        for files in self.seeds.get(model, []):
            value = files.get(file)
            for key in keys:
                value = None if value is None else value.get(key)
            if value is not None:
                found.append(value)
        return found

    def mean(self, model, file, *keys):
        """Mean over seeds of a number, or of an interval's mean and ends; None if there is none."""
        found = self.find(model, file, *keys)
        if not found:
            return None
        if isinstance(found[0], dict):
            return {end: float(np.mean([each[end] for each in found])) for end in found[0]}
        return float(np.mean(found))


def model_of(folder):
    """What a run is of, whatever its seed: ``emb-cos`` of ``emb-cos-mass-lr0.0001-seed0-4faf``."""
    name = folder.partition(".seed")[0]
    before, is_trained, after = name.partition("-mass")
    variant = after.split("-lr")[0] if is_trained and "temperature" in after else ""
    return before + variant


def show(out, figure):
    """The four columns, what probabilities are worth, and the figure."""
    results = Results(out / "results")
    first = [name for name in [*FITTED, *ON_VAL] if name in results.seeds and name not in CONTROLS]
    losses = sorted(
        (name for name in results.seeds if name not in [*FITTED, *ON_VAL, *CONTROLS]),
        key=lambda name: results.mean(name, "mass.hits", "alone", HITS[0])["mean"],
    )
    controls = [name for name in CONTROLS if name in results.seeds]
    rows = [*controls, *losses, *first]
    print(four_columns(results, rows), "", second_table(results, rows), sep="\n")
    if figure:
        draw_front(results, Path(figure))


def four_columns(results, rows):
    """Ordinary lists, gain over blind, matched lists, bits from the spectrum."""
    head = (
        "test fold", "seeds", "mass lists, HR@1 / 5 / 20", "HR@1 over blind",
        "matched lists, HR@1 / 5 / 20", "bits from the spectrum", "on matched lists",
    )  # fmt: skip
    chance = [
        slashed([results.mean(PRIOR, f"{lists}.hits", "random", name) for name in HITS])
        for lists in ("mass", "matched")
    ]
    lines = [table_line(head), table_line(["---"] * len(head))]
    lines.append(table_line(["random", "–", chance[0], "–", chance[1], "–", "–"]))
    for name in rows:
        cells = [WORDS.get(name, name), str(len(results.seeds[name]))]
        cells.append(rates(results, name, "mass"))
        gain = results.mean(name, "mass.hits", "gain", HITS[0])
        cells.append("–" if name == PRIOR else ranged(gain, 100, 1, sign="+"))
        cells.append(rates(results, name, "matched"))
        cells += [
            "–" if name == PRIOR else ranged(results.mean(name, f"{lists}.bits", "given_prior"))
            for lists in ("mass", "matched")
        ]
        lines.append(table_line(cells))
    return "\n".join(lines)


def second_table(results, rows):
    """What else channels reach: formula lists, spectra together, decisions and probabilities."""
    head = (
        "test fold", "formula lists, HR@1 / 5 / 20", "together, HR@1 / 5 / 20",
        "Tanimoto decided", "bits over uniform", "calibration error", "worst bin",
        "90 % sets hold", "size",
    )  # fmt: skip
    lines = [table_line(head), table_line(["---"] * len(head))]
    for name in rows:
        sets = [results.mean(name, "mass.beliefs", "sets", key) for key in ("covered", "mean_size")]
        lines.append(table_line([
            WORDS.get(name, name), rates(results, name, "formula"),
            rates(results, name, "mass", "together"),
            ranged(results.mean(name, "mass.beliefs", "tanimoto", "tanimoto/all"), 100, 1),
            ranged(results.mean(name, "mass.bits", "run")),
            number(results.mean(name, "mass.beliefs", "error"), 100),
            number(results.mean(name, "mass.beliefs", "worst"), 100),
            number(sets[0], 100), number(sets[1]),
        ]))  # fmt: skip
    return "\n".join(lines)


def rates(results, name, lists, which="alone"):
    """Hit rates, with the interval of the first."""
    found = [results.mean(name, f"{lists}.hits", which, each) for each in HITS]
    if found[0] is None:
        return "–"
    ends = f"{100 * found[0]['low']:.1f}…{100 * found[0]['high']:.1f}"
    return f"{slashed([each['mean'] for each in found])} ({ends})"


def slashed(values):
    """Shares in percent, between slashes."""
    return " / ".join(number(value, 100) for value in values)


def ranged(interval, scale=1, digits=2, sign=""):
    """A mean with the ends of its interval."""
    if interval is None:
        return "–"
    mean, low, high = (scale * interval[key] for key in ("mean", "low", "high"))
    return f"{mean:{sign}.{digits}f} ({low:.{digits}f}…{high:.{digits}f})"


def number(value, scale=1, digits=1):
    """A number, or that there is none."""
    return "–" if value is None else f"{scale * value:.{digits}f}"


def table_line(cells):
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def draw_front(results, file):
    """HR@1 against Tanimoto: losses thresholded and decoded, and decoded evidence."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for name in DRAWN:
        hits = results.mean(name, "mass.hits", "alone", "hit_rate@1")
        decoded = results.mean(name, "mass.beliefs", "tanimoto", "tanimoto/all")
        plain = results.mean(name, "mass.hits", "alone", "tanimoto")
        if hits is None or decoded is None:
            continue
        x, y = 100 * hits["mean"], 100 * decoded["mean"]
        axes.plot(x, y, "D", color="C1", zorder=3)
        if plain is not None:
            low = 100 * plain["mean"]
            axes.plot(x, low, "o", color="C0", zorder=3)
            axes.plot([x, x], [low, y], color="0.8", zorder=1)
        axes.annotate(WORDS.get(name, name), (x, y), LABEL_AT.get(name, (6, 4)),
                      textcoords="offset points", fontsize=8)  # fmt: skip
    axes.plot([], [], "o", color="C0", label="predicted fingerprint, thresholded")
    axes.plot([], [], "D", color="C1", label="decoded for Tanimoto")
    axes.set(xlabel="HR@1, %", ylabel="Tanimoto of the decision, %", xlim=(0, 62), ylim=(0, 75))
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, format="svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("fit", "measure", "show"):
        command = commands.add_parser(name)
        if name != "show":
            command.add_argument("prepared", type=Path)
        command.add_argument("out", type=Path)
        if name != "show":
            command.add_argument("--jobs", type=int)
    commands.choices["fit"].add_argument("--network", type=Path)
    commands.choices["fit"].add_argument("--seeds", type=int, nargs="+", default=[0])
    commands.choices["measure"].add_argument("--trained", type=Path, nargs="*", default=[])
    commands.choices["measure"].add_argument("--lists", nargs="+", default=["mass", "formula"])
    commands.choices["show"].add_argument("--figure")
    given = parser.parse_args()
    if given.command == "show":
        show(given.out, given.figure)
        return
    prepared = Prepared.open(given.prepared)
    if given.command == "fit":
        fit(prepared, given.out, given.seeds, given.jobs, given.network)
    else:
        measure(prepared, given.out, given.trained, given.lists, given.jobs)


if __name__ == "__main__":
    main()
