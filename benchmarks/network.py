"""What trained networks say on validation, alone and beside a look-up and the prior.

usage: network.py PREPARED RUN [RUN …] [--candidates mass] [--train OUT] [--jobs N]

For each run, hit rates on the val fold of its own score, by the weights that the channel
``run:FOLDER`` takes; then of conditional logits over that score, the analogs and the prior, which
have learned from the train fold. A logit is fitted on val, cross-fitted by structure cluster. The
look-up, the prior and both together stand in the first rows: a network has to add to them.

With --train the runs are trained first, into OUT, named as in ``TRAINED``; then no RUN is given.
"""

import argparse
from pathlib import Path

import numpy as np

from mzseek.datasets.prepared import Prepared
from mzseek.evidence.analogs import Analogs
from mzseek.evidence.fitting import structure_groups_from
from mzseek.evidence.network_scores import Network, NetworkOptions
from mzseek.evidence.prepared_queries import (
    labelled_queries,
    queries_with_truth,
    sample_spectra,
    training_set_from,
)
from mzseek.evidence.prior import Prior
from mzseek.evidence.ranker import fit_ranker
from mzseek.metrics import hit_rate

FITTED_ON = 5  # spectra of each molecule
# Learning rate and temperature: those chosen on validation for the mlp (docs/training.md).
COMMON = {"lr": 5e-5, "warmup": 166, "validate_every": 278, "threads": 1}
TEMPERATURE = 1 / 16
TRAINED = {
    "mlp": ("mlp", {}, {"epochs": 2}),
    "peaks-and-losses": ("peaks-and-losses", {}, {"epochs": 2}),
    "peaks-and-losses-offset": ("peaks-and-losses", {}, {"epochs": 2, "offset": "prior"}),
    "bins-0.05": ("peaks-and-losses", {"bin_width": 0.05}, {"epochs": 1}),
}


def train_all(prepared, out, setting):
    """The runs of `TRAINED`, one after the other; those that have ended are left as they are."""
    from mzseek.training.options import Options
    from mzseek.training.train import train

    for name, (model, encoder, training) in TRAINED.items():
        parts = {"encoder": encoder, "loss": {"temperature": TEMPERATURE}}
        options = Options.of("emb-cos", model, parts, candidates=setting, **COMMON, **training)
        train(prepared, options, out / name, resume=True, say=print)
    return [out / name for name in TRAINED]


def rates(scores, asked):
    """Hit rates at 1, 5 and 20, over spectra, in percent."""
    counts = asked.counts
    return [100 * hit_rate(scores, counts, asked.labels, k).mean() for k in (1, 5, 20)]


def combined(features, asked, few, groups):
    """Scores of a logit over features, of each group by one that was fitted without it."""
    labels = [str(place) for place in range(len(features))]
    names = [[str(column) for column in range(each.shape[1])] for each in features]
    group = groups.groups_of(asked.inchikey14)
    owner, scores = asked.ragged.list_index, np.zeros(asked.ragged.total)
    for each in np.unique(group):
        taught = np.flatnonzero(few & (group != each))
        rows = asked.rows(taught)
        ranker = fit_ranker(labels, names, [own[rows] for own in features], asked.only(taught))
        here = group[owner] == each
        mine = group == each
        parts = ranker.contributions(
            [own[here] for own in features], asked.modes[mine], asked.counts[mine]
        )
        scores[here] = parts.sum(1)
    return scores


def main(arguments):
    """Print a row for each combination."""
    prepared = Prepared.open(arguments.prepared)
    setting = arguments.candidates
    runs = arguments.runs
    if arguments.train:
        runs = train_all(prepared, arguments.train, setting)
    known = prepared.in_fold("train")
    queries = queries_with_truth(prepared, prepared.in_fold("val"), setting, "fingerprint")
    asked = labelled_queries(prepared, queries, setting, jobs=arguments.jobs)
    taught = labelled_queries(
        prepared, sample_spectra(prepared, known, 1), setting, max_candidates=32
    )
    training_set = training_set_from(prepared, known, taught)
    few = np.isin(queries, sample_spectra(prepared, queries, FITTED_ON))
    groups = structure_groups_from(prepared, np.unique(prepared.molecule[queries]), 5)

    def said(channel):
        return channel.features(channel.fit(training_set), asked)

    def show(name, scores):
        print(f"{name:50} " + " / ".join(f"{rate:.1f}" for rate in rates(scores, asked)))

    prior, analogs = said(Prior()), said(Analogs())
    print(f"val fold, {len(asked):,} spectra, {setting} candidates: HR@1 / 5 / 20")
    show("prior", prior[:, 0])
    show("analogs", combined([analogs], asked, few, groups))
    show("analogs + prior", combined([analogs, prior], asked, few, groups))
    for path in runs:
        name, network = path.name, said(Network(NetworkOptions(str(path))))
        show(name, network[:, 0])
        for beside, features in {
            "prior": [prior], "analogs": [analogs], "analogs + prior": [analogs, prior]
        }.items():  # fmt: skip
            show(f"{name} + {beside}", combined([network, *features], asked, few, groups))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("prepared", type=Path)
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--candidates", default="mass")
    parser.add_argument("--train", type=Path)
    parser.add_argument("--jobs", type=int)
    main(parser.parse_args())
