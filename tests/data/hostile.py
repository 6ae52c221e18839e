"""What tests of bad files share: a refusal in one sentence, a small picture."""

import io
import os

import pytest
from PIL import Image

from tests.data.writers import one_sentence, random_images, random_labels
from theodolite.core import DataError

posix = pytest.mark.skipif(os.name != "posix", reason="files of POSIX systems")
IMAGES, LABELS = random_images(15, 32, 32, 3), random_labels(15)


def refused(read, *arguments, match, **settings):
    with pytest.raises(DataError, match=match) as error:
        read(*arguments, **settings)
    assert one_sentence(error), str(error.value)
    assert str(error.value).isprintable()


def picture_bytes(kind="PNG"):
    stream = io.BytesIO()
    Image.fromarray(IMAGES[0]).save(stream, kind)
    return stream.getvalue()
