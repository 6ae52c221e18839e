"""Transformers models from a local config, and inputs for them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import SubjectError

from .imported import error_text, seeded
from .made_up import place_of

# Length of a made-up text in tokens, and of a made-up sound in samples.
_LENGTH, _SOUND = 16, 4000
# Settings that make transformers download code or kernels, or make timm read files.
_OF_OTHERS = (
    "auto_map",
    "attn_implementation",
    "_attn_implementation",
    "model_args",
    "checkpoint_path",
)
_OFF = {"use_cache": False, "use_pretrained_backbone": False}
# Heads, most likely first; transformers knows which of them a config allows.
_HEADS = (
    "ImageClassification",
    "Seq2SeqLM",
    "MaskedLM",
    "CausalLM",
    "SequenceClassification",
    "AudioClassification",
    "TokenClassification",
)


def model_from_config(path: Path | str, *, seed: int) -> nn.Module:
    """Make a transformers model with random weights from a ``config.json``.

    Nothing is downloaded, and only code of transformers is run. The head is the one
    that ``architectures`` names, or the most likely one for its kind.
    """
    settings = _settings(Path(path))
    transformers = _library()
    kind = settings.get("model_type")
    known = transformers.CONFIG_MAPPING
    if not isinstance(kind, str) or kind not in known:
        raise SubjectError(
            f"{path} is of model_type {kind!r}, which transformers "
            f"{transformers.__version__} does not have: pass a config of one it has"
        )
    try:
        plain = {**_without_code(settings), **_OFF}
        with seeded(seed), _offline():
            return _built(transformers, known[kind].from_dict(plain))
    except Exception as error:
        raise SubjectError(
            f"transformers cannot build the model of {path} "
            f"({error_text(error)[:300]}): check the config"
        ) from error


def _without_code(value: Any) -> Any:
    """Return settings without those that name foreign code, kernels or files."""
    if isinstance(value, list):
        return [_without_code(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {k: _without_code(v) for k, v in value.items() if k not in _OF_OTHERS}
    return {k: _OFF.get(k, v) for k, v in kept.items()}


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SubjectError(
            f"the config {path} cannot be read ({error.strerror or error}): pass the "
            "path of a config.json"
        ) from error
    except (ValueError, RecursionError) as error:
        raise SubjectError(
            f"the config {path} is no JSON ({str(error).splitlines()[0]}): pass a "
            "config.json"
        ) from error
    if not isinstance(settings, dict):
        raise SubjectError(
            f"the config {path} holds a {type(settings).__name__} and not settings by "
            "name: pass a config.json of transformers"
        )
    return settings


def _library() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise SubjectError(
            f"hf: needs transformers, which cannot be imported ({error}): pip install "
            "'theodolite[transformers]'"
        ) from error
    return transformers


@contextmanager
def _offline() -> Iterator[None]:
    """Keep transformers and timm offline: configs may name backbones on the hub."""
    from huggingface_hub import constants

    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _built(transformers: Any, config: Any) -> nn.Module:
    # Attention written out can be differentiated twice by every build of torch.
    plain = {"attn_implementation": "eager"}
    for name in getattr(config, "architectures", None) or ():
        made = getattr(transformers, str(name), None)
        if isinstance(made, type) and issubclass(made, transformers.PreTrainedModel):
            return made._from_config(config, **plain)
    for head in _HEADS:
        auto = getattr(transformers, f"AutoModelFor{head}")
        if type(config) in auto._model_mapping:
            return auto.from_config(config, trust_remote_code=False, **plain)
    return transformers.AutoModel.from_config(config, trust_remote_code=False, **plain)


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
    maker = {"input_ids": _ids, "pixel_values": _pixels, "input_values": _sound}
    if name not in maker:
        raise SubjectError(
            f"{type(model).__name__} wants {name!r}, which cannot be made up: pass "
            "batches of its inputs by name, from Python"
        )
    try:
        inputs, said = maker[name](model.config, samples, generator)
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


def _ids(config: Any, samples: int, generator: torch.Generator) -> tuple[Tensor, str]:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    length = min(_LENGTH, int(getattr(text, "max_position_embeddings", 0) or _LENGTH))
    ids = torch.randint(text.vocab_size, (samples, length), generator=generator)
    return ids, f"token ids below {text.vocab_size}, {length} a sample"


def _pixels(
    config: Any, samples: int, generator: torch.Generator
) -> tuple[Tensor, str]:
    vision = getattr(config, "vision_config", config)
    side = getattr(vision, "image_size", None) or 64
    height, width = side if isinstance(side, list | tuple) else (side, side)
    channels = getattr(vision, "num_channels", 3)
    shape = (samples, int(channels), int(height), int(width))
    return torch.randn(shape, generator=generator), _size("Gaussian images", shape)


def _sound(config: Any, samples: int, generator: torch.Generator) -> tuple[Tensor, str]:
    del config
    shape = (samples, _SOUND)
    return torch.randn(shape, generator=generator), _size("Gaussian sounds", shape)


def _size(what: str, shape: tuple[int, ...]) -> str:
    return f"{what} of {'×'.join(map(str, shape[1:]))}"


def _labels(model: Any, inputs: Tensor, generator: torch.Generator) -> Tensor | None:
    """Draw labels for the heads that compute a loss from them."""
    name, config = type(model).__name__, model.config
    classes = int(getattr(config, "num_labels", 2) or 2)
    if name.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")):
        return inputs
    if name.endswith("ForMaskedLM"):
        return torch.randint(config.vocab_size, inputs.shape, generator=generator)
    if name.endswith("ForTokenClassification"):
        return torch.randint(classes, inputs.shape, generator=generator)
    if name.endswith("Classification"):
        return torch.randint(classes, (len(inputs),), generator=generator)
    return None


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
