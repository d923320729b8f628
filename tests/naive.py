"""A naive oracle of BELIEF with mCR, as docs/method.md defines it.

It follows the page section by section, in memory and in float64, and is meant to be read and believed, not to be
fast. It shares no code with the package: it imports the standard library and numpy, and nothing else.
"""

import math
from types import SimpleNamespace

import numpy as np

__all__ = ["belief", "key"]

MASK = (1 << 64) - 1


# 1. Scaling and difference


def summary(X, discrete, scale):
    """What section 1 needs to know of each feature."""
    m, F = X.shape
    mean, sigma, constant = np.zeros(F), np.zeros(F), np.ones(F, dtype=bool)
    own = np.full((m, F), np.nan)  # discrete: the share p_v of the row's own value v
    spread = np.zeros(F)  # discrete: 1 - sum p^2
    for j in range(F):
        present = X[~np.isnan(X[:, j]), j]
        if len(present) == 0 or np.all(present == present[0]):
            continue  # constant: mean and sigma stay 0, they are never used
        mean[j], sigma[j] = present.mean(), present.std()
        constant[j] = sigma[j] == 0
        if discrete[j]:
            values, counts = np.unique(present, return_counts=True)
            p = counts / len(present)
            for v, p_v in zip(values, p, strict=True):
                own[X[:, j] == v, j] = p_v
            spread[j] = 1 - np.sum(p**2)
    if scale == "auto":
        cells = X[:, ~discrete]
        scale = "none" if 10 * np.count_nonzero(cells) < cells.size else "standard"  # a NaN counts as non-zero
    unit = np.ones(F) if scale == "none" else np.where(constant, 1.0, sigma)
    return SimpleNamespace(mean=mean, sigma=sigma, constant=constant, own=own, spread=spread, scale=scale, unit=unit)


def difference(X, q, r, discrete, f):
    """Delta_j(q, r) for each of the rows r (len(r) x F); NaN where either value is missing."""
    a, b = X[q], X[r]
    delta = np.where(discrete, (a != b).astype(float), np.abs(a - b) / f.unit)
    delta[:, f.constant] = 0.0
    delta[np.isnan(a) | np.isnan(b)] = np.nan
    return delta


def d2(X, q, discrete, f):
    """d^2 of row q to every row, rounded to 9 significant digits; a missing coordinate costs what is expected."""
    miss = np.isnan(X)
    filled = np.where(miss, f.mean, X)
    continuous = ((filled - filled[q]) / f.unit) ** 2
    continuous += (miss.astype(float) + miss[q]) * (f.sigma / f.unit) ** 2
    nominal = (X[q] != X).astype(float)
    nominal = np.where(miss & ~miss[q], 1 - f.own[q], nominal)
    nominal = np.where(~miss & miss[q], 1 - f.own, nominal)
    nominal = np.where(miss & miss[q], f.spread, nominal)
    cost = np.where(discrete, nominal, continuous)[:, ~f.constant]
    return [float(f"{x:.8e}") for x in cost.sum(axis=1)]


# 2. Sample and batches


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def key(seed, stream, i):
    """The 64-bit key of row i in a stream (0: sample, 1: ties)."""
    return mix(mix(mix(int(seed) & MASK) ^ int(stream)) ^ int(i))


def allot(s, sizes):
    """s rows over classes of these sizes: largest remainder, at least one each where there are enough."""
    m = sum(sizes)
    got = [s * n // m for n in sizes]
    by_remainder = sorted(range(len(sizes)), key=lambda c: (-(s * sizes[c] % m), c))
    for c in by_remainder[: s - sum(got)]:
        got[c] += 1
    for c in range(len(sizes)):
        richest = max(range(len(sizes)), key=lambda d: (got[d], -d))
        if got[c] == 0 and got[richest] > 1:
            got[c], got[richest] = 1, got[richest] - 1
    return got


def sample(label, n_classes, s, stratify, seed):
    """The ids of the sampled rows, in key order."""
    m = len(label)
    order = sorted(range(m), key=lambda i: key(seed, 0, i))
    if not stratify:
        return order[:s]
    left = allot(s, [int(np.sum(label == c)) for c in range(n_classes)])
    taken = []
    for i in order:
        if left[label[i]] > 0:
            left[label[i]] -= 1
            taken.append(i)
    return taken


# 3. Neighbours


def nearest(X, label, n_classes, q, discrete, f, k, neighborhood, seed):
    dist = d2(X, q, discrete, f)
    order = sorted((r for r in range(len(X)) if r != q), key=lambda r: (dist[r], key(seed, 1, r)))
    if neighborhood == "pooled":
        return order[: k * n_classes]
    return [r for c in range(n_classes) for r in [i for i in order if label[i] == c][:k]]


# 4. Relevance


def ratio(a, n):
    """a / n, and 0 where n is 0."""
    return np.divide(a, n, out=np.zeros(np.shape(a)), where=np.asarray(n) > 0)


def weights(priors, DD, DC, ED, EC):
    misses, hits = priors @ ratio(DD, DC), priors @ ratio(ED, EC)
    w = misses - hits
    w[np.abs(w) <= 1e-12 * (misses + hits)] = 0.0  # what is left of two equal sums is rounding
    return w


# 5. Collisions


def collisions(X, q, r, discrete, f, kappa):
    """cr_j of the pairs of q with each of the rows r (len(r) x F); NaN where either value is missing."""
    a, b = X[q], X[r]
    cr = 1 - np.minimum(np.abs(a - b) / np.where(f.constant, 1.0, f.sigma), 6) / 6
    cr[cr < kappa - 1e-9] = 0.0
    cr = np.where(discrete, (a == b).astype(float), cr)
    cr[:, f.constant] = 1.0
    cr[np.isnan(a) | np.isnan(b)] = np.nan
    return cr


def watch(w, constant, size):
    top = np.max(np.abs(w)) or 1.0
    candidates = [j for j in range(len(w)) if not constant[j]]
    return sorted(candidates, key=lambda j: (-round(float(w[j] / top), 10), j))[:size]


def tally_joint(cr, watched, joint, joint_pairs):
    """Add the pairs of one batch to the entries [i, j] with i or j watched."""
    P = (~np.isnan(cr)).astype(float)
    R = np.nan_to_num(cr, nan=0.0)
    B = (R > 0).astype(float)
    W = np.array(watched, dtype=int)
    rest = np.setdiff1d(np.arange(cr.shape[1]), W)
    both = (R[:, W].T @ B + B[:, W].T @ R) / 2  # |W| x F
    seen = P[:, W].T @ P
    for total, part in ((joint, both), (joint_pairs, seen)):
        total[W, :] += part
        total[np.ix_(rest, W)] += part[:, rest].T


def mutual(marginal, pairs, joint, joint_pairs):
    """I[i, j] = I_alpha(X_i; X_j), 0 where undefined."""
    PC = ratio(marginal, pairs)
    I = np.zeros(joint.shape)
    for i in range(len(PC)):
        PCij = ratio(joint[i], joint_pairs[i])
        ok = (PCij > 0) & (PC > 0) & (PC[i] > 0)
        I[i, ok] = PC[i] * np.log2(PCij[ok] / (PC[i] * PC[ok]))
    return I


# 6. Selection


def normalise(I, joint_pairs, watched):
    """Min-max over the measured pairs i != j on the watch list, clipped; 0 where never measured."""
    base = [I[i, j] for i in watched for j in watched if i != j and joint_pairs[i, j] > 0]
    if not base or max(base) - min(base) <= 1e-9 * max(abs(max(base)), abs(min(base))):
        return np.zeros(I.shape)
    out = np.clip((I - min(base)) / (max(base) - min(base)), 0, 1)
    out[joint_pairs == 0] = 0.0
    np.fill_diagonal(out, 0.0)
    return out


def select(relevance, I_norm, constant, n_select, redundancy, theta):
    F = len(relevance)
    left = [j for j in range(F) if not constant[j]]
    selected, scores, paid = [], [], np.zeros(F)  # paid[i] = sum over the selected j of I(X_j; X_i)
    while left and len(selected) < n_select:
        if redundancy is None or not selected:
            J = relevance
        else:
            J = relevance - (1 / len(selected) if theta == "mean" else theta) * paid
        best = min(left, key=lambda j: (-round(float(J[j]), 10), j))
        left.remove(best)
        selected.append(best)
        scores.append(float(J[best]))
        paid = paid + I_norm[best]
    for j in range(F):
        if constant[j] and len(selected) < n_select:
            selected.append(j)
            scores.append(0.0)
    return selected, scores


def belief(
    X,
    y,
    n_select,
    *,
    discrete=None,
    k=10,
    s=None,
    share=0.25,
    neighborhood="per_class",
    scale="auto",
    redundancy="mcr",
    theta="mean",
    eta=2.0,
    kappa=0.8,
    stratify=False,
    seed=0,
):
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    m, F = X.shape
    discrete = np.zeros(F, dtype=bool) if discrete is None else np.asarray(discrete, dtype=bool)
    s = m if s is None else min(s, m)
    classes, label = np.unique(y, return_inverse=True)
    n_classes = len(classes)
    priors = np.array([np.mean(label == c) for c in range(n_classes)])
    f = summary(X, discrete, scale)

    ids = sample(label, n_classes, s, stratify, seed)
    step = max(1, math.ceil(share * s - 1e-9))
    batches = [np.array(ids[t : t + step]) for t in range(0, s, step)]

    DD, ED, DC, EC = (np.zeros((n_classes, F)) for _ in range(4))
    marginal, pairs, n_pairs = np.zeros(F), np.zeros(F), 0
    joint, joint_pairs = np.zeros((F, F)), np.zeros((F, F))
    neighbours, watch_lists, watched, w = {}, [], [], np.zeros(F)
    size = math.ceil(n_select * eta - 1e-9)
    for batch in batches:
        crs = []
        for q in map(int, batch):
            near = neighbours[q] = nearest(X, label, n_classes, q, discrete, f, k, neighborhood, seed)
            if not near:
                continue
            c = label[q]
            for r, delta in zip(near, difference(X, q, near, discrete, f), strict=True):
                there = ~np.isnan(delta)
                total, count = (ED, EC) if label[r] == c else (DD, DC)
                total[c, there] += delta[there]
                count[c, there] += 1
            crs.append(collisions(X, q, near, discrete, f, kappa))
        cr = np.concatenate(crs) if crs else np.zeros((0, F))
        marginal += np.nansum(cr, axis=0)
        pairs += np.sum(~np.isnan(cr), axis=0)
        n_pairs += len(cr)
        w = weights(priors, DD, DC, ED, EC)
        if len(batches) == 1:
            watched = watch(w, f.constant, size)
        tally_joint(cr, watched, joint, joint_pairs)
        watch_lists.append(watched)
        watched = watch(w, f.constant, size)  # for the next batch

    I = mutual(marginal, pairs, joint, joint_pairs)
    I_norm = normalise(I, joint_pairs, watch_lists[-1])
    relevance, live = np.zeros(F), ~f.constant
    if live.any() and w[live].max() - w[live].min() > 1e-9 * np.abs(w[live]).max():
        relevance[live] = (w[live] - w[live].min()) / (w[live].max() - w[live].min())
    selected, scores = select(relevance, I_norm, f.constant, n_select, redundancy, theta)
    return SimpleNamespace(
        classes=classes,
        priors=priors,
        sigma=f.sigma,
        constant=f.constant,
        scale=f.scale,
        sample=np.array(ids),
        batches=batches,
        neighbours=neighbours,
        DD=DD,
        ED=ED,
        DC=DC,
        EC=EC,
        w=w,
        marginal=marginal,
        pairs=pairs,
        n_pairs=n_pairs,
        watch_lists=watch_lists,
        joint=joint,
        joint_pairs=joint_pairs,
        I=I,
        I_norm=I_norm,
        relevance=relevance,
        selected=selected,
        scores=scores,
    )
