"""Dialogue summary and one-sentence summary: what the summary names stays, the rest is wording."""

from contamination.lab.benchmarks.reading import read_benchmarks

DIALOGUES, HEADLINES = read_benchmarks("summaries").values()
