"""Files of a run that were harmed since: named, never believed, and healed."""

import hashlib
import json
import shutil
import threading

import pytest

from tests.runs.work import CELLS, spec
from theodolite.core import Cost, RunError
from theodolite.runs import DamagedError, RunFolder
from theodolite.runs.folder import checked

HARM = {
    "emptied": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "altered": lambda whole: whole.replace(b"1", b"2"),
    "not UTF-8": lambda whole: b"\xff\xfe" + whole,
    "nested": lambda whole: b"[" * 100_000,
    "another type": lambda whole: b"[1]",
}
harmed = pytest.mark.parametrize("harm", HARM.values(), ids=list(HARM))


@pytest.fixture
def folder(tmp_path):
    made = RunFolder.create(tmp_path / "an out", spec(width=8))
    for cell in CELLS[:3]:
        made.save(cell, [{"quantity": "x", "value": 1.0}], Cost())
    with made.launch(jobs=0):
        made.write("summary.json", '{"a": 1}')
    made.write("figures/1.svg", "<svg>1</svg>")
    assert made.damages() == []
    return made


@harmed
@pytest.mark.parametrize("name", ["summary.json", "figures/1.svg"])
def test_a_harmed_file_is_named_and_not_believed(folder, name, harm):
    file = folder.path / name
    file.write_bytes(harm(file.read_bytes()))
    with pytest.raises(DamagedError) as caught:
        folder.read(name)
    message = str(caught.value)
    assert message.startswith(f"{file} ")
    assert f"`theodolite repair --out '{folder.path.parents[3]}'`" in message
    assert [damage.name for damage in folder.damages()] == [name]
    folder.write(name, "anew 1")
    assert folder.read(name) == "anew 1"
    assert folder.damages() == []


def test_a_file_without_its_digest_is_not_believed(folder):
    (folder.path / "checks" / "summary.json.sha256").unlink()
    with pytest.raises(DamagedError, match="has no digest"):
        folder.read("summary.json")


def test_a_file_that_cannot_be_read_is_named(folder):
    (folder.path / "summary.json").unlink()
    assert folder.read("summary.json") is None
    assert [str(one) for one in folder.damages()] == [
        f"{folder.path / 'summary.json'} is missing"
    ]
    (folder.path / "summary.json").mkdir()
    with pytest.raises(DamagedError, match=r"cannot be read \(Is a directory\)"):
        folder.read("summary.json")


def test_digests_are_those_that_sha256sum_writes(folder):
    line = (folder.path / "checks" / "summary.json.sha256").read_text()
    digest = hashlib.sha256(b'{"a": 1}').hexdigest()
    assert line == f"{digest}  summary.json\n"


def test_what_is_written_again_is_left_alone(folder):
    file = folder.path / "figures" / "1.svg"
    before = file.stat().st_mtime_ns, file.stat().st_ino
    folder.write("figures/1.svg", "<svg>1</svg>")
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_whoever_reads_while_others_write_sees_whole_files(folder):
    stop, wrong = threading.Event(), []

    def read():
        while not stop.is_set():
            try:
                assert json.loads(folder.read("summary.json") or "")["a"] >= 1
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(2, 30):
        folder.write("summary.json", json.dumps({"a": n}))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_a_write_that_was_killed_leaves_the_old_file_or_the_new(folder, monkeypatch):
    atomic = checked.write_atomic
    for survives in range(3):
        writes = []

        def dying(path, content, survives=survives, writes=writes):
            if len(writes) == survives:
                raise KeyboardInterrupt
            writes.append(path)
            atomic(path, content)

        before = folder.read("summary.json")
        monkeypatch.setattr(checked, "write_atomic", dying)
        with pytest.raises(KeyboardInterrupt):
            folder.write("summary.json", f'{{"a": {survives + 5}}}')
        monkeypatch.undo()
        assert folder.read("summary.json") in (before, f'{{"a": {survives + 5}}}')


@harmed
def test_a_harmed_cell_is_named(folder, harm):
    file = sorted((folder.path / "cells").glob("*.jsonl"))[1]
    file.write_bytes(harm(file.read_bytes()))
    assert [damage.name for damage in folder.damages()] == [f"cells/{file.name}"]
    other = folder.path / "cells" / "strange.jsonl"
    shutil.copy(sorted((folder.path / "cells").glob("*.jsonl"))[0], other)
    assert len(folder.damages()) == 2


@harmed
def test_a_harmed_run_json_is_written_anew(folder, harm):
    file = folder.path / "run.json"
    whole = file.read_bytes()
    bad = harm(whole).replace(b'"width": 8', b'"width": x')
    file.write_bytes(bad)
    with pytest.raises(DamagedError, match=r"run\.json .*theodolite repair"):
        RunFolder.open(folder.path)
    again = RunFolder.create(folder.path.parents[3], spec(width=8))
    assert again.spec == folder.spec
    assert again.pending(CELLS[:3]) == []
    assert (folder.path / "damaged" / "run.json").read_bytes() == bad
    assert again.damages() == []


@harmed
def test_what_was_run_is_known_from_the_launches(folder, harm):
    file = folder.path / "run.json"
    file.write_bytes(harm(file.read_bytes()).replace(b'"width": 8', b'"width": x'))
    assert RunFolder.restored(folder.path).spec == folder.spec
    assert RunFolder.open(folder.path).spec == folder.spec


def test_a_run_of_which_nothing_says_what_it_was_is_left(folder):
    shutil.rmtree(folder.path / "launches")
    (folder.path / "run.json").write_text("{")
    with pytest.raises(RunError, match=r"run\.json is not what was written"):
        RunFolder.restored(folder.path)
    assert (folder.path / "run.json").read_text() == "{"
    assert len(list((folder.path / "cells").iterdir())) == 3


@harmed
def test_a_harmed_record_of_a_launch_is_passed_over(folder, harm):
    (file,) = (folder.path / "launches").iterdir()
    file.write_bytes(harm(file.read_bytes()))
    assert folder.launches() == []
    with folder.launch(jobs=1):
        pass
    assert [record["jobs"] for record in folder.launches()] == [1]
