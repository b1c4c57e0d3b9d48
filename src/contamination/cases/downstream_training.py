"""Section 6 of Shi et al., arXiv:2310.16789, on a model of one's own: training and tables.

Weights are kept in fp32 whatever the arithmetic. Of each training its scores are
kept, under everything that decides them, and no weights: a study that was
stopped goes on with what is missing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import torch

from contamination.cases import downstream, downstream_own
from contamination.cases.downstream_own import ONCE, OUTLIERS, POISSON, RATE, SIMILAR
from contamination.core import statistics, storage
from contamination.lab.training import environment, fit, has_native_bfloat16, training_stream
from contamination.min_k.detect import detect
from contamination.min_k.neighbors import neighbors
from contamination.models.loading import default_device
from contamination.models.local import CausalLM, load_causal_lm, load_masked_lm

STUDY_SCHEMA = 1  # raise it when the training below changes what it makes


def study_rows(
    study: downstream_own.Study, k_percent: float, n_neighbors: int, n_resamples: int
) -> pd.DataFrame | None:
    """Every training of a study, and its tables one below the other; None on a dry run.

    ``k_percent`` is of Min-k% Prob, ``n_neighbors`` of Neighbor where the settings name a
    ``neighbor_model``; examples and models are resampled ``n_resamples`` times.

    Returns:
        Columns ``downstream.COLUMNS`` with p_adjusted (Holm over all), by setting: "no model"
        (the words), "before insertion", "inserted once", "Poisson occurrence", "learning
        rate" (with the accuracy of the task where the examples have answers), "outliers"
        and "like the corpus" by size. A difference is that to the model before
        insertion, of rates to the lower one, of sizes to the smallest corpus.

    Raises:
        ValueError: if bfloat16 is not native here, or the model changes its logits.
    """
    settings, examples = study.settings, study.examples
    if settings.dry_run:
        return None
    device = default_device()
    if settings.model.dtype == "bfloat16" and not has_native_bfloat16(device):
        raise ValueError("bfloat16 is not native on this processor: use dtype float32")
    base, seeds = _load(settings), settings.own_seeds
    pools = {"examples": examples, SIMILAR: study.similar}
    if settings.neighbor_model:
        masked = load_masked_lm(settings.neighbor_model)
        sizes: dict[str, Any] = {"n_neighbors": n_neighbors, "n_words": 2 * n_neighbors}
        for name, pool in pools.items():
            if pool is not None:
                around = neighbors(pool["text"].tolist(), masked, **sizes)
                pools[name] = pool.assign(neighbors=around)
        del masked
    unread = {
        name: dict.fromkeys(seeds, _measured(base, pool, k_percent)["scores"])
        for name, pool in pools.items()
        if pool is not None
    }
    identity = base.identity
    del base  # its memory is needed for the trainings
    # Setting to its corpora by size, smallest first: seed to what the model makes of the examples.
    trained: dict[str, dict[int, dict[int, dict]]] = defaultdict(lambda: defaultdict(dict))
    for run in study.runs:
        pool = pools.get(run.setting, pools["examples"])
        measured = _trained(settings, run, pool, identity, k_percent) | {"facts": run.facts}
        trained[run.setting][run.recipe.n_background_tokens][run.recipe.order_seed] = measured

    words = downstream.blind_rows(examples, n_resamples=n_resamples)

    def beside_words(
        setting: str,
        of_seeds: dict[int, dict],
        pool: pd.DataFrame = examples,
        pool_words: pd.DataFrame = words,
        **labels: Any,
    ) -> pd.DataFrame:
        labels |= _labels(of_seeds, setting, n_resamples)
        rows = downstream.auc_rows(_scores(of_seeds), pool, **labels)
        return downstream.with_blind(rows, pool_words)

    before = {seeds[0]: unread["examples"][seeds[0]]}
    labels: dict[str, Any] = {"setting": downstream.BEFORE, "n_tokens": 0}
    base_rows = downstream.auc_rows(before, examples, n_resamples=n_resamples, **labels)
    (once,), (lower,) = trained[ONCE].values(), trained[RATE].values()
    parts = [words, downstream.with_blind(base_rows, words)]
    parts.append(beside_words(ONCE, once, first=unread["examples"], occurrence=1))
    for poisson in trained.get(POISSON, {}).values():
        labels = _labels(poisson, POISSON, n_resamples) | {"first": unread["examples"]}
        rows = downstream.occurrence_rows(_scores(poisson), examples, study.occurrence, **labels)
        parts.append(rows)
    first = None
    for of_size in trained[OUTLIERS].values():
        parts.append(beside_words(OUTLIERS, of_size, first=first, occurrence=1))
        first = first or _scores(of_size)
    first = None
    for of_size in trained.get(SIMILAR, {}).values():
        of_pool = study.similar, downstream.blind_rows(study.similar, n_resamples=n_resamples)
        parts.append(beside_words(SIMILAR, of_size, *of_pool, first=first or unread[SIMILAR]))
        first = first or _scores(of_size)
    for of_rate, against in ((lower, None), (once, _scores(lower))):
        rows = beside_words(RATE, of_rate, first=against, occurrence=1)
        right = {seed: one["right"] for seed, one in of_rate.items()}
        if all(answers is not None for answers in right.values()):
            rows = downstream.with_accuracy(rows, right, examples, n_resamples=n_resamples)
        parts.append(rows)
    (rows,) = statistics.with_p_adjusted(pd.concat(parts, ignore_index=True))
    return rows


def _scores(of_seeds: dict[int, dict]) -> dict[int, pd.DataFrame]:
    return {seed: measured["scores"] for seed, measured in of_seeds.items()}


def _labels(of_seeds: dict[int, dict], setting: str, n_resamples: int) -> dict:
    facts = next(iter(of_seeds.values()))["facts"]
    return {"setting": setting, "n_resamples": n_resamples, **facts}


def _load(settings: downstream_own.OwnStudy) -> CausalLM:
    """The base in fp32: small steps on bf16 weights would be rounded away."""
    base, is_safe = settings.model.first, settings.model.safetensors_only
    lm = load_causal_lm(base, settings.model.revision_of(base), safetensors_only=is_safe)
    states = torch.ones(1, lm.model.config.get_text_config().hidden_size, device=lm.device)
    with torch.inference_mode():
        if not torch.equal(lm.logits(states), lm.model.get_output_embeddings()(states)):
            raise ValueError(f'"{base}" changes its logits behind the head: not covered')
    return lm


def _measured(lm: CausalLM, examples: pd.DataFrame, k_percent: float) -> dict:
    """Scores of the examples, and which are answered rightly where they have answers."""
    around = examples["neighbors"].tolist() if "neighbors" in examples else None
    how: dict[str, Any] = {"k_percents": [k_percent], "cache": False}
    scored = detect(examples["text"].tolist(), lm, neighbors=around, **how)
    right = downstream.answers_right(lm, examples) if "options" in examples else None
    return {"scores": scored[["passage", "method", "score"]], "right": right}


def _trained(
    settings: downstream_own.OwnStudy,
    run: downstream_own.Run,
    examples: pd.DataFrame,
    identity: dict,
    k_percent: float,
) -> dict:
    """What the model of one run makes of the examples, from the cache where it is there."""
    device = default_device()
    what = {"recipe": run.recipe.as_values(), "base": identity, "k_percent": k_percent}
    what |= {"examples": examples["text"].tolist(), "study_schema": STUDY_SCHEMA}
    if "neighbors" in examples:
        what["neighbors"] = examples["neighbors"].tolist()
    name = storage.hash_of({**what, **environment(device)})[:24]
    path = storage.cache_folder("downstream", "scores") / f"{name}.json"

    def make() -> None:
        lm = _load(settings)
        torch.manual_seed(run.recipe.order_seed)
        fit(lm.model, training_stream(run.recipe, run.texts).batches, run.recipe)
        # What is stored of its answers must not be taken for the base's.
        lm = CausalLM(lm.model.eval(), lm.tokenizer, identity | {"revision": name})
        measured = _measured(lm, examples, k_percent)
        right = None if measured["right"] is None else measured["right"].tolist()
        columns = measured["scores"].to_dict("list")
        storage.seal(storage.write_json(path, {"scores": columns, "right": right}))

    storage.cached("trainings with insertions", path, make)
    stored = json.loads(path.read_text(encoding="utf-8"))
    right = None if stored["right"] is None else np.array(stored["right"], dtype=bool)
    return {"scores": pd.DataFrame(stored["scores"]), "right": right}
