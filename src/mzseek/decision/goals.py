"""What a user may train for, and the loss and the metric of each goal."""

from mzseek.decision.registry import BAND_SIMILARITIES

# What a goal is decoded for, and the loss of the paper that stands for it. Of the listwise losses,
# Emb-Cos ranks best in the paper's main table and in our own.
GOALS = {
    "hit": "emb-cos",
    "tanimoto": "iou",
    "cosine": "cosine",
    "bits": "bce",
}
SIMILARITY_GOALS = tuple(goal for goal in GOALS if goal in BAND_SIMILARITIES)
# The metric of a goal, in the words of the losses' registry.
METRICS = {
    "hit": "hit_rate@1",
    "tanimoto": "tanimoto",
    "cosine": "cosine",
    "bits": "bit_accuracy",
}
