"""A ViT and a GPT-2 of random weights, built from their configurations."""

import numpy as np
import pytest
import torch

from tests.instruments.agreement import near
from tests.instruments.test_preservation import portrait
from tests.instruments.textbook_collapse import textbook
from tests.later import later
from theodolite.core import MeasurementError
from theodolite.instruments import (
    GaussNewton,
    Hessian,
    Jacobian,
    classifier_norms,
    collapse,
)

transformers = later(
    "transformers", "transformers is not installed: pip install transformers"
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def vision():
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        image_size=4, patch_size=2, num_channels=1, num_labels=3,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.ViTForImageClassification(config).double().train()
    images = torch.randn(4, 1, 4, 4, dtype=torch.float64)
    return model, {"pixel_values": images, "labels": torch.tensor([0, 1, 2, 1])}


def language():
    config = transformers.GPT2Config(
        vocab_size=7, n_positions=5, n_embd=8, n_layer=1, n_head=2, n_inner=8,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).double().train()
    tokens = torch.randint(0, 7, (4, 5))
    return model, {"input_ids": tokens}


def own_loss(model, batch):
    if "labels" in batch:
        return model(**batch).loss
    # The library's loss of a language model is float32, whatever the model is.
    logits = model(**batch).logits[:, :-1]
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch["input_ids"][:, 1:].flatten()
    )


@pytest.mark.parametrize("make", [vision, language])
def test_products_against_differences_of_gradients(make):
    model, batch = make()
    before = portrait(model)
    operator = Hessian(model, batch, loss=own_loss, norm_mode="batch")
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(
        2, operator.shape[0], generator=generator, dtype=torch.float64
    )
    ours, other = operator @ first, operator @ second
    assert portrait(model) == before
    left, right = float(second @ ours), float(first @ other)
    assert abs(left - right) < 1e-10 * abs(left)
    slope = []
    for step in (1e-5, -1e-5):
        _shift(model, operator, step * first)
        slope.append(operator.loss_and_gradient()[1])
        _shift(model, operator, -step * first)
    near(ours, (slope[0] - slope[1]) / 2e-5, rtol=1e-6)
    near(operator @ first, _double_backward(model, batch, first))
    cutting = Hessian(model, batch, loss=own_loss, norm_mode="full", micro_batch=3)
    near(cutting @ first, ours)


def _shift(model, operator, vector):
    parts = operator.split(vector)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(parts[name])


def _double_backward(model, batch, vector):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    params = list(model.parameters())
    with sdpa_kernel(SDPBackend.MATH):
        parts = torch.autograd.grad(own_loss(model, batch), params, create_graph=True)
        flat = torch.cat([part.reshape(-1) for part in parts])
        rows = torch.autograd.grad(flat @ vector, params, allow_unused=True)
    return torch.cat([
        (torch.zeros_like(p) if r is None else r).reshape(-1)
        for p, r in zip(params, rows, strict=True)
    ])  # fmt: skip


def test_gauss_newton_and_jacobian_of_attention():
    model, batch = vision()

    def logits(network, given):
        return network(pixel_values=given["pixel_values"]).logits

    def criterion(outputs, given):
        return torch.nn.functional.cross_entropy(outputs, given["labels"])

    names = ["classifier.weight", "vit.layernorm.weight"]
    jacobian = Jacobian(model, batch, norm_mode="batch", outputs=logits, params=names)
    curvature = GaussNewton(
        model, batch, outputs=logits, output_loss=criterion, norm_mode="batch",
        params=names,
    )  # fmt: skip
    dense = jacobian.dense()
    near(jacobian.T.dense().T, dense)
    outputs = logits(model, batch).detach()
    inner = torch.autograd.functional.hessian(
        lambda flat: criterion(flat.reshape(outputs.shape), batch), outputs.reshape(-1)
    ).numpy()
    near(curvature.dense(), dense.T @ inner @ dense)
    assert np.linalg.matrix_rank(dense) > 3


def test_tied_embeddings_are_one_parameter():
    model, batch = language()
    operator = Hessian(
        model, batch, loss=own_loss, norm_mode="batch", params=["lm_head.weight"]
    )
    same = Hessian(
        model, batch, loss=own_loss, norm_mode="batch",
        params=["transformer.wte.weight"],
    )  # fmt: skip
    near(operator.dense(), same.dense())


def logits_of(network, given):
    return network(pixel_values=given["pixel_values"]).logits


def test_collapse_of_a_vision_transformer():
    model, batch = vision()
    images = torch.randn(12, 1, 4, 4, dtype=torch.float64)
    batch = {"pixel_values": images, "labels": torch.arange(12) % 3}
    before = portrait(model)
    found = collapse(model, [batch], norm_mode="eval", outputs=logits_of)
    assert portrait(model) == before
    h = model.vit(pixel_values=images).last_hidden_state[:, 0].detach()
    head = model.classifier
    wanted = textbook(h, batch["labels"], head.weight.detach(), head.bias.detach())
    for name, value in wanted.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-8, abs=1e-10), name


def test_norms_of_a_vision_transformer():
    model, batch = vision()
    before = portrait(model)
    found = classifier_norms(model, [batch], norm_mode="eval", outputs=logits_of)
    assert portrait(model) == before
    assert found.names[-1] == "classifier"
    # A convolution cuts patches, then attention and perceptron of one layer.
    assert len(found.names) == 8
    assert not found.folded.any()
    assert all("for each sample" in note for note in found.notes)
    assert found.invariance.sum() == 0  # a residual sum stands before each norm
    assert "vit.embeddings.cls_token" in found.left_out
    g = logits_of(model, batch).detach().numpy()
    own = g[np.arange(4), batch["labels"]]
    np.testing.assert_allclose(found.f * found.rho, own, rtol=1e-10)


def masked_bert(dtype):
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=12,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    model, tokens = transformers.BertForMaskedLM(config), torch.randint(0, 30, (9, 12))
    shares = torch.linspace(0.1, 0.9, 9)[:, None]
    labels = tokens.where(torch.rand(9, 12) < shares, -100)
    return model.to(dtype), {"input_ids": tokens, "labels": labels}


def prompted_gpt(dtype):
    model, _ = language()
    tokens = torch.randint(0, 7, (9, 5))
    labels = tokens.where(torch.arange(5) >= (torch.arange(9) % 4)[:, None], -100)
    return model.to(dtype), {"input_ids": tokens, "labels": labels}


def mixture(dtype, share=0.0):
    config = transformers.MixtralConfig(
        vocab_size=20, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, num_local_experts=4,
        num_experts_per_tok=2, max_position_embeddings=8,
        output_router_logits=True, router_aux_loss_coef=share,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.MixtralForCausalLM(config).to(dtype).train()
    tokens = torch.randint(0, 20, (9, 6))
    return model, {"input_ids": tokens, "labels": tokens}


def loss_of_theirs(model, batch):
    return model(**batch).loss


# The library computes losses of causal models in float32, whatever the model is.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("make", [masked_bert, prompted_gpt, mixture])
def test_language_models_in_pieces_and_in_lists(make, dtype):
    model, batch = make(dtype)
    given = {"loss": loss_of_theirs, "norm_mode": "eval"}
    whole = Hessian(model, batch, **given)
    v = torch.randn(whole.shape[0], generator=torch.Generator().manual_seed(0))
    wanted = whole @ v.to(dtype)
    assert torch.equal(Hessian(model, batch, norm_mode="eval") @ v.to(dtype), wanted)
    parts = [{k: t[s] for k, t in batch.items()} for s in (slice(0, 4), slice(4, 9))]
    exact = dtype is torch.float64 and make is masked_bert
    rtol = 1e-12 if exact else 1e-5
    pieces = Hessian(model, batch, micro_batch=2, **given)
    near(pieces @ v.to(dtype), wanted, rtol=rtol)
    near(Hessian(model, parts, **given) @ v.to(dtype), wanted, rtol=rtol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_experts_that_are_balanced_over_a_batch_are_not_cut(dtype):
    model, batch = mixture(dtype, share=0.02)
    given = {"loss": loss_of_theirs, "norm_mode": "eval"}
    Hessian(model, batch, **given)
    with pytest.raises(MeasurementError, match="together and apart"):
        Hessian(model, batch, micro_batch=4, **given)
