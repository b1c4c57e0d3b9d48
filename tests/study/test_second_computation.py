"""Tables of the study, recomputed from the ledger's files by other code: numpy and no helper.

AUCs are counted pair by pair, assignments are drawn again from the SHA-256 that the protocol
names, and the exact test is checked against the normal distribution of a sum of ranks with ties.
"""

import hashlib
import json
from math import erfc, sqrt

import numpy as np
import pandas as pd
import pytest

from contamination.study import detection, length, placement, power, reference_attack, store
from contamination.study.scores import read_scores

SIZES = ((1, 60), (4, 60), (16, 60), (0, 300))
BENCHMARKS = ("topics", "entailment", "grade_school")
SEEDS = range(300, 320)


def copies_of(seed, benchmark):
    """The assignment of the protocol: a permutation seeded by eight bytes of a hash."""
    name = json.dumps([seed, benchmark, "rows"], separators=(",", ":"))
    drawn = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    copies = np.repeat([n for n, _ in SIZES], [size for _, size in SIZES])
    return np.random.default_rng(drawn).permutation(copies)


def files(name):
    """Scores of the verbatim rows: by detector, benchmark and seed, shape (480,)."""
    found = {}
    for seed in SEEDS:
        table = pd.read_parquet(store.FOLDER / f"{name}_{seed}_scores.parquet")
        own = table[table["model"].eq("pretrained") & table["pool"].eq("rows")]
        for (detector, benchmark), part in own.groupby(["detector", "benchmark"], observed=True):
            values = np.full(480, np.nan)
            values[part["row"]] = part["score"]
            found[detector, benchmark, seed] = values
    return found


@pytest.fixture(scope="module", params=["pretraining", "larger"])
def both(request):
    return files(request.param), read_scores(request.param)


def pairwise_auc(seen, held_out):
    higher = (seen[:, None] > held_out).mean()
    return higher + (seen[:, None] == held_out).mean() / 2


def mean_auc(scores, detector, is_seen):
    """Mean over models and benchmarks; ``is_seen`` says which rows of a model count."""
    return np.mean(
        [
            pairwise_auc(values[is_seen(seed, benchmark)], values[copies_of(seed, benchmark) == 0])
            for (name, benchmark, seed), values in scores.items()
            if name == detector
        ]
    )


def test_the_exact_test_agrees_with_the_normal_distribution_of_ranks(both):
    """Mean AUCs, and p-values within the error of 9,999 re-deals."""
    scores, frame = both
    asked = ("Min-k% Prob", "CoDeC", "option ranking (not DCQ)")
    pools = {detector: detection.crossed_scores(frame, detector) for detector in asked}
    for copies in (1, 4):
        found = detection.joint_p_values(pools, copies, 9_999)
        for detector in asked:
            auc = mean_auc(scores, detector, lambda s, b, n=copies: copies_of(s, b) == n)
            variances = []
            for (name, benchmark, seed), values in scores.items():
                if name != detector:
                    continue
                kept = values[np.isin(copies_of(seed, benchmark), [0, copies])]
                _, ties = np.unique(kept, return_counts=True)
                n, m = 60, 300
                lost = (ties**3 - ties).sum() / ((n + m) * (n + m - 1))
                variances.append((n + m + 1 - lost) / (12 * n * m))
            z = (auc - 0.5) / (sqrt(sum(variances)) / len(variances))
            expected = max(erfc(z / sqrt(2)) / 2, 1e-4)
            error = 4 * sqrt(expected / 1e4) + 2e-4
            assert abs(found[detector] - expected) < error, (detector, copies, found, expected)


def test_aucs_by_the_fifth_of_the_training(both):
    scores, frame = both
    steps = {}
    for seed in SEEDS:
        table = pd.read_parquet(store.FOLDER / f"positions_{seed}_copies.parquet")
        n_steps = json.loads((store.FOLDER / f"positions_{seed}.json").read_text())["n_steps"]
        for row in table[table["pool"].eq("rows")].itertuples():
            steps[seed, row.benchmark, row.row] = (row.step + 0.5) / n_steps
    table = placement.timing(frame, ["Min-k% Prob"]).set_index(["detector", "part"])
    for part in (1, 5):

        def in_part(seed, benchmark, part=part):
            once = copies_of(seed, benchmark) == 1
            place = [steps.get((seed, benchmark, row), 0) for row in range(480)]
            return once & (np.minimum((5 * np.array(place)).astype(int), 4) + 1 == part)

        expected = mean_auc(scores, "Min-k% Prob", in_part)
        assert table.loc[("Min-k% Prob", str(part)), "auc"] == pytest.approx(expected)


def test_every_copy_has_a_step_and_each_equal_part_of_the_training_has_one():
    for seed in (300, 311):
        table = pd.read_parquet(store.FOLDER / f"positions_{seed}_copies.parquet")
        n_steps = json.loads((store.FOLDER / f"positions_{seed}.json").read_text())["n_steps"]
        for benchmark in BENCHMARKS:
            own = table[table["pool"].eq("rows") & table["benchmark"].eq(benchmark)]
            counts = np.bincount(own["row"], minlength=480)
            assert counts.tolist() == copies_of(seed, benchmark).tolist()
            often = own[own.groupby("row")["row"].transform("size").eq(16)]
            place = (often["step"] + 0.5) / n_steps * 16
            # Packing moves a text by a block or two.
            assert (np.abs(place - (often["copy"] - 0.5)) < 0.7).mean() > 0.95


def test_rates_at_each_models_own_threshold(both):
    scores, frame = both
    table = power.true_positive_rates(frame[frame["detector"].isin(["Min-k% Prob", "PPL"])])
    for copies, n_false in ((1, 15), (16, 3)):
        shares = []
        for (name, benchmark, seed), values in scores.items():
            if name == "Min-k% Prob":
                held_out = np.sort(values[copies_of(seed, benchmark) == 0])
                threshold = held_out[-1 - n_false]
                shares.append((values[copies_of(seed, benchmark) == copies] > threshold).mean())
        row = table[table["detector"].eq("Min-k% Prob") & table["copies"].eq(copies)]
        found = row.loc[row["fpr"].eq(n_false / 300), "tpr"].item()
        assert found == pytest.approx(np.mean(shares))


def test_rows_needed_find_rows_in_four_of_five_simulated_audits():
    """Two normal distributions, as many rows as the table says, a rank test at the 5 % level."""
    generator = np.random.default_rng(0)
    for auc in (0.55, 0.63, 0.74):
        n = int(np.ceil(power.rows_needed(auc)))
        distance = float(power.distance(auc))
        found = []
        for _ in range(2_000):
            seen, held_out = generator.normal(size=(2, n)) + np.array([[distance], [0]])
            wins = n * n - np.searchsorted(np.sort(seen), held_out).sum()
            found.append((wins / n**2 - 0.5) / np.sqrt((2 * n + 1) / (12 * n * n)) > 1.6449)
        assert np.mean(found) == pytest.approx(0.8, abs=0.035)
        assert power.power(auc, n) >= 0.8 > power.power(auc, n - 1)
        draws = generator.normal(size=(2, 200_000)) + np.array([[distance], [0]])
        assert (draws[0] > draws[1]).mean() == pytest.approx(auc, abs=0.005)


def test_false_alarms_of_noise_are_few_and_of_length_many():
    """A perfect measure of length tells the sets apart, and nothing tells equal ones apart."""
    frame = read_scores()
    table = length.false_alarms(frame, ["noise", "length"]).set_index(["detector", "difference"])
    assert table.loc["noise", "rate"].max() < 0.12
    assert table.loc["length", "rate_longer"].loc[[1.0, length.MAXIMUM]].min() == 1
    assert table.loc[("length", 0.0), "rate_longer"] < 0.12
    found = table.loc["length", "difference_found"]
    assert found.loc[[0.0, 0.25, 0.5, 1.0]].to_numpy() == pytest.approx([0, 0.25, 0.5, 1], abs=0.06)


def test_false_alarms_of_other_draws_come_as_often():
    """Own draws from the held-out rows, and a normal test of the rank sum with ties."""
    scores, generator = files("pretraining"), np.random.default_rng(1)
    table = length.false_alarms(read_scores(), ["Min-k% Prob", "Zlib"])
    table = table.set_index(["detector", "difference"])["rate_longer"]
    for detector in ("Min-k% Prob", "Zlib"):
        alarms = []
        for (name, benchmark, seed), values in scores.items():
            if name != detector:
                continue
            held_out = np.flatnonzero(copies_of(seed, benchmark) == 0)
            sizes = scores["length", benchmark, seed][held_out]
            for _ in range(20):
                mixed = held_out[generator.permutation(len(held_out))]
                is_long = scores["length", benchmark, seed][mixed] >= np.median(sizes)
                longer, shorter = values[mixed[is_long][:60]], values[mixed[~is_long][:60]]
                _, ties = np.unique(np.concatenate([longer, shorter]), return_counts=True)
                lost = (ties**3 - ties).sum() / (120 * 119)
                error = sqrt((121 - lost) / (12 * 60 * 60))
                alarms.append((pairwise_auc(longer, shorter) - 0.5) / error > 1.645)
        assert table[detector, length.MAXIMUM] == pytest.approx(np.mean(alarms), abs=0.1)


def test_the_reference_attack_at_both_sizes(both):
    """Row by row: the score less the mean of its shadow models, over a shrunk deviation."""
    scores, frame = both
    pools = {pool.name: pool for pool in detection.attack_pools(frame)}
    for benchmark in BENCHMARKS:
        copies = np.array([copies_of(seed, benchmark) for seed in SEEDS])
        means = np.array([-np.log(-scores["PPL", benchmark, seed]) for seed in SEEDS])
        means = means - np.median(means, axis=1, keepdims=True)
        attacked = np.empty(means.shape)
        for model in range(len(SEEDS)):
            others = np.arange(len(SEEDS)) != model
            of_rows = [means[others & (copies[:, row] == 0), row] for row in range(480)]
            squares = np.array([((one - one.mean()) ** 2).sum() for one in of_rows])
            degrees = np.array([len(one) - 1 for one in of_rows])
            variance = (8 * squares.sum() / degrees.sum() + squares) / (8 + degrees)
            centre = np.array([one.mean() for one in of_rows])
            attacked[model] = (means[model] - centre) / np.sqrt(variance)
        found = reference_attack.lira_scores(pools[f"{benchmark} rows"]).scores
        np.testing.assert_allclose(found, attacked, rtol=1e-6, atol=1e-9)
