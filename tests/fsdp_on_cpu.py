"""Run a training command with FSDP on CPU processes, set up by the configuration that is shipped.

    torchrun --nproc_per_node 2 tests/fsdp_on_cpu.py finetune --model ...

accelerate shards models on GPUs and other accelerators only: of processes on CPUs it makes data-parallel ones, whatever the
configuration says. torch's `fully_shard` works on CPUs as well; so here accelerate is told that these are FSDP processes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import yaml

CONFIG = Path(__file__).resolve().parents[1] / "training" / "configs" / "accelerate_fsdp.yaml"


def set_environment() -> None:
    """Set what `accelerate launch --config_file accelerate_fsdp.yaml` sets."""
    settings = yaml.safe_load(CONFIG.read_text())
    os.environ.update({name.upper(): str(value) for name, value in settings["fsdp_config"].items()})
    os.environ.update(ACCELERATE_USE_FSDP="true", ACCELERATE_USE_CPU="true")


def shard_on_cpus() -> None:
    """Let accelerate take CPU processes for FSDP's."""
    from accelerate.state import AcceleratorState, DistributedType

    make = AcceleratorState.__init__

    def make_with_fsdp(self, *args, fsdp_plugin=None, **kwargs):
        make(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if fsdp_plugin is not None or getattr(self, "fsdp_plugin", None) is not None:
            self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, fsdp_plugin or self.fsdp_plugin

    AcceleratorState.__init__ = make_with_fsdp


def print_units() -> None:
    """Write the classes of the modules that are sharded one by one, after training."""
    from torch.distributed.fsdp import FSDPModule

    from bleurt_repro.training import run

    finish = run.finish

    def finish_and_print(trainer, *args, **kwargs):
        result = finish(trainer, *args, **kwargs)
        units = [type(module).__name__ for module in trainer.model.modules() if isinstance(module, FSDPModule)]
        sys.stdout.write(f"units: {' '.join(sorted(units))}\n")
        sys.stdout.flush()
        return result

    run.finish = finish_and_print


if __name__ == "__main__":
    set_environment()
    shard_on_cpus()
    print_units()
    from tests.tiny_training import finetune, pretrain

    {"finetune": finetune, "pretrain": pretrain}[sys.argv[1]](sys.argv[2:])
