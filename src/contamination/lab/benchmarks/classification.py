"""Topics, reviews, pronoun inference and entailment: one or two texts and a label they decide."""

from contamination.lab.benchmarks.reading import read_benchmarks

TOPICS, REVIEWS, PRONOUNS, ENTAILMENT = read_benchmarks("classification").values()
