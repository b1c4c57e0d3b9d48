"""Section 6 of Shi et al., arXiv:2310.16789, on a model of one's own: training and tables.

Weights are kept in fp32 whatever the arithmetic. Of each training its scores are
kept, under everything that decides them, and no weights: a study that was
stopped goes on with what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch

from contamination import storage
from contamination.cases import downstream
from contamination.cases.downstream_own import ONCE, POISSON, RATE, SIMILAR, OwnStudy, Run, Study
from contamination.lab.packing import training_stream
from contamination.lab.recipes import environment
from contamination.lab.training import fit, has_native_bfloat16
from contamination.min_k.detect import detect
from contamination.models.causal import CausalLM, load_causal_lm

STUDY_SCHEMA = 1  # raise it when the training below changes what it makes


def study_rows(study: Study, k_percent: float, n_resamples: int) -> pd.DataFrame | None:
    """Every training of a study, and its tables one below the other; None on a dry run.

    Args:
        study: as :func:`own_study` returned it.
        k_percent: share of tokens of Min-k% Prob.
        n_resamples: bootstrap resamples of examples and models.

    Returns:
        Columns ``downstream.COLUMNS``: "no model" (the words), "before
        insertion", "inserted once", "Poisson occurrence", "learning rate" (with
        the accuracy of the task where the examples have answers), "outliers"
        and "like the corpus" by size. A difference is that to the model before
        insertion, of rates to the lower one, of sizes to the smallest corpus.

    Raises:
        ValueError: if bfloat16 is not native here, or the model changes its logits.
    """
    mine, examples = study.mine, study.examples
    if mine.dry_run:
        return None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if mine.target_dtype == "bfloat16" and not has_native_bfloat16(device):
        raise ValueError("bfloat16 is not native on this processor: use target_dtype float32")
    how, seeds = {"n_resamples": n_resamples}, mine.own_seeds
    base = _load(mine)
    before = _measured(base, examples, k_percent)
    similar_before = None if study.similar is None else _measured(base, study.similar, k_percent)
    identity = base.identity
    del base
    found: dict[tuple, dict[int, dict]] = {}
    for run in study.runs:
        of_run = study.similar if run.setting == SIMILAR else examples
        key = run.setting, run.recipe.n_background_tokens
        measured = _trained(mine, run, of_run, identity, k_percent)
        found.setdefault(key, {})[run.recipe.order_seed] = measured | {"facts": run.facts}
    words = downstream.blind_rows(examples, **how)
    first = dict.fromkeys(seeds, before["scores"])
    labels = {"setting": "before insertion", "n_tokens": 0}
    unread = downstream.auc_rows({seeds[0]: before["scores"]}, examples, **labels, **how)
    parts, low = [words, downstream.with_blind(unread, words)], None
    smallest: dict[str, dict[int, pd.DataFrame]] = {}
    for (name, _), of_seeds in found.items():
        scored = {seed: one["scores"] for seed, one in of_seeds.items()}
        labels = {"setting": name, **of_seeds[seeds[0]]["facts"], **how}
        if name == POISSON:
            occurrence = study.occurrence
            rows = downstream.occurrence_rows(scored, examples, occurrence, first=first, **labels)
        elif name == RATE:
            low = of_seeds
            continue
        elif name == SIMILAR:
            against = smallest.get(name, dict.fromkeys(seeds, similar_before["scores"]))
            rows = downstream.auc_rows(scored, study.similar, first=against, **labels)
            rows = downstream.with_blind(rows, downstream.blind_rows(study.similar, **how))
            smallest.setdefault(name, scored)
        else:
            against = first if name == ONCE else smallest.get(name)
            rows = downstream.auc_rows(scored, examples, first=against, occurrence=1, **labels)
            rows = downstream.with_blind(rows, words)
            smallest.setdefault(name, scored)
        parts.append(rows)
    high = next(of_seeds for (name, _), of_seeds in found.items() if name == ONCE)
    return pd.concat([*parts, *_rate_rows(low, high, examples, words, how)], ignore_index=True)


def _rate_rows(
    low: dict, high: dict, examples: pd.DataFrame, words: pd.DataFrame, how: dict
) -> Iterator[pd.DataFrame]:
    """Tables 4 and 8: the same corpus at two rates, the lower one first."""
    first = None
    for of_seeds in (low, high):
        scored = {seed: one["scores"] for seed, one in of_seeds.items()}
        labels = {"setting": RATE, "occurrence": 1, **next(iter(of_seeds.values()))["facts"]}
        rows = downstream.auc_rows(scored, examples, first=first, **labels, **how)
        right = {seed: one["right"] for seed, one in of_seeds.items()}
        if all(found is not None for found in right.values()):
            rows = downstream.with_accuracy(rows, right, examples, **how)
        first = scored
        yield downstream.with_blind(rows, words)


def _load(mine: OwnStudy) -> CausalLM:
    """The base in fp32: small steps on bf16 weights would be rounded away."""
    revision = mine.own_revision or None
    lm = load_causal_lm(mine.own_base, revision, safetensors_only=mine.safetensors_only)
    states = torch.ones(1, lm.model.config.get_text_config().hidden_size, device=lm.device)
    with torch.inference_mode():
        if not torch.equal(lm.logits(states), lm.model.get_output_embeddings()(states)):
            raise ValueError(f'"{mine.own_base}" changes its logits behind the head: not covered')
    return lm


def _measured(lm: CausalLM, examples: pd.DataFrame, k_percent: float) -> dict:
    """Scores of the examples, and which are answered rightly where they have answers."""
    scored = detect(examples["text"].tolist(), lm, k_percents=[k_percent], cache=False)
    right = downstream.answers_right(lm, examples) if "options" in examples else None
    return {"scores": scored[["passage", "method", "score"]], "right": right}


def _trained(
    mine: OwnStudy, run: Run, examples: pd.DataFrame, identity: dict, k_percent: float
) -> dict:
    """What the model of one run makes of the examples, from the cache where it is there."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    what = {"recipe": run.recipe.as_values(), "base": identity, "k_percent": k_percent}
    what |= {"examples": examples["text"].tolist(), "study_schema": STUDY_SCHEMA}
    name = storage.hash_of({**what, **environment(device)})[:24]
    path = storage.cache_folder("downstream", "scores") / f"{name}.json"
    hit = path.exists()
    storage.record("cache", name="trainings with insertions", hits=int(hit), misses=int(not hit))
    if not hit:
        lm = _load(mine)
        torch.manual_seed(run.recipe.order_seed)
        fit(lm.model, training_stream(run.recipe, run.texts).batches, run.recipe)
        # What is stored of its answers must not be taken for the base's.
        lm = CausalLM(lm.model.eval(), lm.tokenizer, identity | {"revision": name})
        measured = _measured(lm, examples, k_percent)
        right = None if measured["right"] is None else measured["right"].tolist()
        columns = measured["scores"].to_dict("list")
        storage.write_json(path, {"scores": columns, "right": right})
    stored = json.loads(path.read_text(encoding="utf-8"))
    right = None if stored["right"] is None else np.array(stored["right"], dtype=bool)
    return {"scores": pd.DataFrame(stored["scores"]), "right": right}
