"""Text that a checkpoint does not read: two emoji that its tokenizer does not know are the same to it, and so are two
sentences in a language that it never saw.

Such text is noted and left as it is, because the official tokenizers drop invisible characters, and scores must stay
equal to theirs.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Set

# Control characters that tokenizers read as spaces.
SPACES = frozenset("\t\n\r")
DAMAGED = "\ufffd"  # the replacement character of damaged text, which BERT's tokenizer drops
# Joiners and marks of direction, which Persian, Hindi or Hebrew text may need.
SPELLING = frozenset("\u200c\u200d\u200e\u200f\u061c")
LATIN, CJK = "Latin", "CJK"
# Japanese mixes its syllabaries with CJK ideographs.
SAME_SCRIPT = {"Hiragana": CJK, "Katakana": CJK, "Katakana-Hiragana": CJK, "Bopomofo": CJK, "Ideographic": CJK}
# A tokenizer reads a script if it has this many pieces of several of its letters (BERT's English one has 8 Cyrillic
# ones), or, in scripts of ideographs and syllables, this many pieces (BERT's has 672 of CJK).
FEWEST_PIECES, FEWEST_CHARACTERS = 100, 1000
PART = 2**20  # characters that are looked at together
WORD = re.compile(r"[^\W\d_]+")
# A shorter text may be a name.
FEWEST_WORDS = 3
# Frequent words of languages in Latin letters, without those that English or its names have.
FREQUENT_WORDS = {
    "German": "und ist ein eine auf dem nur oder nicht sich auch werden dass nach wird einer noch einem einen über "
    "wie haben habe hatte aber mehr durch wurde wurden sind wenn kann können diese dieser dieses zum beim vom wir "
    "sie ihr ihre ihm ihn uns mich dich für sehr vor muss nichts immer schon keine hier heute zwei während zwischen "
    "unter jedoch",
    "French": "est une dans qui que pas ses mais avec sont suis nous vous votre leur leurs cette ont avez être "
    "était été fait faire où même aussi très tout tous peut veut elle elles lui dont entre ainsi autre chez après "
    "avant toujours quelque beaucoup rien ça cela",
    "Spanish": "que una por más pero porque cuando muy sobre también fue desde sus todo todos había hasta según "
    "está están esto entre donde puede pueden años ellos nosotros",
    "Italian": "che una sono anche dalla nel nella più questo questa degli essere gli perché suo sua loro dopo "
    "molto quando ancora già così",
    "Portuguese": "que não uma mais quando muito também pelo pela foi seu está estão isso essa após já ele ela eles "
    "você nós",
    "Dutch": "het een dat zijn voor niet aan ook maar bij nog wordt worden naar heeft hebben werd deze uit meer "
    "geen kunnen hij zich",
    "Swedish": "och att för är inte har från när eller också hade ett efter mycket",
    "Danish": "og ikke på blev etter også efter være jeg",
    "Polish": "nie się jest przez dla tylko oraz które który został jego tym przed był była są być",
    "Czech": "že jako jsou jsem také který které která při byl byla bylo jeho aby podle jsme bude když jak nebo "
    "není má být",
    "Turkish": "bir için olarak çok daha olan gibi kadar sonra olduğu olduğunu ile değil göre ancak",
    "Finnish": "että hän mutta ovat joka jotka myös niin kuin mukaan olla ollut ei tämä sitä jälkeen",
    "Romanian": "și în pentru că sunt prin fost este după fără",
    "Estonian": "või oma siis nii seda selle välja kes mida pärast väga kuid",
    "Latvian": "arī kas tika kā tā gada gadā bija viņš pēc līdz nav",
    "Hungarian": "és hogy nem egy csak már volt vagy",
}
ENGLISH_WORDS = frozenset(
    "the of and to in is that for it with by at from this not are but have you all she there would their been has "
    "when who will if out said what up about into than them can only other these two may then first any over such "
    "our even most after many before must well back through years much your down should because just those people "
    "how he his her they we was were be on as an had or".split()
)
# A tokenizer that was made for a language has a piece for each of its frequent words; BERT's English one for 6 to
# 45 % of them.
SHARE_OF_WORDS = 0.8


def has_invisible(text: str) -> bool:
    """Return whether a text holds characters that no reader sees and that the tokenizer drops.

    These are all of Unicode's category "other" but tab and line breaks: control, format (zero-width and
    bidirectional), private-use and unassigned characters, and halves of surrogate pairs; and the replacement
    character. Joiners and marks of direction belong to the spelling of text in other letters than Latin ones.
    """
    if text.isprintable():
        return DAMAGED in text
    hidden = {c for c in {*text} - SPACES if c == DAMAGED or unicodedata.category(c)[0] == "C"}
    return bool(hidden - SPELLING or (hidden and not is_other_script(text, {LATIN})))


@cache
def script_of(character: str) -> str | None:
    """Return the script of a letter, such as "Cyrillic", by the first word of its name in Unicode; None of other characters."""
    if not character.isalpha():
        return None
    # the normal form: full-width and mathematical letters are Latin ones
    name = unicodedata.name(unicodedata.normalize("NFKC", character)[0], "").split(" ")[0]
    script = name if name == CJK else name.capitalize()
    return SAME_SCRIPT.get(script, script)


def scripts_read(tokenizer: Any) -> frozenset[str]:
    """Return the scripts that a tokenizer has pieces for: Latin, and others that its vocabulary was made for."""
    pieces: Counter[str] = Counter()
    longer: Counter[str] = Counter()
    for piece in tokenizer.get_vocab():
        letters = [script for script in map(script_of, piece) if script]
        pieces.update(set(letters))
        longer.update(set(letters) if len(letters) > 1 else ())
    scripts = {script for script in pieces if longer[script] >= FEWEST_PIECES or pieces[script] >= FEWEST_CHARACTERS}
    return frozenset(scripts | {LATIN})


def is_other_script(text: str, scripts: Set[str]) -> bool:
    """Return whether most letters of a text are of other scripts than these, among which is Latin."""
    if text.isascii():
        return False
    letters = other = 0
    for character, count in Counter(text).items():
        if script := script_of(character):
            letters += count
            other += count * (script not in scripts)
    return 2 * other > letters


def unread_words(tokenizer: Any) -> frozenset[str]:
    """Return the frequent words of the languages that a tokenizer was not made for."""
    unknown = getattr(tokenizer, "unk_token_id", None)
    unread: set[str] = set()
    for language in FREQUENT_WORDS.values():
        words = language.split()
        pieces = tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"]
        if sum(len(ids) == 1 and ids[0] != unknown for ids in pieces) < SHARE_OF_WORDS * len(words):
            unread.update(words)
    return frozenset(unread)


def is_other_language(text: str, unread: Set[str]) -> bool:
    """Return whether a text has more of the words of `unread_words` than of frequent English ones.

    Such a text is hardly ever English; a text in another language may have too few of these words to be noticed.
    """
    text = text[:PART].lower()
    if unread.isdisjoint(text.split()):  # hardly any English text comes further
        return False
    words = WORD.findall(text)
    if len(words) < FEWEST_WORDS:
        return False
    return sum(word in unread for word in words) > sum(word in ENGLISH_WORDS for word in words)
