"""Systems without a network, under the same scores contract as the trained ones.

- `tfidf_linear`: TF-IDF of word n-grams and one linear support vector machine a label (scikit-learn);
- `mig_log_odds`: naive Bayes on the presence of each label's few most informative words by MIG;
- `combined`: the weighted sum of the two, z-scored: the bar that a trained system has to beat;
- `tfidf_characters`: TF-IDF of n-grams of characters and a linear model, as `tfidf_linear`;
- `category_log_odds`: as `mig_log_odds`, of the label's category;
- `descriptions`: how much of a label's description the document holds;
- `mentions`: log-odds given the words that people marked in training texts as a label's reason.

Whatever a baseline chooses (C, the number of words, the weight, the slack) is chosen on validation by nDCG@5, the mean
over documents of how well their labels rank: it needs no threshold, and, unlike a mean over labels, it asks that the
scores of different labels can be compared, as a global threshold does. `choices.json` says what was tried.
"""

from plant.baselines.categories import category_log_odds
from plant.baselines.combined import combined
from plant.baselines.descriptions import descriptions
from plant.baselines.linear import tfidf_characters, tfidf_linear
from plant.baselines.log_odds import mig_log_odds
from plant.baselines.mentions import mentions

__all__ = [
    "category_log_odds", "combined", "descriptions", "mentions", "mig_log_odds", "tfidf_characters", "tfidf_linear",
]  # fmt: skip
