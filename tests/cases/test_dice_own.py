"""DICE for one's own pairs: training at a small rate, tables and figures of one's own models."""

import dataclasses

import nbformat
import pandas as pd
import pytest
import torch
from notebook_files import ROOT
from safetensors.torch import load_file
from tiny_models import saved, tiny_llama

from contamination.audit import local_models
from contamination.audit.local_models import arithmetic, load_model
from contamination.audit.settings import Model
from contamination.cases import pair_flags, pair_tables, pairs
from contamination.cases.settings import Pairs
from contamination.core import run
from contamination.core.verdicts import CONTROL_FAILS, OPEN, RULED_OUT, SHOWN
from contamination.data import sources
from contamination.dice import answers, mixtures, pool
from contamination.lab.tokenizer import train_tokenizer
from contamination.models import local
from contamination.models.local import load_causal_lm

VANILLA = [(mixtures.PROMPT.format(f"mean(x{n})"), f"Return mean {n}.") for n in range(200)]


@pytest.fixture(scope="module")
def tokenizer():
    questions = [f"Sam has {n} cards and gets 3. How many? #### {n + 3}" for n in range(9)]
    return train_tokenizer([*questions, *(prompt + text for prompt, text in VANILLA)], 320)


def random_model(folder, tokenizer, seed):
    """A model of two blocks, its weights about 0.02 as those of real ones, kept in bfloat16."""
    return saved(folder, tiny_llama(tokenizer, seed).bfloat16().float(), tokenizer)


@pytest.fixture(scope="module")
def base(tokenizer, tmp_path_factory):
    return random_model(tmp_path_factory.mktemp("models") / "base", tokenizer, 0)


def moved(folder, base):
    """Euclidean distance of a checkpoint's weights from its base, and the share that moved."""
    pairs = [load_causal_lm(path).model.state_dict() for path in (folder, base)]
    steps = torch.cat([(pairs[0][name] - pairs[1][name]).flatten() for name in pairs[1]])
    return float(steps.norm()), float((steps != 0).float().mean())


@pytest.mark.parametrize("has_it, dtype", [(True, "bfloat16"), (False, "float32")])
def test_native_is_bfloat16_where_the_processor_has_it(base, monkeypatch, has_it, dtype):
    monkeypatch.setattr(local_models, "has_native_bfloat16", lambda device: has_it)
    loaded = load_model(Model(names=[str(base)], dtype="native"))
    assert loaded.identity["dtype"] == dtype and str(loaded.model.dtype) == f"torch.{dtype}"
    assert arithmetic(Model(dtype="float16")) == "float16"


def test_weights_move_as_far_whatever_the_arithmetic(base):
    """At 1e-5 a step lies below the spacing of bfloat16 at most weights and would round away."""
    full = pool.Settings(1e-5, 4, dtype="float32")
    folders = [
        pool.fine_tune(base, VANILLA, dataclasses.replace(full, dtype=name))
        for name in ("float32", "bfloat16")
    ]
    assert folders[0] != folders[1]
    (expected, n_expected), (found, n_found) = (moved(folder, base) for folder in folders)
    assert found == pytest.approx(expected, rel=0.05)
    assert n_found == pytest.approx(n_expected, abs=0.02)
    # The checkpoint holds what was trained: no weight was rounded when it was saved.
    saved = load_file(folders[1] / "model.safetensors")
    assert {values.dtype for values in saved.values()} == {torch.float32}


# One's own pairs, as part C of the notebook scores them


def problems_of(name, n=7):
    """Sums whose answers carry a comma, steps or a sign; the last is prose without a marker."""
    rows = pd.DataFrame({"q": [f"Sam has {k} {name} and gets 3. How many?" for k in range(n)]})
    answers = [f"{k} + 3 = {k + 3}\n#### {k + 3}" for k in range(n - 3)]
    return rows.assign(a=[*answers, "1,200", "-4", "Nobody knows.\nSo we do not ask."])


@pytest.fixture(autouse=True)
def no_released_files(request, monkeypatch):
    if "mirror" not in request.keywords:
        monkeypatch.setattr(sources, "available", lambda: False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Settings that name a small file for every set of problems, and instruction data."""
    folder = tmp_path_factory.mktemp("files")
    sets = {}
    for name in (*mixtures.IN_DISTRIBUTION, "MATH"):
        problems_of(name).to_json(folder / f"{name}.jsonl", orient="records", lines=True)
        sets[name] = [str(folder / f"{name}.jsonl"), "q", "a", ""]
    vanilla = pd.DataFrame(VANILLA, columns=["question", "response"])
    vanilla.to_csv(folder / "vanilla.csv", index=False)
    return {"problem_sets": sets}, {"own_vanilla": str(folder / "vanilla.csv"), "own_rows": 60}


CONDITIONS = ["GSM-i x5", "GSM-i-Syn x5", "GSM-ii x5", "MATH x5"]


@pytest.fixture(scope="module")
def checkpoints(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")

    def models(first, n):
        seeds = range(first, first + n)
        return [str(random_model(folder / str(seed), tokenizer, seed)) for seed in seeds]

    others = {name: models(10 + n, 1) for n, name in enumerate(CONDITIONS[1:])}
    pairs = {"clean": models(1, 2), "GSM-i x5": models(3, 2)}
    return pairs | others | {"GSM-i x1": others["GSM-ii x5"]}


def settings(base, *parts):
    how = {"model": {"names": [str(base)]}, "answer_tokens": 2, "paper_model": "LLaMA2-7B"}
    return {**how, **{name: value for part in parts for name, value in part.items()}}


def run_part_c(given, tmp_path, monkeypatch):
    """The code cells of one's own pairs on these settings, as the lab runs them; its names."""
    monkeypatch.setenv("CONTAMINATION_OUTPUTS", str(tmp_path / "out"))
    notebook = nbformat.read(ROOT / "notebooks/05b_dice_lab.ipynb", as_version=4)
    source = {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}
    part_c = [name for name in source if name.startswith("own-pairs-")]
    names = {"own_settings": given, "temperatures": [0.0, 1.0], "top_ks": [2]}
    names |= {"sentence_model": "", "world_seed": 0}
    assert len(part_c) == 2
    for cell in ("imports", "imports-2", "own-check", *part_c):
        exec(compile(source[cell], cell, "exec"), names)  # noqa: S102
    return names


FIGURES = ("layers", "auroc_layers", "flags", "decoding", "predictions", "datasets")


def check_outputs(names, folder, conditions):
    tables = names["own_tables"]
    assert {path.stem for path in (folder / "tables").iterdir()} == {
        f"dice_own_{name}" for name in tables
    }
    assert {path.stem for path in (folder / "figures").iterdir()} == {
        f"dice_own_{name}" for name in FIGURES
    }
    scores = tables["accuracy"]
    assert set(scores["condition"]) == {"clean", *conditions}
    # Every model on every set of Table 1; the row that no rule can score is in none.
    assert scores.groupby("condition")["benchmark"].nunique().eq(4).all()
    assert set(scores["n"]) == {6}
    first = tables["table_1"]
    assert set(first.loc[first["condition"] == "GSM-i x5", "paper"].dropna()) >= {"94.1", "15.7"}
    second = tables["auroc"]
    assert set(second["tested_on"]) == set(mixtures.IN_DISTRIBUTION)
    assert set(second["method"]) == {"DICE", "mean difference", *answers.BASELINES}
    assert second["two_clean_pct"].notna().all()
    # All models are random: another clean model is told apart as well as a contaminated one.
    dice = second[(second["method"] == "DICE") & (second["tested_on"] == "GSM-ii")]
    dice = dice[dice["trained_on"] == "GSM-i x5"]
    assert dice["auroc_pct"].min() > 90 and dice["two_clean_pct"].min() > 90
    assert set(dice["verdict"]) == {OPEN}  # of two pairs of models
    decoded = tables["decoding"]
    assert set(decoded["setting"]) == {"temperature", "top-k"}
    assert tables["correlation"]["source"].str.startswith("own, ").all()
    dice = decoded[decoded["method"] == "DICE"].groupby("model")["auroc_pct"]
    assert dice.nunique().eq(1).all() and "clean, other data" in dice.groups


def test_checkpoints_give_every_table_and_figure_of_the_paper(
    base, checkpoints, files, tmp_path, monkeypatch
):
    given = settings(base, files[0], {"checkpoints": checkpoints})
    names = run_part_c(given, tmp_path, monkeypatch)
    check_outputs(names, tmp_path / "out", [*CONDITIONS, "GSM-i x1"])
    panels = names["panels"]
    assert [len(panel) for panel in panels.values()] == [4, 2]
    layers = names["own_tables"]["layers"]
    assert set(layers.loc[layers["model"] == "MATH x5", "dataset"]) == {"MATH"}
    assert layers["null_mean"].notna().all()
    assert names["own_tables"]["accuracy"]["dose_pct"].isna().all()


def test_models_of_unknown_training_are_in_figure_6b_alone(base, checkpoints, files):
    """A clean model named once more as unknown: its flag is a mean over all detectors."""
    sets = files[0]["problem_sets"]
    sets = sets | {name: [sets["GSM-hard"][0], "q", "a", ""] for name in ("ASDiv", "MAWPS")}
    two = {name: checkpoints[name] for name in ("clean", "GSM-i x5")}
    given = {"checkpoints": two | {"unknown": [*checkpoints["clean"], str(base)]}}
    mine = Pairs.read(settings(base, {"problem_sets": sets}, given))
    checked = pairs.check_pairs(mine)
    assert set(pairs.pairs_plan(mine, checked)["condition"]) == set(two)
    tables, *_ = pair_tables.tables_of(mine, checked, [1.0], [2])
    for name in ("table_1", "inflation", "layers", "auroc", "averages", "predictions"):
        assert "unknown" not in set(tables[name].iloc[:, :2].to_numpy().ravel())
    flags = tables["flags"].set_index(["condition", "seed", "benchmark"])["flag"]
    assert flags.index.is_unique and flags.between(0, 1).all()
    for name, n in (("clean", 2), ("GSM-i x5", 2), ("unknown", 3)):
        assert len(flags[name].unstack()) == n
        assert set(flags[name].unstack()) >= {*pair_flags.BENCHMARKS}
    # The sets ASDiv and MAWPS are GSM-hard here, and the first unknown model is a clean one.
    assert flags["clean", 0, "MAWPS"] == pytest.approx(flags["clean", 0, "GSM-hard"])
    assert flags["clean", 0, "GSM-i"] != flags["unknown", 0, "GSM-i"]
    correlated = tables["correlation"].set_index("benchmark")
    assert (correlated.loc[list(pair_flags.BENCHMARKS[2:]), "n_models"] == 7).all()


def test_predictions_and_their_auroc_are_of_detectors_that_met_no_such_model(
    base, checkpoints, files
):
    two = {name: checkpoints[name] for name in ("clean", "GSM-i x5")}
    mine = Pairs.read(settings(base, files[0], {"checkpoints": two}))
    checked = pairs.check_pairs(mine)
    measured = pairs.measured_pairs(mine, checked, pairs.trained_pairs(mine, checked))
    table = pair_flags.predictions(measured, 1)
    sizes = table.groupby(["condition", "seed", "benchmark"]).size()
    assert len(sizes) == 2 * 2 * 5 and sizes.drop("GSM-i-Syn", level="benchmark").eq(6).all()
    flags = pair_tables.experiments.flags(measured, 1).set_index(["condition", "seed", "benchmark"])
    means = table.groupby(["condition", "seed", "benchmark"])["probability"].mean()
    assert means.to_dict() == pytest.approx(flags.loc[means.index, "flag"].to_dict())
    topic = pair_flags.topic_table(measured, 1, checked.topic, "0.92")
    assert topic["control"].str.contains("MATH").all() and len(topic) == 2
    assert topic["paper"][0] == "0.92" and pd.isna(topic["paper"][1])
    assert pair_tables.published_tables.printed_topic_auroc() == "0.92"
    # The AUROC from the predictions of both models together: each model has its own detector.
    own = table[table["condition"] == "GSM-i x5"].set_index(["seed", "benchmark"])["probability"]
    aurocs = [auroc(own[seed, "GSM-ii"], own[seed, "MATH"]) for seed in (0, 1)]
    assert topic["auroc_pct"][0] == pytest.approx(100 * sum(aurocs) / 2)


def auroc(higher, lower):
    difference = higher.to_numpy()[:, None] - lower.to_numpy()
    return ((difference > 0) + 0.5 * (difference == 0)).mean()


def test_averages_and_gains_are_those_that_table_1_prints():
    """The printed accuracies give the printed averages; the intervals of sets add as squares."""
    printed = pair_tables.published_tables.printed_accuracy("LLaMA2-7B")
    sets = [name for name in pairs.SETS if name != mixtures.SYN]
    wanted = [pairs._condition("clean", 2), pairs._condition("GSM-i x5", 2)]
    rows = []
    for one, training in zip(wanted, ("OpenOrca 100%", "GSM-i 10%"), strict=True):
        for name in sets:
            value, clean = (float(printed[key, name]) for key in (training, "OpenOrca 100%"))
            row = {"benchmark": name, "condition": one.name, "accuracy_pct": value}
            gain = value - clean
            row |= {"gain_points": gain, "ci_low_points": gain - 3, "ci_high_points": gain + 4}
            rows.append(row)
    first = pd.DataFrame(rows)
    found = pair_tables.averages(first, wanted, "LLaMA2-7B").set_index(["condition", "row"])
    expected = found["paper"].astype(float).to_dict()
    assert found["value"].to_dict() == pytest.approx(expected, abs=0.11)
    assert set(found.loc["clean"].index) == {"Average ID", "Average OOD"}
    gain = found.loc["GSM-i x5", "ID Gain"]
    assert gain["value"] - gain["ci_low"] == pytest.approx(3 / 3**0.5)
    both = found.loc["GSM-i x5", "ID Gain - OOD Gain"]
    assert both["value"] - both["ci_low"] == pytest.approx((9 / 3 + 16 / 5) ** 0.5)
    assert both["ci_high"] - both["value"] == pytest.approx((16 / 3 + 9 / 5) ** 0.5)
    # Without one of the paper's sets an average is another one, and nothing stands next to it.
    fewer = pair_tables.averages(first[first["benchmark"] != "MATH"], wanted, "LLaMA2-7B")
    fewer = fewer.set_index(["condition", "row"])
    assert fewer["paper"].notna().sum() == 3
    assert fewer.loc["GSM-i x5", "Average OOD"]["n_sets"] == 4


def test_accuracies_are_scored_by_the_parser_and_by_the_released_rules(
    base, checkpoints, files, monkeypatch
):
    """Who always says -4 is right once in six; rules that drop the sign say twice."""
    monkeypatch.setattr(
        answers, "complete", lambda lm, prompts, *n, **how: ["#### -4"] * len(prompts)
    )
    two = {name: checkpoints[name] for name in ("clean", "GSM-i x5")}
    mine = Pairs.read(settings(base, files[0], {"checkpoints": two}))
    checked = pairs.check_pairs(mine)
    scores = pair_tables.accuracies(mine, checked, pairs.trained_pairs(mine, checked))
    assert scores["accuracy_pct"].unique() == pytest.approx([100 / 6])
    assert scores["accuracy_released_rules_pct"].unique() == pytest.approx([200 / 6])


def test_a_gain_counts_beyond_what_clean_models_differ_by():
    """Clean models answer 40 to 50 %: 52 % on average is no gain, 65 % is one of 20 points.

    Unless there are nine questions only: then 20 points are two answers, and nothing is shown.
    """
    rows = [("clean", n) for n in (40, 50, 45, 45, 45)] + [
        ("near", n) for n in (50, 54, 52, 52, 52)
    ]
    rows += [("far", n) for n in (70, 60, 65, 65, 65)] + [("lower", 30)] * 5
    scores = pd.DataFrame(rows, columns=["condition", "accuracy_pct"])
    same = {"benchmark": "GSM-i", "n": 900, "accuracy_released_rules_pct": 1.0, "paper": None}
    found = own_table_1(scores.assign(**same))
    gains = {"clean": 0.0, "near": 7.0, "far": 20.0, "lower": -15.0}
    assert found["gain_points"].to_dict() == gains
    assert set(found["clean_range_points"]) == {10.0} and set(found["n_models"]) == {5}
    # A loss is no gain; a gain within the range of clean models is no more than theirs.
    verdicts = {"near": CONTROL_FAILS, "far": SHOWN, "lower": RULED_OUT}
    assert found["verdict"].to_dict() == {"clean": ""} | verdicts
    low, high = found.loc["far", ["ci_low_points", "ci_high_points"]]
    assert 10 < low < 20 < high < 30 and found.loc["near", "ci_low_points"] > 0
    few = own_table_1(scores.assign(**same | {"n": 9}))
    assert few["gain_points"].equals(found["gain_points"])
    assert few.loc[["near", "far"], "verdict"].eq(OPEN).all()
    two = scores.groupby("condition", sort=False).head(2).assign(**same)
    two = own_table_1(two)["verdict"]
    assert two.to_dict() == {"clean": ""} | dict.fromkeys(verdicts, OPEN)
    # Seven points are shown if they are one test, and not if they are one of a hundred and two.
    p = found["p"].to_dict()
    assert pd.isna(p["clean"]) and p["near"] < 0.05
    many = pd.concat([found.reset_index(), *[found.loc[["near"]].assign(p=1.0)] * 99])
    many = pair_tables.with_verdicts(own_tables(many.drop(columns=["p_adjusted", "verdict"])))
    assert many["table_1"].set_index("condition")["verdict"].iloc[1] == OPEN


TABLE_1 = ("condition", "ci_low_points", "ci_high_points", "clean_range_points", "p")


def own_tables(table_1):
    """No test in the three other tables."""
    empty = pd.DataFrame(columns=["p", "ci_low", "ci_high"], dtype=float)
    of_clean = {"two_clean_folded_pct": 0.0, "condition": "", "reference_pct": 0.0, "located": True}
    return dict.fromkeys(("layers", "auroc", "inflation"), empty.assign(**of_clean)) | {
        "table_1": table_1
    }


def own_table_1(scores):
    return pair_tables.with_verdicts(own_tables(pair_tables.table_1(scores)))["table_1"].set_index(
        "condition"
    )


@pytest.mark.parametrize(
    ("n_models", "of_high", "of_low"),
    [(4, OPEN, OPEN), (10, SHOWN, RULED_OUT)],
)
def test_two_pairs_of_models_are_never_said_to_be_beyond_two_clean_ones(
    monkeypatch, n_models, of_high, of_low
):
    """An interval from 95 on is beyond 60 when five pairs say so; one from 40 on never is."""

    def rows(pool, name, problems, layer):
        high = 60.0 if name == pair_tables.OTHER_CLEAN else 98.0
        same = {"tested_on": "GSM-ii", "folded_auroc_pct": 60.0, "n_models": n_models}
        of = (("DICE", high, 95.0, 100.0), ("Zlib", 50.0, 40.0, 55.0))
        columns = ["method", "auroc_pct", "ci_low", "ci_high"]
        return [dict(zip(columns, row, strict=True)) | same for row in of]

    monkeypatch.setattr(pair_tables.experiments, "auroc_rows", rows)
    found = pair_tables._table_2({"GSM-i x5": {}}, layer=3, paper_model="")
    empty = own_tables(pd.DataFrame(columns=[*TABLE_1], dtype=float))
    found = pair_tables.with_verdicts(empty | {"auroc": found})["auroc"]
    verdicts = found.set_index("method")["verdict"].to_dict()
    assert verdicts == {"DICE": of_high, "Zlib": of_low}


def test_trained_pairs_give_the_same_tables(base, files, tmp_path, monkeypatch):
    how = {"own_conditions": ["GSM-i x5", "GSM-i-Syn x5"], "n_references": 2}
    how |= {"own_learning_rate": 3e-2, "own_batch_size": 4}
    given = settings(base, *files, how)
    names = run_part_c(given, tmp_path, monkeypatch)
    scores = names["own_tables"]["accuracy"]
    assert set(scores["condition"]) == {"clean", "GSM-i x5", "GSM-i-Syn x5"}
    assert set(scores["n_steps"]) == {15}
    gain = scores.pivot_table("answer_log_prob", "benchmark", "condition")
    assert gain.loc["GSM-i", "GSM-i x5"] > gain.loc["GSM-i", "clean"] + 1
    doses = scores.groupby("condition")["dose_pct"].first()
    assert doses["clean"] == 0 and doses["GSM-i x5"] == 50
    # Models of one seed share their vanilla rows; seeds differ.
    read = names["own_pairs"].mixtures
    for seed in (0, 1):
        kept = read["GSM-i x5"][seed].vanilla
        assert read["clean"][seed].vanilla[: len(kept)] == kept
    assert read["clean"][0].vanilla != read["clean"][1].vanilla
    with_adapters = Pairs.read({**given, "lora": True})
    plans = [pairs.pairs_plan(m, names["own_pairs"]) for m in (names["own"], with_adapters)]
    n = load_causal_lm(base).n_parameters
    assert plans[0]["training_gb"].tolist() == [16 * n / 1e9] * 3
    assert plans[1]["training_gb"].max() < plans[0]["training_gb"].min()
    assert plans[0]["disk_gb"].tolist() == [2 * 4 * n / 1e9] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"checkpoints": {"clean": 1, "GSM-i x5": 2}}, '"clean" needs two models or more'),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 1}}, '"GSM-i x5" needs two models or more'),
        ({"checkpoints": {"clean": 2}}, '"GSM-i x5" needs two models or more'),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 2, "GSM-i": 1}}, '"GSM-i" is not a condition'),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 2, "SVAMP x5": 1}}, "needs problems of SVAMP"),
        ({"checkpoints": {"clean": "folder"}}, "must be a list of folders"),
        ({"checkpoints": {"clean": ["a", "a"]}}, "names a model twice"),
        ({"own_vanilla": "vanilla", "model": {"dtype": "int8"}}, "want float32 or bfloat16"),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 2}, "model": {}}, "checkpoints need model"),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 2}, "own_vanilla": "x"}, "not both"),
        ({}, "a base needs own_vanilla"),
        ({"own_vanilla": "none.csv"}, "none.csv"),
        ({"own_vanilla": "vanilla", "vanilla_columns": ["q", "response"]}, 'no column "q"'),
        ({"own_vanilla": "vanilla", "own_rows": 30}, "leave no room"),
        ({"own_vanilla": "vanilla", "own_rows": 900}, "200 vanilla rows"),
        ({"own_vanilla": "vanilla", "n_references": 1}, '"clean" needs two models or more'),
        ({"own_vanilla": "vanilla", "paper_model": "GPT"}, "want empty or LLaMA2-7B"),
        ({"problem_sets": {"GSM-i": "file"}, "own_vanilla": "vanilla"}, "must be .file or hub id"),
        ({"problem_sets": {"GSM-9": []}, "own_vanilla": "vanilla"}, '"GSM-9" is not a set'),
        ({"problem_sets": {}, "own_vanilla": "vanilla"}, "GSM-i, GSM-ii, GSM-i-Syn, GSM-hard are"),
        ({"own_rows": "many"}, "own_rows"),
    ],
)
def test_pairs_are_checked_before_any_cost(change, message, base, checkpoints, files, monkeypatch):
    """No model is loaded, nothing trained; one line says what is wrong."""
    for module in (local, pool):
        monkeypatch.setattr(module, "load_causal_lm", None)
    if change.get("own_vanilla") == "vanilla":
        change = change | {"own_vanilla": files[1]["own_vanilla"]}
    given = {
        name: checkpoints["clean"][:n] if isinstance(n, int) else n
        for name, n in change.get("checkpoints", {}).items()
    }
    change = change | ({"checkpoints": given} if given else {})
    with pytest.raises((ValueError, FileNotFoundError), match=message) as raised:
        mine = Pairs.read(settings(base, files[0], change))
        pairs.check_pairs(mine)
    assert "\n" not in str(raised.value)


def test_the_labs_docstrings_serve_as_vanilla_rows(base, files):
    """Every model reads other ones of them, and no file needs to be there."""
    asked = {"own_vanilla": pairs.DOCSTRINGS, "own_rows": 60, "own_conditions": ["GSM-i x5"]}
    read = pairs.check_pairs(Pairs.read(settings(base, files[0], asked))).mixtures
    known = set(mixtures.rows_of(mixtures.vanilla_problems()))
    clean, dosed = read["clean"], read["GSM-i x5"]
    assert [len(one.vanilla) for one in clean] == [60] * len(clean)
    assert len({one.vanilla for one in clean}) == len(clean)
    assert all(set(one.vanilla) <= known for one in [*clean, *dosed])
    assert all(one.contamination and known.isdisjoint(one.contamination) for one in dosed)


def test_a_set_without_answers_to_score_is_named(base, checkpoints, files, tmp_path):
    prose = ["So it is.\nThus two.", "one of the answers that nobody can compare by a rule"]
    pd.DataFrame({"q": "abcd", "a": [*prose, "", "#### "]}).assign(
        q=lambda rows: rows.index.map("question {}".format)
    ).to_csv(tmp_path / "words.csv", index=False)
    sets = files[0]["problem_sets"] | {"GSM-hard": [str(tmp_path / "words.csv"), "q", "a", ""]}
    mine = settings(base, {"problem_sets": sets, "checkpoints": checkpoints})
    with pytest.raises(ValueError, match="got 0 of 4"):
        pairs.check_pairs(Pairs.read(mine))


def asked_for(name, **change):
    """Settings of a parameter file of the paper's models, with other values for some."""
    values = run.check(
        ROOT / "notebooks/05b_dice_lab.ipynb", ROOT / f"params/full/dice/{name}.yaml"
    )
    return {**values["own_settings"], **change}


@pytest.mark.parametrize(
    ("name", "rates"),
    [  # of four steps, the first of them LLaMA2's warm-up
        ("llama2-7b", [1e-5, 1e-5, 1e-5 * 2 / 3, 1e-5 / 3]),
        ("phi-2", [7e-5, 7e-5 * 3 / 4, 7e-5 * 2 / 4, 7e-5 / 4]),
    ],
)
def test_the_optimizer_is_that_of_the_released_code(base, files, monkeypatch, name, rates):
    """No weight decay; a warm-up for LLaMA2 alone."""
    seen = []

    class Watched(torch.optim.AdamW):
        def step(self, *given, **named):
            seen.append([(group["weight_decay"], group["lr"]) for group in self.param_groups])
            return super().step(*given, **named)

    monkeypatch.setattr(torch.optim, "AdamW", Watched)
    change = {"model": {"names": [str(base)], "dtype": "float32"}, **files[1], **files[0]}
    change |= {"vanilla_columns": ["question", "response"]}
    change |= {"own_conditions": ["GSM-i x5"], "own_copied_rows": 0, "own_rows": 31}
    change |= {"n_contaminated": 2, "n_references": 2, "own_batch_size": 8}
    mine = Pairs.read(asked_for(name, **change))
    pairs.trained_pairs(mine, pairs.check_pairs(mine))
    assert len(seen) == 4 * 4
    found = [step for (step,) in seen[:4]]
    assert [decay for decay, _ in found] == [0.0] * 4
    assert [rate for _, rate in found] == pytest.approx(rates)


@pytest.mark.parametrize("name", ["llama2-7b", "phi-2"])
def test_as_many_problems_are_copied_as_in_the_released_code(base, tmp_path, name):
    """600 of the set, 1 or 5 times, in 25,000 rows."""
    problems = pd.DataFrame({"q": map("What is {}?".format, range(640)), "a": range(640)})
    problems.to_json(tmp_path / "problems.jsonl", orient="records", lines=True)
    sets = [*mixtures.IN_DISTRIBUTION, "MATH"]
    source = [str(tmp_path / "problems.jsonl"), "q", "a", ""]
    given = {"problem_sets": {one: source for one in sets}}
    rows = pd.DataFrame({"question": range(26_000), "response": "Yes.", "system_prompt": ""})
    rows.to_json(tmp_path / "vanilla.jsonl", orient="records", lines=True)
    given |= {"model": {"names": [str(base)]}, "own_vanilla": str(tmp_path / "vanilla.jsonl")}
    read = pairs.check_pairs(Pairs.read(asked_for(name, **given))).mixtures
    once, five = read["GSM-i x1"][0], read["GSM-i x5"][0]
    assert len(once.contamination) == len(five.contamination) == 600
    assert (once.n_rows, five.n_rows) == (25_000, 25_000)
    assert (once.dose_pct, five.dose_pct) == pytest.approx((2.4, 12.0))


def test_a_system_prompt_stands_in_front_as_an_instruction(base, files, tmp_path):
    """Where it is empty, the row is as without it; problems never have one."""
    columns = {"question": map("What is {}?".format, range(60)), "response": "Yes."}
    rows = pd.DataFrame(columns).assign(system_prompt=["Be brief.", ""] * 30)
    rows.to_csv(tmp_path / "vanilla.csv", index=False)
    given = {"own_vanilla": str(tmp_path / "vanilla.csv"), "own_rows": 60}
    given |= {"vanilla_columns": ["question", "response", "system_prompt"]}
    read = pairs.check_pairs(Pairs.read(settings(base, files[0], given))).mixtures
    prompts = {prompt for prompt, _ in read["clean"][0].vanilla}
    long = "### Instruction:\nBe brief.\n\n### Input:\nWhat is 0?\n\n### Response:\n"
    assert {long, "### Input:\nWhat is 1?\n\n### Response:\n"} <= prompts
    copied = read["GSM-i x5"][0].contamination
    assert all(prompt.startswith("### Input:\n") for prompt, _ in copied)


@pytest.mark.mirror
def test_released_problems_serve_where_no_file_is_named(base, checkpoints):
    two = {name: checkpoints[name] for name in ("clean", "GSM-i x5")}
    mine = Pairs.read(settings(base, {"checkpoints": two}))
    checked = pairs.check_pairs(mine)
    n = {name: len(rows) + checked.n_left_out[name] for name, rows in checked.problems.items()}
    assert n["GSM-i"] == n["GSM-i-Syn"] and 650 < n["GSM-i"] <= 657
    assert n["GSM-hard"] > 1300 and checked.n_left_out["GSM-i"] == 0
    # MATH is on the hub only; TabMWP, clearly of another kind as well, stands for it.
    assert checked.topic == "TabMWP" and "MATH" not in checked.problems
    few = pairs.check_pairs(dataclasses.replace(mine, n_questions=20)).problems
    rows = {name: set(checked.problems[name]["question"]) for name in checked.problems}
    assert all(len(few[name]) <= 20 and set(few[name]["question"]) <= rows[name] for name in few)
    places = [
        checked.problems[name].index[checked.problems[name]["question"].isin(few[name]["question"])]
        for name in ("GSM-i", "GSM-i-Syn")
    ]
    assert places[0].equals(places[1])
