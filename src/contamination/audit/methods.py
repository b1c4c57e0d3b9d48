"""The methods of an audit, each beside its controls.

A method's verdict compares the lower end of its 95 % interval with chance and
with the upper end of its strongest control (``evidence.panel.verdict``); that of
a quiz asks for gaps above 0 (``audit.gaps``). Where comparison rows are given,
rows that the model cannot have seen, they are a control of every method: the
same model is asked the same about them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pandas as pd

from contamination import statistics
from contamination.audit.plan import (
    DICE,
    MIN_K,
    NO_COMPARISON,
    REPLICATION,
    Audit,
    head_of,
    replication_prompts,
)
from contamination.dice.own import OwnModels
from contamination.dice.own import own_rows as dice_rows
from contamination.evidence.panel import CANNOT_TELL, RECOGNISED, Evidence, verdict
from contamination.judging import INEXACT, NEAR_EXACT_FROM, ask_judge
from contamination.min_k.blind import BAG_OF_WORDS, TF_IDF, blind_table, n_folds
from contamination.models.causal import CausalLM, token_log_probs
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint, prompt_log_probs
from contamination.overlap import is_latin, words
from contamination.replication.completions import (
    MAX_TOKENS,
    by_chat,
    by_local_model,
    chat_requests,
    with_completions,
)
from contamination.replication.decisions import with_scores
from contamination.replication.instructions import GENERAL, GUIDED
from contamination.replication.prompts import JUDGE_PROMPT
from contamination.scores import K_PERCENT, min_k_score

UNSEEN, CLEAN_LM = "unseen rows", "clean model of the lab"
N_PERMUTATIONS = 0  # the blind baselines stand as an AUC with its interval


@dataclass(frozen=True)
class Target:
    """A model that is audited.

    Attributes:
        name: in tables.
        place: an endpoint, or a local model; None where it is not asked.
        truth: what it is known to have read; "" where unknown.
        source: folder or hub id of a local model.
    """

    name: str
    place: Endpoint | CausalLM | None
    truth: str = ""
    source: str = ""


@dataclass(frozen=True)
class Finding:
    """What one method gave for one model.

    Attributes:
        evidence: its row of the panel.
        controls: rows of control, n, value, ci_low, ci_high, decides.
        counts: n_valid, n_refused, n_error.
        details: what is behind it, row by row; may be empty.
        bos: what texts of a local model begin with, "first" or "none"; "" for others.
    """

    evidence: Evidence
    controls: tuple[dict, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    details: pd.DataFrame = field(default_factory=pd.DataFrame)
    bos: str = ""


def control_row(name: str, n: int, value: float, low: float, high: float, decides: bool) -> dict:
    return {"control": name, "n": n, "value": value, "ci_low": low, "ci_high": high} | {
        "decides": decides
    }


def share_row(name: str, hits: Sequence[float], decides: bool) -> dict:
    n = len(hits)
    low, high = statistics.share_interval(round(sum(hits)), n)
    return control_row(name, n, float(np.mean(hits)) if n else math.nan, low, high, decides)


def judged(
    audit: Audit,
    target: Target,
    method: str,
    statistic: str,
    value: tuple[float, float, float],
    n: int,
    chance: float,
    controls: Sequence[dict],
    note: str = "",
) -> Evidence:
    """The row of the panel; the strongest control is that with the highest upper end."""
    deciding = [row for row in controls if row["decides"] and not math.isnan(row["ci_high"])]
    strongest = max(deciding, key=lambda row: row["ci_high"], default=None)
    upper = strongest["ci_high"] if strongest else math.nan
    name = f"{strongest['control']}, at most {upper:.2f}" if strongest else "none"
    return Evidence(
        model=target.name,
        dataset=" ".join(audit.names),
        truth=target.truth,
        method=method,
        statistic=statistic,
        value=value[0],
        ci_low=value[1],
        ci_high=value[2],
        n=n,
        control=name,
        control_value=strongest["value"] if strongest else math.nan,
        verdict=verdict(value[0], value[1], chance, upper),
        note=note,
    )


def status_counts(status: pd.Series) -> dict[str, int]:
    return {
        "n_valid": int(status.eq(OK).sum()),
        "n_refused": int(status.eq(REFUSED).sum()),
        "n_error": int(status.eq(ERROR).sum()),
    }


def unusable(status: pd.Series) -> str:
    n = int(status.ne(OK).sum())
    if not n:
        return ""
    kinds = ", ".join(
        f"{kind} {count}" for kind, count in status[status.ne(OK)].value_counts().items()
    )
    return f"{n} of {len(status)} answers unusable ({kinds})"


# The methods


def replication(audit: Audit, target: Target) -> Finding:
    """Completions judged, guided on the dataset beside the other instructions and unseen rows."""
    prompts = replication_prompts(audit, head_of(audit, audit.rows)).assign(rows="dataset")
    if audit.unseen is not None:
        others = replication_prompts(audit, head_of(audit, audit.unseen), (GUIDED,))
        prompts = pd.concat([prompts, others.assign(rows=UNSEEN)], ignore_index=True)
    completed = with_completions(prompts, _written(audit, target, prompts))
    scored = with_scores(completed, NEAR_EXACT_FROM)
    scored["verdict"] = scored["rule"]
    if audit.asked.judge:
        judgements = ask_judge(
            audit.asked.judge,
            scored["second_piece"].tolist(),
            scored["completion"].tolist(),
            JUDGE_PROMPT,
            audit.asked.limit_option,
            **audit.asked.settings(audit.asked.prices[2]),
        )
        said = pd.Series([judgement.verdict for judgement in judgements], scored.index)
        scored["verdict"] = said.where(scored["rule"].notna(), None)
    of_data = scored[scored["rows"] == "dataset"]
    shares = {
        name: share_row(name, _hits(part), audit.unseen is None and name != GUIDED)
        for name, part in of_data.groupby("instruction", sort=False)
    }
    guided = shares.pop(GUIDED)
    found = list(shares.values())
    if audit.unseen is not None:
        found.append(share_row(UNSEEN, _hits(scored[scored["rows"] == UNSEEN]), True))
    by = "ICL judge" if audit.asked.judge else "rule judge"
    notes = [unusable(of_data.loc[of_data["instruction"] == GUIDED, "status"])]
    if audit.unseen is not None and shares[GENERAL]["value"] >= guided["value"] > 0:
        notes.append("as many without the names, so the names are not what it takes")
    value = guided["value"], guided["ci_low"], guided["ci_high"]
    # What no memory gives is not known beforehand; unseen rows show it.
    chance = found[-1]["value"] if audit.unseen is not None else 0.0
    row = judged(
        audit,
        target,
        REPLICATION,
        f"matches by the {by}",
        value,
        guided["n"],
        chance,
        found,
        "; ".join(filter(None, notes)),
    )
    return Finding(row, tuple(found), status_counts(scored["status"]), scored)


def _hits(part: pd.DataFrame) -> list[float]:
    verdicts = part["verdict"].dropna()
    return verdicts.ne(INEXACT).astype(float).tolist()


def _written(audit: Audit, target: Target, prompts: pd.DataFrame) -> pd.DataFrame:
    if isinstance(target.place, Endpoint):
        requests = chat_requests(prompts["prompt"].tolist(), MAX_TOKENS, audit.asked.limit_option)
        return by_chat(target.place, requests, **audit.asked.settings(audit.asked.prices[0]))
    lm = target.place
    # No longer than the longest second piece: what follows is not compared.
    longest = max(len(ids) for ids in lm.tokenizer(prompts["second_piece"].tolist()).input_ids)
    n_tokens = min(MAX_TOKENS, longest + 8)
    if lm.tokenizer.chat_template:
        asked = [
            lm.tokenizer.apply_chat_template(
                [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
            )
            for text in prompts["prompt"]
        ]
        return by_local_model(lm, asked, n_tokens, "instruct")
    return by_local_model(lm, prompts["continued"].tolist(), n_tokens)


def log_probs_of(
    audit: Audit, place: Endpoint | CausalLM, texts: Sequence[str]
) -> list[np.ndarray]:
    if isinstance(place, Endpoint):
        settings = audit.asked.settings(audit.asked.prices[0])
        return [found.token_log_probs for found in prompt_log_probs(place, texts, **settings)]
    return [found.token_log_probs for found in token_log_probs(place, texts)]


def min_k(audit: Audit, target: Target, clean_lm: CausalLM | None, n_resamples: int) -> Finding:
    """Min-k% Prob of the dataset's rows against unseen ones, beside classifiers without a model."""
    if audit.unseen is None:
        row = judged(audit, target, MIN_K, "AUC", (math.nan,) * 3, 0, 0.5, (), NO_COMPARISON)
        return Finding(row)
    texts = [*audit.rows.passages, *audit.unseen.passages]
    is_data = np.arange(len(texts)) < len(audit.rows.rows)
    found = [
        control_row(f"{row.baseline}, no model", len(texts), row.auc, row.ci_low, row.ci_high, True)
        for row in blind_table(
            [_for_counting(text) for text in texts],
            is_data,
            baselines=[BAG_OF_WORDS, TF_IDF],
            n_folds=n_folds(is_data),
            n_permutations=N_PERMUTATIONS,
            n_resamples=n_resamples,
        ).itertuples()
    ]
    if clean_lm is not None:
        found.append(
            control_row(
                CLEAN_LM, len(texts), *_auc(audit, clean_lm, texts, is_data, n_resamples)[0], True
            )
        )
    value, scores = _auc(audit, target.place, texts, is_data, n_resamples)
    row = judged(audit, target, MIN_K, f"AUC, k = {K_PERCENT:.0f} %", value, len(texts), 0.5, found)
    details = pd.DataFrame({"text": texts, "is_unseen": ~is_data, "score": scores})
    return Finding(row, tuple(found), {}, details)


def _for_counting(text: str) -> str:
    """A text as the word counts of the blind classifiers need it: pairs of unspaced characters."""
    if is_latin(text):
        return text
    units = words(text)
    return " ".join([*units, *("".join(pair) for pair in pairwise(units))])


def _auc(
    audit: Audit, place: Endpoint | CausalLM, texts: Sequence[str], is_data: np.ndarray, n: int
) -> tuple[tuple[float, float, float], np.ndarray]:
    scored = log_probs_of(audit, place, texts)
    scores = np.array([min_k_score(values, K_PERCENT) for values in scored])
    return (statistics.auc(scores, is_data), *statistics.auc_interval(scores, is_data, n)), scores


def dice(audit: Audit, target: Target, references: Sequence[str]) -> Finding:
    """DICE against clean references, beside the references against one another.

    Beyond them it says that a model differs from its references, not why: training
    on other rows of the same kind does as well (notebook 05). So it never
    gives more than "cannot tell".
    """
    rows = head_of(audit, audit.rows)
    answers = rows.rows[rows.label_column] if rows.label_column else ""
    problems = pd.DataFrame({"question": rows.passages}).assign(answer=answers)
    models = OwnModels(
        target_model=target.source,
        reference_models=list(map(str, references)),
        target_dtype=audit.model.dtype,
        bos=audit.model.bos,
    )
    table = dice_rows(models, problems)
    table = table.set_index("comparison")
    own, other = (table.loc[f"{name} against reference"] for name in ("target", "reference"))
    found = [
        control_row(
            "clean references against one another",
            int(other["n"]),
            *(other[name] / 100 for name in ("auroc_pct", "ci_low", "ci_high")),
            True,
        )
    ]
    value = tuple(own[name] / 100 for name in ("auroc_pct", "ci_low", "ci_high"))
    row = judged(audit, target, DICE, "AUROC", value, int(own["n"]), 0.5, found)
    if row.verdict == RECOGNISED:
        note = "it differs from clean references; DICE cannot say whether by these rows"
        row = Evidence(**{**vars(row), "verdict": CANNOT_TELL, "note": note})
    return Finding(row, tuple(found))
