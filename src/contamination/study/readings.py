"""What the controls leave of the papers' claims, for the README, docs/results.md and notebook 09.

Every number and every choice of words comes from a table. A reading says what the control leaves of
the paper's claim, and nothing about the paper. The README shows ``HEAD``; docs/results.md shows
``FULL`` too, which names every further control.
"""

from __future__ import annotations

import pandas as pd

from contamination.core import blind_scores
from contamination.core.tables import listed
from contamination.core.verdicts import NOT_SUPPORTED, SUPPORTED
from contamination.data import published
from contamination.dcq import comparison
from contamination.dcq.conclusions import PICKS
from contamination.min_k import wikimia_tables
from contamination.replication import published_tables as replication_tables

HEAD = ["Method", "The paper's claim", "Recomputed", "The control", "Our reading"]
FULL = "Further controls"
PAPERS = {
    "DCQ": "[Data Contamination Quiz](https://arxiv.org/abs/2311.06233)",
    "Replication": "[Replication](https://arxiv.org/abs/2308.08493)",
    "Min-k% Prob": "[Min-k% Prob](https://arxiv.org/abs/2310.16789)",
    "DICE": "[DICE](https://arxiv.org/abs/2406.04197)",
}


def readings(tables: dict[str, pd.DataFrame], r_squared: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One row for each claim, columns ``HEAD`` and ``FULL``, all of them texts.

    Args:
        tables: of notebooks 02 and 03, as ``readme.TABLES``.
        r_squared: DICE's correlation with accuracy by benchmark, from the "main" released table
            and from the "other" one: value, n and printed.
    """
    rows = [
        (PAPERS["Min-k% Prob"], *_min_k(wikimia_tables.wikimia_blind_table())),
        (PAPERS["DICE"], *_dice(r_squared)),
    ]
    others = pd.DataFrame(rows, columns=[*HEAD, FULL])
    return pd.concat([of_released_answers(tables), others], ignore_index=True)


def of_released_answers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows of :func:`readings` about the quiz and about replication."""
    rows = [
        (PAPERS["DCQ"], *_levels(tables)),
        (PAPERS["DCQ"], *_replicas(tables["dcq_reciprocal"])),
        (PAPERS["Replication"], *_tests(tables["replication_published"])),
        (PAPERS["Replication"], *_judge(tables["replication_success"])),
    ]
    return pd.DataFrame(rows, columns=[*HEAD, FULL])


def recomputed_in_brief(cells: pd.DataFrame) -> str:
    """How many printed cells come out again, of those that can, of two papers and of all four."""
    black_box = cells[cells["paper"].isin(["DCQ", "Time Travel"])]
    # In a CSV file the column is text, and empty where a number was not recomputed.
    matches = black_box["matches"].dropna().astype(str)
    n_equal = matches.eq("True").sum()
    return (
        f"The papers on the quiz and on replication print {len(black_box)} numbers. We can "
        f"recompute {len(matches)} of them, and {n_equal} of these agree to the last digit. (All "
        f"four papers print {len(cells)} numbers.)"
    )


def quiz_in_brief(tables: dict[str, pd.DataFrame]) -> str:
    """What GPT-4 does in the quiz, and what a rule that never saw the data leaves of it."""
    levels = tables["dcq_published"].query("model == 'GPT-4'")["max_pct"]
    rules = tables["dcq_rules"].query("model == 'GPT-4'")
    chosen = _chosen_rule(rules)
    rule, n = chosen["control"].iloc[0], len(chosen)
    n_equal, n_beaten = (int(chosen["verdict"].eq(v).sum()) for v in (SUPPORTED, NOT_SUPPORTED))
    finds = (
        "In one paper's quiz, the model must spot a benchmark row among reworded copies. Across "
        f"{n} datasets, GPT-4 succeeds in {_ends(levels)} % of cases (guessing: 25 %). "
    )
    at_best = rules[rules["counted"].eq(comparison.MAXIMUM) & rules["control"].eq(rule)]
    means = at_best[["rule_pct", "model_pct"]].mean()
    rule = f"a rule that looks only at {rule}"
    if 2 * n_beaten > n:
        return f"{finds}It is shown to beat {rule} on {n_beaten} of {n} datasets."
    of_each = f"does as well on {n_equal} of the {n} datasets and worse on {n_beaten}"
    if means["rule_pct"] >= means["model_pct"]:
        of_each = (
            f"succeeds as often on average ({means['rule_pct']:.0f} %). Dataset by dataset, a test "
            f"shows that it does as well on {n_equal} of the {n} and worse on {n_beaten}"
        )
    return (
        f"{finds}That looks like memory. But {rule} {of_each}. The other "
        f"{n - n_equal - n_beaten} leave the question open."
    )


def _chosen_rule(rules: pd.DataFrame) -> pd.DataFrame:
    """A row for each dataset: the rule that does best on all other datasets, and its verdict."""
    rules = rules.drop_duplicates(["dataset", "control"])
    return rules[rules["chosen_on_others"]]


def _ends(values: pd.Series, decimals: int = 0) -> str:
    return f"{values.min():.{decimals}f} to {values.max():.{decimals}f}"


def _levels(tables: dict[str, pd.DataFrame]) -> tuple[str, ...]:
    levels, rules, beyond = (
        tables[name].query("model == 'GPT-4'")
        for name in ("dcq_published", "dcq_rules", "dcq_beyond_rules")
    )
    rules, chosen = rules.drop_duplicates(["dataset", "control"]), _chosen_rule(rules)
    rule, n = chosen["control"].iloc[0], len(chosen)
    n_equal, n_beaten = (int(chosen["verdict"].eq(v).sum()) for v in (SUPPORTED, NOT_SUPPORTED))
    control = (
        f"a rule that looks only at {rule} does as well on {n_equal} of the {n} datasets and "
        f"worse on {n_beaten}; the other {n - n_equal - n_beaten} leave the question open"
    )
    reading = "a high share alone is no evidence of memory"
    if 2 * n_beaten > n:
        reading = "on most datasets, GPT-4 does better than the rule explains"
    claim = (
        f"across {n} datasets, GPT-4 spots the original in "
        f"{_ends(levels['paper_max_pct'].astype(float))} % of its quizzes"
    )
    others = rules[~rules["control"].isin(chosen["control"])].groupby("control", sort=False)
    by_rule = [
        f"For the rule “{name}”, which {PICKS[name]}, the claim is {comparison.verdict_counts(of)}."
        for name, of in others
    ]
    where_wrong = comparison.verdict_counts(beyond.merge(chosen[["dataset", "control"]]))
    further = (
        "Other rules took the same quizzes. We test the claim that a rule is right at least as "
        f"often as GPT-4, to within five points. {' '.join(by_rule)} A second claim is about the "
        f"quizzes in which {rule} is wrong: there, GPT-4 is right more often than every other "
        f"rule. This claim is {where_wrong}."
    )
    return claim, f"{_ends(levels['max_pct'])} %", control, reading, further


def _replicas(replicas: pd.DataFrame) -> tuple[str, ...]:
    names = ("n_replicas", "n_right_best_quiz", "n_right_any_quiz", "expected_if_independent")
    n, right, either, expected = (replicas[name].sum() for name in names)
    reading = "the claim is reproduced"
    if right < n:
        more = "hardly more often" if right > expected else "no more often"
        more = more if right - expected <= 1 else "more often"
        reading = f"not reproduced: it spots such rows {more} than other rows"
    return (
        "a model also spots the rows that it can complete almost word for word",
        f"{right:.0f} of {n:.0f}",
        f"{expected:.1f} would be expected if the two skills were unrelated",
        reading,
        "We count this in the quizzes with the original at the model's best position. If a right "
        f"answer at any position counts, the model spots {either:.0f} of the {n:.0f} rows.",
    )


def _tests(tests: pd.DataFrame) -> tuple[str, ...]:
    n, n_corrected = int(tests["significant"].sum()), int(tests["significant_holm"].sum())
    reading = "all findings survive the correction"
    if n_corrected < n:
        reading = f"{n - n_corrected} of the {n} findings do not survive the correction"
    by_flips = f"sign flips give {int(tests['significant_sign_flip_holm'].sum())}"
    if why := replication_tables.no_sign_flip_can_reject(tests):
        by_flips = f"sign flips can give none: {why}"
    further = (
        f"The {len(tests)} cases, tested as in the released code (unpaired), give "
        f"{int(tests['significant_unpaired'].sum())} findings; exact sign flips give "
        f"{int(tests['significant_sign_flip'].sum())}. After the correction the paired bootstrap "
        f"gives {n_corrected}, and {by_flips}."
    )
    return (
        f"{int(tests['paper_significant'].sum())} of {len(tests)} tests find contamination",
        str(n),
        f"{n_corrected} remain once we correct for {len(tests)} tests",
        reading,
        further,
    )


def _judge(success: pd.DataFrame) -> tuple[str, ...]:
    rows = success.set_index(["model", "algorithm", "test"])
    judge = {m: rows.loc[(m, "Algorithm 2: GPT-4 ICL", "judge")] for m in published.MODELS}
    clean = [rows.loc[(m, "always clean", "constant"), "n_right"] for m in published.MODELS]
    n = next(iter(judge.values()))["n_partitions"]
    printed = listed([f"{int(row['paper_n_right'])} ({m})" for m, row in judge.items()])
    right = " and ".join(str(int(row["n_right"])) for row in judge.values())
    better = [model for model, row in judge.items() if row["verdict"] == SUPPORTED]
    others = [model for model in judge if model not in better]
    reading = f"the judge beats the constant answer for {listed(better)}" if better else ""
    is_tie = all(
        judge[model]["n_right"] == right
        for model, right in zip(published.MODELS, clean, strict=True)
        if model in others
    )
    if others and better:
        cannot = "the two tie" if is_tie else "we cannot show that it does"
        reading += f"; for {listed(others)}, {cannot}"
    elif others:
        reading = "we cannot show that the judge beats the constant answer"
    verdicts = [f"{row['verdict']} for {model}" for model, row in judge.items()]
    return (
        f"its judge gets {printed} of {n} cases right",
        right,
        f'always answering "clean" gets {" and ".join(map(str, clean))}',
        reading,
        f"The claim that the judge does better is {listed(verdicts)}.",
    )


def _min_k(words: pd.DataFrame) -> tuple[str, ...]:
    printed = float(wikimia_tables.printed_average().loc["Min-k% Prob", "paper_auc"])
    words = words[words["baseline"].eq(blind_scores.BAG_OF_WORDS)]
    aucs, sizes = words["auc"], words["n_members"] + words["n_non_members"]
    reading = "no evidence of memory: the wording alone could explain this AUC"
    if aucs.min() <= printed:
        reading = "the words alone do not explain this AUC"
    return (
        f"token probabilities tell seen pages from unseen ones, with an AUC of {printed:.2f} on "
        "WikiMIA (chance is 0.50)",
        "not recomputed, since it needs five large models",
        f"a classifier that sees only the words reaches {aucs.min():.2f}"
        + (f" to {aucs.max():.2f}" if f"{aucs.min():.2f}" != f"{aucs.max():.2f}" else ""),
        reading,
        "The paper's AUC is the mean of five models. The words are tried at "
        f"{len(words)} passage lengths, on {sizes.min()} to {sizes.max()} passages.",
    )


def _dice(r_squared: dict[str, pd.DataFrame]) -> tuple[str, ...]:
    main, other = r_squared["main"], r_squared["other"]
    printed = str(main["printed"].iloc[0]).replace("-", " to ")
    reading = "reproduced"
    if main["value"].min() - other["value"].min() > 0.05:
        reading += ", but the strength depends on which released scores are used"
    return (
        f"its score from hidden states correlates with accuracy (R² of {printed})",
        f"{_ends(main['value'], 2)} ({main['n'].iloc[0]:.0f} models)",
        f"{_ends(other['value'], 2)} with the scores from a second released table",
        reading,
        "Each range runs from the benchmark with the lowest R² to the one with the highest. "
        "Lesson 05 compares two clean models with each other.",
    )
