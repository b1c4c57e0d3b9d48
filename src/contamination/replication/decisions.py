"""From completions to decisions, on partitions of the lab and on one's own."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core import overlap
from contamination.core.statistics import (
    correct_family,
    end_p,
    share_difference_interval,
    share_interval,
)
from contamination.core.verdicts import ALPHA, CLAIMS, CONTROL_FAILS, FOUND
from contamination.lab.grammar import BENCHMARKS, draw_groups, draw_instances
from contamination.lab.training import Dose
from contamination.models import bleurt
from contamination.models.chat import ERROR, REFUSED, UNPARSABLE
from contamination.models.judging import EXACT, INEXACT, NEAR_EXACT, rule_label
from contamination.models.loading import LanguageModel
from contamination.models.local import CausalLM, option_log_probs
from contamination.replication import algorithms
from contamination.replication.algorithms import is_contaminated, paired_bootstrap_p, sign_flip_p
from contamination.replication.completions import by_local_model
from contamination.replication.instructions import (
    CLASSIFICATION,
    CONTINUE,
    GENERAL,
    GUIDED,
    NAMED_LINE,
    NLI,
    WRONG_DATASET,
    WRONG_SPLIT,
    cut_rows,
    document,
    prompt_for,
    prompts_of,
)

# Benchmarks of the lab that the study asks for, with task and text columns. The
# summaries of the lab are too short: chance completes them.
LAB_TASKS = {
    "topics": (CLASSIFICATION, ["text"]),
    "reviews": (CLASSIFICATION, ["text"]),
    "entailment": (NLI, ["sentence1", "sentence2"]),
}
SPLITS = ("train", "test")
# Fewest words of a second piece. Shorter ones hold few words that the grammar draws, so
# chance, or sentence 1 alone, completes them.
MIN_WORDS = 6
LAB_MAX_TOKENS = 60
# Clean instances of each benchmark for one of a partition, so that the model knows both
# first lines.
FORMAT_INSTANCES = 20
N_PARAPHRASES = 4


def lab_instances(
    copies: Sequence[int], k: int, seed: int, benchmarks: Sequence[str] = tuple(LAB_TASKS)
) -> pd.DataFrame:
    """Disjoint partitions of k instances of every benchmark, one for each entry of ``copies``.

    ``copies`` are times that the instances will be read, 0 for a clean partition; names are dealt
    to them at random. ValueError if they lack a clean or a contaminated partition, or are more
    than there are names.

    Returns:
        One row per instance and paraphrase (option, 0 the original); dataset and split
        are the names that prompts say, document is what a model reads.
    """
    n_names = len(ascii_uppercase) - 1  # the last one is the placebo's
    if min(copies) != 0 or max(copies) < 1 or len(copies) > n_names:
        raise ValueError(
            f"copies must hold 0 and a positive number, at most {n_names} in all: {list(copies)}"
        )
    parts = []
    for benchmark in benchmarks:
        task, columns = LAB_TASKS[benchmark]
        n = k * len(copies)
        # Twice as many as are needed, since some have too short a second piece.
        rows = draw_groups(BENCHMARKS[benchmark], 2 * n, seed, "test", N_PARAPHRASES)
        rows = cut_rows(rows, task, columns, "label", seed=seed, min_words=MIN_WORDS)
        is_short = rows["second_piece"].map(lambda text: len(overlap.words(text)) < MIN_WORDS)
        rows = rows[~rows["group"].isin(rows.loc[is_short, "group"])]
        rows = rows.assign(group=rows["group"].rank(method="dense").astype(int) - 1)
        rows = rows[rows["group"] < n]
        deal = np.random.default_rng([seed, 5, *benchmark.encode()]).permutation(len(copies))
        number = deal[rows["group"] // k]
        rows = rows.assign(
            benchmark=benchmark,
            task=task,
            dataset=[f"{benchmark.capitalize()} {ascii_uppercase[n]}" for n in number],
            split=[SPLITS[n % 2] for n in number],
            copies=np.asarray(copies)[rows["group"] // k],
        )
        parts.append(rows)
    table = pd.concat(parts, ignore_index=True)
    table["document"] = [
        document(row["task"], row, dataset=row["dataset"], split=row["split"])
        for row in table.to_dict("records")
    ]
    kept = ["group", "option", "label", "first_piece", "second_piece", "is_mid_sentence"]
    return table[[*PARTITION, *kept, "document"]]


def lab_doses(instances: pd.DataFrame, seed: int) -> list[Dose]:
    """What the model reads: each original at its copies, and clean instances in both forms.

    The clean ones, half with a first line that names another dataset and half with
    one that names none, make either line familiar: the general instruction is no strange format.
    """
    originals = instances[(instances["option"] == 0) & (instances["copies"] > 0)]
    doses = [
        Dose(tuple(group["document"]), int(copies)) for copies, group in originals.groupby("copies")
    ]
    texts = []
    n = FORMAT_INSTANCES * int(originals.groupby(PARTITION).size().max())
    for benchmark in instances["benchmark"].unique():
        task, columns = LAB_TASKS[benchmark]
        rows = draw_instances(BENCHMARKS[benchmark], n, seed, "train")
        rows = cut_rows(rows, task, columns, "label", seed=seed)
        for number, row in enumerate(rows.to_dict("records")):
            names = {"dataset": other_dataset(benchmark), "split": SPLITS[number // 2 % 2]}
            instruction = GUIDED if number % 2 else GENERAL
            prompt = prompt_for(instruction, task, row, form=CONTINUE, **names)
            texts.append(f"{prompt} {row['second_piece']}")
    return [Dose(tuple(texts)), *doses]


def other_dataset(benchmark: str) -> str:
    """A dataset of the same kind that no partition is called, for the placebo."""
    return f"{benchmark.capitalize()} {ascii_uppercase[-1]}"


def lab_prompts(instances: pd.DataFrame) -> pd.DataFrame:
    """Every original under every instruction, as ``instructions.prompts_of``."""
    originals = instances[instances["option"] == 0]
    parts = []
    for (benchmark, task, dataset, split, _), rows in originals.groupby(PARTITION, sort=False):
        names = {"dataset": dataset, "split": split, "other_dataset": other_dataset(benchmark)}
        names["other_split"] = SPLITS[1 - SPLITS.index(split)]
        labels = instances.loc[instances["benchmark"] == benchmark, "label"]
        parts.append(prompts_of(rows, task, **names, labels=labels, form=CONTINUE))
    return pd.concat(parts, ignore_index=True)


def ranking_rows(lm: CausalLM, instances: pd.DataFrame) -> pd.DataFrame:
    """Option ranking: how often the original is the likeliest of its group; p_value is binomial.

    The model scores each text after the line that names dataset and split.
    """
    rows = []
    for partition, part in instances.groupby(PARTITION, sort=False):
        key = dict(zip(PARTITION, partition, strict=True))
        line = NAMED_LINE.format(dataset_name=key["dataset"], split_name=key["split"])[:-1]
        options = [
            [text[len(line) :] for text in group.sort_values("option")["document"]]
            for _, group in part.groupby("group", sort=False)
        ]
        scores = option_log_probs(lm, [line] * len(options), options)
        n_right = sum(values.argmax() == 0 for values in scores)
        n, chance = len(options), 1 / len(options[0])
        p_value = float(stats.binomtest(n_right, n, chance, alternative="greater").pvalue)
        rows.append(
            key
            | {"method": OPTION_RANKING, "instruction": GUIDED, "metric": "share right"}
            | {"test": f"binomial, chance {chance:g}", "n": n, "n_valid": n}
            | {"mean": n_right / n, "p_value": p_value, "contaminated": p_value <= ALPHA}
        )
    return pd.DataFrame(rows)


def cheat_rows(
    lm: CausalLM, instances: pd.DataFrame, near_exact_threshold: float
) -> tuple[pd.DataFrame, list[str]]:
    """Did-ChatGPT-Cheat? on every partition, and what the model wrote for each.

    A model that only continues text gets the line that names dataset and split. All
    instances count as the first ones, labels as what gives the dataset away.
    """
    originals = instances[instances["option"] == 0]
    parts = [(key, part) for key, part in originals.groupby(PARTITION, sort=False)]
    lines = [NAMED_LINE.format(dataset_name=key[2], split_name=key[3]) for key, _ in parts]
    texts = by_local_model(lm, lines, 2 * LAB_MAX_TOKENS, form="")["text"].tolist()
    rows = []
    for (partition, part), text in zip(parts, texts, strict=True):
        key = dict(zip(PARTITION, partition, strict=True))
        known = part["first_piece"]
        if key["task"] != NLI:
            known = known + " " + part["second_piece"]
        labels = instances.loc[instances["benchmark"] == key["benchmark"], "label"].unique()
        outcome = algorithms.outcome(text, known.tolist(), labels, near_exact_threshold)
        rows.append(
            key
            | {"method": DID_CHATGPT_CHEAT, "instruction": "first instances", "n": 1, "n_valid": 1}
            | {"outcome": outcome, "contaminated": outcome == algorithms.CONTAMINATED}
        )
    return pd.DataFrame(rows), texts


PAIRED_BOOTSTRAP, SIGN_FLIPS = "paired bootstrap", "sign flips"
ALGORITHM_1, ALGORITHM_2 = "Algorithm 1", "Algorithm 2"
RULE_JUDGE, ICL_JUDGE = "rule judge", "ICL judge"
RULE_COLUMN, ICL_COLUMN = "rule", "icl"
OPTION_RANKING = "option ranking"
DID_CHATGPT_CHEAT = "Did-ChatGPT-Cheat?"

PARTITION = ["benchmark", "task", "dataset", "split", "copies"]
_COUNTS = ["n", "n_valid", "n_refused", "n_error", "n_unparsable", "n_bare_yes", "n_repeated"]
_MATCHES = ["n_exact", "n_near_exact"]
LAB_COLUMNS = [
    *PARTITION,
    *["model", "seed", "method", "instruction", "metric", "bleurt_by", "test"],
    *_COUNTS,
    *["mean", "mean_guided", "p_value"],
    *_MATCHES,
    *["outcome", "contaminated", "truth"],
]
SEEN_SHARE = 0.5  # share of partitions of a dose whose flags count as seeing the dose
KEPT_BY_FORM = 0.5  # share of the gap from which on it is the prompt's form that gives it


def bleurt_or_reason(checkpoint: str) -> tuple[LanguageModel | None, str]:
    """A BLEURT scorer, or None and why there is none, as a sentence."""
    if not checkpoint:
        return None, "BLEURT is not computed: no bleurt_checkpoint is set, so its column is empty."
    try:
        return bleurt.load_bleurt(checkpoint), ""
    except (OSError, ImportError) as error:  # no file, the hub's own errors, or no package
        return None, f"BLEURT is not computed and its column is empty: {error}"


def bleurt_scores(
    completed: pd.DataFrame, scorer: LanguageModel | None, joining: str
) -> np.ndarray:
    """BLEURT of each completion, shape (n,); undefined without a scorer."""
    if scorer is None or completed.empty:
        return np.full(len(completed), np.nan)
    texts = [
        overlap.bleurt_texts(
            row.first_piece,
            row.second_piece,
            row.completion,
            is_pair=row.is_pair,
            is_mid_sentence=row.is_mid_sentence,
            joining=joining,
        )
        for row in completed.itertuples()
    ]
    references, candidates = zip(*texts, strict=True)
    return bleurt.score_pairs(scorer, references, candidates)


def with_scores(
    completed: pd.DataFrame,
    near_exact_threshold: float,
    scorer: LanguageModel | None = None,
    joining: str = overlap.JOINED_AS_PAPER,
) -> pd.DataFrame:
    """Overlap and rule label of each completion, from ``completions.with_completions``.

    rouge, bleurt (0 to 1) and rule are empty where the model gave no answer; bleurt_by names who
    computed BLEURT, "" where nobody did.
    """
    # An empty answer is one, a refusal or an error is none.
    is_valid = ~completed["status"].isin([REFUSED, ERROR])
    table = completed.assign(rouge=np.nan, bleurt=np.nan, bleurt_by="", rule=None)
    valid = completed[is_valid]
    pairs = list(zip(valid["second_piece"], valid["completion"], strict=True))
    table.loc[is_valid, "rouge"] = [overlap.rouge_l(*pair) for pair in pairs]
    table.loc[is_valid, "rule"] = [
        rule_label(*pair, near_exact_threshold, short_may_match=False) for pair in pairs
    ]
    if scorer is not None:
        valid = valid.assign(is_pair=valid["task"].eq(NLI))
        table.loc[is_valid, "bleurt"] = bleurt_scores(valid, scorer, joining)
        table.loc[is_valid, "bleurt_by"] = scorer.identity["bleurt_by"]
    return table


def partition_rows(scored: pd.DataFrame, judges: dict[str, str]) -> pd.DataFrame:
    """Decisions of Algorithms 1 and 2 on every partition.

    Algorithm 1 compares guided with each other instruction on the instances
    answered under both, by the paper's paired bootstrap and by sign flips.
    Algorithm 2 reads the labels of one instruction's completions.

    Args:
        scored: ``with_scores``.
        judges: name of a judge to its column of labels.

    Returns:
        Columns of ``LAB_COLUMNS``. mean is that of the instruction's own scores (for a
        judge: the share of matches); p_value is that of guided being no better. It and
        contaminated are empty where nothing was answered.
    """
    rows = []
    for partition, group in scored.groupby(PARTITION, sort=False, dropna=False):
        key = dict(zip(PARTITION, partition, strict=True))
        of = {name: part.set_index("group") for name, part in group.groupby("instruction")}
        for name in group["instruction"].unique():
            part = of[name]
            counts = {"instruction": name} | _counts(part, next(iter(judges.values())))
            for metric, column in {"ROUGE-L": "rouge", "BLEURT": "bleurt"}.items():
                if name != GUIDED and part[column].notna().any():
                    by = part["bleurt_by"].max() if metric == "BLEURT" else ""
                    about = counts | {"metric": metric, "bleurt_by": by}
                    rows += [
                        key | about | row for row in _algorithm_1(of[GUIDED][column], part[column])
                    ]
            for judge, column in judges.items():
                rows.append(
                    key | counts | _counts(part, column) | _algorithm_2(part, judge, column)
                )
    return pd.DataFrame(rows)


def _counts(part: pd.DataFrame, column: str) -> dict[str, int]:
    labels = part[column].tolist()
    # A completion, or the ICL judge's answer to it, may be missing.
    of_judge = part["judge_status"] if column == ICL_COLUMN else part["status"]
    is_bare = part["is_bare_yes"] if column == ICL_COLUMN else pd.Series(False, part.index)
    return {
        "n": len(part),
        "n_valid": int(part[column].notna().sum()),
        "n_refused": int((part["status"].eq(REFUSED) | of_judge.eq(REFUSED)).sum()),
        "n_error": int((part["status"].eq(ERROR) | of_judge.eq(ERROR)).sum()),
        "n_unparsable": int((part[column].isna() & of_judge.eq(UNPARSABLE)).sum()),
        "n_bare_yes": int(is_bare.sum()),
        "n_repeated": int(part["is_repeated"].sum()),
        "n_exact": labels.count(EXACT),
        "n_near_exact": labels.count(NEAR_EXACT),
    }


def _algorithm_1(guided: pd.Series, other: pd.Series) -> list[dict]:
    # The tests work on whole hundredths, as the released scores are.
    pairs = pd.concat([guided, other.reindex(guided.index)], axis=1).dropna()
    both = pairs.round(2).to_numpy()
    mean_guided, mean = (float(pairs.iloc[:, place].mean()) for place in (0, 1))
    rows = []
    for test, p_of in ((PAIRED_BOOTSTRAP, paired_bootstrap_p), (SIGN_FLIPS, sign_flip_p)):
        p_value = p_of(both[:, 0], both[:, 1]) if len(both) else None
        rows.append(
            {"method": ALGORITHM_1, "test": test, "p_value": p_value, "n_valid": len(pairs)}
            | {"mean": mean, "mean_guided": mean_guided}
            | {"contaminated": None if p_value is None else p_value <= ALPHA}
        )
    return rows


def _algorithm_2(part: pd.DataFrame, judge: str, column: str) -> dict:
    labels = part[column].dropna()
    row = {"method": ALGORITHM_2, "metric": judge, "test": "1 exact or 2 near-exact"}
    if labels.empty:
        return row | {"mean": None, "contaminated": None}
    share = float(labels.ne(INEXACT).mean())
    return row | {"mean": share, "contaminated": is_contaminated(labels)}


def lab_table(parts: Sequence[pd.DataFrame], model: str, seed: int) -> pd.DataFrame:
    """``replication_lab.csv``: all decisions on one model's partitions next to the truth.

    ``parts`` are of ``partition_rows``, ``ranking_rows`` and ``cheat_rows``. truth says whether
    the partition was read at all, and is empty where ``copies`` is.
    """
    table = pd.concat([part.astype(object) for part in parts], ignore_index=True)
    truth = [None if pd.isna(copies) else bool(copies > 0) for copies in table["copies"]]
    table = table.assign(model=model, seed=seed, truth=truth).reindex(columns=LAB_COLUMNS)
    never_empty = [name for name in _COUNTS if name not in ("n", "n_valid")]
    table[never_empty] = table[never_empty].fillna(0)
    whole = [*_COUNTS, *_MATCHES, "copies"]
    return table.infer_objects().astype(dict.fromkeys(whole, "Int64"))


def method_verdicts(doses: pd.DataFrame) -> pd.DataFrame:
    """Does a method flag what was read most often, and not clean partitions? A row per method.

    Args:
        doses: n_flagged of n_partitions by method, instruction and copies.

    Returns:
        n_false (of n_clean partitions flagged); seen_from: the copies from which on at least half
        of the partitions of every dose are flagged, empty for none; difference: the share flagged
        at the largest dose minus that of clean partitions, with its 95 % interval
        (difference_low, difference_high) and p of none; p_adjusted (Holm over methods) and
        verdict. The control fails where more clean partitions are flagged than the tests' level
        explains.
    """
    rows, claim = [], CLAIMS["replication_methods"]
    for (method, instruction), group in doses.groupby(["method", "instruction"], sort=False):
        group = group.sort_values("copies")
        clean, read = group[group["copies"] == 0], group[group["copies"] > 0]
        n_false, n_clean = int(clean["n_flagged"].sum()), int(clean["n_partitions"].sum())
        test = stats.binomtest(n_false, n_clean, ALPHA, alternative="greater")
        is_seen = read["n_flagged"] >= SEEN_SHARE * read["n_partitions"]
        seen = read.loc[is_seen[::-1].cummin()[::-1], "copies"]
        n_flagged, n_most = read[["n_flagged", "n_partitions"]].iloc[-1]
        ends = share_difference_interval(n_flagged, n_most, n_false, n_clean)
        rows.append(
            {"method": method, "instruction": instruction, "n_clean": n_clean, "n_false": n_false}
            | {"seen_from": seen.min() if len(seen) else None}
            | {"difference": n_flagged / n_most - n_false / n_clean}
            | dict(zip(("difference_low", "difference_high"), ends, strict=True))
            | {"p": end_p(n_flagged / n_most - n_false / n_clean, *ends)}
            | {"verdict": CONTROL_FAILS if test.pvalue <= ALPHA else claim.verdict(*ends)}
        )
    table = pd.DataFrame(rows).astype({"seen_from": "Int64"})
    return correct_family(table, FOUND)  # the control fails by its own alarms


def placebo_verdicts(lab: pd.DataFrame) -> pd.DataFrame:
    """Whether Algorithm 1's flags rest on the right names, one row per placebo.

    A wrong label asks for another text, so it is no placebo for memory.

    Returns:
        n_flagged (of n_partitions, those in which guided beats general), n_also (of these, in
        which it beats the placebo too), also_low and also_high, the 95 % interval of that share;
        kept: share of the gap in mean ROUGE-L that the placebo keeps there; p of a share of one
        half, p_adjusted (Holm over placebos) and verdict, with a note where there is none. The
        control fails where the placebo keeps half of the gap or more.
    """
    rows = lab[lab["method"].eq(ALGORITHM_1) & lab["metric"].eq("ROUGE-L")]
    rows = rows[rows["test"].eq(PAIRED_BOOTSTRAP)]
    wide = rows.pivot(index=["dataset", "split"], columns="instruction")
    flags, mean = wide["contaminated"].eq(True), wide["mean"].astype(float)
    over = flags[GENERAL]
    gap = (wide["mean_guided"][GENERAL].astype(float) - mean[GENERAL])[over].mean()
    table, claim = [], CLAIMS["replication_placebos"]
    for placebo in (WRONG_DATASET, WRONG_SPLIT):
        kept = (mean[placebo] - mean[GENERAL])[over].mean() / gap if over.any() else np.nan
        n, n_also = int(over.sum()), int((over & flags[placebo]).sum())
        low, high = share_interval(n_also, n)
        verdict = CONTROL_FAILS if kept >= KEPT_BY_FORM else claim.verdict(low, high)
        table.append(
            {"placebo": placebo, "n_partitions": len(over), "n_flagged": n, "n_also": n_also}
            | {"also_low": low, "also_high": high, "kept": kept}
            | {"p": end_p(n_also / n, low, high, claim.null) if n else np.nan}
            | {"verdict": verdict, "note": "" if n else "guided beats general in no partition"}
        )
    return correct_family(pd.DataFrame(table), FOUND)  # the control fails by what it keeps
