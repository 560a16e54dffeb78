"""The label classifier: backbone states in, one logit a label out."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from plant.model.label_attention import Head, LabelAttention


@dataclass(frozen=True)
class Documents:
    """A padded batch of documents as the classifier reads it.

    Attributes:
        mask: (B, n), True at tokens.
        input_ids: (B, n), or None where features are cached.
        features: (B, n, h) cached hidden states, or None.
    """

    mask: Tensor
    input_ids: Tensor | None = None
    features: Tensor | None = None


class LabelClassifier(nn.Module):
    """Backbone, label attention and head (section 2).

    Args:
        backbone: maps (input_ids, mask) to H; None where every batch brings cached features.
        n_labels: |L| of the labels that have training documents.
        hidden_size: h.
        heads: G of the label attention.
        pool_size: p.
        mask_padding: False lets label attention see padding (a documented fault of the field, to compare).
    """

    def __init__(
        self,
        backbone: nn.Module | None,
        *,
        n_labels: int,
        hidden_size: int,
        heads: int,
        pool_size: int,
        mask_padding: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.attention = LabelAttention(n_labels, hidden_size, heads)
        self.head = Head(n_labels, hidden_size, pool_size)
        self.mask_padding = mask_padding

    @property
    def n_labels(self) -> int:
        return self.attention.embeddings.shape[0]

    @property
    def needs_loss_scaling(self) -> bool:
        """True where gradients pass through fp16 on a GPU: small ones would round to zero."""
        if self.backbone is None or self.attention.embeddings.device.type != "cuda":
            return False
        return getattr(self.backbone, "precision", "fp32") == "fp16"

    def hidden_states(self, documents: Documents) -> Tensor:
        """H (B, n, h)."""
        if documents.features is not None:
            return documents.features
        if self.backbone is None or documents.input_ids is None:
            raise ValueError("hidden_states: a batch without features needs a backbone and input ids")
        return self.backbone(documents.input_ids, documents.mask)

    def logits(self, hidden: Tensor, mask: Tensor, labels: Tensor | None = None) -> Tensor:
        """Logits of the labels asked for, in the folded form.

        Args:
            hidden: H (B, n, h).
            mask: (B, n).
            labels: ids (B, m), or None for all.

        Returns:
            (B, m) or (B, |L|).
        """
        allowed = mask if self.mask_padding else None
        return self.head(self.attention.attend(hidden, labels, allowed), self.attention.output, labels)

    @torch.no_grad()
    def predict(self, documents: Documents) -> Tensor:
        """Logits of all labels, without gradient."""
        return self.logits(self.hidden_states(documents), documents.mask)
