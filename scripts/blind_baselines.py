"""What words alone reach on public membership benchmarks, without any model.

    python scripts/blind_baselines.py [BENCHMARK ...]     # after make data; some CPU minutes

The idea is that of Duan et al. (arXiv:2402.07841), Das et al. (arXiv:2406.16201), Meeus et al.
(arXiv:2406.17975) and Maini et al. (arXiv:2406.06443): if a classifier that never saw the model
tells members from non-members, a detector's AUC on these texts is no evidence of memory.

The method, fixed before any result was computed:

* **Words.** The classifier of notebook 04 and of ``core.blind`` ("bag of words"): which words of
  two or more characters occur, logistic regression with balanced classes. No setting is chosen.
* **Folds.** Ten, or as many as leave two sources of each kind in a fold. All rows of one source
  (paper, book) fall into one fold. Where a benchmark names no sources, rows with the same set of
  words, digits masked, count as one. There a second run has folds of neighbours in the file: each
  kind is cut into consecutive parts. If rows of one source stand together in the file and the AUC
  falls, the first one was in part the recognition of sources.
* **Figures.** AUC over the pairs within a fold; the true positive rate at a false positive rate
  of at most 5 %, the mean over folds. The 95 % interval resamples sources (Poisson bootstrap, 1,000
  times) and is widened by the root of two, since each pair of rows is used twice (``core.blind``).
* **Digits masked.** The same with every digit replaced by 0: do dates and numbers carry it?
* **Latest year.** Minus the latest year, 1500 to 2099, that a text names, and nothing else. A text
  without a year gets the median one.
* **Length.** Longer is member, and shorter is member, in characters.
* **Null.** The labels of sources are shuffled and the classifiers are trained again, 20 times. The
  mean must lie near 0.5.
* **Size.** A kind with more than 5,000 rows is sampled down to 5,000 (seed 0). Where the texts have
  more than 250,000 characters, there are 200 resamples and 5 shuffles.

The GSM8K and IMDB splits into train and test are controls: ordinary splits, as released.

Writes ``membership_words.csv`` of the package: figures alone, no text. What each benchmark is,
its licence and how its members were chosen stands in ``membership_benchmarks.csv`` beside it.
Draws ``docs/blind_baselines.png`` and writes the table of ``docs/blind_baselines.md``.
Files that ``make data`` does not fetch (texts in copyright, thousands of small files) are read
from CONTAMINATION_MIRROR/owner/repo/commit: a clone of the repository at that commit, which names
its content.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core import blind, plots, statistics, storage
from contamination.core.words import longer_words
from contamination.data import published, sources
from contamination.data.partitions import load_rows
from contamination.min_k.auc_tables import LENGTHS, wikimia_passages

SEED, MOST_ROWS = 0, 5000
LARGE = 250_000  # characters of all texts; what is larger is resampled and shuffled less often
N_RESAMPLES, N_SHUFFLES = {False: 1000, True: 200}, {False: 20, True: 5}  # by whether it is large
WORDS, MASKED, NEIGHBOURS = "words", "words, digits masked", "words, folds of neighbours"
YEAR, LONGER, SHORTER = "latest year", "longer is member", "shorter is member"
DOCS = Path(__file__).resolve().parents[1] / "docs"

Rows = pd.DataFrame  # text, is_member, and source where the benchmark names one


# The benchmarks


def _both(members: Sequence[str], non_members: Sequence[str]) -> Rows:
    kinds = [True] * len(members) + [False] * len(non_members)
    return pd.DataFrame({"text": [*members, *non_members], "is_member": kinds})


def _listed(owner_repo: str, path: str) -> pd.DataFrame:
    return load_rows(str(sources.source_file(owner_repo, path)))


def wikimia(length: int) -> Rows:
    texts, is_member = wikimia_passages(length)
    return pd.DataFrame({"text": texts, "is_member": is_member})


def wikimia_24(length: int) -> Rows:
    path = f"WikiMIA-24/WikiMIA_length{length}/data-00000-of-00001.arrow"
    rows = _listed("wjfu99/MIA-Tuner", path)
    return pd.DataFrame({"text": rows["input"], "is_member": rows["label"].astype(bool)})


def arxivtection() -> Rows:
    rows = _listed("avduarte333/DE-COP_Method", "data/arXivTection.csv")
    # Answer names the option that is the original; the others are paraphrases.
    texts = [row[f"Example_{row['Answer']}"] for _, row in rows.iterrows()]
    is_member = rows["Label"].astype(int).eq(1)
    return pd.DataFrame({"text": texts, "is_member": is_member, "source": rows["ID"]})


def booktection() -> Rows:
    folder = snapshot("avduarte333/DE-COP_Method", "c225172ffaf6d0b1f2d32262c4c72eca180d91ae")
    parts = []
    for kind, is_member in (("Suspect", True), ("Clean", False)):
        for path in sorted((folder / "BookTection-128_Results/BASELINES" / kind).glob("*.xlsx")):
            texts = first_column(path)[1:]
            parts.append(pd.DataFrame({"text": texts, "is_member": is_member, "source": path.stem}))
    return pd.concat(parts, ignore_index=True)


def first_column(path: Path) -> list[str]:
    """Cells of column A of a workbook's first sheet, as text; they are written into the cells."""
    with zipfile.ZipFile(path) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    cells = re.findall(r'<c r="A\d+"[^>]*>(.*?)</c>', sheet, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in cells]


def arxivmia() -> Rows:
    rows = _listed("zhliu0106/probing-lm-data", "data/arxiv_mia.jsonl")
    return pd.DataFrame({"text": rows["text"], "is_member": rows["label"].eq(1)})


BLIND_MIA = "ethz-spylab/Blind-MIA", "a91d7f0171bfdde0c6bfd2c149817849d9e5d7c9"


def captions(name: str) -> Rows:
    kinds = []
    for kind in ("member", "nonmember"):
        path = sources.source_file(BLIND_MIA[0], f"data/{name}/{kind}.txt")
        lines = path.read_text(encoding="utf-8").splitlines()
        # Lines of Multi-Web are items of a printed Python list.
        kinds.append([line.strip().strip(",").strip("'\"") for line in lines])
    return _both(*([text for text in kind if text] for kind in kinds))


def documents(name: str) -> Rows:
    folder = snapshot(*BLIND_MIA) / "data" / name
    members, non_members = (
        [path.read_text(encoding="utf-8", errors="replace") for path in sorted(of_kind.iterdir())]
        for of_kind in (folder / "member", folder / "nonmember")
    )
    return _both(members, non_members)


def synprune() -> Rows:
    names = ("dataset/member.jsonl", "dataset/non-member.jsonl")
    return _both(*(_listed("Yuen647/SYNPRUNE", name)["function"].tolist() for name in names))


def rl_mia(path: str, text_of: Callable[[pd.Series], str]) -> Rows:
    rows = _listed("yongding-tao/RL-Data-Contamination", f"benchmarks/{path}.parquet")
    texts = [text_of(row) for _, row in rows.iterrows()]
    return pd.DataFrame({"text": texts, "is_member": rows["member"].astype(bool)})


def _asked(row: pd.Series) -> str:
    return row["prompt"][-1]["content"]


def _clauses(row: pd.Series) -> str:
    return re.findall(r'"clause": "([^"]*)"', _asked(row))[-1]


def math_500(training_set: str) -> Rows:
    """Rows of MATH-500 that an audit flagged in a training set, against its clean baseline."""
    repository = "ademcodesproducts/contamination-audit"
    flagged = pd.concat(
        _listed(repository, f"data/processed/{training_set}_c_{kind}.jsonl")
        for kind in ("lex", "sem")
    ).drop_duplicates("math500_id")
    baseline = _listed(repository, "data/processed/clean_baseline.jsonl")
    clean = baseline[~baseline["math500_id"].isin(flagged["math500_id"])]
    return _both(flagged["math500_problem"].tolist(), clean["problem"].tolist())


def muse(name: str) -> Rows:
    folder = snapshot("jaechan-repo/muse_bench", "54719c51f07221dcfbfbe8ae76bb091df77433b2")
    names = ("forget", "holdout")
    paths = [folder / f"data/{name}/privleak/{kind}.json" for kind in names]
    return _both(*(json.loads(path.read_text(encoding="utf-8")) for path in paths))


def gsm8k() -> Rows:
    folder = "grade_school_math/data"
    splits = [_listed("openai/grade-school-math", f"{folder}/{s}.jsonl") for s in ("train", "test")]
    return _both(*(split["question"].tolist() for split in splits))


def imdb() -> Rows:
    repository = "acmi-lab/counterfactually-augmented-data"
    splits = [_listed(repository, f"sentiment/orig/{split}.tsv") for split in ("train", "test")]
    return _both(*(split["Text"].tolist() for split in splits))


BENCHMARKS: dict[str, Callable[[], Rows]] = {
    **{f"WikiMIA, {n} words": lambda n=n: wikimia(n) for n in LENGTHS},
    **{f"WikiMIA-24, {n} words": lambda n=n: wikimia_24(n) for n in LENGTHS},
    "arXivTection": arxivtection,
    "ArxivMIA": arxivmia,
    "arXiv, all against one month": lambda: documents("arxiv1m"),
    "BookTection-128": booktection,
    "Gutenberg": lambda: documents("gutenberg"),
    "MUSE-News": lambda: muse("bbc"),
    "MUSE-Books": lambda: muse("hp"),
    "LAION-MI": lambda: captions("laion_mi"),
    "Multi-Web": lambda: captions("multi_web"),
    "SynPrune": synprune,
    "RL-MIA, GSM8K": lambda: rl_mia("GSM8k/gsm8k_mia", lambda row: row["question"]),
    "RL-MIA, knights and knaves": lambda: rl_mia("KK/RLMIA_kk", lambda row: row["quiz"]),
    "RL-MIA, SAT": lambda: rl_mia("SAT/RLMIA_SAT", _clauses),
    "RL-MIA, AIME 2024": lambda: rl_mia("AIME24/RLMIA_aime24", _asked),
    "RL-MIA, AIME 2025": lambda: rl_mia("AIME25/RLMIA_aime25", _asked),
    "MATH-500, flagged in OpenThoughts": lambda: math_500("openthoughts"),
    "MATH-500, flagged in s1": lambda: math_500("s1"),
    "MATH-500, flagged in Tülu 3": lambda: math_500("tulu"),
    "GSM8K, train against test": gsm8k,
    "IMDB, train against test": imdb,
}


def snapshot(owner_repo: str, commit: str) -> Path:
    """Folder of a repository at a commit, in the mirror; its texts are not ours to fetch."""
    folder = Path(sources.mirror_folder() or ".") / owner_repo / commit
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{sources.MIRROR_VARIABLE} has no {owner_repo}/{commit}: clone "
            f"https://github.com/{owner_repo} there and check that commit out"
        )
    return folder


# The rules


def masked(text: str) -> str:
    """The text with every digit replaced by 0.

    >>> masked("In 2023, 17 of 20")
    'In 0000, 00 of 00'
    """
    return re.sub(r"\d", "0", text)


def sampled(rows: Rows) -> Rows:
    """At most ``MOST_ROWS`` rows of each kind, in the order of the file."""
    parts = [
        part.sample(min(len(part), MOST_ROWS), random_state=SEED).sort_index()
        for _, part in rows.groupby("is_member", sort=False)
    ]
    return pd.concat(parts).reset_index(drop=True)


def source_numbers(rows: Rows) -> np.ndarray:
    """The source of each row, shape (n_rows,): the named one, or its set of words."""
    if "source" in rows:
        return pd.factorize(rows["source"])[0]
    words = [" ".join(sorted(set(longer_words(masked(text))))) for text in rows["text"]]
    return pd.factorize(np.array(words, dtype=object))[0]


def dealt_folds(source: np.ndarray, first: np.ndarray, n_folds: int) -> np.ndarray:
    """The fold of each row: sources of each kind are shuffled and dealt in turn.

    ``source`` has shape (n_rows,), ``first``, the membership of each source, (n_sources,).
    """
    fold, rng = np.empty(len(first), dtype=int), np.random.default_rng(SEED)
    for kind in (False, True):
        sources_of_kind = rng.permutation(np.flatnonzero(first == kind))
        fold[sources_of_kind] = np.arange(len(sources_of_kind)) % n_folds
    return fold[source]


def neighbour_folds(is_member: np.ndarray, n_folds: int) -> np.ndarray:
    """The fold of each row: each kind is cut into consecutive parts."""
    fold = np.empty(len(is_member), dtype=int)
    for kind in (False, True):
        rows = np.flatnonzero(is_member == kind)
        fold[rows] = np.arange(len(rows)) * n_folds // len(rows)
    return fold


def figures(
    judged: blind.Folds, is_member: np.ndarray, source: np.ndarray, n: int, *, is_trained: bool
) -> dict[str, float]:
    """AUC over pairs within folds, its interval from n resamples, the rate at 5 % false alarms."""
    sets = [(values, is_member[items]) for items, values in judged]
    auc = statistics.auc_within(sets)
    units = [source[items] for items, _ in judged]
    drawn = statistics.bootstrap_auc_within(sets, n, SEED, units)
    if is_trained:
        drawn = blind.widened(auc, drawn)
    low, high = statistics.percentile_interval(drawn)
    known = [one for one in sets if 0 < one[1].sum() < len(one[1])]
    rates = [statistics.tpr_at_fpr(*one) for one in known]
    rate = float(np.average(rates, weights=[kind.sum() for _, kind in known]))
    return {"auc": auc, "ci_low": low, "ci_high": high, "tpr_at_5_fpr": rate}


def null_aucs(
    scorer: Callable[[np.ndarray], blind.Folds], source: np.ndarray, first: np.ndarray, n: int
) -> np.ndarray:
    """AUCs with the labels of sources shuffled, shape (n,)."""
    rng, found = np.random.default_rng(SEED), []
    for _ in range(n):
        labels = rng.permutation(first)[source]
        judged = scorer(labels)
        found.append(statistics.auc_within([(values, labels[items]) for items, values in judged]))
    return np.array(found)


def blind_rows(rows: Rows, n_shuffles: int | None = None) -> pd.DataFrame:
    """All rules on one benchmark, one row each; n_shuffles replaces those of the method."""
    rows = sampled(rows)
    texts, is_member = rows["text"].tolist(), rows["is_member"].to_numpy(bool)
    source = source_numbers(rows)
    first = is_member[np.unique(source, return_index=True)[1]]
    n_folds = blind.feasible_folds(first, per_fold=2)
    fold, is_large = dealt_folds(source, first, n_folds), sum(map(len, texts)) > LARGE
    n_resamples = N_RESAMPLES[is_large]

    def scorer(passages: Sequence[str], fold: np.ndarray) -> Callable[[np.ndarray], blind.Folds]:
        return blind.scorer_of(blind.BAG_OF_WORDS, passages, n_folds, SEED, fold=fold)

    def trained(of_words: Callable[[np.ndarray], blind.Folds]) -> dict[str, float]:
        return figures(of_words(is_member), is_member, source, n_resamples, is_trained=True)

    def plain(values: np.ndarray) -> dict[str, float]:
        judged = [(np.arange(len(values)), values)]
        return figures(judged, is_member, source, n_resamples, is_trained=False)

    of_words = scorer(texts, fold)
    found = {WORDS: trained(of_words)}
    n_shuffles = N_SHUFFLES[is_large] if n_shuffles is None else n_shuffles
    if n_shuffles:
        null = null_aucs(of_words, source, first, n_shuffles)
        found[WORDS] |= {"null": null.mean(), "null_low": null.min(), "null_high": null.max()}
    found[MASKED] = trained(scorer([masked(text) for text in texts], fold))
    if "source" not in rows:
        found[NEIGHBOURS] = trained(scorer(texts, neighbour_folds(is_member, n_folds)))
    has_year = [bool(blind.YEAR.search(text)) for text in texts]
    if any(has_year):
        found[YEAR] = plain(blind.date_rule_scores(texts)) | {"used_pct": 100 * np.mean(has_year)}
    length = np.array([len(text) for text in texts], dtype=float)
    found |= {LONGER: plain(length), SHORTER: plain(-length)}
    counts = {"n_members": int(is_member.sum()), "n_non_members": int((~is_member).sum())}
    counts |= {"n_sources": len(first), "n_folds": n_folds}
    table = pd.DataFrame([{"rule": rule} | counts | row for rule, row in found.items()])
    columns = ["rule", *counts, "auc", "ci_low", "ci_high", "tpr_at_5_fpr"]
    return table.reindex(columns=[*columns, "null", "null_low", "null_high", "used_pct"])


def page_table(rules: pd.DataFrame) -> str:
    """The table of ``docs/blind_baselines.md``: a line for each benchmark."""
    lines = [
        "| Benchmark | Members / non-members | Words alone, AUC | Found at 5 % false alarms "
        "| Digits masked | Neighbours | Latest year | Longer / shorter | Shuffled labels |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, table in rules.groupby("benchmark", sort=False):
        of = table.set_index("rule")
        words, auc = of.loc[WORDS], of["auc"].reindex([MASKED, NEIGHBOURS, YEAR, LONGER, SHORTER])
        lines.append(
            f"| {name} | {words.n_members:,.0f} / {words.n_non_members:,.0f} "
            f"| {words.auc:.2f} [{words.ci_low:.2f}, {words.ci_high:.2f}] "
            f"| {100 * words.tpr_at_5_fpr:.0f} % | {auc[MASKED]:.2f} | {_or_dash(auc[NEIGHBOURS])} "
            f"| {_or_dash(auc[YEAR])} | {auc[LONGER]:.2f} / {auc[SHORTER]:.2f} "
            f"| {_or_dash(words.null)} |"
        )
    return "\n".join(lines)


def _or_dash(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def main() -> None:
    """Compute the benchmarks that are named, or all, and keep the others' rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark", nargs="*", help=f"of: {'; '.join(BENCHMARKS)}")
    parser.add_argument("--shuffles", type=int, help="of labels, in place of the method's number")
    arguments = parser.parse_args()
    names = arguments.benchmark or list(BENCHMARKS)
    path = Path(published.__file__).parent / published.MEMBERSHIP_WORDS
    stored = pd.read_csv(path) if path.exists() else pd.DataFrame({"benchmark": []})
    tables = dict(list(stored.groupby("benchmark")))
    for name in names:
        table = blind_rows(BENCHMARKS[name](), arguments.shuffles).round(4)
        table.insert(0, "benchmark", name)
        tables[name] = table
        print(
            name, table[["rule", "auc"]].to_string(index=False, header=False), sep="\n", flush=True
        )
        known = [tables[one] for one in BENCHMARKS if one in tables]
        storage.write_csv(path, pd.concat(known, ignore_index=True))
    write_page(published.membership_words())


def write_page(rules: pd.DataFrame) -> None:
    """The page's figure, and its table between its marks."""
    path = DOCS / "blind_baselines.md"
    start, end = "<!-- figures -->\n\n", "\n\n<!-- end of figures -->"
    before, rest = path.read_text(encoding="utf-8").split(start)
    page = before + start + page_table(rules) + end + rest.split(end)[1]
    path.write_text(page, encoding="utf-8")
    figure = plots.words_alone(published.membership_summary())
    figure.savefig(DOCS / "blind_baselines.png", dpi=100)


if __name__ == "__main__":
    main()
