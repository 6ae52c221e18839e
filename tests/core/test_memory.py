"""What a container may still take, by the files that tell its limit."""

import pytest

from theodolite.core import process

STAT = "anon 5\ninactive_file 300\nactive_file 7"


@pytest.mark.parametrize(
    ("limit", "free"),
    [("1000", 1000 - 400 + 300), (str(2**63 - 4096), None), ("max", None)],
)
@pytest.mark.parametrize("kind", process._GROUPS, ids=["second", "first"])
def test_a_container_has_its_limit_less_what_cannot_be_dropped(
    kind, limit, free, tmp_path, monkeypatch
):
    monkeypatch.setattr(process, "_CONTAINER", str(tmp_path))
    for name, text in zip(kind, (limit, "400", STAT), strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    if free is None:
        assert process.free_memory() > 2000
    else:
        assert process.free_memory() == free
