"""A language model of the training texts, from which an AWD-LSTM encoder starts (Howard and Ruder 2018; A.3, A.6).

    log P(t_{j+1} | t_1, ..., t_j) = log softmax(E_w h_j + b)

E_w is the embedding itself, so that the model has one bias more than the encoder. A backward encoder predicts the token
before. The validation measure is the mean log-likelihood in nats per token. Its negative exponential is the perplexity.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from plant.corpus.reader import load_tokens
from plant.ground.checkpoints import load_tensors
from plant.ground.errors import InputError
from plant.ground.seeds import stream
from plant.ground.settings import LanguageModel, WordNetwork
from plant.model.batches import Corpus, ordered_batches, pad_documents, shuffled_batches
from plant.model.encoders.awd_lstm import AwdLstmBackbone, build
from plant.model.fitting import Group, Task, TrainingRun, fit
from plant.model.parallel import processes
from plant.model.word_vectors import rows_of

ROWS = 2**24  # logits that exist at one time in validation: tokens times words


class NextToken(nn.Module):
    """The encoder and the bias of the output layer."""

    def __init__(self, backbone: AwdLstmBackbone) -> None:
        super().__init__()
        self.backbone = backbone
        self.bias = nn.Parameter(torch.zeros(len(backbone.embedding.weight)))

    def log_likelihood(self, input_ids: Tensor, mask: Tensor) -> tuple[Tensor, int]:
        """Sum of the log-probabilities of all tokens that have one before them, in nats, and their number."""
        states = self.backbone(input_ids, mask)  # (B, n, e)
        backward = self.backbone.network.backward_reading
        # the state at j predicts j + 1; read backward, the state at j + 1 predicts j
        known, asked = (slice(1, None), slice(None, -1)) if backward else (slice(None, -1), slice(1, None))
        both = mask[:, 1:]  # the two tokens of a pair exist where the later one does
        states, targets = states[:, known][both], input_ids[:, asked][both]  # (N, e), (N)
        total = states.new_zeros(())
        rows = max(1, ROWS // len(self.bias))
        for part, wanted in zip(states.split(rows), targets.split(rows), strict=True):
            logits = part @ self.backbone.embedding.weight.T + self.bias  # (rows, V)
            total = total - F.cross_entropy(logits, wanted, reduction="sum")
        return total, len(targets)


def train_language_model(
    backbone: AwdLstmBackbone, corpus: Corpus, settings: LanguageModel, run: TrainingRun, *, device: torch.device
) -> list[dict[str, float]]:
    """Train on the training texts; the backbone keeps the weights of the epoch with the best validation likelihood.

    Returns:
        History, one row per epoch: loss, log_likelihood (nats per token, at most 0) and perplexity of validation.

    Raises:
        InputError: no validation document has two tokens.
    """
    model = NextToken(backbone).to(device)
    train, val = corpus.documents("train"), corpus.documents("val")
    if not (corpus.length(val) > 1).any():
        raise InputError(
            "language_model", expected="a validation document with two tokens", got="none", fix="Use more documents."
        )

    def likelihood(batch: np.ndarray) -> tuple[Tensor, int]:
        documents = pad_documents(corpus, batch, device)
        assert documents.input_ids is not None
        return model.log_likelihood(documents.input_ids, documents.mask)

    def loss(batch: np.ndarray, _: int) -> tuple[Tensor, float]:
        batch = batch[processes().mine(len(batch))]
        if not len(batch):
            return torch.zeros(()), 0.0
        total, count = likelihood(batch)
        return -total, float(count)

    @torch.no_grad()
    def validate() -> dict[str, float]:
        sums = np.zeros(2)
        batches = ordered_batches(corpus, val, settings.batch_size)
        for batch in (batches[position] for position in processes().mine(len(batches))):
            total, count = likelihood(batch)
            sums += [float(total), count]
        total, count = processes().sum(sums).tolist()
        return {"log_likelihood": total / count, "perplexity": math.exp(min(700.0, -total / count))}

    task = Task(
        name="Language model", groups=[Group("all", list(model.parameters()), settings.learning_rate)],
        loss=loss, validate=validate, monitor="log_likelihood",
        batches=lambda epoch: shuffled_batches(corpus, train, settings.batch_size, seed=run.seed, epoch=epoch),
    )  # fmt: skip
    return fit(model, task, settings, run)


def start_encoder(settings: WordNetwork, tokens: Path) -> tuple[AwdLstmBackbone, dict[str, int]]:
    """The encoder before any training: random weights, or published ones.

    A file of published weights holds the tensors of `AwdLstmBackbone` by name, and `words`: UTF-8 bytes, one word per
    line, one for each row of `embedding.weight`. A word of the corpus that the file lacks starts from the mean of its
    vectors, as in ULMFiT.

    Returns:
        The encoder, and facts for the record: words, and how many of them the file knows.

    Raises:
        InputError: the file is missing or of another form, other sizes, or of another vocabulary.
    """
    how = settings.language_model
    assert how is not None
    words = load_tokens(tokens).vocabulary
    torch.manual_seed(stream(how.seed, "initialisation"))
    options: dict[str, Any] = {**settings.options, "frozen": False}
    backbone = build(settings, "", vocabulary=len(words), **options)
    if how.start is None:
        return backbone, {"words": len(words)}
    source = Path(how.start)
    tensors = load_tensors(source)
    named = tensors.pop("words", torch.zeros(0, dtype=torch.uint8)).numpy()
    given = tensors.pop("embedding.weight", torch.zeros(0, 0))
    rows = torch.from_numpy(rows_of(source, words, named, len(given), "embedding.weight"))
    known = rows >= 0
    vectors = given.mean(0, keepdim=True).repeat(len(words), 1)
    vectors[known] = given[rows[known]]
    _put(backbone, {**tensors, "embedding.weight": vectors}, source)
    return backbone, {"words": len(words), "words_in_start": int(known.sum())}


def load_language_model(backbone: AwdLstmBackbone, source: Path) -> None:
    """Put saved weights into an encoder of the same sizes.

    Raises:
        InputError: the file is missing, or its sizes or its vocabulary are others.
    """
    _put(backbone, load_tensors(source), source)


def _put(backbone: AwdLstmBackbone, tensors: dict[str, Tensor], source: Path) -> None:
    try:
        backbone.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(
            str(source), expected="a language model of this vocabulary and these sizes",
            got=str(error).splitlines()[-1].strip("\t ."),
            fix="Delete it and run again, or name the model that belongs to the backbone.",
        ) from error  # fmt: skip
