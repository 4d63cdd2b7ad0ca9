"""One model decoded for every metric, on a real set: runs, their controls, and how sure they are.

usage: decisions.py PREPARED RUNS [--models bce iou emb-cos] [--control spectrum-blind]
       [--seeds 0 1 2] [--candidates mass] [--json]

RUNS is a folder that massbank.py has filled. Test fold; the calibration is fitted on validation.
Values are means over seeds; intervals are over molecules, of the values averaged over seeds.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from decomposition import decompose_run
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.posterior_report import posterior_report
from mzseek.evaluation.scored import Scoring
from mzseek.metrics import bootstrap, bootstrap_difference
from mzseek.runs.run import Run

SHOWN = (("tanimoto", "all"), ("tanimoto", "candidates"), ("cosine", "all"), ("hit", "candidates"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prepared", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--models", nargs="+", default=["bce", "iou", "emb-cos"])
    parser.add_argument("--control", default="spectrum-blind")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--candidates", default="mass")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    started = time.perf_counter()
    how = Scoring(candidates=options.candidates)
    found = {
        model: [measure(options, f"{model}-{seed}", how) for seed in options.seeds]
        for model in [*options.models, options.control]
    }
    facts = {model: summary(parts, found[options.control]) for model, parts in found.items()}
    if options.json:
        print(json.dumps(facts))
        return
    show(facts)
    print(f"took {time.perf_counter() - started:,.0f} s")


def measure(options, name, how):
    run = Run.open(options.runs / name)
    beliefs = posterior_report(run, how, data=options.prepared)
    plain = evaluate(run, how, data=options.prepared)
    parts = {
        "regret, tanimoto counts": decompose_run(
            run, beliefs.calibrated, "tanimoto", "hit", rule="rank", data=options.prepared, every=5
        ).mean(0)
    }
    if run.description.reports_fingerprint:
        parts["thresholded, tanimoto counts"] = decompose_run(
            run, beliefs.calibrated, "tanimoto", rule="threshold", data=options.prepared, every=5
        ).mean(0)  # fmt: skip
    print(f"{name} done", file=sys.stderr, flush=True)
    return {"beliefs": beliefs, "thresholded": plain.values.get("tanimoto"), "parts": parts}


def summary(parts, control):
    beliefs = [part["beliefs"] for part in parts]
    molecule = beliefs[0].decoded.molecule
    facts = {"decoded": {}, "uniform": {}, "gain over uniform": {}, "gain over the control": {}}
    for utility, within in SHOWN:
        own = averaged(beliefs, "decoded", utility, within)
        even = averaged(beliefs, "uniform", utility, within)
        blind = averaged([part["beliefs"] for part in control], "decoded", utility, within)
        key = f"{utility}, {within}"
        facts["decoded"][key] = spread(bootstrap(own, molecule))
        facts["uniform"][key] = spread(bootstrap(even, molecule))
        facts["gain over uniform"][key] = spread(bootstrap_difference(own, even, molecule))
        facts["gain over the control"][key] = spread(bootstrap_difference(own, blind, molecule))
    if parts[0]["thresholded"] is not None:
        facts["thresholded"] = float(np.mean([part["thresholded"].mean() for part in parts]))
    facts["every decision"] = {
        utility: {
            within: {
                judged: float(
                    np.mean([b.decoded.values[utility][within][judged].mean() for b in beliefs])
                )
                for judged in places[within]
            }
            for within in places
        }
        for utility, places in beliefs[0].decoded.values.items()
    }
    facts["calibration error"] = {
        when: [round(b.errors[when], 4) for b in beliefs] for when in ("before", "after")
    }
    facts["calibration"] = [vars(b.calibrated.evaluated.calibration) for b in beliefs]
    facts["sets"] = [[each.to_dict() for each in b.sets] for b in beliefs]
    facts["abstention"] = [[vars(each) for each in b.abstentions] for b in beliefs]
    facts["risk area"] = [b.risk_area for b in beliefs]
    facts["decomposition"] = {
        key: np.mean([part["parts"][key] for part in parts], axis=0).tolist()
        for key in parts[0]["parts"]
    }
    return facts


def averaged(beliefs, which, utility, within):
    """Values of each spectrum, averaged over seeds, judged by the utility decoded for."""
    return np.mean([getattr(b, which).values[utility][within][utility] for b in beliefs], axis=0)


def spread(interval):
    return [interval.mean, interval.low, interval.high]


def show(facts):
    for model, each in facts.items():
        print(f"\n== {model}")
        if "thresholded" in each:
            print(f"Tanimoto of the thresholded fingerprint {100 * each['thresholded']:.1f}")
        for key, (mean, low, high) in each["decoded"].items():
            cells = [f"decoded for {key}: {100 * mean:.1f} ({100 * low:.1f} to {100 * high:.1f})"]
            cells += [f"uniform {100 * each['uniform'][key][0]:.1f}"]
            for gain in ("gain over uniform", "gain over the control"):
                m, a, b = (100 * value for value in each[gain][key])
                cells.append(f"{gain} {m:+.1f} ({a:+.1f} to {b:+.1f})")
            print("; ".join(cells))
        print("calibration error, points:", {
            when: [round(100 * v, 1) for v in values]
            for when, values in each["calibration error"].items()
        })  # fmt: skip
        for row in zip(*each["sets"], strict=True):
            covered = ", ".join(f"{100 * one['covered']:.1f}" for one in row)
            sizes = ", ".join(f"{one['mean_size']:.0f}" for one in row)
            print(f"sets of {100 * row[0]['stated']:.0f} %: cover {covered} %; mean sizes {sizes} "
                  f"of {row[0]['mean_list']:.0f}")  # fmt: skip
        for row in zip(*each["abstention"], strict=True):
            answered = ", ".join(f"{100 * one['answered']:.1f}" for one in row)
            wrong = ", ".join(f"{100 * one['wrong']:.1f}" for one in row)
            wanted = f"at most {100 * row[0]['wanted']:.0f} % wrong"
            print(f"{wanted}: answered {answered} %, wrong {wrong} %")
        for key, (bayes, residual, total) in each["decomposition"].items():
            split = f"Bayes {100 * bayes:.1f} + residual {100 * residual:.1f}"
            print(f"{key}: {split} = {100 * total:.1f}")
    print("\nevery decision (means over seeds, %):")
    for model, each in facts.items():
        for utility, places in each["every decision"].items():
            for within, values in places.items():
                cells = "  ".join(f"{name} {100 * value:5.1f}" for name, value in values.items())
                print(f"{model:15s} {utility:9s} {within:11s} {cells}")


if __name__ == "__main__":
    main()
