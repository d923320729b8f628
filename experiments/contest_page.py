"""Write the tables of experiments/contest.py into its page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from common import Answers, as_data, publish, table
from contest import JUDGES, PAGE, SIZES
from contest_marks import (
    ASIDE,
    MADE_ASIDE,
    against,
    answer,
    aside,
    asked,
    critical_difference,
    ended,
    f1,
    filters,
    friedman,
    in_hindsight,
    mean_f1,
    mean_truth,
    ranks,
    slower,
    slower_in_all,
    taking_part,
    truth,
)
from contest_selectors import BELIEF, COLUMN, SELECTORS
from contest_tasks import KIND, MADE, PAIRED, PUBLIC, SOURCES

UNCHANGED = slice(0, 2)  # the judges (classifiers) whose settings were not changed after the first results
# targets of BELIEF: lead in F1 over the best other filter, largest deficit in F1 to a wrapper, and speed-up over it
LEAD, NEAR, TENTH = 0.02, 0.01, 10
FEW = (BELIEF, "BELIEF, no redundancy", "F test", "mRMR (ours)", "ReliefF (fast-select)", "random forest", "SVM-RFE")
MAIN = (*FEW[:1], "BELIEF, as in the paper", "mRMR (mrmr-selection)", "random forest", "Boruta", "TuRF (fast-select)",
        "L1 logistic regression", "SVM-RFE", "F test", "ReliefF (fast-select)", "mutual information")  # fmt: skip
FOUND, MISSED = 0.9, 0.6  # recall targets: at least 0.9 for BELIEF, where univariate selectors stay below 0.6


def markdown(answers: Answers) -> str:
    """Return all tables in markdown; if too few results are saved for a comparison, only the table of failures."""
    if not asked(answers, KIND) or not aside(answers):
        return "\n\n".join([heading("Time limits and failures", not_ended(answers)), answers.origin])
    files = {
        "means of all selectors": by_selector(answers, whole=True),
        "by source": by_source(answers),
        "by classifier and size": by_judge(answers),
        "by data set": by_set(answers),
        "recall and precision": by_kind(answers),
        "recall by synthetic set": by_made_set(answers),
        "targets set beforehand": targets(answers),
        "time limits and failures": not_ended(answers),
    }
    parts = [
        heading("Means, ranks, recall and time", by_selector(answers), describe_significance(answers)),
        heading("All selectors and tables", ", ".join(as_data(*file) for file in files.items()) + "."),
    ]
    return "\n\n".join([*parts, answers.origin])


def heading(words: str, *parts: str) -> str:
    """Return a section of the page."""
    return "\n\n".join([f"## {words}", *parts])


def shown(x: float | None, form: str = ".3f") -> str:
    """Format a number; None and NaN become a dash."""
    return "–" if x is None or np.isnan(x) else format(x, form)


def format_ratio(x: float) -> str:
    """Format a ratio with two significant digits, or as an integer if it is at least 100."""
    return shown(x, ".0f" if x >= 100 else ".2g")


def by_f1(answers: Answers) -> list[str]:
    """Return the selectors with a result on all public sets, in descending order of mean F1."""
    sets = taking_part(answers)
    return sorted(asked(answers), key=lambda name: -mean_f1(answers, name, sets))


# --- public sets -----------------------------------------------------------------------------------------------------


def by_selector(answers: Answers, whole: bool = False) -> str:
    """Return the table of F1, ranks, recall and time of the selectors, compared with BELIEF.

    By default, it has the main selectors and columns; `whole` adds the others.
    """
    head = ["selector", "F1, all", "less BELIEF's", "F1, kept aside", "rank, all", "recall", "time, x BELIEF's"]
    head += ["kind", "ended", "less BELIEF's, kept aside", "rank, kept aside", "total time, x BELIEF's"]
    names, every, few = by_f1(answers), taking_part(answers), aside(answers)
    mean_ranks = [ranks(answers, names, sets).mean(axis=0) for sets in (every, few)]
    lines = []
    for i, name in enumerate(names):
        marks = [cell(answers, name, sets) for sets in (every, few) for cell in (mean, less)]
        places = [f"{x[i]:.1f}" for x in mean_ranks]
        share = f"{ended(answers, name, every)} of {len(every)}"
        times = [format_ratio(ratio(answers, name, every)) for ratio in (slower, slower_in_all)]
        main = [name, *marks[:3], places[0], recall(answers, name, KIND), times[0]]
        lines.append(
            [*main, SELECTORS[name].kind, share, marks[3], places[1], times[1]][: None if whole else len(main)]
        )
    lines = [line for line in lines if whole or line[0] in MAIN]
    return table(head if whole else head[:7], lines)


def by_source(answers: Answers) -> str:
    """Return the table of F1 on the data sets kept aside, with a column for each group of sources."""
    by_name = {words: [each for each in aside(answers) if each in source] for words, source in SOURCES.items()}
    known = {f"{words} ({len(sets)})": sets for words, sets in by_name.items() if sets}
    lines = [[name, *(mean(answers, name, sets) for sets in known.values())] for name in by_f1(answers)]
    return table(["selector", *known], lines)


def mean(answers: Answers, name: str, sets: Iterable[str]) -> str:
    """Format the mean F1 of a selector over the sets on which it finished."""
    return shown(mean_f1(answers, name, sets))


def less(answers: Answers, name: str, sets: Iterable[str]) -> str:
    """Format the mean of the selector's F1 minus that of BELIEF on the same sets, ± its standard error."""
    gains = against(answers, name, sets)
    if name == BELIEF or len(gains) < 2:
        return ""
    return f"{gains.mean():+.3f} ± {gains.std(ddof=1) / np.sqrt(len(gains)):.3f}"


def describe_significance(answers: Answers) -> str:
    """Describe Friedman's test and Nemenyi's critical difference, for all sets and for those kept aside."""
    every, few = taking_part(answers), aside(answers)
    both = {f"all {len(every)} sets": every, f"the {len(few)} sets kept aside": few}
    return "\n\n".join(apart(answers, sets, words) for words, sets in both.items())


def apart(answers: Answers, sets: list[str], words: str) -> str:
    """Describe Friedman's test on these sets, and name the selectors that differ significantly from BELIEF."""
    names = asked(answers)
    places = ranks(answers, names, sets)
    statistic, p = friedman(places)
    far = critical_difference(len(names), len(sets))
    mine = places.mean(axis=0) - places.mean(axis=0)[names.index(BELIEF)]
    worse, better = ([x for x, d in zip(names, mine, strict=True) if sign * d > far] for sign in (1, -1))
    return (
        f"On {words}, Friedman's test of {len(names)} selectors gives χ² = {statistic:.1f} and p = {p:.2g}. Mean ranks"
        f" that differ by less than {far:.1f} are not significantly different (Nemenyi, 5 %). Significantly worse than"
        f" BELIEF: {'; '.join(worse) or 'none'}. Significantly better: {'; '.join(better) or 'none'}."
    )


def by_judge(answers: Answers) -> str:
    """Return the table of mean F1 by selector, with a column for each judge (classifier) and size."""
    cells, sets = [(n, j) for n in SIZES for j in range(len(JUDGES))], taking_part(answers)
    head = ["selector", *(f"{JUDGES[j]}, {n}" for n, j in cells)]
    lines = [[x, *(shown(mean_f1(answers, x, sets, size=n, judge=j)) for n, j in cells)] for x in by_f1(answers)]
    return table(head, lines)


def by_set(answers: Answers) -> str:
    """Return the table of F1 by public set, for BELIEF, its best competitors and two other selectors."""
    plain = ["BELIEF", "its rank", "as in the paper", "F test"]
    head = ["data (* kept aside)", *plain, "best other filter", "best by a model"]
    return table(head, [line_of(answers, each) for each in taking_part(answers)])


def line_of(answers: Answers, each: str) -> list[str]:
    """Return the line of a public set in the table of `by_set`."""
    names = asked(answers)
    place = ranks(answers, names, [each])[0][names.index(BELIEF)]
    models = [x for x in names if x not in filters() and not x.startswith(BELIEF)]
    plain = [shown(f1(answers, x, each)) for x in ("BELIEF, as in the paper", "F test")]
    best = [winner(answers, some, each) for some in ([x for x in filters() if x in names], models)]
    star = " *" if each in ASIDE else ""
    return [f"{each}{star}", shown(f1(answers, BELIEF, each)), f"{place:g}", *plain, *best]


def winner(answers: Answers, names: list[str], each: str) -> str:
    """Format the highest F1 among these selectors on a set, and name the selector."""
    marks = {name: x for name in names if (x := f1(answers, name, each)) is not None}
    best = max(marks, key=marks.__getitem__, default="")
    return f"{marks[best]:.3f} {best}" if best else "–"


# --- synthetic sets --------------------------------------------------------------------------------------------------


def by_kind(answers: Answers) -> str:
    """Return the table of recall and precision by kind of synthetic set.

    The last column is the recall of features that interact in sets with a rare class.
    """
    groups: dict[str, Iterable[str]] = {**MADE, "all": KIND, "kept aside": MADE_ASIDE}
    names = sorted(asked(answers, KIND), key=lambda name: -mean_truth(answers, name, KIND))
    pairs = {name: shown(mean_truth(answers, name, PAIRED, "together"), ".2f") for name in names}
    lines = [[name, *(both(answers, name, sets) for sets in groups.values()), pairs[name]] for name in names]
    return table(["selector", *groups, "rare, only together"], lines)


def recall(answers: Answers, name: str, sets: Iterable[str]) -> str:
    """Format the mean recall of a selector over these synthetic sets."""
    return shown(mean_truth(answers, name, sets), ".2f")


def both(answers: Answers, name: str, sets: Iterable[str]) -> str:
    """Format the mean recall and the mean precision of a selector over these synthetic sets."""
    return " / ".join(shown(mean_truth(answers, name, sets, what), ".2f") for what in ("recall", "precision"))


def by_made_set(answers: Answers) -> str:
    """Return the table of recall by synthetic set, for a few selectors and for the best ones."""
    few = [x for x in FEW if x in asked(answers, KIND)]
    lines = []
    for each, kind in KIND.items():
        marks = {x: truth(answers, x, each) or 0.0 for x in asked(answers, KIND)}
        top = [x for x in marks if marks[x] == max(marks.values())]
        who = f"{max(marks.values()):.2f} " + (", ".join(top) if len(top) < 4 else f"{len(top)} of them")
        star = " *" if each in MADE_ASIDE else ""
        lines.append([f"{each}{star}", kind, *(shown(truth(answers, x, each), ".2f") for x in few), who])
    return table(["data (* kept aside)", "kind", *few, "best"], lines)


# --- targets ---


def targets(answers: Answers) -> str:
    """Return the table of targets that were set before the comparison, with the results."""
    lines = [[claim, words, "yes" if holds else "**no**"] for claim, words, holds in verdicts(answers)]
    return table(["target", "found", "met"], lines)


def verdicts(answers: Answers) -> list[tuple[str, str, bool]]:
    """Return the text of each target, the result in words, and whether the result meets the target."""
    every = [ahead(answers)]
    every += [as_good_as(answers, name) for name in ("SVM-RFE", "Boruta") if name in asked(answers)]
    every += [interacting(answers, f"{kind}: recall", MADE[kind]) for kind in ("interactions", "imbalance")]
    return [*every, interacting(answers, "imbalance: recall of what matters only together", PAIRED, "together")]


def ahead(answers: Answers) -> tuple[str, str, bool]:
    """Return the verdict on the lead of BELIEF over the other filters, on the sets kept aside."""
    lead, told = lead_of(answers)
    without = lead_of(answers, judge=UNCHANGED)[1]
    best = shown(in_hindsight(answers, aside(answers)))
    words = f"{told}; by the judges that were not changed, {without}; the best filter of each set, in hindsight: {best}"
    return f"kept aside: first among filters, by {LEAD} at least", words, lead >= LEAD


def lead_of(answers: Answers, **part: Any) -> tuple[float, str]:
    """Return the lead in F1 of BELIEF over the best other filter on the sets kept aside, as a number and in words."""
    sets = aside(answers)
    mine = mean_f1(answers, BELIEF, sets, **part)
    others = {x: mean_f1(answers, x, sets, **part) for x in filters() if x in asked(answers)}
    best = max(others, key=lambda x: np.nan_to_num(others[x]))
    return mine - others[best], f"{mine:.3f} against {others[best]:.3f} of {best}: {mine - others[best]:+.3f}"


def as_good_as(answers: Answers, name: str) -> tuple[str, str, bool]:
    """Return the verdict on F1 and time relative to a wrapper, on the sets kept aside.

    The target for the time refers to the mean over the sets, because it determines how long the user waits.
    """
    sets = aside(answers)
    gains = against(answers, name, sets)
    typical, in_all = (ratio(answers, name, sets) for ratio in (slower, slower_in_all))
    return (
        f"kept aside: within {NEAR} of {name} in a tenth of its time",
        f"BELIEF's F1 less its: {-gains.mean():+.3f}; its mean time is {in_all:.3g} times BELIEF's, and on a set it"
        f" takes {typical:.3g} times as long (geometric mean)",
        bool(gains.mean() <= NEAR and in_all >= TENTH),
    )


def interacting(answers: Answers, of: str, sets: Iterable[str], what: str = "recall") -> tuple[str, str, bool]:
    """Return the verdict on a target for synthetic sets: BELIEF finds most features, univariate selectors do not.

    The target is met if BELIEF has a mean recall of at least 0.9, and every univariate selector has one below 0.6. If
    `what` is "together", only the two interacting features of a set count for the recall. `of` is the beginning of the
    target's text.
    """
    mine, names = mean_truth(answers, BELIEF, sets, what), asked(answers, KIND)
    others = {x: mean_truth(answers, x, sets, what) for x in names if SELECTORS[x].kind == COLUMN}
    told = ", ".join(f"{name} {shown(x, '.2f')}" for name, x in others.items())
    claim = f"{of} {FOUND} at least, where those that see one column stay below {MISSED}"
    holds = mine >= FOUND and all(x < MISSED for x in others.values())
    return claim, f"{shown(mine, '.2f')}; {told}", bool(holds)


# --- the rest --------------------------------------------------------------------------------------------------------


def not_ended(answers: Answers) -> str:
    """Return the table of selectors that exceeded the time limit, failed, or have no result on some sets yet."""
    lines = []
    for name in SELECTORS:
        known: dict[str, Any] = {each: answer(answers, name, each) for each in (*PUBLIC, *KIND)}
        late = [each for each, x in known.items() if x and "more than" in x]
        failed = [f"{each} ({x['failed']})" for each, x in known.items() if x and "failed" in x]
        missing = sum(x is None for x in known.values())
        if late or failed or missing:
            lines.append([name, ", ".join(late) or "–", "; ".join(failed) or "–", str(missing or "–")])
    return table(["selector", "did not end", "failed", "not asked yet"], lines)


def write(answers: Answers) -> None:
    """Print the tables, and write them into the page."""
    text = markdown(answers)
    print(text)
    publish(PAGE, "contest", text)
