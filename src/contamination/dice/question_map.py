"""Figure 3 of the DICE paper: a map of the questions, on which similar ones lie close together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from contamination.dice.mixtures import IN_DISTRIBUTION, Problems
from contamination.models import sentences

MOST_OF_A_SET = 500  # questions on a map; more take minutes and hide one another
LARGEST_PERPLEXITY = 30  # of the t-SNE; a third of the questions where they are few


def question_map(
    problems: Mapping[str, Problems], sentence_model: str, seed: int, by_set: bool = False
) -> Figure:
    """The map of some sets of problems (t-SNE), with how many questions lie nearest to their kind.

    Args:
        problems: name of a set to its questions; of a large set ``MOST_OF_A_SET`` are drawn.
        sentence_model: folder or hub id of an encoder whose mean token vector is a question's
            (all-MiniLM-L6-v2 in the paper); empty for TF-IDF of the words.
        seed: of the map.
        by_set: a colour for each set; otherwise one for the GSM sets and one for all others.
    """
    asked = {
        name: rows.sample(MOST_OF_A_SET, random_state=seed) if len(rows) > MOST_OF_A_SET else rows
        for name, rows in problems.items()
    }
    names = np.repeat(list(asked), [len(rows) for rows in asked.values()])
    questions = [text for rows in asked.values() for text in rows["question"]]
    if sentence_model:
        vectors = sentences.mean_vectors(sentences.load_mean_encoder(sentence_model), questions)
    else:
        vectors = TfidfVectorizer().fit_transform(questions).toarray()
    nearest = NearestNeighbors(n_neighbors=1, metric="cosine").fit(vectors).kneighbors()[1][:, 0]
    perplexity = min(LARGEST_PERPLEXITY, (len(questions) - 1) / 3)
    points = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(vectors)
    kind = np.where(np.isin(names, IN_DISTRIBUTION), "GSM sets", "other families")
    hue = names if by_set else kind
    grid = sns.relplot(x=points[:, 0], y=points[:, 1], hue=hue, style=hue, height=4, aspect=1.3)
    share = f"{100 * (kind == kind[nearest]).mean():.0f} % of {len(questions)} questions"
    # A neighbour drawn at random is one of the other questions.
    n_of_kind = np.unique(kind, return_counts=True)[1]
    by_chance = 100 * (n_of_kind * (n_of_kind - 1)).sum() / (len(kind) * (len(kind) - 1))
    title = f"{share} lie nearest to one of their own kind (by chance: {by_chance:.0f} %)"
    grid.set(xticks=[], yticks=[])
    grid.set_titles("")
    grid.axes[0, 0].set_title(title, fontsize="medium")
    return grid.figure
