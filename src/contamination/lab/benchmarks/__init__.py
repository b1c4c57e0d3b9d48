"""The mini-benchmarks by name: one for each kind of task in the papers."""

from contamination.lab.benchmarks.arithmetic import GRADE_SCHOOL, HARDER_NUMBERS, ONE_STEP
from contamination.lab.benchmarks.classification import REVIEWS, TOPICS
from contamination.lab.benchmarks.events import event_articles
from contamination.lab.benchmarks.inference import ENTAILMENT, PRONOUNS
from contamination.lab.benchmarks.other_arithmetic import (
    ALGEBRA,
    COMPARISONS,
    DISTRACTORS,
    EQUATIONS,
    TABLES,
)
from contamination.lab.benchmarks.summaries import DIALOGUES, HEADLINES

OTHER_DISTRIBUTIONS = (DISTRACTORS, EQUATIONS, COMPARISONS, TABLES, ALGEBRA)
BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        TOPICS,
        REVIEWS,
        PRONOUNS,
        ENTAILMENT,
        DIALOGUES,
        HEADLINES,
        GRADE_SCHOOL,
        HARDER_NUMBERS,
        ONE_STEP,
        *OTHER_DISTRIBUTIONS,
        event_articles(),
    )
}

__all__ = ["BENCHMARKS", "OTHER_DISTRIBUTIONS", "event_articles"]
