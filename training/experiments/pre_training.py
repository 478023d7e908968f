"""Pre-train models for an ablation: each in a folder of its own, which a killed run goes on from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bleurt_repro.training.experiments.cells import digest

# More than any run has: all its checkpoints are kept.
EVERY_CHECKPOINT = 1_000_000


@dataclass(frozen=True)
class PreTraining:
    """How an ablation's models are pre-trained.

    Attributes:
        folder: where models lie.
        encoder: what all begin with.
        pairs: the synthetic pairs.
        config: of `bleurt-repro pretrain`.
    """

    folder: Path
    encoder: str
    pairs: str
    config: str

    def run(self, leave_out: Sequence[str], steps: int = 0, every: int = 0) -> Path:
        """Pre-train, unless that is done.

        Args:
            leave_out: signals not to learn.
            steps: of training; 0 for what the configuration says.
            every: keep what there is after every so many steps, too; 0 for the best alone.

        Returns:
            the folder of the pre-trained model.
        """
        import shutil

        from bleurt_repro.training.pretrain import main as pretrain
        from bleurt_repro.training.run import RESULTS

        folder = (
            self.folder / f"{'-'.join(['without', *leave_out]) if leave_out else 'all'}-{self._digest(steps, every)}"
        )
        if not (folder / RESULTS).is_file():
            words = ["--config", self.config, "--model", self.encoder, "--pairs", self.pairs]
            words += ["--output_dir", str(folder), "--resume", "true"]
            words += ["--leave_out", *leave_out] if leave_out else []
            words += ["--max_steps", str(steps)] if steps else []
            if every:
                words += [f"--{name}={every}" for name in ("eval_steps", "save_steps")]
                words += ["--save_total_limit", str(EVERY_CHECKPOINT)]
            pretrain(words)
        if not every:
            for checkpoint in folder.glob("checkpoint-*"):
                shutil.rmtree(checkpoint)
        return folder

    def stages(self, folder: Path) -> Iterator[tuple[int, Path]]:
        """Give each number of steps that `run` kept, with the model as it was then.

        Args:
            folder: of the pre-trained model.
        """
        found = sorted((int(path.name.split("-")[1]), path) for path in folder.glob("checkpoint-*"))
        for steps, checkpoint in found:
            stage = folder / f"steps-{steps}"
            if not (stage / "model.safetensors").is_file():
                export_checkpoint(checkpoint, folder, stage)
            yield steps, stage

    def _digest(self, steps: int, every: int) -> str:
        from bleurt_repro.training.arguments import find_config

        config = find_config(self.config).read_text(encoding="utf-8")
        return digest([self.encoder, str(Path(self.pairs).resolve()), config, steps, every])


def export_checkpoint(checkpoint: Path, finished: Path, folder: Path) -> None:
    """Make a model to fine-tune of a checkpoint of a pre-training run.

    Args:
        checkpoint: the Trainer's folder, with the weights of a `PretrainingModel`.
        finished: the run's own folder, which has configuration and tokenizer.
        folder: where to.
    """
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer

    from bleurt_repro.metric.layout import Layout
    from bleurt_repro.training.model import export_scorer

    config = AutoConfig.from_pretrained(finished)
    tokenizer = AutoTokenizer.from_pretrained(finished, trust_remote_code=False)
    export_scorer(config, load_file(checkpoint / "model.safetensors"), tokenizer, Layout.from_config(config), folder)
