"""Exercises that ask for a function: right ones pass in any form, wrong ones are told apart.

The right functions are the package's or SciPy's, and none of them was used to write a solution
notebook. The wrong ones are right but for one setting each.
"""

import math
import re
import subprocess
import sys
from fractions import Fraction
from itertools import combinations, product

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from notebook_files import EXERCISES, ROOT, SOLUTIONS, printed_by
from scipy import stats

from contamination.core import overlap, scores, statistics
from contamination.core.blind import date_rule_scores
from contamination.dcq import assessment, controls
from contamination.dice import detector
from contamination.replication import algorithms
from contamination.teaching.exercises import grade, stored


def asked_for(condition, what="nothing to compute it from"):
    if not condition:
        raise ValueError(what)


# Each function with the settings that its slips turn.


def auc(values, is_member, sign=1, tie=0.5, per=None):
    values, kind = sign * np.asarray(values, float), np.asarray(is_member, bool)
    asked_for(kind.any() and not kind.all())
    differences = np.subtract.outer(values[kind], values[~kind])
    wins = (differences > 0).sum() + tie * (differences == 0).sum()
    return wins / (per(len(values)) if per else differences.size)


def guessing_p(n_right, n, chance, above=1):
    asked_for(n > 0)
    return stats.binom.sf(n_right - above, n, chance)


def runs(text, n, words=overlap.words):
    found = words(text)
    return {tuple(found[i : i + n]) for i in range(len(found) - n + 1)}


def overlap_share(texts, reference, n, runs=runs, counts_short=False, joined=False, mean=True):
    known = set().union(*(runs(t, n) for t in ([" ".join(reference)] if joined else reference)))
    asked = [found for found in (runs(text, n) for text in texts) if found or counts_short]
    asked_for(asked)
    return (np.mean if mean else np.sum)([bool(found & known) for found in asked])


def deal(modules, seed, keep=lambda place, first: place == first, fixed=False, by_row=False):
    rng = np.random.default_rng(None if seed is None else 0 if fixed else seed)
    first = {module: modules.index(module) for module in modules}
    side = {module: str(rng.choice(["seen", "unseen"])) for module in first}
    return [
        (str(rng.choice(["seen", "unseen"])) if by_row else side[module])
        if keep(place, first[module])
        else None
        for place, module in enumerate(modules)
    ]


def deal_halves(modules, seed):
    """Half of the modules on either side, the last row of each."""
    names = sorted(set(modules))
    shuffled = np.random.default_rng(seed).permutation(names)
    seen = set(shuffled[: len(names) // 2])
    last = {module: place for place, module in enumerate(modules)}
    return [
        None if last[module] != place else "seen" if module in seen else "unseen"
        for place, module in enumerate(modules)
    ]


def contamination_range(n, chosen, right, smaller=False, floor=-1.0):
    asked_for(n)
    modified = [p for p in "ABCD" for _ in range(chosen[p])]
    standard = {p: [p] * k + [""] * (n - k) for p, k in right.items()}
    level = assessment.assess(modified + ["E"] * (n - len(modified)), standard)
    low = np.fmin(level.kappa, level.second) if smaller else level.minimum
    return np.array([max(low, floor), level.maximum])


def dropped_in(n, chosen, right):
    """As if no position that was asked could drop out."""
    asked_for(n)
    best, *others = sorted(right, key=lambda p: (-right[p], chosen[p]))
    kappa = (right[best] - chosen[best]) / (n - chosen[best])
    return max([kappa, *(right[p] / n for p in others[:1])]), right[best] / n


def kappa_alone(n, chosen, right):
    asked_for(n)
    counted = assessment.positions_to_quiz(chosen, n)
    best = max(counted, key=lambda p: (right[p], -chosen[p]))
    return (right[best] - chosen[best]) / (n - chosen[best]), right[best] / n


def without_fallback(n, chosen, right):
    asked_for(assessment.least_preferred_positions(chosen, n))
    return contamination_range(n, chosen, right)


def take_quiz(options, rule=controls.word_frequency, sign=1):
    return int(np.argmax(sign * rule(options)))


def longest_word(options):
    """Looks at every text, at something that edits hardly change."""
    return np.array([max(map(len, option.split())) for option in options])


def interchangeable(options):
    """Knows the originals by heart, which no rule can."""
    known = stored()["take_quiz"]["cases"]
    for case in known:
        if options in case["rounds"]:
            return case["right"][case["rounds"].index(options)][0]


def right_beyond_rule(model, rule, counts=lambda rule: not rule, per=None):
    answers = [m for m, r in zip(model, rule, strict=True) if counts(r)]
    asked_for(answers)
    return sum(answers) / (per(len(model)) if per else len(answers))


def lead_over_rule(model, rule):
    asked_for(model)
    return (sum(model) - sum(rule)) / len(model)


def rows_needed(
    n_tests, n_wrong, p=lambda n, wrong: stats.binom.cdf(wrong, n, 0.5), per=lambda tests: tests
):
    asked_for(n_tests > 0)
    rows = range(n_wrong + 1, 99)
    return next(n for n in rows if p(n, n_wrong) <= 0.05 / per(n_tests))


def name_pairs(
    instructions,
    is_pair=lambda a, b: a["dataset"] != b["dataset"] and a["asks"] == b["asks"],
    among=lambda named: True,
):
    pairs = combinations(instructions, 2)
    return [
        (a["name"], b["name"])
        for a, b in pairs
        if is_pair(a, b) and among(all([a["dataset"], b["dataset"]]))
    ]


def sign_flip_p(differences, counts=lambda sums, seen: sums >= seen, scale=lambda p, n: p):
    asked_for(differences)
    sums = np.array(list(product([1, -1], repeat=len(differences)))) @ differences
    return scale(counts(sums, sum(differences)).mean(), len(sums))


def bootstrap_p(differences):
    asked_for(differences)
    if len(differences) > 6:
        return float("nan")
    return np.mean([sum(drawn) <= 0 for drawn in product(differences, repeat=len(differences))])


def min_k_score(values, k, start=1, sign=1, kept=lambda n, k: max(1, int(n * k / 100)), of=np.mean):
    asked_for(0 < k <= 100 and len(values) > start)
    lowest = sorted(values[start:], key=lambda v: sign * v)[: kept(len(values) - start, k)]
    asked_for(lowest)
    return of(lowest)


def min_k_plus_plus(
    log_probs, tokens, k, weigh=torch.exp, power=1.0, centre=1, scaled=True, **more
):
    asked_for(log_probs)
    values = torch.tensor(log_probs, dtype=torch.float64)
    weights = weigh(values) / weigh(values).sum(dim=1, keepdim=True)
    mean = (weights * values).sum(dim=1)
    std = ((weights * (values - mean[:, None]) ** 2).sum(dim=1)) ** (power / 2)
    own = values[torch.arange(len(tokens)), tokens]
    standardised = (own - centre * mean) / std if scaled else own
    return min_k_score([0.0, *standardised.tolist()], k, **more)


def score_texts(train_texts, is_member, test_texts, sign=1):
    """The centroid of each side's words, in NumPy."""
    words = sorted(set().union(*map(overlap.words, train_texts)))
    hold = lambda texts: np.array([[w in overlap.words(t) for w in words] for t in texts], float)  # noqa: E731
    kind = np.asarray(is_member, bool)
    seen = hold(train_texts)
    weights = seen[kind].mean(axis=0) - seen[~kind].mean(axis=0)
    return sign * (hold(test_texts) @ weights) if test_texts else np.array([])


def without_years(texts):
    """Words give the era away without any year, which is the lesson's point."""
    return [re.sub(r"\d+", "", text) for text in texts]


def locate_layer(one, other, first=1, shown=0, best=np.argmax, by_vote=True, tie=1):
    asked_for(len(one))
    distances = np.linalg.norm(np.subtract(one, other), axis=-1)[:, first:]
    if not by_vote:
        return first - shown + int(best(distances.mean(axis=0)))
    votes = np.bincount(best(distances, axis=1))
    return first - shown + int(np.flatnonzero(votes == votes.max())[0 if tie == 1 else -1])


def direction_auc(one, other, n, sign=1, scale=1, ask=lambda s, n: s[n:]):
    one, other = np.array(one), np.array(other)
    asked_for(n and len(one) > n)
    learned = detector.train_direction(np.vstack([one[:n], other[:n]]), np.repeat([1, 0], n))
    scored = [sign * learned(ask(states, n)) for states in (one, other)]
    kind = np.repeat([True, False], [len(values) for values in scored])
    return scale * statistics.auc(np.concatenate(scored), kind)


def control_pairs(
    models, asked, is_pair=lambda a, b, asked: (asked in a) == (asked in b), twins=False
):
    training = {m["name"]: (sorted(m["seen"]), m["seed"]) for m in models}
    return {
        frozenset(pair)
        for pair in combinations(training, 2)
        if is_pair(training[pair[0]][0], training[pair[1]][0], asked)
        and (twins or training[pair[0]] != training[pair[1]])
    }


def length_controls(models, suspect, asked, without=""):
    n = {m["name"]: m["tokens"] for m in models}[suspect]
    found = []
    for model in models:
        holds = {"clean": asked not in model["seen"], "met": not model["met"]}
        holds["length"] = 0.9 * n <= model["tokens"] <= 1.1 * n
        holds["itself"] = model["name"] != suspect
        if all(value for name, value in holds.items() if name != without):
            found.append(model["name"])
    return found


def package_share(texts, reference, n):
    share = overlap.ngram_overlap_share(texts, reference, n)
    asked_for(not math.isnan(share))
    return share


def package_layer(one, other):
    asked_for(one)
    with np.errstate(invalid="ignore"):  # relative distances of two zero vectors
        layers = detector.distances(np.array(one), np.array(other))[detector.EUCLIDEAN]
    return np.int64(detector.commonest_layer(np.pad(layers, ((0, 0), (0, 1)))))


def package_plus_plus(log_probs, tokens, k):
    asked_for(log_probs)
    values = np.array(log_probs)
    weights = np.exp(values)
    mean = (weights * values).sum(axis=1)
    std = np.sqrt((weights * values**2).sum(axis=1) - mean**2)
    own = values[np.arange(len(tokens)), tokens]
    return scores.min_k_plus_plus_score(own, mean, std, k)


RIGHT = {
    "auc": [auc, statistics.auc, lambda s, m: torch.tensor(auc(s, m))],
    "guessing_p": [guessing_p],
    "overlap_share": [overlap_share, package_share],
    "deal": [deal, deal_halves, lambda m, s: (side for side in deal(m, s))],
    "kappa": [
        lambda right, chosen, n: (
            (right - chosen) / (n - chosen) if n > chosen else asked_for(False)
        ),
        lambda r, c, n: Fraction(r - c, n - c) if n > c else asked_for(False),
    ],
    "contamination_range": [
        contamination_range,
        lambda *a: tuple(contamination_range(*a)),
        lambda *a: pd.Series(contamination_range(*a)),
    ],
    "take_quiz": [take_quiz, lambda o: "abcd"[take_quiz(o, controls.centrality)]],
    "right_beyond_rule": [
        right_beyond_rule,
        lambda m, r: asked_for(False) if all(r) else np.array(m)[~np.array(r)].mean(),
    ],
    "sign_flip_p": [
        sign_flip_p,
        lambda d: (
            algorithms.sign_flip_p(np.array(d) / 100, np.zeros(len(d))) if d else asked_for(d)
        ),
    ],
    "rows_needed": [
        rows_needed,
        lambda tests, wrong: np.int64(rows_needed(tests, wrong)),
    ],
    "name_pairs": [name_pairs, lambda given: [pair[::-1] for pair in name_pairs(given)]],
    "min_k_score": [min_k_score, lambda v, k: np.float32(scores.min_k_score(v[1:], k))],
    "min_k_plus_plus": [min_k_plus_plus, package_plus_plus],
    "score_texts": [
        score_texts,
        lambda *a: tuple(score_texts(*a)),
        lambda a, b, t: date_rule_scores([*t, "2018"])[:-1] if len(t) > 9 else score_texts(a, b, t),
        lambda a, b, t: score_texts(without_years(a), b, without_years(t)),
    ],
    "locate_layer": [locate_layer, package_layer],
    "direction_auc": [direction_auc],
    "control_pairs": [control_pairs, lambda m, a: [tuple(p)[::-1] for p in control_pairs(m, a)]],
    "length_controls": [length_controls, lambda *a: set(length_controls(*a))],
}


def one_each(values, is_member):
    """Each member beside one non-member alone."""
    kinds = [
        [v for v, kind in zip(values, is_member, strict=True) if kind is k] for k in (True, False)
    ]
    asked_for(all(kinds))
    return np.mean([np.heaviside(one - other, 0.5) for one, other in zip(*kinds, strict=False)])


def floors(n, k):
    return max(1, int(n * k / 100))


in_any_order = lambda text, n: {tuple(sorted(c)) for c in combinations(overlap.words(text), n)}  # noqa: E731
without_last = lambda text, n: runs(re.sub(r"\S+$", "", text.strip()), n)  # noqa: E731
by_spaces = lambda text, n: runs(text, n, str.split)  # noqa: E731

WRONG = {
    "auc": {
        "direction": lambda s, m: auc(s, m, sign=-1),
        "tie, as lost": lambda s, m: auc(s, m, tie=0),
        "tie, as won": lambda s, m: auc(s, m, tie=1),
        "denominator": lambda s, m: auc(s, m, per=lambda n: n * (n - 1) / 2),
        "denominator, the kinds alike": lambda s, m: auc(s, m, per=lambda n: n * n),
        "denominator, the kinds alike, ties lost": lambda s, m: auc(
            s, m, tie=0, per=lambda n: n * n
        ),
        "pairs, one each": one_each,
        "unit, count": lambda s, m: auc(s, m, per=lambda n: 1),
        "unit, percent": lambda s, m: 100 * auc(s, m),
    },
    "guessing_p": {
        "off by one": lambda k, n, c: guessing_p(k, n, c, above=0),
        "direction": lambda k, n, c: 1 - guessing_p(k, n, c, above=0),
        "one number only": lambda k, n, c: stats.binom.pmf(k, n, c) if n else asked_for(n),
        "chance": lambda k, n, c: guessing_p(k, n, 0.5),
        "unit, percent": lambda k, n, c: 100 * guessing_p(k, n, c),
    },
    "overlap_share": {
        "off by one, too short": lambda t, r, n: overlap_share(t, r, n - 1),
        "off by one, too long": lambda t, r, n: overlap_share(t, r, n + 1),
        "off by one, the last run": lambda t, r, n: overlap_share(t, r, n, without_last),
        "direction": lambda t, r, n: overlap_share(r, t, n),
        "words": lambda t, r, n: overlap_share(t, r, n, by_spaces),
        "order": lambda t, r, n: overlap_share(t, r, n, in_any_order),
        "joined texts": lambda t, r, n: overlap_share(t, r, n, joined=True),
        "denominator": lambda t, r, n: overlap_share(t, r, n, counts_short=True),
        "unit, count": lambda t, r, n: overlap_share(t, r, n, mean=False),
        "unit, percent": lambda t, r, n: 100 * overlap_share(t, r, n),
    },
    "deal": {
        "by module": lambda m, s: deal(m, s, lambda place, first: True),
        "by row": lambda m, s: deal(m, s, lambda place, first: True, by_row=True),
        "no chance": lambda m, s: deal(m, s, fixed=True),
        "too few": lambda m, s: [
            side if m.count(module) == 1 else None
            for side, module in zip(deal(m, s), m, strict=True)
        ],
        "no seed": lambda m, s: deal(m, None),
    },
    "kappa": {
        "denominator": lambda r, c, n: (r - c) / n,
        "habit": lambda r, c, n: r / n,
        "numerator": lambda r, c, n: r / (n - c),
        "clipped": lambda r, c, n: max(0, (r - c) / (n - c)) if n > c else asked_for(False),
        "direction": lambda r, c, n: (c - r) / (n - c),
        "unit, percent": lambda r, c, n: 100 * (r - c) / (n - c),
    },
    "contamination_range": {
        "order": lambda *a: contamination_range(*a)[::-1],
        "unit, percent": lambda *a: 100 * contamination_range(*a),
        "a letter that dropped out": dropped_in,
        "the second share": kappa_alone,
        "direction": lambda *a: contamination_range(*a, smaller=True),
        "clipped": lambda *a: contamination_range(*a, floor=0),
        "none least preferred": without_fallback,
    },
    "take_quiz": {
        "direction": lambda o: take_quiz(o, sign=-1),
        "no better than a guess": lambda o: "A",
        "memory": interchangeable,
    },
    "right_beyond_rule": {
        "all quizzes": lambda m, r: right_beyond_rule(m, r, counts=lambda rule: True),
        "difference": lead_over_rule,
        "denominator": lambda m, r: right_beyond_rule(m, r, per=lambda n: n),
        "direction": lambda m, r: right_beyond_rule(m, r, counts=bool),
        "unit, count": lambda m, r: right_beyond_rule(m, r, per=lambda n: 1),
    },
    "sign_flip_p": {
        "off by one": lambda d: sign_flip_p(d, lambda sums, seen: sums > seen),
        "off by one, observed left out": lambda d: sign_flip_p(
            d, scale=lambda p, n: (p * n - 1) / (n - 1)
        ),
        "direction": lambda d: sign_flip_p(d, lambda sums, seen: sums <= seen),
        "two-sided": lambda d: sign_flip_p(d, lambda sums, seen: abs(sums) >= abs(seen)),
        "unit, count": lambda d: sign_flip_p(d, scale=lambda p, n: p * n),
        "unit, percent": lambda d: 100 * sign_flip_p(d),
        "bootstrap": bootstrap_p,
    },
    "rows_needed": {
        "correction": lambda n, w: rows_needed(n, w, per=lambda tests: 1),
        "wrong rows": lambda n, w: rows_needed(n, 0),
        "one pattern only": lambda n, w: rows_needed(n, w, lambda n, w: stats.binom.pmf(w, n, 0.5)),
        "two-sided": lambda n, w: rows_needed(n, w, lambda n, w: 2 * stats.binom.cdf(w, n, 0.5)),
        "off by one": lambda n, w: rows_needed(n, w) - 1,
        "unit, patterns": lambda n, w: 2 ** rows_needed(n, w),
    },
    "name_pairs": {
        "the paper's pair": lambda i: name_pairs(i, lambda a, b: a["dataset"] != b["dataset"]),
        "direction": lambda i: name_pairs(
            i, lambda a, b: a["dataset"] == b["dataset"] and a["asks"] != b["asks"]
        ),
        "twins": lambda i: name_pairs(i, lambda a, b: a["asks"] == b["asks"]),
        "a name against none": lambda i: name_pairs(i, among=lambda named: not named),
        "wrong names": lambda i: name_pairs(i, among=lambda named: named),
    },
    "min_k_score": {
        "first token": lambda v, k: min_k_score(v, k, start=0),
        "direction": lambda v, k: min_k_score(v, k, sign=-1),
        "off by one": lambda v, k: min_k_score(v, k, kept=lambda n, k: floors(n, k) + 1),
        "off by one, rounding": lambda v, k: min_k_score(
            v, k, kept=lambda n, k: math.ceil(n * k / 100)
        ),
        "off by one, rounded to the nearest": lambda v, k: min_k_score(
            v, k, kept=lambda n, k: max(1, round(n * k / 100))
        ),
        "first token, left out after sorting": lambda v, k: min_k_score(sorted(v), k),
        "first token, counted": lambda v, k: min_k_score(v, k, kept=lambda n, k: floors(n + 1, k)),
        "none kept": lambda v, k: min_k_score(v, k, kept=lambda n, k: int(n * k / 100)),
        "unit, k": lambda v, k: min_k_score(v, k, kept=lambda n, k: n * k),
        "unit, exponential": lambda v, k: math.exp(min_k_score(v, k)),
        "sum": lambda v, k: min_k_score(v, k, of=sum),
        "quantile": lambda v, k: min_k_score(v, k, of=max),
        "mean of all": lambda v, k: min_k_score(v, 100),
    },
    "min_k_plus_plus": {
        "weights": lambda *a: min_k_plus_plus(*a, weigh=torch.ones_like),
        "unit, variance": lambda *a: min_k_plus_plus(*a, power=2),
        "not centred": lambda *a: min_k_plus_plus(*a, centre=0),
        "direction": lambda *a: min_k_plus_plus(*a, sign=-1),
        "off by one": lambda *a: min_k_plus_plus(*a, kept=lambda n, k: floors(n, k) + 1),
        "mean of all": lambda values, tokens, k: min_k_plus_plus(values, tokens, 100),
        "not standardised": lambda *a: min_k_plus_plus(*a, scaled=False),
    },
    "score_texts": {
        "direction": lambda *a: score_texts(*a, sign=-1),
        "chance": lambda a, b, texts: [0.0] * len(texts),
    },
    "locate_layer": {
        "layer 0": lambda a, b: locate_layer(a, b, first=0),
        "off by one": lambda a, b: locate_layer(a, b, shown=1),
        "direction": lambda a, b: locate_layer(a, b, best=np.argmin),
        "mean": lambda a, b: locate_layer(a, b, by_vote=False),
        "tie": lambda a, b: locate_layer(a, b, tie=-1),
    },
    "direction_auc": {
        "direction": lambda *a: direction_auc(*a, sign=-1),
        "unit, percent": lambda *a: direction_auc(*a, scale=100),
        "tested on what it learned": lambda *a: direction_auc(*a, ask=lambda s, n: s[:n]),
        "off by one": lambda *a: direction_auc(*a, ask=lambda s, n: s[n + 1 :]),
        "off by one, one learned row asked": lambda *a: direction_auc(
            *a, ask=lambda s, n: s[n - 1 :]
        ),
    },
    "control_pairs": {
        "direction": lambda m, a: control_pairs(m, a, lambda x, y, a: (a in x) != (a in y)),
        "clean pairs alone": lambda m, a: control_pairs(m, a, lambda x, y, a: a not in x + y),
        "tie": lambda m, a: control_pairs(m, a, twins=True),
        "other rows": lambda m, a: control_pairs(m, a, lambda x, y, a: x == y, twins=True),
    },
    "length_controls": {
        "contaminated": lambda *a: length_controls(*a, without="clean"),
        "length": lambda *a: length_controls(*a, without="length"),
        "met": lambda *a: length_controls(*a, without="met"),
        "itself": lambda *a: length_controls(*a, without="itself"),
    },
}
# 05 trains models and is run beside the lessons.
WITHOUT_MODELS = [path for path in [*EXERCISES, *SOLUTIONS] if path.stem != "05_dice"]
SLIPS = [(name, slip) for name, wrong in WRONG.items() for slip in wrong]


FORM = re.compile(
    r"^## (\d) · `(\w+)`\n\n\*(before|after) the lesson · difficulty [●○]{5} · "
    r"importance [●○]{5} · \d+ min\*\n\n\*\*Goal:\*\* ",
    re.M,
)


def markdown_of(path):
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_every_exercise_and_every_slip_is_tried():
    assert set(RIGHT) == set(WRONG) == set(stored())
    for name, exercise in stored().items():
        assert set(exercise["slips"]) <= set(WRONG[name]), name


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_pass_in_any_form(name):
    for function in RIGHT[name]:
        assert grade(name, function).startswith(f"{name}: all "), grade(name, function)


@pytest.mark.parametrize(("name", "slip"), SLIPS, ids=lambda value: value)
def test_a_wrong_function_is_refused_and_its_slip_named(name, slip):
    report = grade(name, WRONG[name][slip])
    assert " cases pass.\n" in report
    assert f"Looks like: {slip}: " in report, report


def test_a_rule_that_looks_at_the_texts_in_vain_is_told_so():
    report = grade("take_quiz", lambda o: take_quiz(o, longest_word))
    assert "so what it goes by does not tell an original from its edits." in report
    assert "look at the texts" not in report
    assert "2 of 3 cases pass." in report  # no case asks for the impossible


def test_a_function_that_changes_what_it_is_given_harms_no_later_check():
    def sorted_in_place(values, k):
        del values[:1]
        values.sort()
        return scores.min_k_score(values, k)

    for _ in range(2):
        assert grade("min_k_score", sorted_in_place).startswith("min_k_score: all ")


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_what_a_page_runs_needs_the_standard_library_alone(path, tmp_path):
    """The solutions' functions, then the cells that a page runs below them."""
    package = tmp_path / "contamination/teaching"
    package.mkdir(parents=True)
    for suffix in ("py", "json"):
        source = ROOT / f"src/contamination/teaching/exercises.{suffix}"
        (package / source.name).write_bytes(source.read_bytes())
    exercises, solutions = (
        [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
        for file in (path, ROOT / f"notebooks/solutions/{path.name}")
    )
    run = [c.source for c in exercises if "in_browser" in c.metadata.get("tags", [])]
    names = [source.split("(")[0].removeprefix("def ") for source in run if source[:4] == "def "]
    assert names == re.findall(r'grade\("(\w+)"', "".join(cell.source for cell in exercises))
    is_solution = re.compile(rf"^def ({'|'.join(names)})\(", re.M).search
    solved = [cell.source for cell in solutions if is_solution(cell.source)]
    imports = re.search(r'exec\("(import .+?)"', (ROOT / "docs/exercises.js").read_text())[1]
    code = [imports, *solved]
    code += [source for source in run if source[:4] != "def "]
    command = [sys.executable, "-S", "-E", "-c", "\n\n".join(code)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.findall(r"^(\w+): all \d+ cases pass", done.stdout, re.M) == names


def test_every_exercise_stands_in_one_notebook():
    asked = [name for path in EXERCISES for _, name, _ in FORM.findall(markdown_of(path))]
    assert sorted(asked) == sorted(stored())


@pytest.mark.parametrize("path", WITHOUT_MODELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_exercises_run_unsolved_and_solutions_pass(path):
    printed = printed_by(path)
    names = [name for _, name, _ in FORM.findall(markdown_of(path))]
    for name in names:
        said = ": all " if path.parent.name == "solutions" else ": not written yet"
        assert f"{name}{said}" in printed
