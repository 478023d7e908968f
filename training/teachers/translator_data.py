"""Data of the translator: parallel text, the vocabulary and initial embeddings made from it, and batches.

In the order in which the script of the translator uses them:

- `read_parallel_text` excludes the sentences of test pairs from training; `sampling_weights` decides how often a pair is
  drawn.
- `train_vocabulary` makes SentencePiece pieces that all languages share, and a tag for each target language, such as
  `>>fr<<`. Tags and files are those of the Marian models on the Hub
  (https://huggingface.co/docs/transformers/model_doc/marian#multilingual-models).
- `bilingual_vectors` makes embeddings in which a word is close to its translations, from parallel text alone.
- `make_examples` encodes pairs in both directions; `Batches` draws examples of similar length by weight, as many as fit in
  a number of tokens.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import MarianTokenizer

from bleurt_repro.metric.files.records import read_table
from bleurt_repro.metric.forward.pairs import batches_by_tokens

COLUMNS = ("source", "split", "english", "target")
TEST, DEV = "test", "dev"
WORD = re.compile(r"\w+")
EOS, UNKNOWN, PAD = "</s>", "<unk>", "<pad>"
SPM_FILES = ("source.spm", "target.spm")
JOINED = (2, 4)  # smallest and largest number of pairs in a joined example
IGNORED = -100  # label of padding


class SentencePair(NamedTuple):
    """An English sentence and its translation.

    Attributes:
        language: language of the translation.
        source: name of the corpus.
        split: "train", "dev" or "test".
    """

    language: str
    source: str
    split: str
    english: str
    target: str


class ParallelText(NamedTuple):
    """Pairs to train and to measure on; no sentence of `test` is in `train`, in either language.

    Attributes:
        train: pairs to train on.
        test: pairs of the split "test".
        left_out: number of pairs that were left out, by reason.
    """

    train: list[SentencePair]
    test: list[SentencePair]
    left_out: Counter[str]


def read_parallel_text(files: Mapping[str, str]) -> ParallelText:
    """Read sentence pairs.

    Args:
        files: TSV file with `COLUMNS`, by language; the sentences of the splits "dev" and "test" are not trained on.

    Raises:
        FileNotFoundError, ValueError: as `read_table` does; ValueError also if there is nothing to train or to measure on.
    """
    pairs = [
        SentencePair(language, row["source"], row["split"], row["english"], row["target"])
        for language, path in files.items()
        for row in read_table(path, COLUMNS)
    ]
    test = [pair for pair in pairs if pair.split == TEST]
    held_out = {key for pair in pairs if pair.split in (TEST, DEV) for key in sentence_keys(pair)}
    train, left_out = [], Counter(dict.fromkeys(("blank", "of split dev", "sentence is held out"), 0))
    for pair in pairs:
        if not pair.english or not pair.target:
            left_out["blank"] += 1
        elif pair.split == DEV:
            left_out["of split dev"] += 1
        elif pair.split != TEST and held_out.intersection(sentence_keys(pair)):
            left_out["sentence is held out"] += 1
        elif pair.split != TEST:
            train.append(pair)
    for language, path in files.items():
        for split, split_pairs in (("train", train), (TEST, test)):
            if not any(pair.language == language for pair in split_pairs):
                raise ValueError(f"{path} has no pairs to {split} on: some rows must have {split!r} as their split")
    return ParallelText(train, test, left_out)


def sentence_keys(pair: SentencePair) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the keys by which the two sentences are compared: the language, and letters and digits in lower case."""
    return ("en", _letters(pair.english)), (pair.language, _letters(pair.target))


def sampling_weights(
    pairs: list[SentencePair],
    source_weights: Mapping[str, float],
    word_weights: Mapping[str, float],
    length_power: float,
) -> np.ndarray:
    """Compute the sampling weight of each pair.

    Args:
        pairs: sentence pairs.
        source_weights: factor of the pairs of a source, 1 by default.
        word_weights: factor of pairs with a word in their English sentence, 1 by default.
        length_power: exponent of the number of English words.

    Returns:
        weights, shape (pairs,); pairs of a language with the same English sentence share the weight of one.

    Raises:
        ValueError: if there is no such source, or a language has no pair with a weight above 0.
    """
    sources = {pair.source for pair in pairs}
    if set(source_weights) - sources:
        unknown = ", ".join(sorted(set(source_weights) - sources))
        raise ValueError(f"no source {unknown}; there are {', '.join(sorted(sources))}")
    copies = Counter((pair.language, _letters(pair.english)) for pair in pairs)
    weights = np.empty(len(pairs))
    for i, pair in enumerate(pairs):
        tokens = WORD.findall(pair.english)
        weights[i] = source_weights.get(pair.source, 1.0) * len(tokens) ** length_power
        weights[i] /= copies[pair.language, _letters(pair.english)]
        for word, weight in word_weights.items():
            weights[i] *= weight if word in tokens else 1.0
    for language in {pair.language for pair in pairs}:
        if not any(weights[i] for i, pair in enumerate(pairs) if pair.language == language):
            raise ValueError(f"every pair of {language} has the weight 0: there is nothing to train on")
    return weights


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def tag(language: str) -> str:
    """Return the token that asks for a translation into a language."""
    return f">>{language}<<"


def train_vocabulary(texts: Iterable[str], languages: Sequence[str], size: int, folder: Path) -> MarianTokenizer:
    """Train a tokenizer on text, and save it.

    Characters that are not in the vocabulary are encoded as bytes, so that any text can be copied.

    Args:
        texts: texts in all languages.
        languages: target languages.
        size: number of tokens in the vocabulary; there are fewer if the text has fewer pieces.
        folder: folder of the tokenizer.

    Raises:
        ValueError: if the text is too small for a vocabulary, or `size` too small for the text's characters.
    """
    import sentencepiece

    model = io.BytesIO()
    tags = [tag(language) for language in languages]
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=size - len(tags) - 1,
            hard_vocab_limit=False,
            byte_fallback=True,
            eos_id=0,
            unk_id=1,
            bos_id=-1,
            pad_id=-1,
            unk_piece=UNKNOWN,
            eos_piece=EOS,
            character_coverage=0.9998,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise ValueError(f"no vocabulary of {size} tokens can be made from the text: {error}") from error
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    names = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    folder.mkdir(parents=True, exist_ok=True)
    for name in SPM_FILES:
        (folder / name).write_bytes(model.getvalue())
    vocabulary = {name: i for i, name in enumerate([*names, *tags, PAD])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False, indent=1), encoding="utf-8")
    source, target, vocab = (str(folder / name) for name in (*SPM_FILES, "vocab.json"))
    tokenizer = MarianTokenizer(source, target, vocab, source_lang="en", model_max_length=512)
    tokenizer.save_pretrained(folder)
    return tokenizer


def encode_texts(texts: Sequence[str], tokenizer: MarianTokenizer) -> list[Any]:
    """Return the token ids of texts without tag and end of sentence, much faster than the tokenizer does.

    In a vocabulary of `train_vocabulary`, the id of a piece is the one that SentencePiece uses.
    """
    encoded = tokenizer.spm_source.encode(list(texts), num_threads=-1)
    return [np.asarray(ids, dtype=np.int32) for ids in encoded]


def bilingual_vectors(
    sentences: Sequence[np.ndarray], translations: Sequence[np.ndarray], size: int, width: int
) -> np.ndarray:
    """Compute a vector for each piece of a shared vocabulary.

    Pieces that occur in the same sentence pairs get similar vectors: latent semantic indexing of bilingual documents
    (Dumais et al., 1997,
    https://aaai.org/papers/0003-ss97-05-003-automatic-cross-language-retrieval-using-latent-semantic-indexing/). A
    translator with one embedding matrix for both sides then has to learn only which source token to attend to, since
    copying its vector is nearly right. From random embeddings it takes many times as many steps until it attends to its
    source at all.

    Args:
        sentences, translations: token ids of the two sides of each pair.
        size: size of the vocabulary.
        width: size of the vectors; numbers beyond `size` are 0.

    Returns:
        vectors in float32 of unit length, shape (size, width); random vectors for pieces that occur in no pair.
    """
    from scipy.linalg import eigh
    from scipy.sparse import csr_matrix, diags

    # Which pieces occur in which pairs, weighted by rarity: (pairs, pieces).
    pieces = [np.unique(np.concatenate(pair)) for pair in zip(sentences, translations, strict=True)]
    starts = np.cumsum([0, *map(len, pieces)])
    occurs = csr_matrix((np.ones(starts[-1], np.float32), np.concatenate(pieces), starts), shape=(len(pieces), size))
    frequency = np.asarray(occurs.sum(axis=0)).ravel()
    rarity = np.log1p(len(pieces) / (1 + frequency)).astype(np.float32)
    weighted = occurs @ diags(rarity)
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    documents = diags(1 / np.maximum(lengths, 1e-6)) @ weighted  # (pairs, pieces), rows of unit length
    # The largest eigenvectors of the pieces' cosine similarities.
    similarity = (documents.T @ documents).toarray()  # (pieces, pieces)
    norms = np.sqrt(np.maximum(np.diag(similarity), 1e-12))
    values, vectors = eigh(similarity / norms[:, None] / norms, subset_by_index=[max(size - width, 0), size - 1])
    embeddings = np.zeros((size, width))
    embeddings[:, : len(values)] = vectors * np.sqrt(np.maximum(values, 0))
    # Pieces that occur in no pair have a vector of length 0: they get a random one.
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    random = np.random.default_rng(0).normal(size=embeddings.shape)
    embeddings = np.where(lengths > 1e-6, embeddings, random)
    return (embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)).astype(np.float32)


@dataclass
class Examples:
    """Examples of translation, as columns.

    Attributes:
        max_length: maximum number of tokens per text.
        tags: token that asks for the target language.
        sources: token ids of the text to translate, with the end of sentence.
        targets: token ids of the translation, with the end of sentence.
        weights: sampling weight of each example.
        origins: corpus of each example.
        too_long: number of examples that were left out.
    """

    max_length: int
    tags: list[int] = field(default_factory=list)
    sources: list[np.ndarray] = field(default_factory=list)
    targets: list[np.ndarray] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    too_long: int = 0

    def add(self, tag: int, source: np.ndarray, target: np.ndarray, weight: float, origin: str) -> None:
        """Add an example, unless it is too long or never drawn."""
        if max(len(source) + 1, len(target)) > self.max_length:
            self.too_long += 1
        elif weight > 0:
            self.tags.append(tag)
            self.sources.append(source)
            self.targets.append(target)
            self.weights.append(weight)
            self.origins.append(origin)


def make_examples(
    pairs: list[SentencePair],
    weights: np.ndarray,
    copied: list[str],
    tokenizer: MarianTokenizer,
    *,
    joined_share: float,
    copied_share: float,
    max_length: int,
    seed: int,
) -> Examples:
    """Encode pairs in both directions, long examples that join several pairs, and English text to copy.

    Args:
        pairs: sentence pairs.
        weights: sampling weight of each pair, shape (pairs,).
        copied: English texts to copy.
        tokenizer: tokenizer of `train_vocabulary`.
        joined_share: number of joined examples per pair.
        copied_share: share of copied text in all examples.
        max_length: maximum number of tokens per text.
        seed: seed of the choice of pairs to join.
    """
    languages = ["en", *sorted({pair.language for pair in pairs})]
    tags = {name: tokenizer.get_vocab()[tag(name)] for name in languages}
    english = _encode([pair.english for pair in pairs], tokenizer)
    foreign = _encode([pair.target for pair in pairs], tokenizer)
    examples = Examples(max_length)

    def add_both(group: Sequence[int], origin: str) -> None:
        """Add both directions of a pair, or of several pairs that are joined."""
        language, weight = pairs[group[0]].language, float(np.mean(weights[group]))
        texts = [np.concatenate([*(side[i][:-1] for i in group[:-1]), side[group[-1]]]) for side in (english, foreign)]
        examples.add(tags[language], texts[0], texts[1], weight, origin)
        examples.add(tags["en"], texts[1], texts[0], weight, origin)

    for i, pair in enumerate(pairs):
        add_both([i], f"{pair.language} {pair.source}")
    for group in _groups_to_join(pairs, weights, round(joined_share * len(pairs)), np.random.default_rng(seed)):
        add_both(group, f"{pairs[group[0]].language} joined")
    if copied:
        weight = copied_share / (1 - copied_share) * sum(examples.weights) / len(copied)
        for ids in _encode(copied, tokenizer):
            examples.add(tags["en"], ids, ids, weight, "copied")
    return examples


class Batches(torch.utils.data.Dataset):
    """A data set whose items are batches, so that the Trainer's sampling and resuming apply to batches.

    Args:
        examples: examples to draw.
        count: number of batches.
        batch_tokens: maximum number of tokens per batch in one language, with padding.
        seed: seed of the draws.

    Attributes:
        counts: number of examples of each origin in all batches.
    """

    def __init__(self, examples: Examples, count: int, batch_tokens: int, seed: int) -> None:
        self.examples = examples
        random = np.random.default_rng(seed)
        lengths = np.array([max(len(a) + 1, len(b)) for a, b in zip(examples.sources, examples.targets, strict=True)])
        expected = np.array(examples.weights) / np.mean(examples.weights)
        self._batches: list[list[int]] = []
        while len(self._batches) < count:  # one epoch, in which an example occurs `expected` times on average
            copies = np.floor(expected + random.random(len(expected))).astype(int)
            order = random.permutation(np.repeat(np.arange(len(expected)), copies))
            batches = batches_by_tokens(lengths[order].tolist(), batch_tokens)
            self._batches += [order[batches[i]].tolist() for i in random.permutation(len(batches))]
        del self._batches[count:]
        self.counts = Counter(examples.origins[i] for batch in self._batches for i in batch)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __getitem__(self, index: int) -> list[tuple[list[int], list[int]]]:
        """Return a batch: the source of each example with its tag, and the target."""
        examples = self.examples
        return [
            ([examples.tags[i], *examples.sources[i].tolist()], examples.targets[i].tolist())
            for i in self._batches[index]
        ]


class BatchCollator:
    """Pads the batches of `Batches`.

    Args:
        pad: id of the padding token.
        start: id of the first token of the decoder.
    """

    def __init__(self, pad: int, start: int) -> None:
        self.pad, self.start = pad, start

    def __call__(self, items: list[list[tuple[list[int], list[int]]]]) -> dict[str, torch.Tensor]:
        """Return the inputs of the model and the labels, shape (pairs, tokens)."""
        pairs = [pair for batch in items for pair in batch]
        sources = _pad([source for source, _ in pairs], self.pad)
        labels = _pad([target for _, target in pairs], IGNORED)
        starts = torch.full_like(labels[:, :1], self.start)
        return {
            "input_ids": sources,
            "attention_mask": (sources != self.pad).long(),
            "decoder_input_ids": torch.cat(
                [starts, labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.pad)], 1
            ),
            "labels": labels,
        }


def _encode(texts: list[str], tokenizer: MarianTokenizer) -> list[np.ndarray]:
    end = np.array([tokenizer.eos_token_id], dtype=np.int32)
    return [np.concatenate([ids, end]) for ids in encode_texts(texts, tokenizer)]


def _groups_to_join(
    pairs: list[SentencePair], weights: np.ndarray, count: int, random: np.random.Generator
) -> list[list[int]]:
    """Draw groups of pairs of one language to join."""
    by_language: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        by_language.setdefault(pair.language, []).append(i)
    groups = []
    for members in by_language.values():
        chances = weights[members] / weights[members].sum()
        sizes = random.integers(*JOINED, endpoint=True, size=round(count * len(members) / len(pairs)))
        draws = random.choice(members, sizes.sum(), p=chances)
        groups += [group.tolist() for group in np.split(draws, np.cumsum(sizes)[:-1]) if len(group)]
    return groups


def _pad(rows: list[list[int]], value: int) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=value
    )
