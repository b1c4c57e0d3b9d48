"""The mini-benchmarks by name: one for each kind of task in the papers."""

from contamination.lab.benchmarks.arithmetic import (
    GRADE_SCHOOL,
    HARDER_NUMBERS,
    ONE_STEP,
    OTHER_DISTRIBUTIONS,
)
from contamination.lab.benchmarks.classification import ENTAILMENT, PRONOUNS, REVIEWS, TOPICS
from contamination.lab.benchmarks.events import event_articles
from contamination.lab.benchmarks.summaries import DIALOGUES, HEADLINES

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        *(TOPICS, REVIEWS, PRONOUNS, ENTAILMENT, DIALOGUES, HEADLINES),
        *(GRADE_SCHOOL, HARDER_NUMBERS, ONE_STEP, *OTHER_DISTRIBUTIONS),
        event_articles(),
    )
}

__all__ = ["BENCHMARKS", "OTHER_DISTRIBUTIONS", "event_articles"]
