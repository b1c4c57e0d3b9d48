"""How many originals GPT-4 and word frequency find, by two ways to count an E."""

from contamination.data import published
from contamination.dcq import controls


def test_word_frequency_is_behind_or_level_by_how_e_counts():
    """Word frequency is behind where both leave out as many, and level where E is a quarter."""
    rule = published.rule_choices().query("control == 'word frequency'")
    answers = published.released_instances("DCQ").query("model == 'GPT-4'")
    levels = controls.mean_levels(controls.compare_rules(rule, answers, n_resamples=10))
    assert levels.index.tolist() == list(controls.CLAIMED_BY)
    assert levels.loc["equal coverage"].round(1).tolist() == [61.7, 67.0]
    assert levels.loc["E a quarter"].round(1).tolist() == [71.7, 71.7]
