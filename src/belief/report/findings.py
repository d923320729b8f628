"""Findings: sentences about a result for the report, each with a kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from belief.method.settings import MIN_AUTO_NEIGHBOURS
from belief.report.text import NO_REDUNDANCY, STOP_REASONS, clean, count, format_percent_of
from belief.result.explanation import FeatureExplanation
from belief.result.result import Result

MAX_PAIRS, MAX_GROUPS, MAX_NAMES = 5, 5, 6  # that are mentioned; the rest is counted
OFTEN = 0.8  # share of the half-samples
MANY_MISSING = 0.3  # the share of missing values that is mentioned
SMALL_CLASS = 3 * MIN_AUTO_NEIGHBOURS  # rows; smaller classes have fewer than three rows per neighbour
KINDS_OF_NOTES = {"like an identifier": "identifier", "like a copy": "leakage", "like a code": "missing"}


class Name(str):
    """The name of a feature or a class within a sentence."""


Part = str | Name


@dataclass(frozen=True)
class Finding:
    """A sentence, as a list of parts, and the kind of the finding, which the page shows as a label."""

    kind: str
    parts: Sequence[Part]


def list_findings(result: Result, content: dict[str, Any]) -> list[Finding]:
    """Return the findings of a result, the most important kinds first."""
    selected: list[FeatureExplanation] = content["all_selected"]
    half_samples = []
    if result.stability is not None:
        often, n = int((result.stability.frequency[result.selected] >= OFTEN).sum()), len(result.selected)
        said = f"{often:,} of {n:,} selected features are also selected from at least {format_percent_of(OFTEN)} of"
        said += f" random halves of the rows; the stability index is {result.stability.index:.2f}."
        half_samples = [Finding("stability", [said])]
    return [
        Finding("selected", _describe_selection(result, selected)),
        Finding("sample", [_describe_sample(result, content["stability"])]),
        *half_samples,
        *(Finding("interaction", parts) for parts in _describe_interactions(result)),
        *(Finding("redundant", parts) for parts in _describe_redundancy(result, content)),
        *_list_warnings(result),
    ]


def _describe_selection(result: Result, selected: Sequence[FeatureExplanation]) -> list[Part]:
    n, limit = len(selected), f"significant (q < {result.settings['alpha']:g})"
    first = max(selected, key=lambda line: line.relevance)  # the first line may be a given feature
    best = [Name(first.feature), " is the most relevant feature; "]
    if first.relevance <= 0:
        return ["All non-constant features are equally relevant."]
    if selected[0].q_value is None:
        return [*best, "significance was not tested."]
    n_significant = sum(line.is_significant for line in selected)
    if not n_significant:
        return ["No selected feature is significant." if n > 1 else f"The selected feature is not {limit}."]
    if n_significant == n:
        return [*best, f"all {n:,} selected features are {limit}." if n > 1 else f"it is {limit}."]
    others = n - n_significant
    return [
        *best,
        f"{n_significant:,} of {n:,} selected features {'is' if n_significant == 1 else 'are'} {limit}, {others:,}"
        f" {'was' if others == 1 else 'were'} selected only to reach the requested number.",
    ]


def _describe_sample(result: Result, stability: dict[str, int] | None) -> str:
    """Return sentences on the size of the sample, and on the batch after which the top features stayed the same."""
    reason = STOP_REASONS.get(result.stop_reason, result.stop_reason)
    sample = f"{result.sample_size:,} of {count(result.n_rows, 'row')} were sampled: {reason}."
    if result.sample_size == result.n_rows:
        sample = f"All {count(result.n_rows, 'row')} were used."
    if stability is None:
        return sample
    n, batch, batches = stability["n"], stability["batch"], len(result.history)
    top = f"{sample} The top {count(n, 'feature') if n > 1 else 'feature'}"
    if batch == 1:
        return f"{top} stayed the same after each of {batches} batches."
    if batch < batches:
        return f"{top} stayed the same from batch {batch} of {batches} on."
    return f"{top} still changed with the last of {batches} batches ({stability['changed']} of {n})."


def _describe_interactions(result: Result) -> Iterator[list[Part]]:
    shares = {(i, j): share for i, j, share in result.interactions}
    pairs = [(i, j) for i, j in shares if (j, i) not in shares or i < j]
    for i, j in pairs[:MAX_PAIRS]:
        a, b = (Name(clean(result.feature_names[k])) for k in (i, j))
        share = format_percent_of(min(1.0, shares[i, j]))
        if (j, i) in shares:
            share = format_percent_of(min(1.0, shares[i, j], shares[j, i]))
            yield [a, " and ", b, f" interact: each would lose at least {share} of its weight without the other."]
        else:
            yield [a, " interacts with ", b, f", without which it would lose {share} of its weight."]
    if len(pairs) > MAX_PAIRS:
        yield [f"{count(len(pairs) - MAX_PAIRS, 'more pair')} of features interact."]


def _describe_redundancy(result: Result, content: dict[str, Any]) -> Iterator[list[Part]]:
    """Yield sentences on groups of redundant features, and on features that were not selected due to redundancy."""
    if not content["measure"]["name"]:
        yield [NO_REDUNDANCY]
    for group in content["groups"][:MAX_GROUPS]:
        level = content["group_level"]
        yield [*_join(group), f" are redundant with each other ({level} or more on average); one of them may suffice."]
    partners = content["redundant_with"]
    for partner, features in partners[:MAX_GROUPS]:
        verb, they = ("was", "it is") if len(features) == 1 else ("were", "they are")
        yield [*_join(features), f" {verb} not selected because {they} redundant with ", Name(partner), "."]
    if more := sum(len(features) for _, features in partners[MAX_GROUPS:]):
        yield [f"{count(more, 'more feature')} not selected because of redundancy."]


def _list_warnings(result: Result) -> Iterator[Finding]:
    """Yield findings that the user should check."""
    for note in result.notes:
        kind = next((kind for words, kind in KINDS_OF_NOTES.items() if words in note), "advice")
        yield Finding(kind, [clean(note)])
    missing = [
        f"{clean(result.feature_names[each.feature])} ({format_percent_of(each.missing)})"
        for each in result.distributions
        if each.missing >= MANY_MISSING
    ]
    if missing:
        yield Finding("missing", [*_join(missing), f" {'have' if len(missing) > 1 else 'has'} many missing values."])
    constant = [clean(result.feature_names[j]) for j in result.constant]
    if constant:
        yield Finding("left out", [*_join(constant), f" {'are' if len(constant) > 1 else 'is'} constant."])
    left_out = [clean(name) for name in result.about.get("left_out", [])]
    if left_out:
        what = "are" if len(left_out) > 1 else "is"
        yield Finding("left out", [*_join(left_out), f" {what} not used: neither numbers nor categories."])
    rows = (result.priors * result.n_rows).round().astype(int)
    small = [f"{clean(c)} ({n})" for c, n in zip(result.classes, rows, strict=True) if n < SMALL_CLASS]
    if small:
        what, them = ("are small classes", "them") if len(small) > 1 else ("is a small class", "it")
        which = f" {what} of fewer than {SMALL_CLASS} rows, so relevance for {them} is less certain."
        yield Finding("small class", [*_join(small), which])


def _join(names: Iterable[str]) -> list[Part]:
    """Join names as in "a, b and c"; if there are many, list the first and count the rest."""
    listed = list(names)
    shown, more = listed[:MAX_NAMES], len(listed) - MAX_NAMES
    parts: list[Part] = []
    for i, name in enumerate(shown):
        is_last = i == len(shown) - 1 and more <= 0
        parts += [*([] if not i else [" and " if is_last else ", "]), Name(name)]
    return [*parts, f" and {more:,} more"] if more > 0 else parts
