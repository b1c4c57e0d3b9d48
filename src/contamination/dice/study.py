"""A DICE study: the pool of models that all experiments share, and the tables read off it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE

from contamination.dice import published_tables
from contamination.dice.answers import accuracy_row, answer, answer_log_probs
from contamination.dice.controls import (
    BASE,
    CLEAN,
    OTHER_CLEAN,
    Measured,
    Pool,
    control_table,
    held_out_detectors,
    measure,
    of_pairs,
    pair_detector,
    paired_seeds,
)
from contamination.dice.detector import MEAN_DIFFERENCE, MLP, auroc_over_models, probability
from contamination.dice.fine_tuning import fine_tune_lab
from contamination.dice.locate import ALL_TOKENS, distances, distances_all_tokens
from contamination.dice.mixtures import (
    FORMAT,
    IN_DISTRIBUTION,
    OTHER_TASK,
    SEEN,
    SYN,
    TRAIN_SPLIT,
    UNSEEN,
    Mixture,
    Problems,
    Row,
    mix,
    rows_of,
)
from contamination.lab.training import describe
from contamination.lab.world import World
from contamination.models.causal import CausalLM, load_causal_lm
from contamination.scores import perplexity_score

ROWS, STEPS = "rows", "steps"  # what stays the same whatever the dose
HIGH, LOW, BETWEEN = 5, 1, 3  # copies: the paper's two, and one no detector is trained on
MATH = "MATH"
PAPER_LAYERS = {SEEN: 29, MATH: 30}  # Figure 4, LLaMA2-7B contaminated with this
DOSE_NAMES = {0: "OpenOrca 100%", LOW: "{} 2%", HIGH: "{} 10%"}  # as Table 1 prints them


@dataclass(frozen=True)
class Condition:
    """What a group of models is fine-tuned on, one model for each seed.

    Attributes:
        name: of the condition.
        problems: set of problems it is contaminated with; "" for none.
        copies: of each of these problems.
        n_models: models, with seeds from 0.
        fixed: "rows" or "steps", see ``mixtures.mix``.
        first_seed: added to the seeds of data and order; 100 gives other clean data.
    """

    name: str
    problems: str
    copies: int
    n_models: int
    fixed: str = ROWS
    first_seed: int = 0


def named(problems: str, copies: int) -> str:
    """Name of the condition contaminated with so many copies of a set of problems."""
    return f"{problems} x{copies}"


FIXED_STEPS = f"{named(SEEN, HIGH)}, fixed steps"


SCORED = (CLEAN, named(SEEN, HIGH), named(SYN, HIGH))  # conditions that Table 2 compares


def conditions(n_models: int, n_others: int, only_decisive: bool = False) -> list[Condition]:
    """Every condition of the study; the three decisive controls share the first three.

    Args:
        n_models: models per arm where a conclusion hangs on them.
        n_others: models per arm elsewhere.
        only_decisive: leave out what the three decisive controls do not need.
    """
    found = [
        Condition(CLEAN, "", 0, n_models),
        Condition(OTHER_CLEAN, "", 0, n_models, first_seed=100),
        Condition(named(SEEN, HIGH), SEEN, HIGH, n_models),
    ]
    found += [
        Condition(named(problems, HIGH), problems, HIGH, n_others)
        for problems in (TRAIN_SPLIT, FORMAT)
    ]
    if only_decisive:
        return found
    found += [Condition(named(SEEN, copies), SEEN, copies, n_others) for copies in (LOW, BETWEEN)]
    found += [Condition(named(SYN, copies), SYN, copies, n_others) for copies in (LOW, HIGH)]
    found += [
        Condition(named(problems, HIGH), problems, HIGH, n_others)
        for problems in (UNSEEN, OTHER_TASK, MATH)
    ]
    return [*found, Condition(FIXED_STEPS, SEEN, HIGH, n_others, fixed=STEPS)]


@dataclass(frozen=True)
class Trained:
    """A fine-tuned lab model: its checkpoint, and what it read in how many steps."""

    folder: Path
    mixture: Mixture
    n_steps: int


def train_pool(
    lab: World,
    base: Path,
    problems: Mapping[str, Problems],
    vanilla: Sequence[Row],
    wanted: Sequence[Condition],
    n_rows: int,
    learning_rate: float,
) -> dict[str, dict[int, Trained]]:
    """All models of the study, trained now or taken from the cache.

    Args:
        lab: the lab.
        base: what is fine-tuned.
        problems: name to questions and answers.
        vanilla: instruction rows to draw from.
        wanted: conditions.
        n_rows: rows of a clean mixture.
        learning_rate: of every fine-tuning.

    Returns:
        Condition to seed to model.
    """

    def n_tokens(row: Row) -> int:
        return len(lab.tokenizer(row[0] + row[1]).input_ids) + 1

    pool: dict[str, dict[int, Trained]] = {}
    for condition in wanted:
        rows = rows_of(problems[condition.problems]) if condition.problems else []
        pool[condition.name] = {}
        for seed in range(condition.n_models):
            data_seed = condition.first_seed + seed
            budget = n_tokens if condition.fixed == STEPS else None
            mixture = mix(vanilla, rows, condition.copies, n_rows, data_seed, budget)
            folder = fine_tune_lab(lab, base, mixture, data_seed, learning_rate)
            n_steps = describe(folder)["n_steps"]
            pool[condition.name][seed] = Trained(folder, mixture, n_steps)
    return pool


def measure_pool(
    trained: Mapping[str, Mapping[int, Trained]],
    base: Path,
    problems: Mapping[str, Problems],
    tested_on: Sequence[str],
    centred_on: str,
) -> Pool:
    """States of every model, and Table 2's baselines; the base model stands under every seed.

    Args:
        trained: condition to seed to model.
        base: what was fine-tuned.
        problems: name to questions and answers.
        tested_on: names of the sets of problems that are read.
        centred_on: set that the baselines need beside the GSM sets,
            see ``controls.taught_baselines``.
    """
    sets = {name: problems[name] for name in tested_on}
    scored = [*IN_DISTRIBUTION, centred_on]
    pool = {
        condition: {
            seed: measure(load_causal_lm(model.folder), sets, scored if condition in SCORED else ())
            for seed, model in models.items()
        }
        for condition, models in trained.items()
    }
    of_base = measure(load_causal_lm(base), sets)
    return pool | {BASE: dict.fromkeys(pool[CLEAN], of_base)}


# Table 1


def check_floor(accuracies_pct: Sequence[float], floor_pct: Sequence[float]) -> float:
    """Mean accuracy of the clean fine-tuned models, if it leaves room above and below.

    Raises:
        ValueError: if it lies outside: nothing could be inflated, or seen to fall.
    """
    mean = float(np.mean(accuracies_pct))
    if not floor_pct[0] <= mean <= floor_pct[1]:
        raise ValueError(
            f"the clean models answer {mean:.0f} % of GSM-i and GSM-ii, outside {floor_pct[0]:g} "
            f"to {floor_pct[1]:g} %: change n_skill_rows, or set floor_pct to accept it"
        )
    return mean


def accuracy_rows(
    trained: Mapping[str, Mapping[int, Trained]],
    problems: Mapping[str, Problems],
    sets: Mapping[str, Sequence[str]],
    max_new_tokens: int,
    base_model: str,
    wanted: Sequence[Condition],
) -> pd.DataFrame:
    """``dice_accuracy.csv``: every model on sets of problems.

    Args:
        trained: condition to seed to model.
        problems: name to questions and answers.
        sets: condition to the sets it is tested on.
        max_new_tokens: longest completion.
        base_model: name of the base model.
        wanted: the conditions.

    Returns:
        base_model, contamination, copies, dose_pct, fixed, n_steps, seed,
        benchmark, in_distribution, then the columns of ``answers.accuracy_row``
        and paper (LLaMA2-7B in Table 1; empty where it has no such cell).
    """
    printed = published_tables.printed_accuracy()
    rows = []
    for condition in wanted:
        for seed, model in trained[condition.name].items():
            lm = load_causal_lm(model.folder)
            for name in sets[condition.name]:
                row = {"base_model": base_model, "contamination": condition.problems or CLEAN}
                row |= {"condition": condition.name, "copies": condition.copies}
                row |= {"dose_pct": model.mixture.dose_pct, "fixed": condition.fixed}
                row |= {"n_steps": model.n_steps, "seed": seed, "benchmark": name}
                row |= {"in_distribution": name in IN_DISTRIBUTION}
                row |= accuracy_row(lm, problems[name], max_new_tokens)
                training = DOSE_NAMES.get(condition.copies, "").format(condition.problems)
                is_paper = condition.name != OTHER_CLEAN and condition.fixed == ROWS
                row["paper"] = printed.get((training, name)) if is_paper else None
                rows.append(row)
    return pd.DataFrame(rows)


def table_1(accuracy: pd.DataFrame, value: str = "accuracy_pct") -> pd.DataFrame:
    """Mean of a column over models, a row per benchmark and a column for each condition."""
    return accuracy.pivot_table(value, "benchmark", "condition", sort=False).reset_index()


def model_rows(trained: Mapping[str, Mapping[int, Trained]]) -> pd.DataFrame:
    """Every model: condition, seed, copies, dose_pct, n_rows, n_steps, recipe_hash."""
    return pd.DataFrame(
        [
            {"condition": name, "seed": seed, "copies": model.mixture.copies}
            | {"dose_pct": model.mixture.dose_pct, "n_rows": model.mixture.n_rows}
            | {"n_steps": model.n_steps, "recipe_hash": describe(model.folder)["recipe_hash"]}
            for name, models in trained.items()
            for seed, model in models.items()
        ]
    )


def inflation(accuracy: pd.DataFrame) -> pd.DataFrame:
    """What contamination did to the score: accuracy on GSM-i minus that on fresh GSM-ii.

    The mean gap of the clean models is taken off: it is what the two sets
    differ in difficulty.

    Returns:
        condition, seed, accuracy_seen_pct, accuracy_fresh_pct, gap_points;
        the models with both.
    """
    wide = accuracy.pivot_table("accuracy_pct", ["condition", "seed"], "benchmark", sort=False)
    wide = wide.dropna(subset=[SEEN, UNSEEN]).reset_index()
    gap = wide[SEEN] - wide[UNSEEN]
    return pd.DataFrame(
        {
            "condition": wide["condition"],
            "seed": wide["seed"],
            "accuracy_seen_pct": wide[SEEN],
            "accuracy_fresh_pct": wide[UNSEEN],
            "gap_points": gap - gap[wide["condition"] == CLEAN].mean(),
        }
    )


# Layers


def layer_name(place: int, n_layers: int) -> str:
    """How a layer is called: number of the block, and what is special about it.

    >>> [layer_name(place, 6) for place in (0, 4, 5)]
    ['0 (embedding)', '4', '4 (after final norm)']
    """
    if place == 0:
        return "0 (embedding)"
    return f"{place - 1} (after final norm)" if place == n_layers - 1 else str(place)


def layer_rows(pool: Pool, condition: str, contamination: str, dataset: str = SEEN) -> pd.DataFrame:
    """Rows of ``dice_layers.csv``: where contaminated and clean models differ most.

    Args:
        pool: measured models.
        condition: the contaminated models, paired with clean ones by seed.
        contamination: set of problems they are contaminated with.
        dataset: set of problems whose prompts are read.

    Returns:
        model (the condition), dataset, layer, after_norm, distance, n, n_models,
        mean, share_argmax (share of prompts that have their largest distance
        there), null_mean (mean distance of two clean models), located (the
        commonest of these layers), paper_layer.
    """
    pairs = [
        (pool[condition][seed].states[dataset], pool[CLEAN][seed].states[dataset])
        for seed in paired_seeds(pool, condition, CLEAN)
    ]
    nulls = [
        (pool[OTHER_CLEAN][seed].states[dataset], pool[CLEAN][seed].states[dataset])
        for seed in paired_seeds(pool, OTHER_CLEAN, CLEAN)
    ]
    found = _stacked([distances(*pair) for pair in pairs])
    null = _stacked([distances(*pair) for pair in nulls])
    about = {"model": condition, "dataset": dataset, "n_models": 2 * len(pairs)}
    return _layer_table(found, null, about, PAPER_LAYERS.get(contamination))


def layer_rows_all_tokens(
    pair: tuple[CausalLM, CausalLM],
    null: tuple[CausalLM, CausalLM],
    prompts: Sequence[str],
    condition: str,
    dataset: str = SEEN,
) -> pd.DataFrame:
    """As :func:`layer_rows` for one pair, by the released code's norm over all tokens."""
    found, nothing = (
        {
            f"{name}{ALL_TOKENS}": values
            for name, values in distances_all_tokens(*both, prompts).items()
        }
        for both in (pair, null)
    )
    return _layer_table(
        found, nothing, {"model": condition, "dataset": dataset, "n_models": 2}, None
    )


def _stacked(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _layer_table(
    found: Mapping[str, np.ndarray],
    null: Mapping[str, np.ndarray],
    about: Mapping[str, object],
    paper_layer: int | None,
) -> pd.DataFrame:
    rows = []
    for name, values in found.items():
        # The embedding is no layer of equation 1, and the normed states are not comparable.
        blocks = values[:, 1:-1]
        argmax = np.bincount(blocks.argmax(axis=1), minlength=blocks.shape[1])
        for layer in range(values.shape[1]):
            after_norm = layer == values.shape[1] - 1
            is_block = layer > 0 and not after_norm
            rows.append(
                dict(about)
                | {"layer": layer - after_norm, "after_norm": after_norm, "distance": name}
                | {"n": len(values), "mean": float(values[:, layer].mean())}
                | {"share_argmax": argmax[layer - 1] / len(values) if is_block else None}
                | {"null_mean": float(null[name][:, layer].mean())}
                | {"located": bool(is_block and argmax.argmax() == layer - 1)}
                | {"paper_layer": paper_layer}
            )
    return pd.DataFrame(rows).astype({"paper_layer": "Int64", "share_argmax": float})


def located_layer(layers: pd.DataFrame) -> int:
    """The located layer by the paper's rule: Euclidean distance, last token.

    Args:
        layers: ``layer_rows`` of one condition.
    """
    rows = layers[(layers["distance"] == "euclidean") & layers["located"]]
    return int(rows["layer"].iloc[0])


# Table 2 and Figure 5


def auroc_rows(
    pool: Pool, condition: str, contamination: str, layer: int, negative: str = CLEAN
) -> list[dict]:
    """Rows of ``dice_auroc.csv``: DICE and the baselines by the paper's protocol (Table 2).

    Args:
        pool: measured models.
        condition: the contaminated models.
        contamination: the set they are contaminated with.
        layer: place of the layer.
        negative: condition of the clean models.
    """
    printed = published_tables.printed_auroc()
    seeds = paired_seeds(pool, condition, negative)
    rows = []
    for tested_on in IN_DISTRIBUTION:
        for method in (MLP, MEAN_DIFFERENCE):
            found = of_pairs(pool, condition, negative, layer, tested_on, method)
            rows.append(_auroc_row(condition, tested_on, negative, method, layer, found))
        for method in pool[condition][seeds[0]].baselines[tested_on]:
            both = [
                [pool[name][seed].baselines[tested_on][method] for seed in seeds]
                for name in (condition, negative)
            ]
            found = auroc_over_models(*both, 2 * len(seeds))
            rows.append(_auroc_row(condition, tested_on, negative, method, None, found))
    for row in rows:
        row["paper"] = printed.get((contamination, row["tested_on"], row["method"]))
    return rows


def auroc_by_layer(pool: Pool, condition: str, negative: str, tested_on: str) -> list[dict]:
    """Rows of ``dice_auroc.csv``: the paper's protocol at every layer (Figure 5)."""
    n_layers = next(iter(pool[condition].values())).states[tested_on].shape[1]
    return [
        _auroc_row(
            condition,
            tested_on,
            negative,
            f"{MLP}, by layer",
            layer,
            of_pairs(pool, condition, negative, layer, tested_on),
        )
        for layer in range(n_layers - 1)
    ]


def _auroc_row(trained_on, tested_on, negative, method, layer, found) -> dict:
    return {
        "trained_on": trained_on,
        "tested_on": tested_on,
        "negative_model": negative,
        "method": method,
        "layer": layer,
        "n": found.n,
        "n_models": found.n_models,
        "auroc_pct": found.auroc_pct,
        "folded_auroc_pct": found.folded_auroc_pct,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "paper": None,
    }


def lab_controls(pool: Pool, layer: int, topic: str, centred_on: str) -> pd.DataFrame:
    """``controls.control_table`` on the study's conditions, as far as the pool has them."""
    return control_table(
        pool,
        named(SEEN, HIGH),
        layer,
        train_split=named(TRAIN_SPLIT, HIGH),
        format_only=named(FORMAT, HIGH),
        topic=topic,
        centred_on=centred_on,
        doses={copies: named(SEEN, copies) for copies in (LOW, BETWEEN)},
        other_tasks=[named(task, HIGH) for task in (OTHER_TASK, MATH)],
    )


# Figure 6


def flags(pool: Pool, condition: str, layer: int, tested_on: Sequence[str]) -> pd.DataFrame:
    """Mean predicted probability of contamination, for every model and set of problems.

    By the detector that met no model of that seed.

    Returns:
        condition, seed, benchmark, flag (0 to 1).
    """
    detectors = held_out_detectors(pool, condition, layer)
    return pd.DataFrame(
        [
            {"condition": name, "seed": seed, "benchmark": benchmark}
            | {
                "flag": float(
                    probability(detectors[seed](model.states[benchmark][:, layer])).mean()
                )
            }
            for name, models in pool.items()
            if name != BASE
            for seed, model in models.items()
            if seed in detectors
            for benchmark in tested_on
        ]
    )


def correlation_rows(flagged: pd.DataFrame, accuracy: pd.DataFrame) -> list[dict]:
    """Rows of ``dice_correlation.csv`` of the lab: flag against accuracy, and against inflation."""
    merged = flagged.merge(accuracy, on=["condition", "seed", "benchmark"])
    rows = [
        {"source": "lab, accuracy", "benchmark": benchmark, "n_models": len(group)}
        | {"r_squared": published_tables.r_squared(group["accuracy_pct"], group["flag"])}
        for benchmark, group in merged.groupby("benchmark", sort=False)
    ]
    gaps = inflation(accuracy).merge(
        flagged[flagged["benchmark"] == SEEN], on=["condition", "seed"]
    )
    rows.append(
        {"source": "lab, gap GSM-i minus GSM-ii", "benchmark": SEEN, "n_models": len(gaps)}
        | {"r_squared": published_tables.r_squared(gaps["gap_points"], gaps["flag"])}
    )
    return [row | {"paper": None} for row in rows]


# Figures 3 and 7


def question_map(
    problems: Mapping[str, Problems], names: Sequence[str], seed: int, model: str = ""
) -> tuple[np.ndarray, list[str], str]:
    """t-SNE of questions (Figure 3): where sets of problems lie to one another.

    Args:
        problems: name to questions and answers.
        names: sets to show.
        seed: seed of t-SNE.
        model: sentence-transformers model, such as the paper's all-MiniLM-L6-v2;
            without one questions are TF-IDF vectors, which need no download.

    Returns:
        Points, shape (n_questions, 2), the set of each question, and what embedded them.
    """
    questions = [question for name in names for question in problems[name]["question"]]
    labels = [name for name in names for _ in problems[name]["question"]]
    if model:
        from sentence_transformers import SentenceTransformer

        vectors, how = SentenceTransformer(model).encode(questions), model
    else:
        vectors, how = TfidfVectorizer().fit_transform(questions).toarray(), "TF-IDF"
    perplexity = min(30, (len(questions) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="pca", random_state=seed)
    return tsne.fit_transform(np.asarray(vectors, dtype=np.float32)), labels, how


def decoding_rows(
    pair: tuple[CausalLM, CausalLM],
    measured: tuple[Measured, Measured],
    problems: Problems,
    layer: int,
    temperatures: Sequence[float],
    max_new_tokens: int,
) -> pd.DataFrame:
    """AUROC of DICE and of perplexity by sampling temperature (Figure 7a).

    Perplexity reads what the model wrote, DICE the prompt alone: its states do
    not know how the answer is decoded, so its line is flat by construction.

    Args:
        pair: the contaminated and the clean model.
        measured: their states.
        problems: questions asked.
        layer: place of the layer.
        temperatures: of sampling; 0 is greedy.
        max_new_tokens: longest completion.

    Returns:
        method, temperature, auroc_pct.
    """
    detector = pair_detector(*measured, layer)
    states = [detector(model.states[UNSEEN][:, layer]) for model in measured]
    dice = auroc_over_models([states[0]], [states[1]], 2).auroc_pct
    rows = []
    for temperature in temperatures:
        values = []
        for lm in pair:
            written = answer(lm, problems, max_new_tokens, temperature)
            # An empty answer has no token to score: it counts as its end-of-line.
            texts = problems.assign(answer=[text or "\n" for text in written])
            values.append(np.array([perplexity_score(v) for v in answer_log_probs(lm, texts)]))
        found = auroc_over_models([values[0]], [values[1]], 2).auroc_pct
        rows += [(MLP, temperature, dice), ("PPL of the written answer", temperature, found)]
    return pd.DataFrame(rows, columns=["method", "temperature", "auroc_pct"])
