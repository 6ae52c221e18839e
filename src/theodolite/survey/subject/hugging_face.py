"""Inputs and labels for models of transformers."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import SubjectError, error_text

from .made_up import place_of

# Length of a made-up text in tokens, and of a made-up sound in samples.
_LENGTH, _SOUND = 16, 4000


def is_hugging_face(model: nn.Module) -> bool:
    """Return whether a model is from transformers, without importing the library."""
    return hasattr(model, "main_input_name") and hasattr(model, "config")


def made_up_batch(
    model: Any, samples: int, generator: torch.Generator
) -> tuple[dict[str, Tensor], Tensor | None, str]:
    """Return random inputs, and labels if the head needs any, for a transformers model.

    Returns:
        Keyword arguments of the model, labels or None, and what they are in words.
    """
    name = model.main_input_name
    if name not in ("input_ids", "pixel_values", "input_values"):
        raise SubjectError(
            f"{type(model).__name__} wants {name!r}, which cannot be made up: pass "
            "batches of its inputs by name, from Python"
        )
    try:
        inputs, said = _inputs(model, name, samples, generator)
        device, dtype = place_of(model)
        inputs = inputs.to(device, dtype if inputs.is_floating_point() else None)
        labels = _labels(model, inputs, generator)
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        raise SubjectError(
            f"the config of {type(model).__name__} allows no {name} or labels "
            f"({error_text(error)[:200]}): check sizes such as vocab_size and "
            "image_size"
        ) from error
    labels = None if labels is None else labels.to(device)
    return with_decoder_inputs(model, {name: inputs}, labels), labels, said


def _inputs(
    model: Any, name: str, samples: int, generator: torch.Generator
) -> tuple[Tensor, str]:
    """Return random inputs of a name that models of transformers have, and words."""
    config = model.config
    if name == "input_ids":
        text = config.get_text_config()
        most = int(getattr(text, "max_position_embeddings", 0) or _LENGTH)
        size = (samples, min(_LENGTH, most))
        ids = torch.randint(text.vocab_size, size, generator=generator, device="cpu")
        return ids, f"token ids below {text.vocab_size}, {size[1]} per sample"
    shape, what = (_SOUND,), "sounds"
    if name == "pixel_values":
        vision = getattr(config, "vision_config", config)
        side = getattr(vision, "image_size", None) or 64
        sides = side if isinstance(side, list | tuple) else (side, side)
        shape = (getattr(vision, "num_channels", 3), *map(int, sides))
        what = "images"
    drawn = torch.randn((samples, *shape), generator=generator, device="cpu")
    return drawn, f"Gaussian {what} of {'×'.join(map(str, shape))}"


def _labels(model: Any, inputs: Tensor, generator: torch.Generator) -> Tensor | None:
    """Draw labels for the heads that compute a loss from them."""
    name, classes = type(model).__name__, int(getattr(model.config, "num_labels", 2))
    if name.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")):
        return inputs
    shape: tuple[int, ...] = tuple(inputs.shape)
    if name.endswith("ForMaskedLM"):
        classes = model.config.vocab_size
    elif name.endswith("Classification"):
        shape = shape if name.endswith("ForTokenClassification") else shape[:1]
    else:
        return None
    return torch.randint(classes, shape, generator=generator, device="cpu")


def own_loss(model: nn.Module, batch: Any) -> Tensor:
    """Return the loss that a model computes from labels, as those of transformers do.

    Labels are kept apart from the inputs, so that the map shows the model alone.
    """
    inputs, labels = batch
    return loss_in(model(**inputs, labels=labels))


def loss_in(outputs: Any) -> Any:
    """Return the output of a model that is named ``loss``, or None."""
    named = (
        outputs if isinstance(outputs, Mapping) else getattr(outputs, "__dict__", {})
    )
    return named.get("loss")


def labels_apart(model: nn.Module, batch: Any) -> Any:
    """Return keyword arguments and labels as a pair, if there are labels."""
    if not isinstance(batch, Mapping) or "labels" not in batch:
        return batch
    inputs = {name: one for name, one in batch.items() if name != "labels"}
    return with_decoder_inputs(model, inputs, batch["labels"]), batch["labels"]


def labels_joined(batch: Any) -> Any:
    """Return a pair of keyword arguments and labels as one mapping again."""
    inputs, labels = batch
    return {**inputs, "labels": labels}


def with_decoder_inputs(model: Any, inputs: dict[str, Any], labels: Any) -> Any:
    """Add the labels shifted right, which an encoder-decoder reads and makes of labels.

    So it also runs without labels, as for the map.
    """
    shift = getattr(model, "prepare_decoder_input_ids_from_labels", None)
    made = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    if not made or shift is None or "decoder_input_ids" in inputs or labels is None:
        return inputs
    return {**inputs, "decoder_input_ids": shift(labels=labels)}
