"""One verdict for one model: the word, the share, the list, the headline and the exit code.

:func:`decide` is the only place of an audit that finds a verdict. All else shows what it returns,
so that a headline cannot contradict a list. The test is that of ``audit.decision``; the methods
that can reach a verdict, for which the number of comparison rows decides, are corrected together
(Holm).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.audit import decision
from contamination.audit.decision import Comparison
from contamination.audit.finding import SCORES, Finding
from contamination.audit.plan import METHODS, MIN_K, REPLICATION, Audit
from contamination.core.statistics import CONFIDENCE, holm, share_interval
from contamination.core.tables import p_text
from contamination.core.verdicts import ALPHA, CONTROL_FAILS, NOT_RUN, OF_AUDIT, OPEN, SHOWN

FEWEST_ANSWERED = 0.5  # of the rows of either file; below, a verdict is at most open
REVERSED = 0.01  # p of the other direction, from which on it is said
SCORE_COLUMNS = dict(zip(METHODS, ("quiz", "completion", "ranking", "min_k"), strict=True))
ROWS = ["model", "index", *(f"{name}_score" for name in SCORE_COLUMNS.values())]
ROWS += ["p_value", "p_adjusted", "is_listed"]
NO_COMPARISON = "without comparison rows nothing can be shown"
FROM_WHERE = "rows of the same kind that the model cannot have seen (docs/audit.md says where)"
EXCHANGED = "the comparison rows score higher than the suspected rows: are the two files exchanged?"
LISTED, REST = "listed as seen", "named by no list"
FEWEST_OF_MEAN = 2  # values that an interval of a mean needs


@dataclass(frozen=True)
class Decided:
    """What an audit says of one model."""

    word: str  # one of ``OF_AUDIT``
    says: str  # the headline, in one to four short sentences
    methods: pd.DataFrame  # rows of ``audit.csv``, one for each method
    rows: pd.DataFrame  # rows of ``audit_rows.csv``, one for each suspected row, ``ROWS``
    of_list: dict[str, Any]  # the row of ``audit_lists.csv``


def decide(audit: Audit, model: str, truth: str, findings: Mapping[str, Finding]) -> Decided:
    """The verdict on one model from what its methods found.

    Columns of ``methods``: model, dataset, truth, method, verdict, statistic, value (AUC of the
    adjusted scores) with ci_low and ci_high, n and n_comparison (rows with a score), text_auc (how
    far length and word frequency alone tell the files apart), p, p_adjusted (Holm's over the
    methods with enough comparison rows), n_at_least and share_at_least (suspected rows that were
    seen at least, 95 %; where shown), n_valid, n_refused, n_error and n_unusable (answers), note.
    """
    findings = {name: findings[name] for name in METHODS if name in findings}
    pairs = [(name, _comparison(audit, one)) for name, one in findings.items()]
    compared = {name: one for name, one in pairs if one is not None}
    # A method that cannot reach a verdict must not cost the others theirs.
    enough = {k: v for k, v in compared.items() if v.n_comparison >= decision.FEWEST_COMPARISON}
    p_values = np.array([one.p_values[0] for one in enough.values()])
    adjusted = dict(zip(enough, holm(p_values), strict=True)) if enough else {}
    rows = []
    for name, found in findings.items():
        about = {"model": model, "dataset": " ".join(audit.names), "truth": truth, "method": name}
        rows.append(
            about | _of_method(audit, found, compared.get(name), adjusted.get(name, math.nan))
        )
    methods = pd.DataFrame(rows).astype({"n_at_least": "Int64"})
    word = next((one for one in OF_AUDIT if methods["verdict"].eq(one).any()), NOT_RUN)
    shown = methods[methods["verdict"].eq(SHOWN)]
    # Of several methods the clearest; of equal ones that with the finest scores.
    basis = min(
        shown["method"],
        key=lambda name: (compared[name].p_values[0], name != MIN_K, name != REPLICATION),
        default="",
    )
    of_rows, of_list = _list_of(audit, model, word, findings, basis, compared.get(basis))
    says = _headline(audit, model, methods, word, basis, of_list)
    return Decided(word, says, methods, of_rows, of_list)


def _comparison(audit: Audit, found: Finding) -> Comparison | None:
    """The rows of a method that have a score, ready to be tested; None where none can be."""
    if found.why_not or found.scores is None or audit.unseen is None:
        return None
    is_usable = found.scores["score"].notna().to_numpy()
    scores = found.scores[is_usable]
    is_suspected = ~scores["is_unseen"].to_numpy(bool)
    if not is_suspected.any() or is_suspected.all():
        return None
    known = {
        (index, bool(place)): text
        for place, rows in enumerate(audit.sets)
        for index, text in zip(rows.rows["index"], audit.scored_texts(rows), strict=True)
    }
    texts = [known[one] for one in zip(scores["index"], scores["is_unseen"], strict=True)]
    own = scores.drop(columns=SCORES).to_numpy(float)
    features = np.column_stack([decision.text_features(texts), own])
    n_redeals = decision.N_REDEALS if len(scores) <= decision.MANY_ROWS else decision.N_SEARCHED
    values = scores["score"].to_numpy(float)
    return Comparison(values, is_suspected, features, audit.told.seed, n_redeals)


def _of_method(
    audit: Audit, found: Finding, compared: Comparison | None, p_adjusted: float
) -> dict[str, Any]:
    """The verdict of one method with what it rests on; columns of :func:`decide`."""
    row: dict[str, Any] = {"verdict": OPEN, "statistic": found.statistic}
    row |= dict.fromkeys(["value", "ci_low", "ci_high"], math.nan) | {"n": 0, "n_comparison": 0}
    row |= dict.fromkeys(["text_auc", "p", "p_adjusted"], math.nan)
    row |= {"n_at_least": pd.NA, "share_at_least": math.nan}
    row |= {name: found.counts.get(name, pd.NA) for name in COUNTS}
    notes = [found.note]
    if found.why_not or found.scores is None:
        is_apart = found.why_not == audit.refusal
        return row | {"verdict": CONTROL_FAILS if is_apart else NOT_RUN, "note": found.why_not}
    scores = found.scores
    answered = scores.groupby("is_unseen")["score"].agg(lambda of: of.notna().mean())
    row["n"] = int((scores["score"].notna() & ~scores["is_unseen"]).sum())
    if not row["n"]:
        notes.append("no row has a usable answer")
        return row | {"verdict": NOT_RUN, "note": "; ".join(filter(None, notes))}
    if audit.unseen is None:
        notes.append(NO_COMPARISON)
    elif compared is None:
        notes.append("no comparison row has a usable answer")
    if compared is not None:
        row |= {"n": compared.n, "n_comparison": compared.n_comparison, "value": compared.auc}
        ends = decision.auc_interval(compared.auc, compared.n, compared.n_comparison)
        row |= dict(zip(("ci_low", "ci_high"), ends, strict=True))
        p, reversed_p = compared.p_values
        row |= {"text_auc": compared.text_auc, "p": p, "p_adjusted": p_adjusted}
        notes.append(EXCHANGED if reversed_p <= REVERSED else "")
        if audit.refusal:
            row["verdict"] = CONTROL_FAILS
            notes.append(audit.refusal)
        elif compared.text_auc > decision.MOST_APART:
            notes.append(
                f"length and word frequency tell the two files apart (AUC {compared.text_auc:.2f})"
            )
        elif compared.n_comparison < decision.FEWEST_COMPARISON:
            notes.append(
                f"{compared.n_comparison} comparison rows, and a verdict needs "
                f"{decision.FEWEST_COMPARISON}"
            )
        elif answered.min() < FEWEST_ANSWERED:
            notes.append("fewer than half of the rows have a usable answer")
        elif p_adjusted <= ALPHA:
            # The level of this method within its family: the bound is above 0 just where shown.
            n_seen = compared.n_seen_at_least(ALPHA * p / p_adjusted)
            row |= {"verdict": SHOWN, "n_at_least": n_seen, "share_at_least": n_seen / compared.n}
            shift = compared.overturned_by(ALPHA * p / p_adjusted)
            notes.append(
                f"a difference between the files of {shift:.2f} standard deviations of the score, "
                "from another cause, would explain this"
            )
    return row | {"note": "; ".join(filter(None, notes))}


COUNTS = ("n_valid", "n_refused", "n_error", "n_unusable")


def _list_of(
    audit: Audit,
    model: str,
    word: str,
    findings: Mapping[str, Finding],
    basis: str,
    compared: Comparison | None,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """All suspected rows with their scores, and which of them the list names: only where shown."""
    table = audit.rows.rows[["index"]].assign(model=model)
    for name, column in SCORE_COLUMNS.items():
        scores = getattr(findings.get(name), "scores", None)
        values = pd.Series(dtype=float)
        if scores is not None:
            values = scores[~scores["is_unseen"]].set_index("index")["score"]
        table[f"{column}_score"] = table["index"].map(values).astype(float)
    table = table.assign(p_value=math.nan, p_adjusted=math.nan)
    table["is_listed"] = pd.array([pd.NA] * len(table), dtype="boolean")
    rate = audit.told.false_discovery_rate
    found: dict[str, Any] = {"model": model, "method": basis, "n_rows": 0, "n_comparison": 0}
    found |= {"rate": rate, "n_listed": pd.NA, "note": f"No list: the verdict is {word}."}
    if compared is not None:
        scores = findings[basis].scores
        assert scores is not None
        is_scored = ~scores["is_unseen"] & scores["score"].notna()
        of_rows = pd.DataFrame({"p_value": compared.conformal}, index=scores["index"][is_scored])
        of_rows["p_adjusted"] = stats.false_discovery_control(compared.conformal)
        of_rows["is_listed"] = compared.listed(rate)
        at = table.index[table["index"].isin(of_rows.index)]
        for name in of_rows:
            table.loc[at, name] = of_rows[name].reindex(table.loc[at, "index"]).to_numpy()
        found |= {"n_rows": compared.n, "n_comparison": compared.n_comparison}
        n_listed = int(of_rows["is_listed"].sum())
        fewest = decision.shortest_list(compared.n, compared.n_comparison, rate)
        found |= {
            "n_listed": n_listed,
            "note": (
                f"{n_listed} of {compared.n} rows are listed as seen; on average over audits, at "
                f"most {100 * rate:g} % of such names are false."
                if n_listed
                else f"Which rows these are cannot be said: a list needs at least {fewest} rows "
                f"that score above all {compared.n_comparison} comparison rows."
            ),
        }
    return table[ROWS], found


def _headline(
    audit: Audit,
    model: str,
    methods: pd.DataFrame,
    word: str,
    basis: str,
    of_list: Mapping[str, Any],
) -> str:
    """The verdict for a reader, and what to do."""
    dataset = audit.title
    n_tests = int(methods["p_adjusted"].notna().sum())
    corrected = f", corrected for {n_tests} methods" if n_tests > 1 else ""
    if word == SHOWN:
        row = methods.set_index("method").loc[basis]
        said = (
            f"At least {row['n_at_least']} of {row['n']} rows of {dataset} "
            f"({100 * row['share_at_least']:.0f} %) were seen in training, with 95 % confidence "
            f"({basis}, {p_text(row['p_adjusted'])}{corrected}). {of_list['note']} Do not take the "
            "model's score on this dataset at face value."
        )
    elif word == CONTROL_FAILS:
        said = f"{audit.refusal[:1].upper()}{audit.refusal[1:]}."
    elif word == OPEN and audit.unseen is None:
        said = f"Without comparison rows nothing can be shown: name {FROM_WHERE}."
    elif word == OPEN:
        said = f"No method shows that the model saw rows of {dataset}. That is no sign that it is "
        said += "clean: read what would have been noticed."
    else:
        said = "; ".join(methods["method"] + ": " + methods["note"]) + "."
    exchanged = ""
    if methods["note"].str.contains(EXCHANGED, regex=False).any():
        exchanged = f" {EXCHANGED[:1].upper()}{EXCHANGED[1:]}"
    return f"{model}: {word}. {said}{exchanged}"


def scores_by_list(scores: pd.Series, rows: pd.DataFrame) -> pd.DataFrame:
    """The score of an evaluation on the rows that a list names, and on those that none names.

    Args:
        scores: of every row of the dataset, by its number from 0, NaN where there is none.
        rows: ``audit_rows.csv``.

    Returns:
        rows (which they are), n, value (mean score), ci_low and ci_high (of a share by Wilson, of
        any other score by Student's t; NaN for fewer than two rows). Empty where no list was
        possible or no row has a score.
    """
    known = rows.dropna(subset=["is_listed"])
    is_listed = known["is_listed"].astype(bool).groupby(known["index"]).any()
    listed, unlisted = list(is_listed.index[is_listed]), list(is_listed.index[~is_listed])
    groups = {"all rows that were scored": [*listed, *unlisted], LISTED: listed, REST: unlisted}
    found = []
    for name, places in groups.items():
        values = scores.reindex(places).dropna().to_numpy(float)
        low, high = _mean_interval(values)
        mean = float(values.mean()) if len(values) else math.nan
        found.append(
            {"rows": name, "n": len(values), "value": mean, "ci_low": low, "ci_high": high}
        )
    table = pd.DataFrame(found)
    return table if len(known) and table["n"].any() else table.iloc[:0]


def _mean_interval(values: np.ndarray) -> tuple[float, float]:
    if len(values) < FEWEST_OF_MEAN:
        return math.nan, math.nan
    if np.isin(values, (0, 1)).all():
        return share_interval(int(values.sum()), len(values))
    if np.ptp(values) == 0:  # a width of 0 would not be precision
        return math.nan, math.nan
    return stats.t.interval(CONFIDENCE, len(values) - 1, values.mean(), stats.sem(values))
