"""Where something is published."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("model", "dataset", "space")
MAIN = "main"


@dataclass(frozen=True)
class Target:
    """Where something is published.

    Attributes:
        kind: "model", "dataset" or "space".
        repo_id: "org/name".
        private: whether the repository is to be a private one.
        revision: the branch; made if need be.
        create_pr: propose the commit in a pull request to main.
    """

    kind: str
    repo_id: str
    private: bool = False
    revision: str | None = None
    create_pr: bool = False

    def __post_init__(self) -> None:
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils import validate_repo_id

        if self.kind not in KINDS:
            raise ValueError(f"what is published is one of {', '.join(KINDS)}, found {self.kind!r}")
        try:
            validate_repo_id(self.repo_id)
        except HFValidationError as error:
            raise ValueError(f"--repo-id must be ORG/NAME, found {self.repo_id!r}") from error
        if "/" not in self.repo_id:
            raise ValueError(f"--repo-id must be ORG/NAME, found {self.repo_id!r}")
        if self.create_pr and self.revision not in (None, MAIN):
            raise ValueError(f"--create-pr proposes a change of main: leave --revision {self.revision} out")

    @property
    def place(self) -> str:
        """What to call it."""
        return f"{self.kind} {self.repo_id}" + (f"@{self.revision}" if self.revision else "")
