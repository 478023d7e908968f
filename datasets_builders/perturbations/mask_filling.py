"""Mask filling: words are masked and a masked language model writes others in their place (BLEURT, 4.1 and A.1).

1. `STRATEGIES` choose the words to mask: scattered ones, or a contiguous run.
2. `MaskFiller.fill` is a beam search from left to right over the masks: the score of a hypothesis is the sum of the
   log-probabilities of its fills, each given the text with the earlier fills in it and the later masks open.
3. `splice` puts the filled tokens back into the text, so that what was not masked stays as it was written, letter for
   letter.
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
    """Choose random words, their number uniform from one to as many as there may be masks.

    Args:
        sizes: tokens of each word; a word takes one mask a token.
        max_masks: most tokens of the chosen words together.
        random: decides how many and which.

    Returns:
        the indices of the chosen words in ascending order; none if no word fits.
    """
    fitting = [i for i, size in enumerate(sizes) if size <= max_masks]
    if not fitting:
        return []
    wanted = random.integers(1, min(max_masks, len(fitting)), endpoint=True)
    chosen: list[int] = []
    room = max_masks
    for i in random.permutation(fitting):
        if len(chosen) < wanted and sizes[i] <= room:
            chosen.append(int(i))
            room -= sizes[i]
    return sorted(chosen)


def choose_contiguous(sizes: Sequence[int], max_masks: int, random: np.random.Generator) -> list[int]:
    """Choose adjacent words: where they start is uniform, and so is how many there are among the numbers that fit.

    Args:
        sizes: tokens of each word; a word takes one mask a token.
        max_masks: most tokens of the chosen words together.
        random: decides where and how many.

    Returns:
        the indices of the chosen words in ascending order; none if no word fits.
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
        text: as it was.
        ids: its token ids, special tokens included and masks in place.
        original_ids: the same without masks.
        spans: first and last-plus-one character of each token.
        words: positions of the tokens of each masked word.
    """

    text: str
    ids: list[int]
    original_ids: list[int]
    spans: list[tuple[int, int]]
    words: list[list[int]]

    @property
    def masks(self) -> list[int]:
        """Positions of the masks, from left to right."""
        return [position for word in self.words for position in word]


class MaskFiller:
    """Masks words of texts and fills the masks by beam search.

    Args:
        model: local folder or Hub id of a masked language model with a fast tokenizer.
        beam_size: hypotheses kept of each text.
        max_masks: most masks in a text.
        masks_per_pass: masks filled between two runs of the model. With 1, as in the paper, each fill is conditioned
            on all before it; with more, on those of the earlier passes, at that much less cost.
        device: where to compute; the best there is by default.
        batch_tokens: padded tokens (of all hypotheses) in one run of the model.

    Attributes:
        identity: which model this is.
        max_tokens: the longest text it reads.
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
            random: decides which words.

        Returns:
            the masked text, or None if it has no word of so few tokens that they can be masked.
        """
        encoding = self._tokenizer(text, return_offsets_mapping=True, verbose=False)
        ids, words = list(encoding["input_ids"]), _tokens_of_words(encoding.word_ids())
        chosen = STRATEGIES[strategy]([len(word) for word in words], self.max_masks, random)
        if not chosen:
            return None
        masked_words = [words[i] for i in chosen]
        masked_ids = list(ids)
        for position in (position for word in masked_words for position in word):
            masked_ids[position] = self._tokenizer.mask_token_id
        return MaskedText(text, masked_ids, ids, list(encoding["offset_mapping"]), masked_words)

    def fill(self, masked: Sequence[MaskedText]) -> list[str]:
        """Fill the masks of each text with the best hypothesis of the beam search."""
        import torch

        filled: list[str] = [""] * len(masked)
        for batch in batches_by_tokens([len(item.ids) * self.beam_size for item in masked], self.batch_tokens):
            # Most masks first: the texts whose masks are all filled drop off the end.
            batch = sorted(batch, key=lambda i: -len(masked[i].masks))
            with torch.inference_mode():
                found = self._search([masked[i] for i in batch])
            for i, ids in zip(batch, found, strict=True):
                filled[i] = self._write(masked[i], ids)
        return filled

    def _search(self, batch: list[MaskedText]) -> list[list[int]]:
        """Fill the masks of some texts, those with most masks first; the token ids of the best of each."""
        import torch

        padded = self._tokenizer.pad({"input_ids": [item.ids for item in batch]}, return_tensors="pt", verbose=False)
        ids = padded["input_ids"][:, None].to(self.device)  # (texts, hypotheses, tokens)
        attention = padded["attention_mask"].to(self.device)  # (texts, tokens)
        counts = [len(item.masks) for item in batch]
        masks = torch.zeros(len(batch), counts[0], dtype=torch.long)
        for row, item in enumerate(batch):
            masks[row, : counts[row]] = torch.tensor(item.masks)
        masks = masks.to(self.device)
        scores = torch.zeros(len(batch), 1, device=self.device)
        for first in range(0, counts[0], self.masks_per_pass):
            live = sum(count > first for count in counts)
            fills = self._log_probabilities(
                ids[:live], attention[:live], masks[:live, first : first + self.masks_per_pass]
            )
            # Which of this pass' hypotheses each hypothesis comes from.
            origins = torch.arange(ids.shape[1], device=self.device).expand(live, -1)
            for offset in range(fills.shape[2]):
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
        return [row[: len(item.ids)] for row, item in zip(ids[:, 0].tolist(), batch, strict=True)]

    def _extend(self, scores: torch.Tensor, fills: torch.Tensor, origins: torch.Tensor) -> tuple[Any, Any, Any]:
        """Extend every hypothesis by every token and keep the best.

        Args:
            scores: (texts, hypotheses).
            fills: log-probabilities of the mask's fill, (texts, hypotheses of the pass, vocabulary).
            origins: row of `fills` that belongs to each hypothesis, (texts, hypotheses).

        Returns:
            scores, parents and tokens of the best, best first, each (texts, beam).
        """
        # A hypothesis has at most beam_size children among the best, so the rest of the vocabulary is left out early.
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
            positions: the masks to read, (texts, masks).

        Returns:
            log-probabilities, (texts, hypotheses, masks, vocabulary); special tokens have none.
        """
        texts, hypotheses, _ = ids.shape
        self._head_inputs = positions.repeat_interleave(hypotheses, dim=0)
        attention = attention.repeat_interleave(hypotheses, dim=0)
        logits = self._model(input_ids=ids.flatten(0, 1), attention_mask=attention).logits
        fills = logits.float().log_softmax(dim=-1)
        fills[..., self._tokenizer.all_special_ids] = float("-inf")
        return fills.unflatten(0, (texts, hypotheses))

    def _keep_head_inputs(self, module: Any, arguments: Any, output: Any) -> Any:
        """Pass on to the vocabulary head only the vectors at the masks: it costs as much as the layers below it."""
        vectors = output.last_hidden_state
        index = self._head_inputs[..., None].expand(-1, -1, vectors.shape[-1])  # type: ignore[index]
        output.last_hidden_state = vectors.gather(1, index)
        return output

    def _write(self, item: MaskedText, ids: list[int]) -> str:
        """Write the filled text; a word that was filled with itself stays as it was written."""
        changed = [p for word in item.words if any(ids[q] != item.original_ids[q] for q in word) for p in word]
        return splice(item.text, item.spans, ids, changed, self._decode)

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=True)


def _take(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Pick hypotheses: values (texts, hypotheses, x) and rows (texts, k) make (texts, k, x)."""
    return values.gather(1, rows[..., None].expand(-1, -1, values.shape[2]))


def _tokens_of_words(word_of_token: list[int | None]) -> list[list[int]]:
    """Turn the word of each token into the tokens of each word; special tokens belong to none."""
    words: dict[int, list[int]] = {}
    for position, word in enumerate(word_of_token):
        if word is not None:
            words.setdefault(word, []).append(position)
    return list(words.values())


def splice(
    text: str,
    spans: Sequence[tuple[int, int]],
    ids: Sequence[int],
    changed: Sequence[int],
    decode: Callable[[list[int]], str],
) -> str:
    """Replace the text of some tokens by what now stands in their place.

    Args:
        text: the original text.
        spans: first and last-plus-one character of each token in it.
        ids: the token ids, the new ones in place.
        changed: positions of the tokens to replace, ascending.
        decode: turns token ids into text, special tokens included.

    Returns:
        the new text; it begins with a capital if the original did.
    """
    parts, cursor = [], 0
    # Positions that follow one another have the same difference to their rank.
    for _, group in groupby(enumerate(changed), key=lambda pair: pair[1] - pair[0]):
        run = [position for _, position in group]
        start, end = spans[run[0]][0], spans[run[-1]][1]
        piece, glued = _decode_after(ids, run, decode)
        if start == 0 and text[:1].isupper():  # models of lower-cased text forget it
            piece = piece[:1].upper() + piece[1:]
        parts.append(_join(text[cursor:start], piece, glued))
        if piece[-1:].isalnum() and text[end : end + 1].isalnum():
            parts.append(" ")
        cursor = end
    return "".join([*parts, text[cursor:]])


def _decode_after(ids: Sequence[int], run: list[int], decode: Callable[[list[int]], str]) -> tuple[str, bool]:
    """Decode a run of tokens as it reads after the token before it.

    Returns:
        the text, and whether it is attached to that token (a word piece, a full stop).
    """
    filled = [ids[position] for position in run]
    if run[0] > 0:
        anchor = ids[run[0] - 1]
        alone, together = decode([anchor]), decode([anchor, *filled])
        if together.startswith(alone):
            rest = together[len(alone) :]
            return rest.strip(), not rest[:1].isspace()
    return decode(filled).strip(), False


def _join(before: str, piece: str, glued: bool) -> str:
    """Append a piece to the text before it, with a blank where the piece or the original asks for one."""
    if glued:
        return before.rstrip() + piece
    needs_blank = before[-1:].isalnum() and piece[:1].isalnum()
    return f"{before} {piece}" if needs_blank else before + piece
