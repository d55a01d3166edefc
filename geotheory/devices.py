"""Whether a device is there."""

import torch

from geotheory.errors import InvalidArgument

__all__ = ["ensure_device"]


def ensure_device(device: str | torch.device) -> None:
    """Raise InvalidArgument unless tensors can be made on `device`."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidArgument(f"device {str(device)!r} is not available here: {error}") from error
