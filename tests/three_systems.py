"""Three systems' outputs for three references, to compare."""

from __future__ import annotations

REFERENCES = ["the cat sat on the mat", "it rains in the town", "good bye my friend"]
SYSTEMS = {
    "good": ["the cat sat on the mat", "it rains in town", "good bye friend"],
    "bad": ["a dog", "the sun is not out", ""],
    "middle": ["the cat on a mat", "it rains in the town", "hi there"],
}
