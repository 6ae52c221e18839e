import pytest
import torch

from theodolite.core import ConfigError, DataError
from theodolite.data import augment


def generator(seed=0, device="cpu"):
    return torch.Generator(device).manual_seed(seed)


def pictures(n=40, dtype=torch.float32):
    return torch.rand((n, 3, 6, 5), generator=generator(9)).mul(255).ceil().to(dtype)


def origins(image, output, padding):
    """List (down, right, mirrored) of every crop of the image that is the output."""
    c, h, w = image.shape
    frame = torch.zeros((c, h + 2 * padding, w + 2 * padding), dtype=image.dtype)
    frame[:, padding : padding + h, padding : padding + w] = image
    hits = []
    for down in range(2 * padding + 1):
        for right in range(2 * padding + 1):
            crop = frame[:, down : down + h, right : right + w]
            for mirrored in (False, True):
                if torch.equal(output, crop.flip(2) if mirrored else crop):
                    hits.append((down, right, mirrored))
    return hits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8])
def test_each_output_is_one_crop_of_its_own_input(dtype):
    images = pictures(dtype=dtype)
    before = images.clone()
    out = augment(images, padding=2, generator=generator())
    assert out.dtype == dtype
    shifts = [origins(a, b, 2) for a, b in zip(images, out, strict=True)]
    assert all(len(hits) == 1 for hits in shifts)
    assert len({hits[0] for hits in shifts}) > 15  # each image has a draw of its own
    assert torch.equal(images, before)


def test_shifts_and_mirrors_are_uniform():
    images = pictures(1).expand(3600, 3, 6, 5)
    out = augment(images, padding=1, generator=generator())
    kinds, counts = torch.unique(out, dim=0, return_counts=True)
    assert len(kinds) == 18
    # 200 expected, deviation 14: five of them either way.
    assert counts.min() > 130
    assert counts.max() < 270


def test_without_flip_nothing_is_mirrored():
    images = pictures()
    out = augment(images, padding=2, flip=False, generator=generator())
    for image, output in zip(images, out, strict=True):
        assert [hit[2] for hit in origins(image, output, 2)] == [False]


def test_without_padding_and_flip_it_is_the_identity():
    images = pictures()
    out = augment(images, padding=0, flip=False, generator=generator())
    assert torch.equal(out, images)
    assert out.data_ptr() != images.data_ptr()


def test_the_generator_decides_and_the_global_seed_does_not():
    images = pictures()
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = augment(images, generator=generator(5))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(first, augment(images, generator=generator(5)))
    assert not torch.equal(first, augment(images, generator=generator(6)))


def test_wrong_arguments_are_refused():
    with pytest.raises(DataError, match="N, C, H, W"):
        augment(torch.zeros(3, 4, 4), generator=generator())
    with pytest.raises(ConfigError, match="padding"):
        augment(pictures(), padding=-1, generator=generator())


@pytest.mark.gpu
def test_a_gpu_gives_the_crops_of_the_cpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    images = pictures()
    ours = augment(images.cuda(), generator=generator(5))
    assert ours.is_cuda
    assert torch.equal(ours.cpu(), augment(images, generator=generator(5)))
