"""The sections of the page, each from what there is to say and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from belief.report.markup import figure, name, names, paragraph, table, text
from belief.report.tables import feature_table
from belief.report.words import NO_REDUNDANCY, NO_TIMINGS, ONE_BATCH, ONE_FEATURE, count, seconds, share

Said = dict[str, Any]
Pictures = dict[str, dict[str, str]]

GROUPS = 12  # told in words
KEPT_OUT = "More relevant than one that was selected, and left only for what they repeat, by whom they repeat most:"

CAPTIONS = {
    "ranking": "Each bar is a feature's relevance; the dark dot is its score, what remains of it after the redundancy"
    " it paid (the thin bar) when it was selected.",
    "relevance only": "Each bar is a feature's relevance, from 0 (the least relevant feature) to 1 (the most).",
    "relevance_redundancy": "Higher is more relevant, further right repeats more of the selected features; above the"
    " dashed line a feature adds more than it repeats.",
    "redundancy": "Each line shows how much a feature repeats each of the others, from 0 (pale) to 1 (as much as any"
    " two watched features do); a frame holds a group.",
    "settling": "The places of the selected features among one another, by weight, after each batch: few crossings to"
    " the right mean that more rows would change little; a hollow point was not on the watch list then.",
    "timings": "The time that each phase of the run took.",
}

TITLES = {
    "ranking": "The ranking",
    "relevance": "Relevance against redundancy",
    "redundancy": "What the selected features repeat",
    "left": "What was left out",
    "settling": "How the ranking settled",
    "run": "What was run",
    "timings": "Timings",
}


def sections_of(said: Said, pictures: Pictures) -> dict[str, str]:
    """The sections there are, by name; without redundancy two have nothing to say."""
    bodies = {
        "ranking": _ranking(said, pictures),
        "relevance": _relevance(pictures) if said["redundancy"] else "",
        "redundancy": _redundancy(said, pictures) if said["redundancy"] else "",
        "left": _left(said),
        "settling": _settling(said, pictures),
        "run": _run(said),
        "timings": _timings(said, pictures),
    }
    return {name: body for name, body in bodies.items() if body}


def lead(said: Said) -> str:
    """What was selected from what, in a sentence."""
    run = said["run"]
    return text(
        f"{said['n_taken']:,} of {count(run['features'], 'feature')} selected, from {count(run['rows'], 'row')} in"
        f" {count(run['classes'], 'class', 'classes')}."
    )


def points(said: Said) -> list[str]:
    """What one should know before reading on."""
    first = said["taken"][0]
    best = f"{name(first['feature'])} is the most relevant feature."
    found = [best if first["relevance"] > 0 else "All features that are not constant are equally relevant."]
    if said["first_negative"]:
        found.append(
            f"From rank {said['first_negative']} on there are scores below 0: by then every feature left repeats more"
            " than it adds. Fewer features may do."
        )
    if said["groups"]:
        groups = f", in {len(said['groups'])} groups" if len(said["groups"]) > 1 else ""
        found.append(f"{sum(map(len, said['groups'])):,} selected features repeat one another{groups}.")
    if said["kept_out"]:
        found.append(_kept_out(len(said["kept_out"])))
    if said["settled"]:
        found.append(_settled(said["settled"], said["run"]["batches"]))
    if not said["redundancy"]:
        found.append(NO_REDUNDANCY)
    return found


def _kept_out(n: int) -> str:
    if n == 1:
        return "1 feature was left only for what it repeats: it is more relevant than one that was selected."
    return f"{n:,} features were left only for what they repeat: each is more relevant than one that was selected."


def _ranking(said: Said, pictures: Pictures) -> str:
    caption = CAPTIONS["ranking" if said["redundancy"] else "relevance only"]
    picture = figure(pictures["ranking"], "What each selected feature is worth", caption)
    return picture + feature_table("taken", said["taken"], said["n_taken"], said["redundancy"])


def _relevance(pictures: Pictures) -> str:
    label = "Relevance against redundancy of the selected and the watched features"
    return figure(pictures["relevance_redundancy"], label, CAPTIONS["relevance_redundancy"])


def _redundancy(said: Said, pictures: Pictures) -> str:
    if "redundancy" not in pictures:
        return paragraph(ONE_FEATURE)
    label = "How much the selected features repeat one another"
    return _groups(said["groups"], said["level"]) + figure(pictures["redundancy"], label, CAPTIONS["redundancy"])


def _groups(groups: Sequence[Sequence[str]], level: float) -> str:
    if not groups:
        return paragraph(f"No selected features repeat one another at {level} or more, on average.")
    items = "".join(f"<li>{names(group)}</li>" for group in groups[:GROUPS])
    more = f"<li>and {count(len(groups) - GROUPS, 'more group')}</li>" if len(groups) > GROUPS else ""
    said = f"These repeat one another at {level} or more, on average; one of each may be enough:"
    return f'{paragraph(said)}<ul class="groups">{items}{more}</ul>'


def _left(said: Said) -> str:
    if not said["n_left"]:
        return paragraph("No feature on the watch list was left.")
    watched = (
        "These features were on the watch list and were left; those that were not on it were less relevant when it was"
        " made."
    )
    sakes = list(_by_sake(said["kept_out"]).items())[:GROUPS]
    items = "".join(f"<li>for {name(sake)}: {names(features)}</li>" for sake, features in sakes)
    kept = f'{paragraph(KEPT_OUT)}<ul class="groups">{items}</ul>' if items else ""
    return paragraph(watched) + kept + feature_table("left", said["left"], said["n_left"], said["redundancy"])


def _by_sake(lines: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The features left, by the selected feature they repeat most; the longest list first."""
    sakes: dict[str, list[str]] = {}
    for line in lines:
        sakes.setdefault(line["repeats"], []).append(line["feature"])
    return dict(sorted(sakes.items(), key=lambda item: -len(item[1])))


def _settled(settled: dict[str, int], batches: int) -> str:
    best = f"The {count(settled['n'], 'feature')} of the largest weights" if settled["n"] > 1 else "The largest weight"
    if settled["batch"] == 1:
        return f"{best} {'were' if settled['n'] > 1 else 'was'} the same after each of {batches} batches."
    if settled["batch"] < batches:
        return f"{best} stayed the same from batch {settled['batch']} of {batches} on."
    return (
        f"{best} still changed with the last of {batches} batches ({settled['changed']} of {settled['n']}): a larger"
        " sample_size may change the ranking."
    )


def _settling(said: Said, pictures: Pictures) -> str:
    if said["settled"] is None:
        return paragraph(ONE_BATCH)
    label = "The places of the selected features after each batch"
    sentence = _settled(said["settled"], said["run"]["batches"])
    return paragraph(sentence) + figure(pictures["settling"], label, CAPTIONS["settling"])


def _run(said: Said) -> str:
    run = said["run"]
    sampled = f"{share(run['sample'] / run['rows'])} of all, {count(run['batches'], 'batch', 'batches')}"
    facts = [
        ("Rows", f"{run['rows']:,}", ""),
        ("Features", f"{run['features']:,}", count(run["constant"], "constant one") if run["constant"] else ""),
        ("Classes", f"{run['classes']:,}", ""),
        ("Rows sampled", f"{run['sample']:,}", sampled),
        ("Pairs of neighbours", f"{run['pairs']:,}", ""),
        ("Seed", str(run["seed"]), ""),
        ("belief", said["version"], ""),
    ]
    items = "".join(f"<div><dt>{t}</dt><dd>{text(v)}<small>{text(s)}</small></dd></div>" for t, v, s in facts)
    return f"<dl>{items}</dl>{_classes(said)}{_settings(said['settings'])}"


def _classes(said: Said) -> str:
    lines = [
        f'<td>{name(c["name"])}</td><td class="n">{c["rows"]:,}</td><td class="n">{share(c["share"])}</td>'
        f'<td class="bars"><span class="bar" style="width: {100 * c["share"]:.1f}%"></span></td>'
        for c in said["classes"]
    ]
    rest = said["run"]["classes"] - len(said["classes"])
    more = paragraph(f"and {count(rest, 'smaller class', 'smaller classes')}") if rest else ""
    head = '<th scope="col">class</th><th scope="col" class="n">rows</th><th scope="col" class="n">share</th><td></td>'
    return f"<h3>Classes</h3>{table('Classes', head, lines)}{more}"


def _settings(settings: Iterable[dict[str, Any]]) -> str:
    lines = [
        f"<td><code>{text(s['name'])}</code></td><td{'' if s['default'] else ' class=changed'}>{text(s['value'])}</td>"
        f'<td class="means">{text(s["doc"])}</td>'
        for s in settings
    ]
    head = '<th scope="col">setting</th><th scope="col">value</th><th scope="col">means</th>'
    return f"<h3>Settings</h3>{paragraph('In bold: not the default.')}{table('Settings', head, lines)}"


def _timings(said: Said, pictures: Pictures) -> str:
    if not said["timings"]:
        return paragraph(NO_TIMINGS)
    total = seconds(sum(s for _, s in said["timings"]))
    return paragraph(f"{total} in all.") + figure(pictures["timings"], "Seconds by phase", CAPTIONS["timings"])
