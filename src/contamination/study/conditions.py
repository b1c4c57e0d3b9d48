"""The words of the study: what a model read of a dataset, and what it did before and after."""

VERBATIM = "verbatim"
WITHOUT_LABEL = "without label"
WRONG_LABEL = "wrong label"
PARAPHRASE = "paraphrase"
SEVERAL = "several paraphrases"
TRAIN_SPLIT = "train split"
FRESH = "fresh rows"
# Under the model that read a whole set shuffled; FRESH is under the one that read it in order.
FRESH_BESIDE = "fresh rows beside shuffled"
UNREAD = (TRAIN_SPLIT, FRESH)
NOTHING_READ = (*UNREAD, FRESH_BESIDE)  # no tested row is read: a flag is a false alarm
FEW = (VERBATIM, *UNREAD)  # what gates and false alarms need
ELSEWHERE = (VERBATIM, SEVERAL, *UNREAD)  # in mini-benchmarks beside the first
READ = (VERBATIM, WITHOUT_LABEL, WRONG_LABEL, PARAPHRASE, SEVERAL)
DEALT = (*READ, *UNREAD)
# The arm of whole sets: a document holds consecutive rows, in one order or in another.
ORDERED, SHUFFLED = "published order", "same rows, shuffled"
# One of two wordings of each row is read, which of them is dealt; only a real model is asked.
SWAP = "one of two wordings"
CONDITIONS = (*READ, ORDERED, SHUFFLED, SWAP, *NOTHING_READ)

TRUTHS = {
    VERBATIM: "read word for word, with its label",
    WITHOUT_LABEL: "read without its label",
    WRONG_LABEL: "read with a wrong label",
    PARAPHRASE: "a paraphrase was read",
    SEVERAL: "several paraphrases were read",
    TRAIN_SPLIT: "only the train split was read",
    FRESH: "never read",
    FRESH_BESIDE: "never read",
    ORDERED: "read in published order",
    SHUFFLED: "read, shuffled",
    SWAP: "the original or a paraphrase was read",
}

BASE, CLEAN, DOSED = "base", "clean", "dosed"
LATER, LONG = "dosed, then clean text", "dosed, then long clean text"
ALONE = "dosed, verbatim alone"  # read no other dataset beside this one
FULL = "dosed, all weights trained"  # the others of a real model by low-rank adapters
PLACEBO = "dosed, placebo name"  # the dosed model, asked under a name that nothing was read under
READERS = (DOSED, LATER, LONG, ALONE, FULL)
MODELS = (BASE, CLEAN, *READERS, PLACEBO)

# Detectors that see no model, cross-fitted: of rows by unit, of whole sets by halves of the rows.
TEXT_ALONE, TEXT_ALONE_SETS = "text alone", "text alone, whole sets"
