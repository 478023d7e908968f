"""The checkpoints that BLEURT's authors published, by the names they go by, and where each can be obtained today.

Names, lengths and archives: https://github.com/google-research/bleurt/blob/master/checkpoints.md. The archives are
TensorFlow; nothing here fetches them. A Hub copy is named only where the Hub has its weights as safetensors.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OfficialCheckpoint:
    """An official checkpoint.

    Attributes:
        name: name that BLEURT's authors use.
        max_length: most tokens of a pair that it reads, special tokens included.
        archive: address of the official archive.
        hub: Hub id (with @revision) of a public copy of its weights as safetensors, if there is one.
    """

    name: str
    max_length: int
    archive: str
    hub: str | None = None

    @property
    def how_to_get(self) -> str:
        """What to download, and the command that makes a checkpoint of it, in one sentence."""
        return (
            f"download {self.archive} and run `bleurt-repro convert {self.name}.zip {self.name}-converted`, "
            f"then give the folder {self.name}-converted as the checkpoint"
        )


ENGLISH = "https://storage.googleapis.com/bleurt-oss"
MULTILINGUAL = "https://storage.googleapis.com/bleurt-oss-21"

# lucadiliello/* are made with bleurt-pytorch and hold a pickle, which is never opened; where the Hub's own service
# offers the same weights as safetensors, they are at the revision named. BramVanroy/*-pt hold the same weights again.
OFFICIAL_CHECKPOINTS = {
    checkpoint.name: checkpoint
    for checkpoint in (
        OfficialCheckpoint(
            "bleurt-tiny-128",
            128,
            f"{ENGLISH}/bleurt-tiny-128.zip",
            "lucadiliello/bleurt-tiny-128@162e86db9ca3b6a07d8f6c4335663d89736b5a13",
        ),
        OfficialCheckpoint("bleurt-tiny-512", 512, f"{ENGLISH}/bleurt-tiny-512.zip", "BramVanroy/bleurt-tiny-512-pt"),
        OfficialCheckpoint("bleurt-base-128", 128, f"{ENGLISH}/bleurt-base-128.zip", "BramVanroy/bleurt-base-128-pt"),
        OfficialCheckpoint(
            "bleurt-base-512", 512, f"{ENGLISH}/bleurt-base-512.zip", "lucadiliello/bleurt-base-512@refs/pr/1"
        ),
        OfficialCheckpoint("bleurt-large-128", 128, f"{ENGLISH}/bleurt-large-128.zip"),
        OfficialCheckpoint("bleurt-large-512", 512, f"{ENGLISH}/bleurt-large-512.zip"),
        OfficialCheckpoint("BLEURT-20", 512, f"{MULTILINGUAL}/BLEURT-20.zip", "BramVanroy/BLEURT-20-pt"),
        OfficialCheckpoint("BLEURT-20-D12", 512, f"{MULTILINGUAL}/BLEURT-20-D12.zip"),
        OfficialCheckpoint("BLEURT-20-D6", 512, f"{MULTILINGUAL}/BLEURT-20-D6.zip"),
        OfficialCheckpoint("BLEURT-20-D3", 512, f"{MULTILINGUAL}/BLEURT-20-D3.zip"),
    )
}
