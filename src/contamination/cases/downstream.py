"""Benchmark examples inserted into a training corpus, and who finds them.

Shi et al., arXiv:2310.16789, section 6. Of each dataset some examples are
inserted once each at random places of a corpus that a model is trained on, as
many are held out, and the AUC says how well a score tells one from the other.
Chance alone decides which examples are inserted, so a classifier of the words
can do no better than chance: an AUC above one half is evidence of training.

Intervals resample the examples and the models: other texts around the
examples, in another order, give another model, and a claim about training must survive that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import blind, scores, statistics
from contamination.lab.training import describe
from contamination.models.local import CausalLM, option_log_probs

AVERAGE = "average"
MOST_OCCURRENCES = 4  # examples inserted more often are counted as this often
SEED = 0  # of folds, permutations and the bootstrap
COLUMNS = ["dataset", "setting", "method", "occurrence", "learning_rate", "n_tokens", "share_pct"]
COLUMNS += ["seed", "n_models", "n_members", "n_non_members", "auc", "ci_low", "ci_high"]
COLUMNS += ["difference", "difference_low", "difference_high", "tpr_at_5_fpr", "p_value"]
COLUMNS += ["blind_auc", "blind_ci_low", "blind_ci_high"]
COLUMNS += ["accuracy_contaminants", "accuracy_others", "gap_low", "gap_high"]
COLUMNS += ["chance_accuracy", "paper_auc", "paper_tpr", "holds"]
BEFORE, NO_MODEL = "before insertion", "no model"  # settings
CONTROLS = (NO_MODEL, BEFORE, "outliers, before", "like the corpus, before")

Scores = Mapping[int, pd.DataFrame]


def training_facts(folder: Path) -> dict[str, float]:
    """Columns n_tokens, share_pct and learning_rate of a lab model."""
    model = describe(folder)
    facts = {"n_tokens": model["n_tokens"], "share_pct": model["share_pct"]}
    return facts | {"learning_rate": model["recipe"]["learning_rate"]}


def answers_right(lm: CausalLM, examples: pd.DataFrame) -> np.ndarray:
    """Whether the option that the model prefers is the right one, shape (n_examples,).

    Options of several tokens compete by their mean log-probability per token.
    A small model prefers one label whatever it is asked, so where all examples of
    a dataset have the same options, each option's log-probability is taken against
    its mean over these examples (batch calibration, Zhou et al.,
    arXiv:2309.17249), which knows no answer and no membership.
    """
    options = examples["options"].tolist()
    log_probs = option_log_probs(lm, examples["prompt"].tolist(), options, per_token=True)
    preferred = np.empty(len(examples), dtype=int)
    for places in examples.groupby("dataset", sort=False).indices.values():
        of_dataset = [log_probs[place] for place in places]
        if len({tuple(options[place]) for place in places}) == 1:
            of_dataset = np.array(of_dataset) - np.mean(of_dataset, axis=0)
        preferred[places] = [np.argmax(values) for values in of_dataset]
    return preferred == examples["answer"].to_numpy()


def auc_rows(
    scored: Scores,
    examples: pd.DataFrame,
    *,
    n_resamples: int,
    first: Scores | None = None,
    **labels: Any,
) -> pd.DataFrame:
    """AUC of each method on each dataset, and on average over the datasets.

    Args:
        scored: training seed to the scores of the examples under that model
            (passage, method, score).
        examples: columns dataset and is_member, in the order of the scores.
        n_resamples: of the bootstrap over examples and models; all methods and
            datasets see the same models.
        first: scores under the condition that the difference is taken to, for
            as many models; the resampled examples are the same. A method that it
            lacks has no difference.
        **labels: further columns of ``COLUMNS``.

    Returns:
        Columns ``COLUMNS``; seed is empty where several models stand behind a
        row. difference is this AUC minus that of ``first``. ``holds`` says of a setting
        among ``CONTROLS`` whether the interval contains one half, as it must. No p: so few
        models, all from one base, decide nothing.
    """
    rows = []
    for method in next(iter(scored.values()))["method"].unique():
        parts = []
        is_compared = first is not None and (next(iter(first.values()))["method"] == method).any()
        for dataset, of_dataset in examples.groupby("dataset", sort=False):
            part = _estimate(scored, method, of_dataset, n_resamples)
            if is_compared:
                base = _estimate(first, method, of_dataset, n_resamples)
                part["change"] = part["auc"] - base["auc"]
                part["changes"] = part["aucs"] - base["aucs"]
            parts.append({"dataset": dataset, **part})
        if len(parts) > 1:
            parts.append({"dataset": AVERAGE, **_averaged(parts)})
        rows += [_row(part) | {"method": method} for part in parts]
    seeds = list(scored)
    labels |= {"n_models": len(seeds), "seed": seeds[0] if len(seeds) == 1 else None}
    return _table(rows, labels)


def difference_interval(
    scored: Scores, examples: pd.DataFrame, *, n_resamples: int
) -> tuple[float, float]:
    """95 % interval of AUC(Min-k% Prob) - AUC(PPL), the average over datasets; paired."""
    differences = []
    for _, of_dataset in examples.groupby("dataset", sort=False):
        min_k, ppl = (
            _estimate(scored, method, of_dataset, n_resamples)["aucs"]
            for method in (scores.MIN_K, scores.PPL)
        )
        differences.append(min_k - ppl)
    return statistics.percentile_interval(np.mean(differences, axis=0))


def _estimate(scored: Scores, method: str, of_dataset: pd.DataFrame, n_resamples: int) -> dict:
    items, is_member = of_dataset.index, of_dataset["is_member"].to_numpy(dtype=bool)
    of_method = [table[table["method"] == method] for table in scored.values()]
    values = [table.sort_values("passage")["score"].to_numpy()[items] for table in of_method]
    resampled = statistics.bootstrap_aucs(values, is_member, n_resamples, SEED)
    return {
        "auc": float(np.mean([statistics.auc(value, is_member) for value in values])),
        "tpr": float(np.mean([statistics.tpr_at_fpr(value, is_member) for value in values])),
        "aucs": statistics.over_drawn_models(resampled, SEED),
        "n_members": int(is_member.sum()),
        "n_non_members": int((~is_member).sum()),
    }


def _averaged(parts: list[dict]) -> dict:
    """Means over datasets; counts are sums."""
    means = ("auc", "tpr", "aucs", "change", "changes")
    average = {
        name: np.mean([part[name] for part in parts], axis=0) for name in means if name in parts[0]
    }
    return average | {
        name: sum(part[name] for part in parts) for name in ("n_members", "n_non_members")
    }


def _row(part: dict) -> dict[str, Any]:
    low, high = statistics.percentile_interval(part["aucs"])
    row = {name: part[name] for name in ("dataset", "auc", "n_members", "n_non_members")}
    row |= {"ci_low": low, "ci_high": high, "tpr_at_5_fpr": part["tpr"]}
    if "changes" in part:
        low, high = statistics.percentile_interval(part["changes"])
        row |= {"difference": part["change"], "difference_low": low, "difference_high": high}
    return row


def _table(rows: list[dict], labels: Mapping[str, Any]) -> pd.DataFrame:
    table = pd.DataFrame(rows).assign(**labels).reindex(columns=COLUMNS)
    holds = table["ci_low"].le(0.5) & table["ci_high"].ge(0.5)
    table["holds"] = holds.astype("boolean").where(table["setting"].isin(CONTROLS))
    return table.astype({"seed": "Int64"})


def blind_rows(
    examples: pd.DataFrame, *, n_resamples: int, n_permutations: int = 0
) -> pd.DataFrame:
    """AUC of classifiers that see the words of the examples and no model, by dataset.

    As ``auc_rows``, setting "no model", and p_value where labels were permuted. The interval of
    the average takes the datasets as independent.
    """
    rows = []
    for dataset, of_dataset in examples.groupby("dataset", sort=False):
        is_member = of_dataset["is_member"].to_numpy(dtype=bool)
        table = blind.blind_table(
            of_dataset["text"].tolist(),
            is_member,
            baselines=blind.TRAINED,
            # Resampling one example of a kind in a fold gives an interval of width 0.
            n_folds=blind.feasible_folds(is_member, per_fold=2),
            n_permutations=n_permutations,
            n_resamples=n_resamples,
            seed=SEED,
        )
        table = table.rename(columns={"baseline": "method"}).assign(dataset=dataset)
        rows += table.to_dict("records")
    for baseline in blind.TRAINED if len(set(examples["dataset"])) > 1 else ():
        of_baseline = pd.DataFrame([row for row in rows if row["method"] == baseline])
        mean, n = of_baseline["auc"].mean(), len(of_baseline)
        half = np.sqrt(((of_baseline["ci_high"] - of_baseline["ci_low"]) ** 2).sum()) / (2 * n)
        counts = of_baseline[["n_members", "n_non_members"]].sum().to_dict()
        rows.append(
            {"dataset": AVERAGE, "method": baseline, "auc": mean}
            | {"ci_low": mean - half, "ci_high": mean + half, **counts}
            | {"tpr_at_5_fpr": of_baseline["tpr_at_5_fpr"].mean()}
        )
    return _table(rows, {"setting": NO_MODEL})


def with_blind(rows: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``auc_rows`` with the AUC of a bag of words on the same examples, and its interval.

    Columns blind_auc, blind_ci_low and blind_ci_high (95 %).
    """
    of_words = words[words["method"] == blind.BAG_OF_WORDS].set_index("dataset")
    named = {"auc": "blind_auc", "ci_low": "blind_ci_low", "ci_high": "blind_ci_high"}
    return rows.assign(**{new: rows["dataset"].map(of_words[old]) for old, new in named.items()})


def occurrence_rows(
    scored: Scores,
    examples: pd.DataFrame,
    occurrence: np.ndarray,
    *,
    n_resamples: int,
    first: Scores | None = None,
    **labels: Any,
) -> pd.DataFrame:
    """AUC by how often an example was inserted, against those never inserted.

    As ``auc_rows``, one group of rows for each occurrence (n_examples,), of which more than
    ``MOST_OCCURRENCES`` count as that many; blind_auc is a bag of words' on the same examples.
    """
    occurrence = np.minimum(occurrence, MOST_OCCURRENCES)
    parts = []
    for times in sorted(set(occurrence.tolist()) - {0}):
        kept = np.flatnonzero((occurrence == times) | (occurrence == 0))
        inserted = examples.iloc[kept].assign(is_member=occurrence[kept] == times)
        # A dataset with one example of this kind has no interval to speak of.
        inserted = inserted[inserted.groupby("dataset")["is_member"].transform("sum") > 1]
        if inserted.empty:
            continue
        rows = auc_rows(
            scored, inserted, first=first, n_resamples=n_resamples, occurrence=times, **labels
        )
        parts.append(with_blind(rows, blind_rows(inserted, n_resamples=n_resamples)))
    return pd.concat(parts, ignore_index=True)


def with_accuracy(
    rows: pd.DataFrame, right: Mapping[int, np.ndarray], examples: pd.DataFrame, *, n_resamples: int
) -> pd.DataFrame:
    """Rows of ``auc_rows`` with the task's accuracy on inserted and on held-out examples.

    Table 8 of the paper: what was learned of the task serves both kinds, what
    was memorised serves the inserted ones alone. ``right`` is ``answers_right`` by training
    seed; gap_low and gap_high are the interval of the first accuracy minus the second.
    """
    by_dataset, gaps = {}, []
    values = np.array(list(right.values()), dtype=float)
    for dataset, of_dataset in examples.groupby("dataset", sort=False):
        is_member = of_dataset["is_member"].to_numpy(dtype=bool)
        of_models = values[:, of_dataset.index]
        rng = np.random.default_rng([SEED, 11])
        sides, resampled = [], []
        for kind in (is_member, ~is_member):
            n = int(kind.sum())
            weights = rng.multinomial(n, [1 / n] * n, n_resamples) / n
            means = of_models[:, kind] @ weights.T
            resampled.append(statistics.over_drawn_models(means, SEED))
            sides.append(of_models[:, kind].mean())
        gaps.append(resampled[0] - resampled[1])
        chance = (1 / of_dataset["options"].map(len)).mean()
        by_dataset[dataset] = [*sides, *statistics.percentile_interval(gaps[-1]), chance]
    names = ["accuracy_contaminants", "accuracy_others", "gap_low", "gap_high", "chance_accuracy"]
    table = pd.DataFrame.from_dict(by_dataset, orient="index", columns=names)
    table.loc[AVERAGE] = table.mean()
    ends = statistics.percentile_interval(np.mean(gaps, axis=0))
    table.loc[AVERAGE, ["gap_low", "gap_high"]] = ends
    beside = table.reindex(rows["dataset"]).set_axis(rows.index)
    return rows.assign(**beside)
