"""The network of all-MiniLM-L6-v2 on numpy: a BERT encoder of six layers, the mean over the tokens, length 1.

Weights are named and shaped as in the published file: a linear layer is `x @ weight.T + bias`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from attrs import field, frozen
from safetensors.numpy import load
from tokenizers import Tokenizer

Array: TypeAlias = npt.NDArray[np.float32]
LAYERS = 6  # as the model was published, like the next two
HEADS = 12
HEAD_WIDTH = 32
MOST_PIECES = 256
"""Word pieces that are read of a text, its two marks included; the rest is cut off. The model was trained so."""
MOST_TOGETHER = 2048
"""Word pieces, padding included, that go through the network together. It bounds the memory of a call."""
TINY = np.float32(1e-12)  # layer_norm_eps of the published configuration
MASKED = np.float32(-1e9)
ERF_END = 6.0  # in single precision erf(6 / sqrt(2)) is 1
ERF_STEPS = 8192  # linear between them: off by 3e-8 at most, below what single precision rounds
_erf_at = np.array([math.erf(i * ERF_END / ERF_STEPS / math.sqrt(2)) for i in range(ERF_STEPS + 2)])
ERF = _erf_at[:-1].astype(np.float32)
ERF_RISE = np.diff(_erf_at).astype(np.float32)


@frozen
class Encoded:
    """One vector for each text, and how many word pieces were read."""

    vectors: tuple[tuple[float, ...], ...]
    pieces: int


@frozen(eq=False)
class Network:
    """A tokenizer and weights. Nothing in it changes."""

    tokenizer: Tokenizer = field(repr=False)
    weights: Mapping[str, Array] = field(repr=False)

    @classmethod
    def of(cls, tokenizer: bytes, weights: bytes) -> Network:
        """From the content of `tokenizer.json` and `model.safetensors`."""
        reader = Tokenizer.from_str(tokenizer.decode("utf-8"))
        reader.no_padding()
        reader.enable_truncation(MOST_PIECES)
        return cls(reader, load(weights))

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Vectors of 384 numbers and length 1. A text that occurs twice is read once."""
        # One by one: the tokenizer's own batches start threads, which a process that forks later warns about.
        # Without lone surrogates, which the tokenizer refuses.
        readings = {text: self.tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8")).ids for text in texts}
        vectors: dict[str, tuple[float, ...]] = {}
        for batch in _batches({text: len(ids) for text, ids in readings.items()}):
            rows = self._forward([readings[text] for text in batch])
            vectors |= zip(batch, (tuple(row) for row in rows.tolist()), strict=True)
        return Encoded(tuple(vectors[text] for text in texts), sum(map(len, readings.values())))

    def _forward(self, pieces: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, pieces))
        ids = np.zeros((len(pieces), longest), dtype=np.int64)
        real = np.zeros((len(pieces), longest), dtype=np.float32)
        for row, own in enumerate(pieces):
            ids[row, : len(own)] = own
            real[row, : len(own)] = 1
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        places = self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kind = self.weights["embeddings.token_type_embeddings.weight"][0]
        x = self._normalized(words + places + kind, "embeddings.LayerNorm")
        hidden = (1 - real)[:, None, None, :] * MASKED
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            mixed = self._linear(self._attention(x, hidden, f"{name}.attention.self"), f"{name}.attention.output.dense")
            x = self._normalized(x + mixed, f"{name}.attention.output.LayerNorm")
            wide = _gelu(self._linear(x, f"{name}.intermediate.dense"))
            x = self._normalized(x + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        mean = (x * real[:, :, None]).sum(axis=1) / real.sum(axis=1, keepdims=True)
        unit: Array = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit

    def _attention(self, x: Array, hidden: Array, name: str) -> Array:
        texts, places, width = x.shape
        query, key, value = (
            self._linear(x, f"{name}.{part}").reshape(texts, places, HEADS, HEAD_WIDTH).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(-1, -2) / np.float32(math.sqrt(HEAD_WIDTH)) + hidden
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed: Array = (shares @ value).transpose(0, 2, 1, 3).reshape(texts, places, width)
        return mixed

    def _linear(self, x: Array, name: str) -> Array:
        product: Array = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return product

    def _normalized(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + TINY)
        scaled: Array = centred / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return scaled


def _gelu(x: Array) -> Array:
    """`x * (1 + erf(x / sqrt(2))) / 2`.

    numpy has no erf. Between the points of a table of it, 0.0007 apart, a straight line is off by at most 4e-8, less
    than single precision can show, and this is faster than a formula.
    """
    place = np.minimum(np.abs(x), np.float32(ERF_END)) * np.float32(ERF_STEPS / ERF_END)
    step = place.astype(np.int32)
    erf = np.copysign(ERF[step] + ERF_RISE[step] * (place - step.astype(np.float32)), x)
    return x * (np.float32(0.5) + np.float32(0.5) * erf)


def _batches(lengths: Mapping[str, int]) -> Iterator[list[str]]:
    """Texts of similar length together, so that little is padded."""
    batch: list[str] = []
    for text in sorted(lengths, key=lambda text: lengths[text]):  # the longest of a batch comes last
        if batch and (len(batch) + 1) * lengths[text] > MOST_TOGETHER:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch
