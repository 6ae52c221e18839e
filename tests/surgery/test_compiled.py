"""Altered networks compiled whole, without a break in their graph."""

import pytest
import torch
from torch.testing import assert_close

from tests.anatomy.styles import images
from tests.surgery.test_identities import Functional
from theodolite import surgery

IMAGES = torch.linspace(-2, 2, 2 * 3 * 8 * 8).sin().reshape(2, 3, 8, 8)
CASES = {
    "around a layer, and at the sums": lambda: (
        surgery.scale_branches(
            surgery.add_identity(images.PreActNet(), IMAGES, learnable=True).model,
            IMAGES,
            by=0.5,
            learnable=True,
            which="layers.0",
        ),
        IMAGES,
    ),
    "by functions": lambda: (
        surgery.add_identity(Functional("module"), IMAGES), IMAGES,
    ),
    "in place, after other operations": lambda: (
        surgery.remove_skips(
            surgery.change_norms(images.OptionA(), IMAGES, to="weight").model, IMAGES
        ),
        IMAGES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_code_does_the_same_forwards_and_backwards(name):
    torch._dynamo.reset()
    result, batch = CASES[name]()
    model = result.model.eval()
    wanted = model(batch)
    wanted.cos().sum().backward()
    grads = {n: p.grad for n, p in model.named_parameters()}
    model.zero_grad()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    outputs = compiled(batch)
    assert_close(outputs, wanted, rtol=1e-5, atol=1e-6)
    outputs.cos().sum().backward()
    for name, parameter in model.named_parameters():
        assert_close(parameter.grad, grads[name], rtol=1e-4, atol=1e-5)


def test_a_compiled_network_is_operated_on_as_it_was_written():
    compiled = torch.compile(images.TorchvisionLike(), backend="aot_eager")
    result = surgery.add_identity(compiled, IMAGES)
    assert isinstance(result.model, images.TorchvisionLike)
