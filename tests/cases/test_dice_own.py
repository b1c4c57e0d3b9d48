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
from contamination.cases import pairs
from contamination.cases.settings import Pairs
from contamination.core import run
from contamination.core.verdicts import OPEN
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
    names = {"own_settings": given, "sentence_model": "", "world_seed": 0}
    assert len(part_c) == 3
    for cell in ("imports", "imports-2", "own-check", *part_c):
        exec(compile(source[cell], cell, "exec"), names)  # noqa: S102
    return names


TABLES = ("accuracy", "inflation", "layers", "auroc", "correlation")


def test_checkpoints_give_the_tables_and_figures_of_the_lab(
    base, checkpoints, files, tmp_path, monkeypatch
):
    given = settings(base, files[0], {"checkpoints": checkpoints})
    names = run_part_c(given, tmp_path, monkeypatch)
    for folder, written in (
        ("tables", TABLES),
        ("figures", ("layers", "auroc_layers", "flags", "datasets")),
    ):
        paths = (tmp_path / "out" / folder).iterdir()
        assert {path.stem for path in paths} == {f"dice_own_{name}" for name in written}
    scores = names["own_scores"]
    assert set(scores["condition"]) == {"clean", *CONDITIONS, "GSM-i x1"}
    # Every model on every set of Table 1; the row that no rule can score is in none.
    assert scores.groupby("condition")["benchmark"].nunique().eq(4).all()
    assert set(scores["n"]) == {6} and scores["dose_pct"].isna().all()
    assert set(scores.loc[scores["condition"] == "GSM-i x5", "paper"].dropna()) >= {"94.1", "15.7"}
    second = names["own_auroc"]
    assert set(second["tested_on"]) == set(mixtures.IN_DISTRIBUTION)
    assert set(second["method"]) == {"DICE", "mean difference", *answers.BASELINES}
    # All models are random: another clean model is told apart as well as a contaminated one.
    dice = second[(second["method"] == "DICE") & (second["tested_on"] == "GSM-ii")]
    dice = dice[dice["trained_on"] == "GSM-i x5"]
    assert dice["auroc_pct"].min() > 90 and dice["two_clean_pct"].min() > 90
    assert set(dice["verdict"]) == {OPEN}  # of two pairs of models
    layers = names["own_layers"]
    assert set(layers.loc[layers["model"] == "MATH x5", "dataset"]) == {"MATH"}
    assert layers["null_mean"].notna().all()
    assert [len(panel) for panel in names["panels"].values()] == [2, 2]


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
    scores = pairs.accuracies(mine, checked, pairs.trained_pairs(mine, checked))
    assert scores["accuracy_pct"].tolist() == pytest.approx([100 / 6] * len(scores))
    released = scores["accuracy_released_rules_pct"].tolist()
    assert released == pytest.approx([200 / 6] * len(scores))


def test_trained_pairs_give_the_same_tables(base, files, tmp_path, monkeypatch):
    how = {"own_conditions": ["GSM-i x5", "GSM-i-Syn x5"], "n_references": 2}
    how |= {"own_learning_rate": 3e-2, "own_batch_size": 4}
    names = run_part_c(settings(base, *files, how), tmp_path, monkeypatch)
    scores = names["own_scores"]
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"checkpoints": {"clean": 1, "GSM-i x5": 2}}, '"clean" needs two models or more'),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 1}}, '"GSM-i x5" needs two models or more'),
        ({"checkpoints": {"clean": 2}}, '"GSM-i x5" needs two models or more'),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 2, "GSM-i": 1}}, '"GSM-i" is not a condition'),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 2, "SVAMP x5": 1}}, "needs problems of SVAMP"),
        ({"checkpoints": {"clean": "folder"}}, "must be a list of different models"),
        ({"checkpoints": {"clean": ["a", "a"]}}, "must be a list of different models"),
        ({"own_vanilla": "vanilla", "model": {"dtype": "int8"}}, "want float32 or bfloat16"),
        ({"checkpoints": {"clean": 2, "GSM-i x5": 2}, "model": {}}, "name the base in model"),
        (
            {"checkpoints": {"clean": 2, "GSM-i x5": 2}, "own_vanilla": "x"},
            "and either checkpoints to score or",
        ),
        ({}, "either checkpoints to score or own_vanilla"),
        ({"own_vanilla": "none.csv"}, "none.csv"),
        ({"own_vanilla": "vanilla", "vanilla_columns": ["q", "response"]}, 'no column "q"'),
        ({"own_vanilla": "vanilla", "own_rows": 30}, "leave no room"),
        ({"own_vanilla": "vanilla", "own_rows": 900}, "200 vanilla rows"),
        ({"own_vanilla": "vanilla", "n_references": 1}, '"clean" needs two models or more'),
        ({"own_vanilla": "vanilla", "paper_model": "GPT"}, "want empty or LLaMA2-7B"),
        ({"problem_sets": {"GSM-i": "file"}, "own_vanilla": "vanilla"}, "with .file or hub id"),
        ({"problem_sets": {"GSM-9": []}, "own_vanilla": "vanilla"}, '"GSM-9" must be one of'),
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
    kept = checked.sets.set_index("benchmark")
    n = kept["n"] + kept["n_left_out"]
    assert n["GSM-i"] == n["GSM-i-Syn"] and 650 < n["GSM-i"] <= 657
    assert n["GSM-hard"] > 1300 and kept["n_left_out"]["GSM-i"] == 0
    # MATH is on the hub only; TabMWP, clearly of another kind as well, stands for it.
    assert checked.topic == "TabMWP" and "MATH" not in checked.problems
    few = pairs.check_pairs(mine.model_copy(update={"n_questions": 20})).problems
    rows = {name: set(checked.problems[name]["question"]) for name in checked.problems}
    assert all(len(few[name]) <= 20 and set(few[name]["question"]) <= rows[name] for name in few)
    places = [
        checked.problems[name].index[checked.problems[name]["question"].isin(few[name]["question"])]
        for name in ("GSM-i", "GSM-i-Syn")
    ]
    assert places[0].equals(places[1])
