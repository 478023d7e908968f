"""Cut the vocabulary of a multilingual encoder (Unigram, as XLM-R's) to the pieces that its languages need.

    pip install wordfreq
    python recipes/vocabulary.py --encoder e5-small --output e5-small-80k --texts ratings.jsonl.gz --texts en-de.tsv.gz

Pieces are counted in the words of wordfreq (42 languages, each word as often as it occurs there) and in texts. A piece counts
as much as its share in the language or file that needs it most, so small languages keep theirs. Single characters are always
kept: a word whose pieces are gone falls into smaller ones, and nothing becomes unknown that was known before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast

from bleurt_repro.metric.files.records import open_input

MOST_WORDS, MOST_LINES, BATCH = 30_000, 40_000, 1000
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # with which Unigram pieces mark the beginning of a word
TEXTS = ("source", "reference", "candidate")


def main(
    encoder: Annotated[Path, typer.Option(help="Folder of the encoder.")],
    output: Annotated[Path, typer.Option(help="Folder to write the smaller encoder to.")],
    texts: Annotated[
        list[Path] | None, typer.Option(help="JSONL file of ratings, or TSV file; may be gzipped.")
    ] = None,
    size: Annotated[int, typer.Option(help="Number of pieces to keep.")] = 80_000,
    words: Annotated[bool, typer.Option(help="Count the words of wordfreq, too.")] = True,
) -> None:
    """Write the encoder with the pieces that are needed most."""
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    samples = [*(word_lists() if words else ()), *(sample for path in texts or () for sample in columns(path))]
    shares = [relative(count(tokenizer, weighted)) for _, weighted in samples]
    need = {piece: max(share[piece] for share in shares) for piece in set().union(*shares)}
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    before = len(state["model"]["vocab"])
    chosen = choose(state, need, size)
    cut(tokenizer, state, chosen).save_pretrained(output)
    model = AutoModel.from_pretrained(encoder, add_pooling_layer=False)
    embeddings = model.get_input_embeddings().weight.data[torch.tensor(chosen)]
    model.resize_token_embeddings(len(chosen))
    model.get_input_embeddings().weight.data = embeddings
    model.config.pad_token_id = chosen.index(tokenizer.pad_token_id)
    model.save_pretrained(output)
    numbers = set(chosen)
    for (name, _), share in zip(samples, shares, strict=True):
        typer.echo(f"{name}: {sum(share[piece] for piece in share if piece in numbers):.1%} of its pieces are kept")
    typer.echo(f"{len(chosen):,} of {before:,} pieces: {output}")


def word_lists() -> Iterator[tuple[str, Iterator[tuple[str, float]]]]:
    """Yield each language of wordfreq, with its words and their frequencies."""
    import wordfreq

    for language in sorted(wordfreq.available_languages()):
        frequencies = wordfreq.get_frequency_dict(language)
        yield language, islice(frequencies.items(), MOST_WORDS)


def columns(path: Path) -> list[tuple[str, Iterator[tuple[str, float]]]]:
    """Return the texts of a file by column and language pair, from at most `MOST_LINES` lines, evenly from all of it."""
    with open_input(path) as file:
        every = max(1, sum(1 for _ in file) // MOST_LINES)
    texts_by_column: dict[str, list[str]] = {}
    with open_input(path) as file:
        for line in islice(file, None, None, every):
            text = line.decode("utf-8").strip()
            cells: dict[str, Any] = dict(enumerate(text.split("\t"), start=1))
            if text.startswith("{"):
                record: dict[str, Any] = json.loads(text)
                cells = {f"{record.get('lp', '')} {name}": record[name] for name in TEXTS if record.get(name)}
            for name, cell in cells.items():
                texts_by_column.setdefault(f"{path.name} {name}", []).append(cell)
    return [(name, iter([(text, 1.0) for text in column])) for name, column in texts_by_column.items()]


def count(tokenizer: PreTrainedTokenizerFast, weighted: Iterator[tuple[str, float]]) -> Counter[int]:
    """Count the pieces of texts, each as often as its weight says."""
    counts: Counter[int] = Counter()
    while batch := list(islice(weighted, BATCH)):
        encoded = tokenizer([text for text, _ in batch], add_special_tokens=False)["input_ids"]
        for ids, (_, weight) in zip(encoded, batch, strict=True):
            for piece in ids:
                counts[piece] += weight
    return counts


def relative(counts: Counter[int]) -> Counter[int]:
    """Divide counts by their sum."""
    total = sum(counts.values()) or 1
    return Counter({piece: number / total for piece, number in counts.items()})


def choose(state: dict[str, Any], need: dict[int, float], size: int) -> list[int]:
    """Return the pieces to keep, in their order: special ones, single characters, and those that are needed most.

    Raises:
        typer.BadParameter: if special pieces and characters alone are more than `size`.
    """
    pieces = [piece for piece, _ in state["model"]["vocab"]]
    chosen = {token["id"] for token in state["added_tokens"]} | {state["model"]["unk_id"]}
    chosen |= {i for i, piece in enumerate(pieces) if len(piece.removeprefix(SPACE)) <= 1}
    if len(chosen) > size:
        raise typer.BadParameter(f"{len(chosen):,} pieces are special or single characters: expected a larger --size")
    ranked = sorted(set(need) - chosen, key=lambda piece: (-need[piece], piece))
    return sorted(chosen | set(ranked[: size - len(chosen)]))


def cut(tokenizer: PreTrainedTokenizerFast, state: dict[str, Any], chosen: list[int]) -> PreTrainedTokenizerFast:
    """Return the tokenizer with the chosen pieces only, numbered anew."""
    numbers = {old: new for new, old in enumerate(chosen)}
    state["model"]["vocab"] = [state["model"]["vocab"][old] for old in chosen]
    state["model"]["unk_id"] = numbers[state["model"]["unk_id"]]
    for token in state["added_tokens"]:
        token["id"] = numbers[token["id"]]
    for token in (state["post_processor"] or {}).get("special_tokens", {}).values():
        token["ids"] = [numbers[old] for old in token["ids"]]
    names = {name: value for name, value in tokenizer.special_tokens_map.items() if isinstance(value, str)}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), model_max_length=tokenizer.model_max_length, **names
    )


if __name__ == "__main__":
    typer.run(main)
