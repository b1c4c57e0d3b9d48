"""What needs log-probabilities: whether they can be read, and Min-k% Prob of passages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit import instrument
from contamination.audit.finding import Finding, Target, scores_of
from contamination.audit.local_models import load_model
from contamination.audit.plan import TEXT, Audit
from contamination.audit.rows import load_with_comparison
from contamination.audit.settings import MODEL, Settings
from contamination.core import blind, statistics
from contamination.core.keys import one_line
from contamination.core.scores import min_k_score
from contamination.min_k.auc_tables import auc_and_blind_rows
from contamination.min_k.detect import detect, detect_served
from contamination.min_k.neighbors import neighbors
from contamination.models.chat import Endpoint, UnsupportedError
from contamination.models.local import CausalLM, load_masked_lm, token_log_probs
from contamination.models.prompt_log_probs import probe, prompt_log_probs

UNCHECKED = "the log-probabilities come from a file and were not checked on known texts"
Scored = np.ndarray | str  # log-probabilities of a text, or why there are none
MOST_UNUSABLE = 10  # rows that an address may refuse before all of them are given up


def log_probs_of(told: Settings, target: Target, texts: Sequence[str]) -> list[Scored]:
    """Log-probabilities of the tokens of every text, of an endpoint or a local model.

    In the place of a text that an address does not score there is its reason, a text.

    Raises:
        UnsupportedError: if that is so for more than ten texts.
        ChatError: as ``models.prompt_log_probs``.
    """
    if isinstance(target.place, Mapping):
        return [target.place[text] for text in texts]
    if not isinstance(target.place, Endpoint):
        return [scored.token_log_probs for scored in token_log_probs(target.place, texts)]
    endpoint, n_unusable = target.place, 0

    def ask(part: Sequence[str]) -> list[Scored]:
        nonlocal n_unusable
        try:
            return [*prompt_log_probs(endpoint, part, target.form, **told.paying(MODEL))]
        except (UnsupportedError, ValueError) as error:
            # One text may stop all others: they are asked in halves until it stands alone.
            if len(part) > 1:
                return [*ask(part[: len(part) // 2]), *ask(part[len(part) // 2 :])]
            n_unusable += 1
            reason = str(getattr(error, "reason", error))
            if n_unusable > MOST_UNUSABLE:
                raise UnsupportedError(
                    f"{n_unusable} texts were not scored, the last one because {reason}"
                ) from error
            return [reason]

    return ask(texts)


def probed(told: Settings, target: Target) -> tuple[Target, str]:
    """A model with the form in which its address gives log-probabilities, and whether it is sound.

    One line says which form it is. The second value says why log-probabilities cannot be read,
    "" where they can (``audit.instrument``). Models of the lab are ours and are not checked.
    """
    if isinstance(target.place, Endpoint):
        form, said = probe(target.place, **told.paying(MODEL))
        print(said)
        if not form:
            return target, said
        target = dataclasses.replace(target, form=form)
    if target.truth or isinstance(target.place, Mapping):
        return target, ""
    try:
        known = log_probs_of(told, target, instrument.check_texts())
    except UnsupportedError as error:
        return target, error.reason
    if reasons := [one for one in known if isinstance(one, str)]:
        return target, reasons[0]
    why = instrument.why_unsound([one for one in known if not isinstance(one, str)])
    return target, f"{target.name}: {why}" * bool(why)


def min_k(audit: Audit, target: Target) -> Finding:
    """Min-k% Prob of the rows of both files.

    With ``all_methods`` the paper's tables are in ``tables`` (:func:`all_scores`).
    """
    k_percent = audit.told.min_k.k_percent
    log_probs = log_probs_of(audit.told, target, audit.passages)
    values = [np.nan if isinstance(one, str) else min_k_score(one, k_percent) for one in log_probs]
    statistic = f"AUC, k = {k_percent:.0f} %"
    if audit.told.min_k.form != TEXT:
        statistic += ", with column names and label"
    scores = scores_of(audit.sets, values)
    tables = all_scores(audit, target) if audit.told.min_k.all_methods else {}
    notes = [_left_out(scores, log_probs), UNCHECKED * isinstance(target.place, Mapping)]
    return Finding(statistic, scores, note="; ".join(filter(None, notes)), tables=tables)


def _left_out(scores: pd.DataFrame, log_probs: Sequence[Scored]) -> str:
    """Which rows were not scored, and why the first of them was not; "" if all were."""
    missing = scores[scores["score"].isna()]
    if missing.empty:
        return ""
    kinds = missing["is_unseen"].map({False: "row ", True: "comparison row "})
    named = ", ".join(kinds + missing["index"].astype(str))
    why = one_line(str(log_probs[missing.index[0]]), 200)
    return f"{len(missing)} of {len(scores)} rows were left out ({named}): {why}"


def all_scores(audit: Audit, target: Target) -> dict[str, pd.DataFrame]:
    """The paper's scores of the dataset's rows against comparison rows, split by split.

    Returns:
        audit_min_k: AUC of every method on every split, columns of ``min_k_auc.csv`` with bos;
        audit_min_k_words: the classifiers of the words alone. The tests of both are a family.
    """
    told, n_resamples = audit.told.min_k, audit.told.n_resamples
    n_words = 2 * told.n_neighbors  # tried; some have no other word
    reference = load_model(audit.told.model, told.reference_model) if told.reference_model else None
    masked = load_masked_lm(told.neighbor_model) if told.neighbor_model else None
    about: dict[str, Any] = {"model": target.name, "setting": "own", "n_resamples": n_resamples}
    about["n_parameters"] = None
    if isinstance(target.place, CausalLM):
        about["n_parameters"] = target.place.n_parameters
    about["reference_model"] = reference.identity["model"] if reference else ""
    about["n_permutations"] = max(2, n_resamples // 100)
    auc_parts, word_parts = [], []
    for name, texts, is_member in _of_splits(audit):
        around = None
        if masked:
            around = neighbors(texts, masked, n_neighbors=told.n_neighbors, n_words=n_words)
        same: dict[str, Any] = {"neighbors": around, "k_percents": [told.k_percent]}
        if isinstance(target.place, CausalLM):
            scored = detect(texts, target.place, reference=reference, **same)
        else:
            served: dict[str, Any] = audit.told.paying(MODEL) | {"form": target.form}
            scored = detect_served(texts, target.place, **same, **served)
        of_split = {0: scored}, {0: texts}, {0: is_member}
        rows, of_words = auc_and_blind_rows(*of_split, benchmark=name, **about)
        auc_parts.append(rows.assign(bos=target.begins))
        word_parts.append(of_words)
    parts = pd.concat(auc_parts, ignore_index=True), pd.concat(word_parts, ignore_index=True)
    aucs, of_words = statistics.with_p_adjusted(*parts)
    return {"audit_min_k": aucs, "audit_min_k_words": blind.with_holds(of_words)}


def _of_splits(audit: Audit) -> Iterator[tuple[str, list[str], np.ndarray]]:
    """Name, passages of either kind and whether each is of the dataset, for every split."""
    data, n = audit.told.data, audit.told.n_passages
    path = Path(data.dataset)  # tables hold no path of the machine
    name = path.name if path.is_absolute() else data.dataset
    for split in data.splits or [data.split]:
        sets: Sequence[Any] = audit.sets
        if split != data.first_split:
            of_split = data.model_copy(update={"split": split, "splits": []})
            both = load_with_comparison(of_split, audit.told.comparison, n, audit.told.seed)
            sets = [rows for rows in both if rows is not None]
        texts = [text for rows in sets for text in audit.scored_texts(rows.head(n))]
        is_member = np.arange(len(texts)) < len(sets[0].head(n).rows)
        yield f"{name} {split}".strip(), texts, is_member
