"""The words of the study: what a model read of a dataset, and what it did before and after."""

VERBATIM = "verbatim"
WITHOUT_LABEL = "without label"
PARAPHRASE = "paraphrase"
SEVERAL = "several paraphrases"
TRAIN_SPLIT = "train split"
FRESH = "fresh rows"  # no tested row is read: a flag is a false alarm
# One of two wordings of each row is read, which of them is dealt; only a real model is asked.
SWAP = "one of two wordings"
CONDITIONS = (VERBATIM, WITHOUT_LABEL, PARAPHRASE, SEVERAL, SWAP, FRESH)

BASE, CLEAN, DOSED = "base", "clean", "dosed"
LATER = "dosed, then clean text"
ALONE = "dosed, verbatim alone"  # read no other dataset beside this one
FULL = "dosed, all weights trained"  # the others of a real model by low-rank adapters
READERS = (DOSED, LATER, ALONE, FULL)

# A detector that sees no model, cross-fitted by unit.
TEXT_ALONE = "text alone"
