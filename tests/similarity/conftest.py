"""Similarities of rows by name, which those of lists and of tensors are compared with."""

from mzseek import similarity

SIMILARITIES = {
    "cosine": similarity.cosine,
    "tanimoto": similarity.tanimoto,
    "soft-tanimoto": similarity.soft_tanimoto,
    "minmax-tanimoto": similarity.minmax_tanimoto,
    "f1": similarity.f1,
}
