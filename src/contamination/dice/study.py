"""The tables and figures of a DICE study, read off one pool of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE

from contamination.dice import published_tables
from contamination.dice.accuracy import inflation
from contamination.dice.answers import BASELINES, answer, baseline_scores
from contamination.dice.detector import MEAN_DIFFERENCE, MLP, auroc_over_models, probability
from contamination.dice.experiments import held_out_detectors, of_pairs, pair_detector
from contamination.dice.locate import ALL_TOKENS, distances, distances_all_tokens
from contamination.dice.mixtures import IN_DISTRIBUTION, MATH, SEEN, Problems
from contamination.dice.pool import (
    BASE,
    CLEAN,
    CONTAMINATED,
    OTHER_CLEAN,
    Pool,
    paired_seeds,
)
from contamination.models.causal import CausalLM

TOP_K = 50  # of the paper's sampling
PAPER_LAYERS = {SEEN: 29, MATH: 30}  # Figure 4, LLaMA2-7B contaminated with this

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
        condition: the contaminated models, or clean ones scored in the same
            way; on the sets of problems that they were measured on.
        contamination: the set they are contaminated with, "" for none.
        layer: place of the layer.
        negative: condition of the clean models.
    """
    printed = published_tables.printed_auroc()
    seeds = paired_seeds(pool, condition, negative)
    first = pool[condition][seeds[0]]
    rows = []
    for tested_on in [name for name in IN_DISTRIBUTION if name in first.states]:
        for method in (MLP, MEAN_DIFFERENCE):
            found = of_pairs(pool, condition, negative, layer, tested_on, method)
            tested = tested_on, (condition, negative)
            rows.append(_auroc_row(condition, *tested, method, layer, found))
        for method in first.baselines.get(tested_on, ()):
            both = [
                [pool[name][seed].baselines[tested_on][method] for seed in seeds]
                for name in (condition, negative)
            ]
            found = auroc_over_models(*both, 2 * len(seeds))
            rows.append(_auroc_row(condition, *tested, method, None, found))
    for row in rows:
        row["paper"] = printed.get((contamination, row["tested_on"], row["method"]))
    return rows


def auroc_by_layer(
    pool: Pool, condition: str, tested: tuple[str, str], tested_on: str, learnt_from: str = SEEN
) -> list[dict]:
    """Rows of ``dice_auroc.csv`` at every layer (Figure 5).

    Args:
        pool: measured models.
        condition: models that detectors are trained to tell from clean ones.
        tested: conditions that are told apart, the contaminated one first.
        tested_on: set of problems asked.
        learnt_from: set of problems that detectors are trained on, see
            ``experiments.of_pairs``.
    """
    n_layers = next(iter(pool[condition].values())).states[tested_on].shape[1]
    own = None if tested == (condition, CLEAN) else tested
    rows = []
    for layer in range(n_layers - 1):
        how = {"learnt_from": learnt_from, "tested": own}
        found = of_pairs(pool, condition, CLEAN, layer, tested_on, **how)
        rows.append(_auroc_row(condition, tested_on, tested, f"{MLP}, by layer", layer, found))
    return rows


def _auroc_row(trained_on, tested_on, tested, method, layer, found) -> dict:
    return {
        "trained_on": trained_on,
        "tested_on": tested_on,
        "positive_model": tested[0],
        "negative_model": tested[1],
        "method": method,
        "layer": layer,
        "n": found.n,
        "n_models": found.n_models,
        "auroc_pct": found.auroc_pct,
        "folded_auroc_pct": found.folded_auroc_pct,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "resampled": found.resampled,
        "paper": None,
    }


# Figure 6


def flags(pool: Pool, layer: int) -> pd.DataFrame:
    """Mean predicted probability of contamination, for every model and set of problems it read.

    By the detector that met no model of that seed.

    Returns:
        condition, seed, benchmark, flag (0 to 1).
    """
    detectors = held_out_detectors(pool, CONTAMINATED, layer)
    return pd.DataFrame(
        [
            {"condition": name, "seed": seed, "benchmark": benchmark}
            | {"flag": float(probability(detectors[seed](states[:, layer])).mean())}
            for name, models in pool.items()
            if name != BASE
            for seed, model in models.items()
            if seed in detectors
            for benchmark, states in model.states.items()
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
    lms: Mapping[str, CausalLM],
    pool: Pool,
    problems: Mapping[str, Problems],
    layer: int,
    temperatures: Sequence[float],
    top_ks: Sequence[int],
    max_new_tokens: int,
) -> pd.DataFrame:
    """AUROC of DICE and of the baselines by how answers are sampled (Figure 7), on GSM-i.

    The baselines read what the model wrote, DICE the prompt alone: its states do
    not know how the answer is decoded, so its line is flat by construction. The
    detector is the one of the first contaminated and the first clean model.

    Args:
        lms: condition to its first model; each is told from the base model, which is
            among them.
        pool: their states, and those of the detector's models.
        problems: name to questions; GSM-i is asked.
        layer: place of the layer.
        temperatures: of sampling from the ``TOP_K`` likeliest tokens; 0 is greedy.
        top_ks: numbers of likeliest tokens sampled from at temperature 1.
        max_new_tokens: longest completion.

    Returns:
        model (the condition), setting ("temperature" or "top-k"), value, method, auroc_pct.
    """
    detector = pair_detector(pool[CONTAMINATED][0], pool[CLEAN][0], layer)
    flags = {name: detector(pool[name][0].states[SEEN][:, layer]) for name in lms}
    settings = [("temperature", value, value, TOP_K) for value in temperatures]
    settings += [("top-k", value, 1.0, value) for value in top_ks]
    rows = []
    for setting, value, temperature, top_k in settings:
        how = {"temperature": temperature, "top_k": top_k}
        scored = {
            name: _of_written(lm, problems[SEEN], max_new_tokens, **how) for name, lm in lms.items()
        }
        for name in lms:
            if name == BASE:
                continue
            values = {MLP: (flags[name], flags[BASE])}
            values |= {
                m: (scored[name][m].to_numpy(), scored[BASE][m].to_numpy()) for m in BASELINES
            }
            for method, (above, below) in values.items():
                auroc = auroc_over_models([above], [below], 2).auroc_pct
                rows.append((name, setting, value, method, auroc))
    return pd.DataFrame(rows, columns=["model", "setting", "value", "method", "auroc_pct"])


def _of_written(
    lm: CausalLM, problems: Problems, max_new_tokens: int, temperature: float, top_k: int
) -> pd.DataFrame:
    """Baseline scores of what a model answers, one row per problem."""
    written = answer(lm, problems, max_new_tokens, temperature, top_k)
    # An empty answer has no token to score: it counts as its end-of-line.
    return baseline_scores(lm, problems.assign(answer=[text or "\n" for text in written]))
