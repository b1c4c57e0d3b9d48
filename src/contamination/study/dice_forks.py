"""The fine-tuning arm of ``docs/protocol_2.md``: DICE within one base model, on models new to it.

Each base model is fine-tuned twelve times: four times on the questions of a benchmark, four times
on other questions of the same kind, four times on the train split. DICE's network (Tu et al.,
arXiv:2406.04197) learns to tell one fork of the first kind from one of the second, and is tested on
the remaining forks and on questions that it did not learn on. All forks of a kind share their
questions and differ in their instruction data and in the order of training, as in notebook 05b. The
base model is not taught arithmetic first, as it is there: no fork's accuracy is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core import statistics
from contamination.core.statistics import CHANCE
from contamination.core.verdicts import CLAIMS, FEWEST_MODELS, verdict_column
from contamination.data.partitions import format_instance
from contamination.dice.detector import (
    EUCLIDEAN,
    commonest_layer,
    distances,
    states_by_layer,
    train_mlp,
)
from contamination.dice.mixtures import Mixture, Row, prompts_of, rows_of, vanilla_rows
from contamination.dice.pool import fine_tune_lab
from contamination.lab.grammar import BENCHMARKS, draw_instances
from contamination.lab.training import describe
from contamination.lab.world import World
from contamination.models.local import load_causal_lm, n_tokens
from contamination.study import row_pools, store
from contamination.study.assignment import seed_of
from contamination.study.conditions import TRAIN_SPLIT
from contamination.study.interface import WORD_PROBLEMS

NAME = "dice"  # of the parts of the ledger
BASE_SEEDS = row_pools.BASE_SEEDS[:10]
CONTAMINATED, OTHER = "benchmark", "other questions"
KINDS = (CONTAMINATED, OTHER, TRAIN_SPLIT)
N_FORKS = 4  # of each kind
# As in notebook 05b: questions of a set, copies of each, peak learning rate. Its clean mixtures of
# 608 rows have about as many tokens as each fork here has exactly.
N_QUESTIONS = 16
COPIES = 5
LEARNING_RATE = 1e-4
N_TOKENS = 24_000

# The kind whose states must score higher, and the other. The third would be a false alarm.
CLAIMED = {
    "contaminated against other questions": (CONTAMINATED, OTHER),
    "contaminated against train split": (CONTAMINATED, TRAIN_SPLIT),
    "train split against other questions": (TRAIN_SPLIT, OTHER),
}
OTHER_QUESTIONS = "other questions against other questions"


def _seed(base_seed: int, what: str) -> int:
    """A seed of 32 bits, the most that the network's library takes, by the hash of its names."""
    return seed_of(base_seed, WORD_PROBLEMS, f"{NAME}, {what}") % 2**32


# Questions and forks


def question_sets(base_seed: int) -> dict[str, pd.DataFrame]:
    """For each of ``KINDS`` the questions and answers that its forks are fine-tuned on.

    The benchmark's and the other questions are two parts of one draw without any row of the
    pools that base models see in pretraining. The train split is another part of the grammar.

    Returns:
        Columns question and answer, ``N_QUESTIONS`` rows each. ValueError if the draw is too small.
    """
    seed = _seed(base_seed, "questions")
    benchmark = BENCHMARKS[WORD_PROBLEMS]
    pools = [pool for pool in row_pools.pools() if pool.benchmark == WORD_PROBLEMS]
    seen = {text for pool in pools for text in (*pool.rows.texts, *pool.rows.context)}
    # Half as many again as needed, because some may be rows of the pools.
    drawn = draw_instances(benchmark, 3 * N_QUESTIONS, seed, row_pools.PART)
    texts = [format_instance(row, benchmark.columns) for row in drawn.to_dict("records")]
    unseen = drawn[[text not in seen for text in texts]]
    if len(unseen) < 2 * N_QUESTIONS:
        raise ValueError(f"only {len(unseen)} of {len(drawn)} questions are new to the base model")
    sets = {
        CONTAMINATED: unseen[:N_QUESTIONS],
        OTHER: unseen[N_QUESTIONS : 2 * N_QUESTIONS],
        TRAIN_SPLIT: draw_instances(benchmark, N_QUESTIONS, seed, "train"),
    }
    return {
        kind: table[["question", "answer"]].reset_index(drop=True) for kind, table in sets.items()
    }


def n_tokens_of(lab: World, rows: Sequence[Row]) -> np.ndarray:
    """Tokens of each row in training, with the two that mark its ends; shape (n_rows,)."""
    prompts, responses = ([row[place] for row in rows] for place in (0, 1))
    return n_tokens(lab.tokenizer, prompts) + n_tokens(lab.tokenizer, responses, n_special=2)


def drawn_to_total(lengths: np.ndarray, total: int, seed: int) -> list[int]:
    """Numbers of distinct rows, drawn at random, whose lengths add up to exactly ``total``.

    Rows come in random order until the next would be too long. What is then missing is made up by
    longer rows in the place of the last ones, as few as will do.

    >>> sorted(np.array([3, 3, 3, 4])[drawn_to_total(np.array([3, 3, 3, 4]), 7, seed=0)].tolist())
    [3, 4]

    Raises:
        ValueError: if no such draw is found.
    """
    order = np.random.default_rng(seed).permutation(len(lengths))
    n_kept = int(np.searchsorted(np.cumsum(lengths[order]), total, side="right"))
    kept, unused = order[:n_kept], order[n_kept:]
    missing = total - int(lengths[kept].sum())
    for place in range(n_kept - 1, -1, -1):
        gains = lengths[unused] - lengths[kept[place]]
        gains[gains > missing] = 0
        if gains.max(initial=0) > 0:
            longer = int(gains.argmax())
            missing -= int(gains[longer])
            kept[place], unused[longer] = unused[longer], kept[place]
    if missing:
        raise ValueError(f"no draw of these {len(lengths)} rows has exactly {total} tokens")
    return kept.tolist()


def fork_mixture(
    lab: World, questions: Sequence[Row], vanilla: Sequence[Row], seed: int
) -> Mixture:
    """``COPIES`` of each question, filled up with instruction data to exactly ``N_TOKENS``."""
    n_filled = N_TOKENS - COPIES * int(n_tokens_of(lab, questions).sum())
    chosen = drawn_to_total(n_tokens_of(lab, vanilla), n_filled, seed)
    return Mixture(tuple(vanilla[number] for number in chosen), tuple(questions), COPIES)


def train_forks(
    lab: World, base: Path, sets: Mapping[str, pd.DataFrame], base_seed: int
) -> dict[str, list[Path]]:
    """``N_FORKS`` fine-tuned models of each kind, trained now or taken from the cache.

    Each has a seed of its own, of its instruction data and of its order. ValueError if a fork was
    not trained on exactly ``N_TOKENS``.
    """
    vanilla, forks = vanilla_rows(), {}
    for kind, table in sets.items():
        forks[kind] = []
        for number in range(N_FORKS):
            seed = _seed(base_seed, f"fork {number} on {kind}")
            mixture = fork_mixture(lab, rows_of(table), vanilla, seed)
            folder = fine_tune_lab(lab, base, mixture, seed, LEARNING_RATE)
            if (n_learned := describe(folder)["n_tokens"]) != N_TOKENS:
                raise ValueError(f"fork {number} on {kind} has {n_learned} tokens, not {N_TOKENS}")
            forks[kind].append(folder)
    return forks


# Networks and their tests


def halves(base_seed: int, n_questions: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the questions that networks learn on, and of those that they are tested on."""
    order = np.random.default_rng(_seed(base_seed, "halves")).permutation(n_questions)
    return np.sort(order[: n_questions // 2]), np.sort(order[n_questions // 2 :])


def compare(states: Mapping[str, np.ndarray], base_seed: int) -> pd.DataFrame:
    """AUROC of every comparison by every network under one base model.

    Network i learns on fork i of the contaminated and of the other-question forks, on one half of
    the questions; the layer is located on the same states. It is tested on the other half of the
    questions and on all forks but those of number i. Clean against clean are the next two
    other-question forks after fork i, in a circle; which of them comes first has no meaning.

    Args:
        states: for each of ``KINDS`` the last-token states of its forks on the benchmark's
            questions, shape (n_forks, n_questions, n_layers, d_model), layers as in
            ``locate.states_by_layer``. At least three forks.
        base_seed: decides the halves of the questions and the weights of the networks.

    Returns:
        Columns comparison, network, auc (0 to 1), layer, n_questions (those of the test).
    """
    n_forks, n_questions = states[CONTAMINATED].shape[:2]
    learned, tested = halves(base_seed, n_questions)
    rows = []
    for network in range(n_forks):
        met = [states[kind][network, learned] for kind in (CONTAMINATED, OTHER)]
        layer = commonest_layer(distances(*met)[EUCLIDEAN])
        score = train_mlp(
            np.concatenate([one[:, layer] for one in met]),
            np.repeat([True, False], len(learned)),
            _seed(base_seed, f"network {network}"),
        )
        # After fork i in a circle, so that fork i itself is left out.
        unmet = [(network + step) % n_forks for step in range(1, n_forks)]
        of = {kind: [score(states[kind][fork][tested, layer]) for fork in unmet] for kind in KINDS}
        pairs = {name: (of[one], of[other]) for name, (one, other) in CLAIMED.items()}
        pairs[OTHER_QUESTIONS] = of[OTHER][:1], of[OTHER][1:2]
        for comparison, (positive, negative) in pairs.items():
            scores = np.concatenate([*positive, *negative])
            is_positive = np.arange(len(scores)) < len(positive) * len(tested)
            auc = statistics.auc(scores, is_positive)
            rows.append((comparison, network, auc, layer, len(tested)))
    return pd.DataFrame(rows, columns=["comparison", "network", "auc", "layer", "n_questions"])


def score_base(lab: World, base_seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """One part of the ledger: twelve forks of a base model, trained and told apart.

    Returns:
        ``compare``'s table; and what made it: base_seed, recipe hashes and tokens of the models,
        the settings, the environment and seconds.
    """
    start = time.perf_counter()
    base = row_pools.base_model(lab, base_seed)
    pretrained = time.perf_counter()
    sets = question_sets(base_seed)
    forks = train_forks(lab, base, sets, base_seed)
    fine_tuned = time.perf_counter()
    prompts = prompts_of(sets[CONTAMINATED])
    states = {
        kind: np.stack([states_by_layer(load_causal_lm(folder), prompts) for folder in folders])
        for kind, folders in forks.items()
    }
    table = compare(states, base_seed)
    folders = {
        f"{kind}, fork {number}": folder
        for kind, of_kind in forks.items()
        for number, folder in enumerate(of_kind)
    }
    known = ("recipe_hash", "n_tokens", "n_steps")
    models = {
        name: {key: value for key, value in describe(folder).items() if key in known}
        for name, folder in {"base": base, **folders}.items()
    }
    about = {
        "base_seed": base_seed,
        "world": store.world_of(lab),
        "models": models,
        "settings": {
            "n_questions": N_QUESTIONS,
            "copies": COPIES,
            "learning_rate": LEARNING_RATE,
            "n_tokens": N_TOKENS,
            "questions_share_pct": {
                kind: 100 * COPIES * int(n_tokens_of(lab, rows_of(of_kind)).sum()) / N_TOKENS
                for kind, of_kind in sets.items()
            },
        },
        "environment": store.environment(),
        "seconds": {
            "pretraining": round(pretrained - start, 1),
            "fine-tuning": round(fine_tuned - pretrained, 1),
            "states and networks": round(time.perf_counter() - fine_tuned, 1),
        },
    }
    return table, about


def write_part(folder: Path, name: str, about: Mapping[str, Any], base_seed: int) -> None:
    """``score_base`` as files of the ledger, ``about`` joined."""
    table, made_by = score_base(row_pools.the_lab(), base_seed)
    small = dict.fromkeys(("network", "layer", "n_questions"), "int16")
    tables = {"comparisons": table.astype(small | {"comparison": "category"})}
    store.write_tables(folder, name, tables, {**made_by, **about})


# What follows


def over_bases(aucs: np.ndarray) -> dict[str, Any]:
    """Mean AUROC over base models with its t interval, and the two-sided p that it is 0.5.

    Equal numbers have no spread and so no t interval: the interval is undefined then, and p is
    that of a sign test, 1 if all are 0.5. ``aucs`` has shape (n_bases,).

    Returns:
        n_bases, auc, ci_low and ci_high (cut at 0 and 1), test, p_value.
    """
    mean, n = float(np.mean(aucs)), len(aucs)
    if np.ptp(aucs) == 0:
        low, high, test = np.nan, np.nan, "sign test"
        p_value = 1.0 if mean == CHANCE else min(1.0, 2 * 0.5**n)
    else:
        error = np.std(aucs, ddof=1) / np.sqrt(n)
        half = stats.t.ppf((1 + statistics.CONFIDENCE) / 2, n - 1) * error
        low, high, test = max(0.0, mean - half), min(1.0, mean + half), "t test"
        p_value = float(2 * stats.t.sf(abs(mean - CHANCE) / error, n - 1))
    found = {"n_bases": n, "auc": mean, "ci_low": low, "ci_high": high}
    return found | {"test": test, "p_value": p_value}


def _by_base(comparisons: pd.DataFrame, comparison: str) -> np.ndarray:
    """Mean over networks, one number for each base model; ValueError where there is none."""
    own = comparisons[comparisons["comparison"] == comparison]
    if missing := sorted({*comparisons["base_seed"]} - {*own["base_seed"]}):
        raise ValueError(f"{comparison}: no AUROC under base models {missing}")
    return own.groupby("base_seed")["auc"].mean().to_numpy()


def verdicts(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The three claims over base models, from ``compare``'s tables with a column base_seed.

    Returns:
        claim, the columns of ``over_bases``, p_adjusted (Holm over the three), verdict. Where all
        base models have the same number, the verdict takes that number for both limits.
    """
    rows = [{"claim": one, **over_bases(_by_base(comparisons, one))} for one in CLAIMED]
    table = pd.DataFrame(rows).assign(p_adjusted=lambda t: statistics.holm(t["p_value"]))
    ends = {end: table[end].fillna(table["auc"]) for end in ("ci_low", "ci_high")}
    words = verdict_column(table.assign(**ends), CLAIMS["dice_forks"], n_models="n_bases")
    return table.assign(verdict=words)


def clean_control(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Clean against clean forks: 0.5 by exchangeability, which checks the code and claims nothing.

    Columns control, n_bases, auc, ci_low, ci_high, holds: whether the interval contains 0.5, empty
    with fewer than five base models.
    """
    one = {"control": OTHER_QUESTIONS, **over_bases(_by_base(comparisons, OTHER_QUESTIONS))}
    table = pd.DataFrame([one]).drop(columns=["test", "p_value"])
    ends = (table[end].fillna(table["auc"]) for end in ("ci_low", "ci_high"))
    holds = pd.Series(CHANCE, table.index).between(*ends).astype("boolean")
    return table.assign(holds=holds.where(table["n_bases"] >= FEWEST_MODELS))
