"""Compute under PyTorch's own defaults, so that a score does not depend on the code around the call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu")


@contextmanager
def torch_defaults() -> Iterator[None]:
    """Set aside what the caller has set for its own computations, and restore it afterwards.

    That is: inference mode, disabled gradients, autocast, a default device, a default dtype, deterministic algorithms,
    and float32 products of lower precision (TF32, bfloat16). What is at its default is not touched, since some of
    these settings hold for all threads.
    """
    import torch

    with ExitStack() as stack:
        if torch.is_inference_mode_enabled():  # a tensor made in it could not be used outside
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        for device_type in DEVICE_TYPES:
            if torch.is_autocast_enabled(device_type):
                stack.enter_context(torch.autocast(device_type, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        if (dtype := torch.get_default_dtype()) != torch.float32:
            torch.set_default_dtype(torch.float32)
            stack.callback(torch.set_default_dtype, dtype)
        if torch.are_deterministic_algorithms_enabled():
            warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
            torch.use_deterministic_algorithms(False)
            stack.callback(torch.use_deterministic_algorithms, True, warn_only=warn_only)
        products: Any
        for products in (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul):  # type: ignore[attr-defined]
            if (precision := products.fp32_precision) not in ("none", "ieee"):
                products.fp32_precision = "ieee"
                stack.callback(setattr, products, "fp32_precision", precision)
        yield
