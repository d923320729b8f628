"""A naive implementation of BELIEF as docs/method.md defines it, with both presets and numeric targets.

It follows the page section by section, in memory and in float64, and aims at clarity instead of speed. It shares no
code with the package: it imports only the standard library, numpy and scipy. PAPER has the settings of the paper,
and DEFAULT the defaults of the package. The default arguments of `belief` are those of PAPER, except that `scale` is
"auto". Headings are numbered as on the page.
Differences and variances that are as small as rounding errors are set to 0 (ZERO and FLAT).
"""

import math
from fractions import Fraction
from math import comb
from types import SimpleNamespace

import numpy as np
from scipy import stats

__all__ = ["DEFAULT", "PAPER", "belief", "key"]

MASK = (1 << 64) - 1
ZERO = 1e-12  # a difference of two sums that is at most this share of the sums is a rounding error
FLAT = 1e-9  # a sum of squares about the mean that is at most this share of sum(x^2) is a rounding error
EQUAL = 1e-9  # values of z that differ by at most this are equal
COMMON = {"neighborhood": "per_class", "theta": "auto", "eta": 2.0, "kappa": 0.8, "share": 0.25}
PAPER = {**COMMON, "sampling": "random", "class_weight": "prior", "k": 10, "scale": "sigma", "redundancy": "mcr"}
DEFAULT = {
    **COMMON, "sampling": "balanced", "class_weight": "balanced", "k": "auto", "scale": "auto",
    "redundancy": "agreement",
}  # fmt: skip


# 1. Scaling and difference


def summary(X, discrete, scale):
    """Return the statistics of each feature that sections 1 and 5 use."""
    m, F = X.shape
    mean, sigma, constant = np.zeros(F), np.zeros(F), np.ones(F, dtype=bool)
    own = np.full((m, F), np.nan)  # for discrete features, the share p_v of the value v that the row has
    spread = np.zeros(F)  # for discrete features, 1 - sum p^2
    for j in range(F):
        present = X[~np.isnan(X[:, j]), j]
        if len(present) == 0 or np.all(present == present[0]):
            continue  # constant: mean and sigma stay 0, but they are never used
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
    if scale == "standard":
        for j in np.flatnonzero(~discrete & ~constant):
            values = np.unique(X[~np.isnan(X[:, j]), j])
            if len(values) == 2:
                unit[j] = values[1] - values[0]
    return SimpleNamespace(mean=mean, sigma=sigma, constant=constant, own=own, spread=spread, scale=scale, unit=unit)


def difference(X, q, r, discrete, f):
    """Return Delta_j(q, r) for each of the rows r (len(r) x F); NaN where either value is missing."""
    a, b = X[q], X[r]
    delta = np.where(discrete, (a != b).astype(float), np.abs(a - b) / f.unit)
    delta[:, f.constant] = 0.0
    delta[np.isnan(a) | np.isnan(b)] = np.nan
    return delta


def d2(X, q, discrete, f):
    """Return d^2 of row q to every row, rounded to 9 significant digits; a missing value adds its expectation."""
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
    """Return the 64-bit key of row i in a stream (0: sample, 1: ties)."""
    return mix(mix(mix(int(seed) & MASK) ^ int(stream)) ^ int(i))


def allot(s, sizes):
    """Divide s rows among classes of these sizes by largest remainder; each class has a row if there are enough."""
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


def balanced(order, label):
    """Return the rows sorted by (rank in their class, key): one row of each class, then the second, and so on."""
    seen, rank = {}, {}
    for i in order:
        rank[i] = seen[label[i]] = seen.get(label[i], -1) + 1
    return sorted(order, key=lambda i: rank[i])  # the sort is stable, so rows of the same rank stay sorted by key


def proportional(order, label, s):
    """Return the sample in the order of keys; each class has its share of the s rows."""
    left = allot(s, np.bincount(label).tolist())
    taken = []
    for i in order:
        if left[label[i]] > 0:
            left[label[i]] -= 1
            taken.append(i)
    return taken


def race(weight, seed):
    """Return a random number for each row with a positive weight; rows are sampled in increasing order."""
    uniform = {i: (key(seed, 0, i) + 1) / 2**64 for i in np.flatnonzero(weight).tolist()}
    return {i: -math.log1p(-u * (1 - 1e-12)) / weight[i] for i, u in uniform.items()}


def by_inclusion(label, weight, seed, sampled):
    """Return the weight of each row divided by the probability that it is sampled (section 11).

    The probabilities follow from the smallest random number in its class that is not in the sample.
    """
    values, found = race(weight, seed), np.array(weight, dtype=float)
    for c in set(label.tolist()):
        inside = [values[i] for i in sampled if label[i] == c]
        outside = [x for i, x in values.items() if label[i] == c and x > max(inside, default=0.0)]
        for i in np.flatnonzero(label == c).tolist() if outside else []:
            found[i] = weight[i] / -math.expm1(-weight[i] * min(outside))
    return found


def sample(label, s, sampling, seed, weight=None):
    """Return the ids of the s sampled rows, in order."""
    values = {i: key(seed, 0, i) for i in range(len(label))} if weight is None else race(weight, seed)
    order = sorted(values, key=values.get)
    if sampling == "proportional":
        return proportional(order, label, s)
    return (balanced(order, label) if sampling == "balanced" else order)[:s]


# 3. Neighbours


def auto_k(smallest):
    """Return k for "auto", given the size of the smallest class."""
    return min(20, max(10, smallest // 3))


def auto_k_of_numbers(m):
    """Return k for "auto" and a numeric target of m rows.

    k is 40,000 / m, but at least 20. If m / 3 is smaller, k is m / 3, but at least 10. Quotients are rounded down. Each
    query has 2k neighbours.
    """
    return max(10, min(m // 3, max(20, 40_000 // m)))


def may_be_neighbours(design, q, r):
    """Return True if r may be a neighbour of q: another row of positive weight, of another group, in its stratum."""
    if r == q or (design.weight is not None and design.weight[r] == 0):
        return False
    other_group = design.group is None or design.group[r] != design.group[q]
    return other_group and (design.stratum is None or design.stratum[r] == design.stratum[q])


def nearest(X, aim, q, discrete, f, k, neighborhood, seed, design):
    dist = d2(X, q, discrete, f)
    allowed = (r for r in range(len(X)) if may_be_neighbours(design, q, r))
    order = sorted(allowed, key=lambda r: (dist[r], key(seed, 1, r)))
    if aim.numeric or neighborhood == "pooled":
        return order[: k * (2 if aim.numeric else len(aim.classes))]
    return [r for c in range(len(aim.classes)) for r in [i for i in order if aim.label[i] == c][:k]]


# 4. Relevance. With a numeric target (10), all rows are of one class, and a neighbour is a miss to the degree tau


def class_weights(classes, priors, class_weight):
    """Return the weight v(c) of each class; a mapping must name every class."""
    if isinstance(class_weight, str):
        return {"prior": priors, "balanced": np.full(len(classes), 1 / len(classes))}[class_weight]
    given = np.array([class_weight[c] for c in classes.tolist()], dtype=float)
    return given / given.sum()


def make_class_target(y, class_weight):
    classes, label = np.unique(y, return_inverse=True)
    priors = np.array([np.mean(label == c) for c in range(len(classes))])
    v = class_weights(classes, priors, class_weight)
    smallest = int(np.bincount(label).min())
    return SimpleNamespace(
        numeric=False,
        classes=classes,
        label=label,
        priors=priors,
        v=v,
        t=None,
        smallest=smallest,
        by_prior=class_weight == "prior",
        row_weight=None,
    )


def mid_ranks(y):
    """Return t: the number of smaller values plus half of the other equal ones, divided by m - 1."""
    smaller = [np.sum(y < x) + (np.sum(y == x) - 1) / 2 for x in y]
    return np.array(smaller) / max(len(y) - 1, 1)


def make_numeric_target(y):
    one, label = np.ones(1), np.zeros(len(y), dtype=int)
    t = mid_ranks(np.asarray(y, dtype=float))
    return SimpleNamespace(
        numeric=True, classes=None, label=label, priors=None, v=one, t=t, smallest=len(y) // 2, by_prior=True,
        row_weight=None,
    )  # fmt: skip


def missed(aim, q, near):
    """Return the degree to which each neighbour is a miss: 0 or 1 for classes, tau for a numeric target."""
    return np.abs(aim.t[q] - aim.t[near]) if aim.numeric else (aim.label[near] != aim.label[q]).astype(float)


def query_sums(delta, miss, weight=1.0):
    """Return a, t, b and u of a query: weighted sums of Delta and weighted counts, over misses and then over hits."""
    there = ~np.isnan(delta)
    delta = np.where(there, delta, 0.0)
    miss, hit = weight * miss, weight * (1 - miss)
    return miss @ delta, miss @ there, hit @ delta, hit @ there


def errors_by_group(aim, sums, group, DD, DC, ED, EC):
    """Return the standard error of w from the influence of each group of queries (section 11).

    The influence of a query is v(c) ((a - A t)/DC - (b - B u)/EC).
    """
    v = shares(aim, DC, EC)
    of_group = {}
    for q, (a, t, b, u) in sums.items():
        c = aim.label[q]
        one = v[c] * (ratio(a - ratio(DD[c], DC[c]) * t, DC[c]) - ratio(b - ratio(ED[c], EC[c]) * u, EC[c]))
        of_group[group[q]] = of_group.get(group[q], 0.0) + one
    n = len(of_group)
    return np.sqrt(sum(x**2 for x in of_group.values()) * n / max(n - 1, 1))


def ratio(a, n):
    """Return a / n, or 0 where n is 0."""
    return np.divide(a, n, out=np.zeros(np.shape(a)), where=np.asarray(n) > 0)


def less(misses, hits):
    """Return misses - hits, or 0 where the difference is only a rounding error."""
    w = misses - hits
    w[np.abs(w) <= ZERO * (misses + hits)] = 0.0
    return w


def shares(aim, DC, EC):
    """Return v(c), the weight of each class in w, for each feature (classes x features).

    With class_weight="prior" or a numeric target, all features have the same weights. Otherwise, the weight of a class
    is 0 for features with which it has no misses or no hits, and the remaining weights are divided by their sum.
    """
    v = np.broadcast_to(aim.v[:, None], DC.shape)
    if aim.by_prior:
        return v
    v = np.where((DC > 0) & (EC > 0), v, 0.0)
    return ratio(v, np.broadcast_to(v.sum(axis=0), v.shape))


def weights(aim, DD, DC, ED, EC):
    v = shares(aim, DC, EC)
    return less(np.sum(v * ratio(DD, DC), axis=0), np.sum(v * ratio(ED, EC), axis=0))


# 6c. The standard error


def contrast(a, t, b, u):
    """Return delta_q: the mean difference to the misses minus that to the hits; NaN unless there are both."""
    return np.where((t > 0) & (u > 0), less(ratio(a, t), ratio(b, u)), np.nan)


def class_variance(delta):
    """Return S^2 / n over the queries of a class that have misses and hits (ddof 1); 0 for fewer than two queries."""
    n = np.sum(~np.isnan(delta), axis=0)
    x = np.nan_to_num(delta, nan=0.0)
    mean = ratio(x.sum(axis=0), n)
    squares = np.sum(np.where(np.isnan(delta), 0.0, x - mean) ** 2, axis=0)
    squares[squares <= FLAT * np.sum(x**2, axis=0)] = 0.0
    return ratio(ratio(squares, n - 1), n)


def influence(a, t, b, u, DD, DC, ED, EC):
    """Return the influence of query q on w, a difference of two ratios, for numeric targets or rows with weights."""
    return ratio(a - ratio(DD, DC) * t, DC) - ratio(b - ratio(ED, EC) * u, EC)


def errors(aim, sums, DD, DC, ED, EC):
    """Return delta (or the influence) of each query, and the standard error of w."""
    if aim.numeric or aim.row_weight is not None:
        v, of_class = shares(aim, DC, EC), list(zip(DD, DC, ED, EC, strict=True))
        delta = {q: v[aim.label[q]] * influence(*parts, *of_class[aim.label[q]]) for q, parts in sums.items()}
        return delta, np.sqrt(sum((d**2 for d in delta.values()), np.zeros(DD.shape[1])))
    delta = {q: contrast(*parts) for q, parts in sums.items()}
    variance = np.zeros(DD.shape[1])
    for c, v_c in enumerate(shares(aim, DC, EC)):
        mine = [d for q, d in delta.items() if aim.label[q] == c]
        variance += v_c**2 * class_variance(np.array(mine)) if mine else 0.0
    return delta, np.sqrt(variance)


def z_of(w, se):
    """Return w / se: 0 where w is 0, and infinite where only se is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(w == 0, 0.0, w / se)


# 5. Collisions


def collisions(X, q, r, discrete, f, kappa):
    """Return cr_j of the pairs of q with each of the rows r (len(r) x F); NaN where either value is missing."""
    a, b = X[q], X[r]
    cr = 1 - np.minimum(np.abs(a - b) / np.where(f.constant, 1.0, f.sigma), 6) / 6
    cr[cr < kappa - 1e-9] = 0.0
    cr = np.where(discrete, (a == b).astype(float), cr)
    cr[:, f.constant] = 1.0
    cr[np.isnan(a) | np.isnan(b)] = np.nan
    return cr


def ten_decimals(w):
    """Return w divided by the largest |w| and rounded to ten decimals, for comparisons."""
    return np.round(w / (np.max(np.abs(w)) or 1.0), 10)


def watch(w, constant, size):
    rounded = ten_decimals(w)
    candidates = [j for j in range(len(w)) if not constant[j]]
    return sorted(candidates, key=lambda j: (-rounded[j], j))[:size]


def tally_joint(cr, watched, joint, joint_pairs):
    """Add the pairs of one batch to the entries [i, j] for which i or j is watched."""
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
    """Return the matrix I[i, j] = I_alpha(X_i; X_j); 0 where undefined."""
    PC = ratio(marginal, pairs)
    I = np.zeros(joint.shape)
    for i in range(len(PC)):
        PCij = ratio(joint[i], joint_pairs[i])
        ok = (PCij > 0) & (PC > 0) & (PC[i] > 0)
        I[i, ok] = PC[i] * np.log2(PCij[ok] / (PC[i] * PC[ok]))
    return I


# 5b. Agreement


def agreement(cr):
    """Return R (F x F): the correlation of cr_i and cr_j over pairs that have both; 0 if negative or undefined."""
    P = (~np.isnan(cr)).astype(float)
    x = np.nan_to_num(cr, nan=0.0)
    n, product = P.T @ P, x.T @ x
    total, square = x.T @ P, (x**2).T @ P  # [i, j]: sums of cr_i and cr_i^2 over the pairs that have both
    variance = n * square - total**2
    variance[variance <= ZERO * n * square] = 0.0
    scale = np.sqrt(variance) * np.sqrt(variance.T)
    return np.clip(ratio(n * product - total * total.T, scale), 0.0, 1.0)


# 6. Selection


def normalise(I, joint_pairs, watched):
    """Return I, min-max normalised over the measured pairs i != j on the watch list and clipped; 0 if not measured."""
    base = [I[i, j] for i in watched for j in watched if i != j and joint_pairs[i, j] > 0]
    if not base or max(base) - min(base) <= max(1e-9 * max(abs(max(base)), abs(min(base))), 1e-13):  # rounding
        return np.zeros(I.shape)
    out = np.clip((I - min(base)) / (max(base) - min(base)), 0, 1)
    out[joint_pairs == 0] = 0.0
    np.fill_diagonal(out, 0.0)
    return out


def between_0_and_1(w, constant):
    """Return w, min-max normalised over the non-constant features: the relevance for "mcr" and None."""
    relevance, live = np.zeros(len(w)), ~constant
    if live.any() and np.ptp(w[live]) > 1e-9 * np.abs(w[live]).max():
        relevance[live] = (w[live] - w[live].min()) / np.ptp(w[live])
    return relevance


def positive_part(w):
    """Return w+ divided by its largest value: the relevance for "agreement"."""
    return np.maximum(w, 0.0) / w.max() if w.max() > 0 else np.zeros(len(w))


def alone(x, label, discrete):
    """Return the univariate p-value of a feature, from the rows that have a value; NaN if undefined."""
    x, label = x[~np.isnan(x)], label[~np.isnan(x)]
    classes = np.unique(label)
    if len(np.unique(x)) < 2 or len(classes) < 2:
        return np.nan
    if discrete:
        table = [[np.sum((x == v) & (label == c)) for c in classes] for v in np.unique(x)]
        return stats.chi2_contingency(table, correction=False).pvalue
    if len(x) <= len(classes):
        return np.nan
    if all(np.ptp(x[label == c]) == 0 for c in classes):  # scipy would warn
        return 0.0
    found = stats.f_oneway(*(x[label == c] for c in classes))
    return 1.0 if found.statistic < 0 else found.pvalue  # rounding may make F negative if class means are equal


# 6c. Significance: the probe, a table of scores


def to_scores(x, ids, j, discrete):
    """Return feature j of the probe as small integers: one column, or one column for each level."""
    x, known = x.copy(), x[~np.isnan(x)]
    for i in np.flatnonzero(np.isnan(x)) if len(known) else []:
        x[i] = known[mix(int(ids[i]) ^ key(0, 3, j)) % len(known)]
    levels, first, counts = np.unique(x, return_index=True, return_counts=True)
    if discrete and len(levels) > 2:
        often = sorted(range(len(levels)), key=lambda v: (-counts[v], first[v]))[:31]
        ones = [x == levels[v] for v in often]
        rare = [~np.any(ones, axis=0)] if len(levels) > len(often) else []
        return 23 * np.column_stack(ones + rare).astype(int)
    knots = x if len(x) <= 255 else x[[i * len(x) // 255 for i in range(255)]]
    below, up_to = np.sum(knots < x[:, None], axis=1), np.sum(knots <= x[:, None], axis=1)
    return np.rint(32 * stats.norm.ppf((below + up_to + 1) / (2 * (len(knots) + 1)))).astype(int)[:, None]


def on_grid(weight):
    """Return the weights divided by the largest one and rounded to positive multiples of 1/65536."""
    return np.maximum(np.rint(weight / weight.max() * 65536), 1) / 65536


def others(x, discrete):
    """Return the number of rows that do not have the usual value of a feature, or have no value.

    The usual value of a continuous feature with more than two different values is 0. For all other features, it is the
    most frequent value.
    """
    counts = np.unique(x[~np.isnan(x)], return_counts=True)[1]
    return len(x) - (max(counts) if discrete or len(counts) <= 2 else np.sum(x == 0))


def probe(X, y, aim, discrete, constant, k, class_weight, seed, weight):
    """Return the probe: its rows sorted by class, its queries, and the scores of its features."""
    F = X.shape[1]
    size = min(len(X), min(max(125_000_000 // F, 500), 2_000))
    rows = np.array(sample(aim.label, size, "random" if aim.numeric else "balanced", seed, weight))
    features = [j for j in range(F) if not constant[j] and others(X[:, j], discrete[j]) / len(X) * size >= 3]
    found = SimpleNamespace(rows=rows, aim=aim, seed=seed, k=0, scores={}, weight=None)
    if weight is not None:
        found.weight = by_inclusion(aim.label, weight, seed, rows)[rows]
    if not aim.numeric:
        rows = rows[np.bincount(aim.label[rows])[aim.label[rows]] >= 5]
    if not len(rows) or not features:
        return found
    ids = rows if aim.numeric else rows[np.argsort(aim.label[rows], kind="stable")]
    n_queries = min(max(60_000_000_000 // (4 * len(ids) * len(features)), 250), 1_000)
    queries = np.flatnonzero(np.isin(ids, rows[:n_queries]))
    mine = make_numeric_target(y[ids]) if aim.numeric else make_class_target(y[ids], class_weight)
    if aim.numeric:
        mine.t = np.rint(mine.t * 4096) / 4096
        n = len(ids) // 2
    else:
        n = mine.smallest if len(mine.classes) > 1 else 0
    if weight is not None:
        mine.row_weight = on_grid(by_inclusion(aim.label, weight, seed, found.rows)[ids])
        mine.query_weight = on_grid(by_inclusion(aim.label, weight, seed, ids[queries])[ids])
        if class_weight == "prior" and not aim.numeric:
            mine.v = np.bincount(mine.label, mine.row_weight) / mine.row_weight.sum()
    scores = {j: to_scores(X[ids, j], ids, j, discrete[j]) for j in features}
    scores = {j: x for j, x in scores.items() if np.any(x != x[0])}
    found.k = min(k, max(10, n // 6), n // 2) if n >= 5 else 0
    found.ids, found.queries, found.aim, found.scores = ids, queries, mine, scores
    return found


# 6c. The univariate test, checked by shuffles


def share_of_variance(columns, discrete, target):
    """Return how much of a feature the target explains.

    `target` has a column of norm 1 for each class, or a single one for a numeric target. The result is a share of the
    variance, except for discrete features and classes: there it is the chi-squared statistic.
    """
    if not discrete:
        x = np.nan_to_num(columns - np.nanmean(columns, axis=0))
        return np.sum((target.T @ x) ** 2) / max(np.sum(x**2), 1e-300)
    total = 0.0
    for x in columns.T:
        total += np.sum((target.T @ (x - x.mean())) ** 2) / x.mean() * (1.0 if len(target.T) > 1 else 1 / len(x))
    return total


def explained(p, X, aim, j, discrete):
    """Return the columns of a feature and of the target for the univariate test.

    For classes, the test uses all rows that were drawn for the probe, including the rows of small classes.
    """
    x = p.scores[j] if aim.numeric else to_scores(X[p.rows, j], p.rows, j, discrete)
    if discrete:
        x = x @ np.arange(1, x.shape[1] + 1)
        columns = (x[:, None] == np.unique(x)).astype(float)
    else:
        columns = x.astype(float) if aim.numeric else X[p.rows][:, [j]]
    if aim.numeric:
        t = p.aim.t - p.aim.t.mean()
        return columns, t[:, None] / np.sqrt(np.sum(t**2))
    one = (aim.label[p.rows][:, None] == np.unique(aim.label[p.rows])).astype(float)
    return columns, one / np.sqrt(one.sum(axis=0))


def in_theory(columns, discrete, target, numeric):
    """Return the p-value of an F test, or of a chi-squared test for discrete features."""
    m, groups = len(columns), max(target.shape[1] - 1, 1)
    found = share_of_variance(columns, discrete, target)
    if discrete:
        return stats.chi2.sf(found * (m - 1 if numeric else 1), (columns.shape[1] - 1) * groups)
    if found >= 1 - 1e-13:
        return 0.0
    return stats.f.sf(found / groups / ((1 - found) / (m - groups - 1)), groups, m - groups - 1)


def by_all_shuffles(x, chosen):
    """Return the exact p-value of the sum of x over the chosen rows.

    It is the share of all choices of equally many rows whose sum is farther from its expected value, plus half of the
    share of those whose sum is equally far. None if x has too many values, or values that are not multiples of a step.
    """
    levels, count = np.unique(x, return_counts=True)
    if not 2 <= len(levels) <= 12:
        return None
    steps = (levels - levels[np.argmax(count)]) / min(np.diff(levels))
    rare = len(x) - max(count)
    if np.max(abs(steps - np.rint(steps))) > 1e-6:
        return None
    if len(levels) > 2 and rare**2 * np.sum(abs(steps) * count) > 5_000_000:
        return None
    offset = np.rint(steps).astype(int)
    ways = {(0, 0): 1}  # {(number of rows, sum): number of ways to choose such rows}
    for o, c in zip(offset.tolist(), count.tolist(), strict=True):
        more = {}
        for (n, total), w in ways.items():
            for k in range(c + 1):
                at = n + k, total + k * o
                more[at] = more.get(at, 0) + w * comb(c, k)
        ways = more
    of_row = np.rint((x - levels[np.argmax(count)]) / min(np.diff(levels)))
    mean, got = chosen.sum() * of_row.mean(), of_row[chosen].sum()
    beyond = {t: abs(t - mean) - abs(got - mean) for n, t in ways if n == chosen.sum()}
    farther = sum(ways[chosen.sum(), t] for t, b in beyond.items() if b > 1e-6)
    as_far = sum(ways[chosen.sum(), t] for t, b in beyond.items() if abs(b) <= 1e-6)
    return float(Fraction(2 * farther + as_far, 2 * comb(len(x), int(chosen.sum()))))


def by_shuffles(orders, columns, discrete, target):
    """Return the p-value from shuffles of the target; from a Pareto tail if few shuffles reach the statistic."""
    n = len(orders)
    null = np.sort([share_of_variance(columns, discrete, target[order]) for order in orders])
    T = share_of_variance(columns, discrete, target) * (1 - 2e-6)
    beyond, cut = np.sum(null >= T), null[int(0.95 * n)]
    excess = null[null > cut * (1 + 2e-6)] - cut
    if cut < T and len(excess) and beyond < 10:
        shape, scale = pareto(excess) if len(excess) >= 10 else (0.0, excess.mean())
        return max(len(excess) / n * pareto_tail((T - cut) / scale, shape), 1e-300)
    return (1 + beyond) / (n + 1)


def univariate(p, X, aim, discrete):
    """Return the univariate p-values of all features; small ones are checked by shuffles, which may raise them."""
    F = X.shape[1]
    if aim.numeric:
        tested = {j: explained(p, X, aim, j, discrete[j]) for j in p.scores}
        found = np.full(F, np.nan)
        for j, (x, target) in tested.items():
            found[j] = in_theory(x, discrete[j], target, True)
    else:
        found = np.array([alone(X[:, j], aim.label, discrete[j]) for j in range(F)])
        tested = {j: explained(p, X, aim, j, discrete[j]) for j in np.flatnonzero(found < 0.05)}
    small = [j for j in tested if found[j] < 0.05]
    cells = sum(x.size * target.shape[1] for x, target in (tested[j] for j in small))
    n = min(max(20_000_000_000 // max(cells, 1), 100), 1_000)
    orders = [np.argsort([key(p.seed, 2**21 + t, i) for i in p.rows]) for t in range(n if small else 0)]
    for j in small:
        columns, target = tested[j]
        theory = in_theory(columns, discrete[j], target, aim.numeric)
        shuffled = None
        if not aim.numeric and target.shape[1] == 2 and columns.shape[1] <= 1 + discrete[j]:
            shuffled = by_all_shuffles(np.nan_to_num(columns[:, 0] - np.nanmean(columns[:, 0])), target[:, 0] > 0)
        if shuffled is None:
            shuffled = by_shuffles(orders, columns, discrete[j], target)
        if theory < 0.5:
            stands = math.log(shuffled) / math.log(max(theory, 1e-300))
            if stands < 1:
                found[j] = max(found[j], 1e-300) ** max(stands, 0.0)
    return found


def weighted_univariate(p, X, aim, discrete):
    """Return univariate p-values from shuffles only; the weights of rows move with their targets (section 11)."""
    varies = [j for j in range(X.shape[1]) if len(np.unique(X[~np.isnan(X[:, j]), j])) > 1]
    found, orders = (
        np.full(X.shape[1], np.nan),
        [np.argsort([key(p.seed, 2**21 + t, i) for i in p.rows]) for t in range(1000)],
    )
    for j in varies:
        columns, target = explained(p, X, aim, j, discrete[j])
        target = p.weight[:, None] * (target - np.average(target, axis=0, weights=p.weight))
        found[j] = by_shuffles(orders, columns, discrete[j], target)
    return found


# 6c. Rounds


def squared_distances(blocks, rows):
    """Return d^2 from some rows to all rows of the probe, in the features with these blocks of scores."""
    return sum(
        (np.sum((x[rows][:, None] - x[None]) ** 2, axis=2) for x in blocks), np.zeros((len(rows), len(blocks[0])))
    )


def nearest_of_probe(D, queries, first, last, size):
    """Return the nearest rows of each query among the rows from `first` to `last`.

    Among ties, the first rows in cyclic order are chosen. This order starts at the row number of the query modulo the
    number of rows.
    """
    n = last - first
    circle = first + (queries[:, None] % n + np.arange(n)) % n
    d = np.where(circle == queries[:, None], np.inf, np.take_along_axis(D, circle, axis=1))
    return np.take_along_axis(circle, np.argsort(d, axis=1, kind="stable")[:, :size], axis=1)


def weigh(aim, k, D, queries, blocks):
    """Return w, its standard error and the mean difference of the features with these blocks of scores."""
    ends = [len(D[0])] if aim.numeric else np.cumsum(np.bincount(aim.label)).tolist()
    size = 2 * k if aim.numeric else k
    near = np.hstack([nearest_of_probe(D, queries, a, b, size) for a, b in zip([0, *ends], ends, strict=False)])
    delta = np.stack([np.abs(x[near] - x[queries][:, None]).sum(axis=2) for x in blocks], axis=2).astype(float)
    DD, ED, DC, EC = (np.zeros((len(aim.v), len(blocks))) for _ in range(4))
    sums = {}
    for q, rows, apart in zip(queries.tolist(), near, delta, strict=True):
        of_pairs = 1.0 if aim.row_weight is None else aim.query_weight[q] * aim.row_weight[rows]
        sums[q] = query_sums(apart, missed(aim, q, rows), of_pairs)
        for total, part in zip((DD, DC, ED, EC), sums[q], strict=True):
            total[aim.label[q]] += part
    apart = np.sum(DD + ED, axis=0) / np.sum(DC + EC, axis=0)
    return weights(aim, DD, DC, ED, EC), errors(aim, sums, DD, DC, ED, EC)[1], apart


def rounds(aim, k, fixed, blocks, queries, most):
    """Return T of each feature, the number of the round that T comes from, and the features left at the end.

    T is the largest z of a feature in all rounds. A round finds the neighbours, computes z, and drops the fifth of
    the features with the smallest z. The rounds end when 16 features are left, or after `most` rounds. `fixed` are the
    squared distances in the known features, which are not dropped.
    """
    T, when, live, number = np.full(len(blocks), -np.inf), np.zeros(len(blocks), dtype=int), list(range(len(blocks))), 1
    while True:
        mine = [blocks[j] for j in live]
        w, se, _ = weigh(aim, k, fixed + squared_distances(mine, queries), queries, mine)
        z = w / np.maximum(se, 1e-12)
        if len(live) >= 20:
            z = z - np.median(z)
        for j, x in zip(live, z, strict=True):
            if x > T[j]:
                T[j], when[j] = x, number
        keep = max(16, min(int(len(live) * (1 - 0.2)), 10_000))
        if keep >= len(live) or number == most:
            return T, when, live
        best = np.argsort(-np.round(z / EQUAL), kind="stable")[:keep]
        live, number = [live[i] for i in sorted(best)], number + 1


# 6c. p-values


def shuffled_rows(p, stream):
    """Return an order that shuffles queries among queries, and other rows among other rows."""
    order = np.empty(len(p.ids), dtype=int)
    for rows in (p.queries, np.setdiff1d(np.arange(len(p.ids)), p.queries)):
        order[rows] = sorted(rows, key=lambda i: key(p.seed, stream, p.ids[i]))
    return order


def strata(p, S):
    """Return the stratum of each row: rows of a stratum have similar expected targets, given the features S."""
    m = len(p.ids)
    D = squared_distances(S, np.arange(m))
    np.fill_diagonal(D, np.inf)
    prospects = []
    n_near = min(max(10, min(40, m // 25)), m - 1)
    for d in D:
        near = d <= np.sort(d)[n_near - 1]
        weight = None if p.aim.row_weight is None else p.aim.row_weight[near]
        if p.aim.numeric:
            prospects.append(np.average(p.aim.t[near], weights=weight))
            continue
        votes = [np.average(p.aim.label[near] == c, weights=weight) for c in range(len(p.aim.classes))]
        prospects.append(votes[1] if len(votes) == 2 else 2 * np.argmax(votes) + max(votes))
    order = sorted(range(m), key=lambda i: (round(float(prospects[i]), 9), key(p.seed, 4, p.ids[i])))
    n = max(1, min(m // 10, 60))
    stratum = np.empty(m, dtype=int)
    for place, i in enumerate(order):
        stratum[i] = place * n // m
    return stratum


def within(p, stratum, stream):
    """Return an order that shuffles rows within their strata."""
    order = np.empty(len(stratum), dtype=int)
    for s in set(stratum.tolist()):
        rows = np.flatnonzero(stratum == s)
        order[rows] = sorted(rows, key=lambda i: key(p.seed, stream, p.ids[i]))
    return order


def against(T, null):
    """Return the p-value of each T, and T minus its centre.

    T is the largest z of a feature in all rounds, and `null` has the same values after each shuffle. The centre of a
    feature is its mean over the shuffles, shrunk towards the mean of all features.
    """
    n = len(null)
    mean, noise = null.mean(axis=0), null.var(axis=0, ddof=1).mean() / n
    between = max(mean.var() - noise, 0.0)
    share = between / (between + noise) if between > 0 else 0.0
    overall = mean.mean()
    centred = []
    for b in range(n):
        others = np.delete(null, b, axis=0).mean(axis=0)
        centred.extend(null[b] - overall - share * (others - overall))
    centred = np.sort(centred)
    above = T - overall - share * (mean - overall)
    cut = centred[int(0.95 * len(centred))]
    excess = centred[centred > cut + EQUAL] - cut
    p = np.array([(1 + np.sum(centred >= t - EQUAL)) / (len(centred) + 1) for t in above])
    if len(excess) >= 10:
        shape, scale = pareto(excess)
        for j in np.flatnonzero(above > cut + EQUAL):
            x = (above[j] - cut) / scale
            p[j] = 0.05 * pareto_tail(x, shape)
    return p, above


def pareto(excess):
    """Return the shape (0 to 0.9) and scale of a generalised Pareto tail, by probability-weighted moments."""
    n = len(excess)
    first = excess.mean()
    second = sum((n - 1 - i) / max(n - 1, 1) * x for i, x in enumerate(excess)) / n
    shape = 2 - first / (first - 2 * second) if first > 2 * second else 0.0
    shape = min(max(shape, 0.0), 0.9)
    return shape, first * (1 - shape)


def pareto_tail(x, shape):
    return math.exp(-x) if shape < 1e-6 else (1 + shape * x) ** (-1 / shape)


def combined(p_neighbours, p_univariate):
    return np.fmin(1.0, np.fmin(np.nan_to_num(p_neighbours / 0.2, nan=1.0), np.nan_to_num(p_univariate / 0.8, nan=1.0)))


def adjusted(p):
    """Return q-values by the procedure of Benjamini and Hochberg."""
    q, least = np.ones(len(p)), 1.0
    for rank, j in reversed(list(enumerate(np.argsort(p, kind="stable"), 1))):
        least = min(least, p[j] * len(p) / rank)
        q[j] = least
    return q


def univariate_by_class(p, X, aim, discrete, constant, alpha):
    """Return the univariate p-values of each class against all others (section 11).

    Those with q < alpha are checked by shuffles. With row weights, all p-values come from shuffles.
    """
    found = []
    for c in range(len(aim.classes)):
        one = SimpleNamespace(numeric=False, label=(aim.label == c).astype(int))
        if p.weight is not None:
            found.append(weighted_univariate(p, X, one, discrete))
            continue
        mine = np.array([alone(X[:, j], one.label, discrete[j]) for j in range(X.shape[1])])
        small = np.flatnonzero(~constant)[adjusted(np.nan_to_num(mine[~constant], nan=1.0)) < alpha]
        mine[small] = univariate(p, X, one, discrete)[small]
        found.append(mine)
    return found


def significance(X, y, aim, discrete, constant, k, class_weight, seed, most=None, weight=None, by_class=None):
    """Return the results of section 6c: p of both tests, the combined p and q, the round of T, metric and bias.

    T is the largest z of a feature (see `rounds`). The metric is the set of features that define the distances.
    `bias_of` computes the bias. If `by_class` is a level alpha, the results include the univariate p-values of each
    class.
    """
    F = X.shape[1]
    p = probe(X, y, aim, discrete, constant, k, class_weight, seed, weight)
    p_univariate = univariate(p, X, aim, discrete) if weight is None else weighted_univariate(p, X, aim, discrete)
    p_neighbours, when, metric, bias = np.full(F, np.nan), np.zeros(F, dtype=int), np.flatnonzero(~constant), 0.0
    features = np.array(list(p.scores), dtype=int)
    if len(features):
        alone_p = np.nan_to_num(p_univariate[features], nan=1.0)
        known = adjusted(alone_p) < 0.05
        left = np.zeros(0, dtype=int)
        if p.k:
            p_neighbours[features], when[features], known, left = passes(p, features, alone_p, known, most)
            bias = bias_of(p, features, known, left)
        if known.any() or len(left):
            metric = np.union1d(features[known], features[left])
    value, q = combined(p_neighbours, p_univariate), np.ones(F)
    q[~constant] = adjusted(value[~constant])
    return SimpleNamespace(
        p_neighbours=p_neighbours, p_univariate=p_univariate, p_value=value, q_value=q, round=when, metric=metric,
        bias=bias, by_class=univariate_by_class(p, X, aim, discrete, constant, by_class) if by_class else None,
    )  # fmt: skip


def passes(p, features, alone_p, known, most):
    """Return p of the neighbour test, the round of each T, a mask of the known features, and the features left.

    Known features have already been found significant. Each of at most five passes tests all other features, in
    rounds that drop the weakest ones. Then the strongest of the significant features become known, too. The features
    left are the ones that remain after the rounds of the last pass.
    """
    found_p, when, left, known = np.full(len(features), np.nan), np.zeros(len(features), dtype=int), [], known.copy()
    m, queries = len(p.ids), p.queries
    for t in range(5):
        S, N = ([p.scores[j] for j in features[which]] for which in (known, ~known))
        if not N:
            break
        free = np.flatnonzero(~known)
        n = min(max(1000 // len(N), 20), 50)
        n = max(3, min(n, 60_000_000_000 // (m * len(queries) * len(N)) - 1))
        fixed = squared_distances(S, queries) if S else np.zeros((len(queries), m))
        T, when[free], live = rounds(p.aim, p.k, fixed, N, queries, most)
        left = free[live]
        null, number, close = [], min(max(5, math.ceil(1000 / len(N))), n), True
        while close:
            for b in range(len(null), number):
                order = shuffled_rows(p, 16 + b)
                null.append(rounds(p.aim, p.k, fixed, [x[order] for x in N], queries, most)[0])
            found_p[free], above = against(T, np.array(null))
            value = combined(found_p, alone_p)
            q = adjusted(value)
            hits, limit = q < 0.05, max([0, *value[q < 3 * 0.05]])
            close = number < n and np.any(found_p[free] / 0.2 <= limit)
            number = min(2 * number, n)
        n, hits = len(null), hits[free]
        if S and hits.any():
            stratum, null = strata(p, S), []
            for b in range(n):
                order = within(p, stratum, 2**20 + b)
                moved = np.argsort(order)[queries]
                there = squared_distances([x[order] for x in S], moved)
                null.append(rounds(p.aim, p.k, there, [x[order] for x in N], moved, most)[0])
            found_p[free] = np.maximum(found_p[free], against(T, np.array(null))[0])
            hits = adjusted(combined(found_p, alone_p))[free] < 0.05
        if not hits.any() or t == 4:
            break
        known[free[hits & (above >= above[hits].max() / 2)]] = True
    return found_p, when, known, np.array(left, dtype=int)


def bias_of(p, features, known, left):
    """Return the bias: the weight that irrelevant features have because they define the distances (beta in 6c).

    The features left after the rounds are shuffled, except the known ones. The result is the sum of their weights,
    divided by the sum of their mean differences. If there are none, it is 0.
    """
    left = np.setdiff1d(left, np.flatnonzero(known))
    if not len(left):
        return 0.0
    S, N = ([p.scores[features[j]] for j in which] for which in (np.flatnonzero(known), left))
    fixed = squared_distances(S, p.queries) if S else 0.0
    w, apart = 0.0, 0.0
    for b in range(20):
        order = shuffled_rows(p, 16 + b)
        blocks = [x[order] for x in N]
        found = weigh(p.aim, p.k, fixed + squared_distances(blocks, p.queries), p.queries, blocks)
        w, apart = w + found[0].sum(), apart + found[2].sum()
    return w / apart if apart > 0 else 0.0


def by_evidence(above, p, significant, constant):
    """Return u, the relevance of each feature between 0 and 1 (section 6b).

    If a feature is significant, u is its weight above the null weight (`above`), divided by the largest one, but at
    least 0.05. If it is not significant, u is proportional to -log p, and at most 0.05. Constant features have u = 0.
    """
    evidence = -np.log(np.maximum(p, 1e-300))
    u, top = np.zeros(len(p)), max([0.0, *above[significant]])
    for j in np.flatnonzero(significant):
        trifle = 0.05 + 0.001 * evidence[j] / max(evidence[significant].max(), 1e-300)
        u[j] = max(above[j] / top if top > 0 else 0.0, trifle)
    others = ~significant & ~constant
    if others.any() and evidence[others].max() > 0:
        u[others] = 0.05 * evidence[others] / evidence[others].max()
    return u


def rule(relevance, repeated, redundancy, theta):
    """Return a function from the selected features S to the scores J of all features.

    repeated[j, i] is the redundancy of feature i with feature j.
    """
    if redundancy == "agreement":
        share = 1.0 if theta == "auto" else theta
        return lambda S: relevance * (1 - share * np.max(repeated[S], axis=0, initial=0.0))
    if redundancy is None:
        return lambda S: relevance
    mean = theta in ("auto", "mean")
    return lambda S: relevance - (1 / max(len(S), 1) if mean else theta) * np.sum(repeated[S], axis=0)


def select(score, tie, constant, n_select, given=()):
    """Return the selected features and their scores J, by forward selection.

    The given features come first and constant features last. Between them, each feature has the largest J, rounded to
    ten decimals; ties go to the larger `tie`, then to the smaller index.
    """
    left, selected, scores = [j for j in range(len(tie)) if not constant[j] and j not in given], [], []
    for j in given:
        scores.append(float(score(selected)[j]))
        selected.append(j)
    n_select += len(given)
    while left and len(selected) < n_select:
        J = score(selected)
        best = min(left, key=lambda j: (-round(float(J[j]), 10), -tie[j], j))
        left.remove(best)
        selected.append(best)
        scores.append(float(J[best]))
    rest = np.flatnonzero(constant).tolist()[: n_select - len(selected)]
    return selected + rest, scores + [0.0] * len(rest)


# 11. Features for each class, and stability


def apart_from_others(DD, DC, ED, EC):
    """Return the separation of each class: half of its energy distance from the others, averaged over them.

    The separation of a class without hits or misses is 0. Classes without hits are left out of the average.
    """
    D, E, out = ratio(DD, DC), ratio(ED, EC), np.zeros(np.shape(DD))
    for c, j in np.argwhere((DC > 0) & (EC > 0)):
        others = [E[d, j] for d in range(len(D)) if d != c and EC[d, j] > 0] or [E[c, j]]
        out[c, j] = less(D[c : c + 1, j], (E[c : c + 1, j] + np.mean(others)) / 2)[0]
    return out


def of_each_class(sure, above, constant, alpha):
    """Return the relevance of each feature for each class, and the argument `of_class` of `not_below` for each class.

    The relevance is multiplied by 0.1 if the feature is not significant for the class. It is also multiplied by 0.1 if
    another class is the best class of the feature. `of_class` is a tuple of three arrays with an entry for each
    feature: its p-value for the class, whether it is significant for the class, and the factor of the second rule (0.1
    or 1). Without significance tests (`sure` is None), there are no such tuples.
    """
    out, found, ps, rounded = [], [], [], ten_decimals(above)
    for c, x in enumerate(above):
        if sure is None:
            out.append(positive_part(np.where(constant, 0.0, x)))
            found.append(np.zeros(len(x), dtype=bool))
            continue
        p, q = combined(sure.p_neighbours, sure.by_class[c]), np.ones(len(x))
        ps.append(p)
        q[~constant] = adjusted(p[~constant])
        found.append(q < alpha)
        out.append(by_evidence(x, p, q < alpha, constant) * np.where(q < alpha, 1.0, 0.1))
    tenths = np.ones((len(out), len(constant)))
    for j in range(len(constant)):
        best = max(range(len(out)), key=lambda c: (found[c][j], rounded[c][j], c))
        tenths[[c for c in range(len(out)) if c != best], j] = 0.1
    return np.array(out) * tenths, list(zip(ps, found, tenths, strict=False))


def not_below(score, of_class, R, constant, alpha):
    """Return a function from the selected features S to the scores J, some of which are raised to a lower limit.

    `score` is the same function without limits. Let r be the largest redundancy of a feature with the features of
    S, and z the normal deviate of its p-value for the class. The feature has a limit if r is at most 0.5, and both z
    and z (1 - r) are significant. The limit is between 0.05 and 0.051, and rises with z (1 - r). It is multiplied by
    0.1 if another class is the best class of the feature (section 11).
    """
    p, found, tenths = of_class

    def raised(S):
        J, shared = score(S), np.max(R[S], axis=0, initial=0.0)
        for j in np.flatnonzero(found):
            left = stats.norm.sf(stats.norm.isf(max(p[j], 1e-300)) * (1 - shared[j]))
            if shared[j] <= 0.5 and left <= alpha * sum(found) / sum(~constant):
                most = math.log(max(min(p[found]), 1e-300))
                J[j] = max(J[j], tenths[j] * (0.05 + 0.001 * math.log(left) / (most or 1.0)))
        return J

    return raised


def select_for_classes(scores, tie, constant, n, given):
    """Select one feature for each class in turn, n times; skip classes without a positive J."""
    selected, found, classes = [], [], []
    for j in given:
        found.append(float(scores[0](selected)[j]))
        selected.append(j)
        classes.append(-1)
    for _ in range(n):
        for c, score in enumerate(scores):
            J, left = score(selected), [j for j in range(len(tie)) if not constant[j] and j not in selected]
            if any(round(float(J[j]), 10) > 0 for j in left):
                best = min(left, key=lambda j: (-round(float(J[j]), 10), -tie[j], j))
                selected.append(best)
                found.append(float(J[best]))
                classes.append(c)
    return selected, found, classes


def halves(queries, group, F, seed, n):
    """Yield the queries of n half-samples; each has half of the folds."""
    fold = folds(queries, group, F, seed)
    n_folds = len(set(fold.values()))
    for b in range(n):
        drawn = sorted(range(n_folds), key=lambda f: key(seed, 2**22 + b, f))[: max(1, n_folds // 2)]
        yield [q for q in queries if fold[q] in drawn]


def folds(queries, group, F, seed):
    """Return the fold of each query; there are 20 to 50 folds of whole groups, or fewer if there are fewer groups."""
    units = sorted({group[q] for q in queries})
    by_key = sorted(range(len(units)), key=lambda u: key(seed, 5, u))
    n_folds = min(len(units), max(20, min(50, 10_000_000 // F)))
    fold = {units[u]: place % n_folds for place, u in enumerate(by_key)}
    return {q: fold[group[q]] for q in queries}


def errors_apart(aim, sums, fold, DD, DC, ED, EC):
    """Return the standard errors of `apart_from_others` from the influence of each fold."""
    C, of_fold = len(DD), {f: np.zeros(DD.shape) for f in fold.values()}
    for q, (a, t, b, u) in sums.items():
        c = aim.label[q]
        of_fold[fold[q]][c] += ratio(a - ratio(DD[c], DC[c]) * t, DC[c])
        hit = ratio(b - ratio(ED[c], EC[c]) * u, EC[c])
        for d in range(C):
            others = np.sum(EC > 0, axis=0) - (EC[d] > 0)
            share = np.where(others > 0, 0.5, 1.0) if d == c else 0.5 / np.maximum(others, 1)
            of_fold[fold[q]][d] -= share * hit
    n = len(of_fold)
    return np.where((DC > 0) & (EC > 0), np.sqrt(sum(x**2 for x in of_fold.values()) * n / (n - 1)), 0.0)


def nogueira(sets, F):
    """Return the frequency of each feature, the stability index and its 95 % interval.

    They are defined in equations 4 and 10 of Nogueira, Sechidis and Brown (2018).
    """
    M = len(sets)
    p = [sum(j in each for each in sets) / M for j in range(F)]
    mean_size = sum(map(len, sets)) / M
    chance = mean_size / F * (1 - mean_size / F)
    index = 1 - sum(M / (M - 1) * x * (1 - x) for x in p) / F / chance
    of_set = []
    for each in sets:
        k = len(each)
        common = sum(p[j] for j in each) / F - k * mean_size / F**2
        of_set.append((common + index / 2 * (2 * mean_size * k / F**2 - k / F - mean_size / F + 1)) / chance)
    error = 1.96 * math.sqrt(4 / M**2 * sum((x - sum(of_set) / M) ** 2 for x in of_set))
    return p, index, (index - error, min(index + error, 1.0))


def interchangeable(often, R):
    """Return the sets of features that are connected by agreements of at least one half."""
    sets = []
    for j in often:
        near = [each for each in sets if any(R[i, j] >= 0.5 for i in each)]
        sets = [each for each in sets if each not in near] + [sorted(sum(near, [j]))]
    return sorted(each for each in sets if len(each) > 1)


def belief(
    X,
    y,
    n_select,
    *,
    discrete=None,
    target="classes",
    sampling="random",
    class_weight="prior",
    k=10,
    s=None,
    share=0.25,
    neighborhood="per_class",
    scale="auto",
    redundancy="mcr",
    theta="auto",
    eta=2.0,
    kappa=0.8,
    stratify=False,
    seed=0,
    significant=False,
    alpha=0.05,
    most_rounds=None,
    given=(),
    group=None,
    stratum=None,
    weight=None,
    per_class=None,
    stability=0,
):
    """Run the method, and return all intermediate and final results.

    With a numeric target, the sample is random and neighbours are pooled (section 10). Significance is tested only if
    `significant` is true; otherwise all features define the distances.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    m, F = X.shape
    discrete = np.zeros(F, dtype=bool) if discrete is None else np.asarray(discrete, dtype=bool)
    s = m if s is None else min(s, m)
    aim = make_numeric_target(y) if target == "numeric" else make_class_target(y, class_weight)
    if weight is not None and not aim.numeric:
        aim.priors = np.bincount(aim.label, weight) / np.sum(weight)
        aim.v = class_weights(aim.classes, aim.priors, class_weight)
    k = k if k != "auto" else auto_k_of_numbers(m) if aim.numeric else auto_k(aim.smallest)
    f = summary(X, discrete, scale)
    design = SimpleNamespace(group=group, stratum=stratum, weight=weight)

    sampling = "random" if aim.numeric else "proportional" if stratify else sampling
    sure, by, null_weight = None, f, np.zeros(F)  # without tests, all features define distances
    if significant:
        sizes = [m - m // 2, m // 2] if aim.numeric else np.bincount(aim.label)
        pooled = aim.numeric or neighborhood == "pooled"
        few = min(20, min(k * len(sizes), m) // len(sizes)) if pooled else min(k, max(sizes))
        sure = significance(
            X,
            y,
            aim,
            discrete,
            f.constant,
            few,
            class_weight,
            seed,
            most_rounds,
            weight,
            by_class=alpha if per_class else None,
        )
        by = SimpleNamespace(**{**vars(f), "constant": ~np.isin(np.arange(F), sure.metric)})

    ids = sample(aim.label, s, sampling, seed, weight)
    step = max(1, math.ceil(share * s - 1e-9))
    batches = [np.array(ids[i : i + step]) for i in range(0, s, step)]

    DD, ED, DC, EC = (np.zeros((len(aim.v), F)) for _ in range(4))
    joint, joint_pairs = np.zeros((F, F)), np.zeros((F, F))
    neighbours, sums, crs, watch_lists, watched, w = {}, {}, [np.zeros((0, F))], [], [], np.zeros(F)
    size = math.ceil(n_select * eta - 1e-9)
    for batch in batches:
        first = len(crs)
        for q in map(int, batch):
            near = neighbours[q] = nearest(X, aim, q, discrete, by, k, neighborhood, seed, design)
            if not near:
                continue
            of_pairs = np.ones(len(near)) if weight is None else weight[q] * weight[near]
            parts = sums[q] = query_sums(difference(X, q, near, discrete, f), missed(aim, q, near), of_pairs)
            for total, part in zip((DD, DC, ED, EC), parts, strict=True):
                total[aim.label[q]] += part
            crs.append(collisions(X, q, near, discrete, f, kappa))
        w = weights(aim, DD, DC, ED, EC)
        if len(batches) == 1:
            watched = watch(w, f.constant, size)
        tally_joint(np.concatenate(crs[first:] or crs[:1]), watched, joint, joint_pairs)
        watch_lists.append(watched)
        watched = watch(w, f.constant, size)  # for the next batch

    cr = np.concatenate(crs)
    marginal, pairs = np.nansum(cr, axis=0), np.sum(~np.isnan(cr), axis=0)
    delta, se = errors(aim, sums, DD, DC, ED, EC)
    if group is not None or weight is not None:
        se = errors_by_group(aim, sums, np.arange(m) if group is None else group, DD, DC, ED, EC)
    I = mutual(marginal, pairs, joint, joint_pairs)
    I_norm = normalise(I, joint_pairs, watch_lists[-1])
    agreeing = redundancy == "agreement"
    R = agreement(cr) if agreeing else None
    if sure is not None:
        apart = ratio(np.sum(DD + ED, axis=0), np.sum(DC + EC, axis=0))
        null_weight = np.where(np.isin(np.arange(F), sure.metric), sure.bias * apart, 0.0)

    def decide(DD, DC, ED, EC):
        """Return the relevance from these sums, and the selection with its scores and classes (sections 6 and 11)."""
        w, repeated, classes = weights(aim, DD, DC, ED, EC), R if agreeing else I_norm, None
        relevance = positive_part(np.where(f.constant, 0.0, w)) if agreeing else between_0_and_1(w, f.constant)
        if sure is not None:
            relevance = by_evidence(w - null_weight, sure.p_value, sure.q_value < alpha, f.constant)
        tie = ten_decimals(w) if agreeing else np.zeros(F)
        if per_class is None:
            score = rule(relevance, repeated, redundancy, theta)
            return relevance, *select(score, tie, f.constant, n_select, given), classes
        of_class, least = of_each_class(sure, apart_from_others(DD, DC, ED, EC) - null_weight, f.constant, alpha)
        scores = [rule(x, repeated, redundancy, theta) for x in of_class]
        if sure is not None and agreeing:
            pairs = zip(scores, least, strict=True)
            scores = [not_below(score, each, R, f.constant, alpha) for score, each in pairs]
        return relevance, *select_for_classes(scores, tie, f.constant, per_class, given)

    relevance, selected, scores, classes = decide(DD, DC, ED, EC)
    apart = apart_se = None
    if per_class is not None:
        apart = apart_from_others(DD, DC, ED, EC)
        fold = folds(sorted(sums), np.arange(m) if group is None else group, F, seed)
        apart_se = errors_apart(aim, sums, fold, DD, DC, ED, EC)
    stable = None
    if stability:
        sets, label = [], aim.label
        for half in halves(sorted(sums), np.arange(m) if group is None else group, F, seed, stability):
            parts = [
                [sum((sums[q][i] for q in half if label[q] == c), np.zeros(F)) for c in range(len(aim.v))]
                for i in range(4)
            ]
            sets.append(set(decide(*map(np.array, parts))[1]) - set(np.flatnonzero(f.constant).tolist()))
        often = sorted(set().union(*sets))
        stable = SimpleNamespace(sets=interchangeable(often, R if agreeing else np.eye(F)))
        stable.frequency, stable.index, stable.interval = nogueira(sets, F)
    return SimpleNamespace(
        classes=aim.classes, priors=aim.priors, v=aim.v, t=aim.t, k=k, sigma=f.sigma, unit=f.unit, constant=f.constant,
        scale=f.scale, sample=np.array(ids), batches=batches, neighbours=neighbours, DD=DD, ED=ED, DC=DC, EC=EC, w=w,
        sums=sums, delta=delta, se=se, z=z_of(w, se), marginal=marginal, pairs=pairs, n_pairs=len(cr),
        watch_lists=watch_lists, joint=joint, joint_pairs=joint_pairs, I=I, I_norm=I_norm, R=R, relevance=relevance,
        selected=selected, scores=scores, sure=sure, null_weight=null_weight, selected_for=classes, stability=stable,
        by_class=less(ratio(DD, DC), ratio(ED, EC)),
        apart=apart, apart_se=apart_se,
    )  # fmt: skip
