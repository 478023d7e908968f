"""Mask filling: words are masked, and a masked language model replaces them (BLEURT, 4.1 and A.1).

1. `STRATEGIES` choose the words to mask: scattered words, or a contiguous run.
2. `MaskFiller.fill` is a beam search over the masks from left to right: the score of a hypothesis is the sum of the
   log-probabilities of its fills, each given the text with the earlier masks filled and the later ones open.
3. `splice` puts the filled tokens back into the text, so that what was not masked stays as it was, letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.datasets_builders.open_models import default_device, load_model
from bleurt_repro.datasets_builders.perturbations import CONTIGUOUS, SCATTERED
from bleurt_repro.metric.forward.pairs import batches_by_tokens
from bleurt_repro.metric.layout import readable_tokens

if TYPE_CHECKING:
    import torch

MASKED_LM = "google-bert/bert-base-uncased"
# BLEURT, A.1: "the beam size 8 by default".
BEAM_SIZE = 8
# BLEURT, A.1: "In both cases, we use up to 15 masks per sentence."
MAX_MASKS = 15


def choose_scattered(sizes: Sequence[int], max_masks: int, random: np.random.Generator) -> list[int]:
    """Choose random words; their number is uniform from one to the number of masks allowed.

    Args:
        sizes: number of tokens of each word; each token takes a mask.
        max_masks: largest number of tokens of the chosen words together.
        random: generator that decides how many words are chosen, and which.

    Returns:
        The indices of the chosen words in ascending order; empty if no word fits.
    """
    fitting = [i for i, size in enumerate(sizes) if size <= max_masks]
    if not fitting:
        return []
    count = random.integers(1, min(max_masks, len(fitting)), endpoint=True)
    chosen: list[int] = []
    masks_left = max_masks
    for i in random.permutation(fitting):
        if len(chosen) < count and sizes[i] <= masks_left:
            chosen.append(int(i))
            masks_left -= sizes[i]
    return sorted(chosen)


def choose_contiguous(sizes: Sequence[int], max_masks: int, random: np.random.Generator) -> list[int]:
    """Choose adjacent words; their start is uniform, and so is their number among the numbers that fit.

    Args:
        sizes: number of tokens of each word; each token takes a mask.
        max_masks: largest number of tokens of the chosen words together.
        random: generator that decides where the words start, and how many are chosen.

    Returns:
        The indices of the chosen words in ascending order; empty if no word fits.
    """
    fitting = [i for i, size in enumerate(sizes) if size <= max_masks]
    if not fitting:
        return []
    start = int(random.choice(fitting))
    longest = int(np.searchsorted(np.cumsum(sizes[start:]), max_masks, side="right"))
    return list(range(start, start + int(random.integers(1, longest, endpoint=True))))


STRATEGIES: dict[str, Callable[[Sequence[int], int, np.random.Generator], list[int]]] = {
    SCATTERED: choose_scattered,
    CONTIGUOUS: choose_contiguous,
}


@dataclass(frozen=True)
class MaskedText:
    """A text with masks in it.

    Attributes:
        text: original text.
        ids: token ids, special tokens included, with masks.
        original_ids: token ids without masks.
        spans: first and last-plus-one character of each token.
        masked_words: positions of the tokens of each masked word.
    """

    text: str
    ids: list[int]
    original_ids: list[int]
    spans: list[tuple[int, int]]
    masked_words: list[list[int]]

    @property
    def masks(self) -> list[int]:
        """Positions of the masks, from left to right."""
        return [position for word in self.masked_words for position in word]


class MaskFiller:
    """Masks words of texts and fills the masks by beam search.

    Args:
        model: local folder or Hub id of a masked language model with a fast tokenizer.
        beam_size: number of hypotheses per text.
        max_masks: largest number of masks in a text.
        masks_per_pass: number of masks filled between two runs of the model. With 1, as in the paper, each fill is
            conditioned on all earlier ones; with k, on those of earlier passes alone, at 1/k of the cost.
        device: device of the model; default: the best one available.
        batch_tokens: number of padded tokens, of all hypotheses, in one run of the model.

    Attributes:
        identity: name and hash of the model.
        max_tokens: length of the longest text that the model reads, in tokens.
    """

    def __init__(
        self,
        model: str = MASKED_LM,
        beam_size: int = BEAM_SIZE,
        max_masks: int = MAX_MASKS,
        masks_per_pass: int = 1,
        device: str | None = None,
        batch_tokens: int = 4096,
    ) -> None:
        from transformers import AutoModelForMaskedLM

        role = "masked language model"
        self.beam_size, self.max_masks, self.masks_per_pass = beam_size, max_masks, masks_per_pass
        self.device, self.batch_tokens = device or default_device(), batch_tokens
        self._model, self._tokenizer, self.identity = load_model(AutoModelForMaskedLM, model, role, self.device)
        if not self._tokenizer.is_fast or self._tokenizer.mask_token_id is None:
            raise ValueError(f"{role} {model} must have a fast tokenizer with a mask token")
        self.max_tokens = readable_tokens(self._model.config, self._tokenizer)
        self._head_inputs: torch.Tensor | None = None
        self._model.base_model.register_forward_hook(self._keep_head_inputs)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, special tokens included."""
        return len(self._tokenizer(text, verbose=False)["input_ids"])

    def mask(self, text: str, strategy: str, random: np.random.Generator) -> MaskedText | None:
        """Mask some words of a text.

        Args:
            text: any text.
            strategy: one of `STRATEGIES`.
            random: generator that decides which words.

        Returns:
            The masked text, or None if every word has more tokens than masks are allowed.
        """
        encoding = self._tokenizer(text, return_offsets_mapping=True, verbose=False)
        ids, word_positions = list(encoding["input_ids"]), _positions_by_word(encoding.word_ids())
        chosen = STRATEGIES[strategy]([len(positions) for positions in word_positions], self.max_masks, random)
        if not chosen:
            return None
        masked_words = [word_positions[i] for i in chosen]
        masked_ids = list(ids)
        for position in (position for word in masked_words for position in word):
            masked_ids[position] = self._tokenizer.mask_token_id
        return MaskedText(text, masked_ids, ids, list(encoding["offset_mapping"]), masked_words)

    def fill(self, masked: Sequence[MaskedText]) -> list[str]:
        """Fill the masks of each text with the best hypothesis of the beam search."""
        import torch

        filled: list[str] = [""] * len(masked)
        for batch in batches_by_tokens([len(text.ids) * self.beam_size for text in masked], self.batch_tokens):
            # The texts with most masks come first, so that those whose masks are all filled are at the end.
            batch = sorted(batch, key=lambda i: -len(masked[i].masks))
            with torch.inference_mode():
                best = self._search([masked[i] for i in batch])
            for i, ids in zip(batch, best, strict=True):
                filled[i] = self._write(masked[i], ids)
        return filled

    def _search(self, batch: list[MaskedText]) -> list[list[int]]:
        """Fill the masks of a batch by beam search.

        Args:
            batch: texts, those with most masks first.

        Returns:
            The token ids of the best hypothesis of each text.
        """
        import torch

        # 1. Start with one hypothesis per text: the text with all masks open.
        padded = self._tokenizer.pad({"input_ids": [text.ids for text in batch]}, return_tensors="pt", verbose=False)
        ids = padded["input_ids"][:, None].to(self.device)  # (texts, hypotheses, tokens)
        attention = padded["attention_mask"].to(self.device)  # (texts, tokens)
        counts = [len(text.masks) for text in batch]
        masks = torch.zeros(len(batch), counts[0], dtype=torch.long)
        for row, text in enumerate(batch):
            masks[row, : counts[row]] = torch.tensor(text.masks)
        masks = masks.to(self.device)
        scores = torch.zeros(len(batch), 1, device=self.device)
        for first in range(0, counts[0], self.masks_per_pass):
            # 2. Run the model on all hypotheses of the texts that have a mask left, and read the next masks of each.
            live = sum(count > first for count in counts)
            fills = self._log_probabilities(
                ids[:live], attention[:live], masks[:live, first : first + self.masks_per_pass]
            )
            # Hypotheses are extended several times per pass: `origins` has the row of `fills` of each.
            origins = torch.arange(ids.shape[1], device=self.device).expand(live, -1)
            for offset in range(fills.shape[2]):
                # 3. Fill one mask after another: extend all hypotheses, keep the best, and put in their tokens.
                live = sum(count > first + offset for count in counts)
                best, parents, tokens = self._extend(scores[:live], fills[:live, :, offset], origins[:live])
                extended = _take(ids[:live], parents)
                extended.scatter_(
                    2, masks[:live, None, first + offset, None].expand(-1, tokens.shape[1], 1), tokens[..., None]
                )
                origins = origins[:live].gather(1, parents)
                if first == offset == 0:  # every text has a mask, so the first step widens all beams at once
                    ids, scores = extended, best
                else:
                    ids[:live], scores[:live] = extended, best
        # 4. Hypotheses are sorted, best first.
        return [row[: len(text.ids)] for row, text in zip(ids[:, 0].tolist(), batch, strict=True)]

    def _extend(self, scores: torch.Tensor, fills: torch.Tensor, origins: torch.Tensor) -> tuple[Any, Any, Any]:
        """Extend every hypothesis by every token and keep the best.

        Args:
            scores: (texts, hypotheses).
            fills: log-probabilities of the tokens at the mask, (texts, hypotheses of the pass, vocabulary).
            origins: row of `fills` that belongs to each hypothesis, (texts, hypotheses).

        Returns:
            Scores, parents and tokens of the best hypotheses, best first, each of shape (texts, beam).
        """
        # At most beam_size extensions of a hypothesis are among the best, so all other tokens are left out early.
        width = min(self.beam_size, fills.shape[2])
        top, tokens = fills.topk(width, dim=2)
        top, tokens = _take(top, origins), _take(tokens, origins)  # (texts, hypotheses, width)
        totals = (scores[..., None] + top).flatten(1)
        best, index = totals.topk(min(self.beam_size, totals.shape[1]), dim=1)
        return best, index // width, tokens.flatten(1).gather(1, index)

    def _log_probabilities(self, ids: torch.Tensor, attention: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Run the model on every hypothesis, its vocabulary head on the masks only.

        Args:
            ids: (texts, hypotheses, tokens).
            attention: (texts, tokens).
            positions: positions of the masks to read, (texts, masks).

        Returns:
            Log-probabilities, (texts, hypotheses, masks, vocabulary); minus infinity for special tokens.
        """
        texts, hypotheses, _ = ids.shape
        self._head_inputs = positions.repeat_interleave(hypotheses, dim=0)
        attention = attention.repeat_interleave(hypotheses, dim=0)
        logits = self._model(input_ids=ids.flatten(0, 1), attention_mask=attention).logits
        fills = logits.float().log_softmax(dim=-1)
        fills[..., self._tokenizer.all_special_ids] = float("-inf")
        return fills.unflatten(0, (texts, hypotheses))

    def _keep_head_inputs(self, module: Any, arguments: Any, output: Any) -> Any:
        """Pass only the vectors at the masks to the vocabulary head, which costs as much as the layers below it."""
        vectors = output.last_hidden_state
        index = self._head_inputs[..., None].expand(-1, -1, vectors.shape[-1])  # type: ignore[index]
        output.last_hidden_state = vectors.gather(1, index)
        return output

    def _write(self, masked: MaskedText, ids: list[int]) -> str:
        """Return the filled text; a word that was filled with itself stays as it was."""
        changed = [
            position
            for positions in masked.masked_words
            if any(ids[p] != masked.original_ids[p] for p in positions)
            for position in positions
        ]
        return splice(masked.text, masked.spans, ids, changed, self._decode)

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=True)


def _take(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return selected hypotheses: of values (texts, hypotheses, x), the rows (texts, k), as (texts, k, x)."""
    return values.gather(1, rows[..., None].expand(-1, -1, values.shape[2]))


def _positions_by_word(word_ids: list[int | None]) -> list[list[int]]:
    """Return the positions of the tokens of each word, from the word of each token; special tokens have none."""
    positions_by_word: dict[int, list[int]] = {}
    for position, word in enumerate(word_ids):
        if word is not None:
            positions_by_word.setdefault(word, []).append(position)
    return list(positions_by_word.values())


def splice(
    text: str,
    spans: Sequence[tuple[int, int]],
    ids: Sequence[int],
    changed: Sequence[int],
    decode: Callable[[list[int]], str],
) -> str:
    """Replace some tokens of a text by new ones, and leave everything else as it is.

    Args:
        text: original text.
        spans: first and last-plus-one character of each token in it.
        ids: token ids, with the new ones in place.
        changed: positions of the new tokens, ascending.
        decode: function that turns token ids into text, special tokens included.

    Returns:
        The new text; it begins with a capital if the original does.
    """
    pieces, cursor = [], 0
    # Group adjacent positions: their difference to their rank is the same.
    for _, group in groupby(enumerate(changed), key=lambda pair: pair[1] - pair[0]):
        run = [position for _, position in group]
        start, end = spans[run[0]][0], spans[run[-1]][1]
        piece, glued = _decode_after(ids, run, decode)
        if start == 0 and text[:1].isupper():  # uncased models write it in lower case
            piece = piece[:1].upper() + piece[1:]
        pieces.append(_join(text[cursor:start], piece, glued))
        if piece[-1:].isalnum() and text[end : end + 1].isalnum():
            pieces.append(" ")
        cursor = end
    return "".join([*pieces, text[cursor:]])


def _decode_after(ids: Sequence[int], run: list[int], decode: Callable[[list[int]], str]) -> tuple[str, bool]:
    """Decode a run of tokens as it reads after the previous token.

    Returns:
        The text, and whether it is attached to the previous token (a word piece, a full stop).
    """
    filled = [ids[position] for position in run]
    if run[0] > 0:
        previous = ids[run[0] - 1]
        alone, together = decode([previous]), decode([previous, *filled])
        if together.startswith(alone):
            piece = together[len(alone) :]
            return piece.strip(), not piece[:1].isspace()
    return decode(filled).strip(), False


def _join(before: str, piece: str, glued: bool) -> str:
    """Append a piece to the text before it, with a blank unless it is attached or follows no word."""
    if glued:
        return before.rstrip() + piece
    needs_blank = before[-1:].isalnum() and piece[:1].isalnum()
    return f"{before} {piece}" if needs_blank else before + piece
