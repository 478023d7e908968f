"""Text that a checkpoint does not read: two emoji that its tokenizer does not know are the same to it, and so are two
sentences in a language that it never saw.

Such text is noted and left as it is, because the official tokenizers drop invisible characters, and scores must stay
equal to theirs.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Set

# Letters of the Latin script, in the blocks of Unicode that hold them, full-width ones included.
LATIN = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u0250-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a]")  # fmt: skip
# Control characters that tokenizers read as spaces.
SPACES = frozenset("\t\n\r")
DAMAGED = "\ufffd"  # the replacement character of damaged text, which BERT's tokenizer drops
# A tokenizer with fewer pieces of other scripts was made for languages in Latin letters (BERT's English one: 0.04).
SHARE_OF_OTHERS = 0.1
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
    character.
    """
    if text.isprintable():
        return DAMAGED in text
    return any(unicodedata.category(character)[0] == "C" or character == DAMAGED for character in {*text} - SPACES)


def is_other_script(text: str) -> bool:
    """Return whether most letters of a text are of another script than Latin."""
    if text.isascii():
        return False
    letters = sum(map(str.isalpha, text))
    return 2 * sum(len(LATIN.findall(text, start, start + PART)) for start in range(0, len(text), PART)) < letters


def reads_latin_only(tokenizer: Any) -> bool:
    """Return whether a tokenizer's vocabulary is of languages in Latin letters, as that of all English checkpoints."""
    pieces = [piece for piece in tokenizer.get_vocab() if any(map(str.isalpha, piece))]
    return sum(map(is_other_script, pieces)) < SHARE_OF_OTHERS * len(pieces)


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
