"""Neural collapse as the papers write it: loops, dense matrices, NumPy in float64."""

import numpy as np


def textbook(features, labels, weight=None, bias=None):
    """Return the numbers of a reading by their names, classes numbered from 0."""
    h, y = np.asarray(features, np.float64), np.asarray(labels)
    classes, width, samples = int(y.max()) + 1, h.shape[1], len(h)
    means = np.stack([h[y == c].mean(0) for c in range(classes)])
    centred = means - means.mean(0)
    within = np.zeros((width, width))
    for c in range(classes):
        apart = h[y == c] - h[y == c].mean(0)
        within += apart.T @ apart / samples
    between = centred.T @ centred / classes
    found = {
        "nc1_variability": np.trace(within @ pseudo_inverse(between, classes - 1))
        / classes,
        "nc1_noise": np.trace(within) / np.trace(between),
        "nc1_cdnv": cdnv(h, y, means),
    }
    found |= {f"nc2_mean_{k}": v for k, v in shape(centred).items()}
    distances = ((h[:, None] - means[None]) ** 2).sum(2)
    found["nearest_accuracy"] = np.mean(distances.argmin(1) == y)
    if weight is not None:
        w = np.asarray(weight, np.float64)
        found |= {f"nc2_head_{k}": v for k, v in shape(w).items()}
        gap = w / np.linalg.norm(w) - centred / np.linalg.norm(centred)
        found["nc3_duality"] = np.linalg.norm(gap) ** 2
        found["nc3_simplex"] = simplex_distance(w @ centred.T)
        cosines = [cosine(w[c], centred[c]) for c in range(classes)]
        found["nc3_alignment"] = 1 - np.mean(cosines)
        decided = (h @ w.T + np.asarray(bias, np.float64)).argmax(1)
        found["nc4_disagreement"] = np.mean(decided != distances.argmin(1))
        found["accuracy"] = np.mean(decided == y)
    return found


def pseudo_inverse(matrix, rank):
    values, vectors = np.linalg.eigh(matrix)
    kept = np.argsort(values)[::-1][:rank]
    kept = [i for i in kept if values[i] > 1e-12 * values.max()]
    return sum(np.outer(vectors[:, i], vectors[:, i]) / values[i] for i in kept)


def cdnv(h, y, means):
    variances = [
        ((h[y == c] - h[y == c].mean(0)) ** 2).sum(1).mean() for c in range(len(means))
    ]
    pairs = [
        (variances[i] + variances[j]) / (2 * ((means[i] - means[j]) ** 2).sum())
        for i in range(len(means))
        for j in range(len(means))
        if i != j
    ]
    return np.mean(pairs)


def shape(vectors):
    count = len(vectors)
    norms = [np.linalg.norm(v) for v in vectors]
    cosines = [
        cosine(vectors[i], vectors[j])
        for i in range(count)
        for j in range(count)
        if i != j
    ]
    return {
        "norms": np.std(norms) / np.mean(norms),
        "angles": np.std(cosines),
        "gap": np.mean(np.abs(np.array(cosines) + 1 / (count - 1))),
        "simplex": simplex_distance(vectors @ vectors.T),
    }


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


def simplex_distance(gram):
    count = len(gram)
    ideal = (np.eye(count) - 1 / count) / np.sqrt(count - 1)
    return np.linalg.norm(gram / np.linalg.norm(gram) - ideal)
