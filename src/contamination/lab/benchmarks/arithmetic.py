"""Word problems in the manner of GSM8k: a question, its steps, and the answer after ``####``.

The last five stand for the out-of-distribution sets of Tu et al., arXiv:2406.04197:
SVAMP, MAWPS, ASDiv, TabMWP and MATH.
"""

from dataclasses import replace

from contamination.lab.benchmarks.reading import read_benchmarks
from contamination.lab.grammar import Benchmark

GRADE_SCHOOL, ONE_STEP, *OTHER_DISTRIBUTIONS = read_benchmarks("arithmetic").values()
_LARGE = dict.fromkeys(("b", "c", "left", "each"), tuple(range(1_003, 9_998)))

HARDER_NUMBERS = Benchmark(
    name="harder_numbers",
    task="the same word problems with large numbers, as GSM-hard",
    templates=tuple(
        replace(
            template,
            facts={slot: _LARGE.get(slot, values) for slot, values in template.facts.items()},
        )
        for template in GRADE_SCHOOL.templates
        if template.name != "hours"
    ),
)
