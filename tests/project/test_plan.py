"""The plan of a large study: the page is what the script computes, and the sums are right."""

import sys

import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.core.parameters import ParameterError

sys.path.append(str(ROOT / "benchmarks"))
import plan as planning

UNITS = pd.DataFrame(
    {"input": [10, 20, 30, 40], "output": [4, 1, 5, 2], "bytes": [100.0, 200.0, 300.0, 400.0]},
    index=["perturbation", "quiz", "completion", "verdict"],
)
TWO = planning.Assumptions(
    n_hosted_models=1,
    open_model_sizes=[1.0],
    open_model_counts=[1],
    open_model_widths=[8],
    n_benchmarks=3,
    n_quiz_instances=10,
    n_positions=4,
    n_replicated_instances=2,
    n_instructions=3,
    n_passages=100,
    passage_tokens=50,
    n_neighbors=2,
    reference_share=0.5,
    n_clean_models=2,
    n_fine_tuning_rows=1000,
    row_tokens=10,
    n_questions=7,
    n_states=2,
    scoring_tflops=1.0,
    training_tflops=0.5,
    generation_tflops=0.1,
)


def test_the_page_is_what_the_script_prints(capsys):
    planning.main([])
    assert capsys.readouterr().out == planning.PAGE.read_text()


def test_calls_tokens_hours_and_bytes_by_hand():
    steps = planning.costs(TWO, UNITS, forward=2.0, training=6.0, scored=12.0).set_index("step")
    # 3 benchmarks x 10 instances, perturbed once; 2 models x 30 x (1 + 4) quizzes.
    assert steps["calls"].dropna().tolist() == [30, 300, 36, 36]
    assert steps.loc["modified and standard quizzes", "input_tokens"] == 6000
    assert steps.loc["verdicts of the ICL judge", "storage_gb"] == pytest.approx(36 * 400 / 1e9)
    hours = steps["gpu_hours"]
    # The open model answers half of the quizzes: 150 x (20 / 1e12 + 1 / 1e11) x 1e9 x 2.
    quiz = 150 * (20 / 1e12 + 1 / 1e11) * 2e9 / 3600
    assert hours["modified and standard quizzes"] == pytest.approx(quiz)
    # 3 x 100 passages of 50 tokens, as they are and lowercased.
    assert hours["passages, also lowercased"] == pytest.approx(2 * 15_000 * 2e9 / 1e12 / 3600)
    assert steps.loc["neighbours", "storage_gb"] == pytest.approx(2 * 15_000 * 12 / 1e9)
    # 2 clean and 3 contaminated models read 10,000 tokens each.
    tuned = 5 * 10_000 * 6e9 / 0.5e12 / 3600
    assert hours["fine-tunings, checkpoints kept"] == pytest.approx(tuned)
    assert steps.loc["fine-tunings, checkpoints kept", "storage_gb"] == pytest.approx(5 * 4)
    # 3 benchmarks x 3 models x 7 questions x 2 layers x 8 numbers of 4 bytes.
    assert steps.loc["hidden states", "storage_gb"] == pytest.approx(63 * 2 * 8 * 4 / 1e9)


def test_a_plan_of_ones_own_is_read_strictly(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("n_benchmark: 3\n")
    with pytest.raises(ParameterError, match='did you mean "n_benchmarks"'):
        planning.main([str(path)])
