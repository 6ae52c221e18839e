"""What the operating system refuses is told in a sentence, and harms nothing."""

import errno
import os
import subprocess
import sys

import pytest

from tests.runs.processes import ROOT, environment
from tests.runs.work import CELLS, Logged, spec
from theodolite.core import Cost, RunError
from theodolite.runs import RunFolder, execute, write_text

EXECUTE = """
import sys
from tests.runs.work import CELLS, broad, spec
from theodolite.core import RunError
from theodolite.runs import RunFolder, execute
if __name__ == "__main__":
    folder = RunFolder.create(sys.argv[1], spec(width=8))
    try:
        execute(folder, CELLS, broad, jobs=int(sys.argv[2]))
    except RunError as error:
        print(error)
        sys.exit(3)
"""
LIMITED = (
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
    + EXECUTE
)


def seen(folder):
    """All that is in a folder but the records of launches."""
    return {
        str(path.relative_to(folder.path)): path.read_bytes()
        for path in folder.path.rglob("*")
        if path.is_file() and path.parent.name != "launches"
    }


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("jobs", [0, 1])
def test_a_file_that_grows_too_large(tmp_path, jobs):
    folder = RunFolder.create(tmp_path, spec(width=8))
    folder.save(CELLS[0], [{"quantity": "x", "value": 0.5}], Cost())
    before = seen(folder)
    code = tmp_path / "limited.py"
    code.write_text(LIMITED)
    done = subprocess.run(
        [sys.executable, str(code), str(tmp_path), str(jobs)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 3, done.stderr
    assert "File too large" in done.stdout
    assert str(folder.path) in done.stdout
    assert "finished cells included: raise the limit on file sizes" in done.stdout
    assert seen(folder) == before
    assert folder.launches()[-1]["outcome"].startswith("failed: cannot write to")
    assert execute(folder, CELLS[:3], Logged(tmp_path / "log", 0), jobs=0).n_computed


def in_mount_namespace(script):
    """Run shell lines with mounts of their own, gone when they end."""
    return subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def can_mount(tmp_path):
    try:
        return not in_mount_namespace(f"mount -t tmpfs x {tmp_path}").returncode
    except OSError:
        return False


def test_a_full_disk(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("mounting a small disk is not permitted here")
    code = tmp_path / "full.py"
    code.write_text(EXECUTE)
    disk = tmp_path / "disk"
    disk.mkdir()
    done = in_mount_namespace(
        f"mount -t tmpfs -o size=256k x {disk}\n"
        f"code=0; {sys.executable} {code} {disk} 0 || code=$?\n"
        f"ls -A {disk}/runs/*/*/*/cells\n"
        f"cp -r {disk}/runs {tmp_path}/kept\n"
        "exit $code"
    )
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stdout
    assert "free some space or choose another folder" in done.stdout
    assert ".part" not in done.stdout
    (path,) = (tmp_path / "kept").glob("*/*/*")
    kept = RunFolder.open(path)
    n_kept = len(CELLS) - len(kept.pending(CELLS))
    assert n_kept > 3
    assert len(list((path / "cells").iterdir())) == n_kept


def test_a_read_only_folder(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("a read-only mount is not permitted here")
    folder = RunFolder.create(tmp_path / "out", spec(width=8))
    folder.save(CELLS[0], [{"quantity": "x", "value": 0.5}], Cost())
    before = seen(folder)
    code = tmp_path / "read_only.py"
    code.write_text(
        EXECUTE.replace("    try:", "    print(len(folder.rows()), 'row')\n    try:")
    )
    out = tmp_path / "out"
    mount = f"mount --bind {out} {out}\nmount -o remount,bind,ro {out}\n"
    done = in_mount_namespace(f"{mount}{sys.executable} {code} {out} 0")
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("1 row\n")
    assert "Read-only file system" in done.stdout
    assert "make it writable or choose another folder" in done.stdout
    code.write_text(EXECUTE.replace("width=8", "width=9"))
    other = in_mount_namespace(f"{mount}{sys.executable} {code} {out} 0")
    assert "RunError: cannot create the run folder" in other.stderr
    assert seen(folder) == before


def test_a_file_where_a_folder_is_wanted(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match=r"cannot create .*: Not a directory.* move the"):
        RunFolder.create(tmp_path / "file", spec(width=8))
    assert (tmp_path / "file").read_text() == "mine"
    folder = RunFolder.create(tmp_path, spec(width=8))
    (folder.path / "figures").write_text("mine")
    with pytest.raises(RunError, match="cannot write to the run folder"):
        folder.write("figures/1.svg", "<svg/>")
    (folder.path / "summary.json" / "inner").mkdir(parents=True)
    folder.write("summary.json", "{}")
    assert folder.read("summary.json") == "{}"
    assert (folder.path / "summary.json.damaged" / "inner").is_dir(), "nothing is lost"
    assert (folder.path / "figures").read_text() == "mine"
    assert not list(folder.path.rglob("*.part"))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_place_where_nothing_can_be_made():
    with pytest.raises(RunError, match=r"cannot create the run folder /proc/.*: "):
        RunFolder.create("/proc", spec(width=8))


def test_a_page_that_meets_a_full_device(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs a device that is always full")
    with pytest.raises(RunError, match=r"write /dev/full \(No space left"):
        write_text("/dev/full", "a page")


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("linked", [False, True])
def test_a_page_that_grows_too_large_leaves_the_old_one(linked, tmp_path):
    import resource

    page = write_text(tmp_path / "new" / "page.html", "the old page")
    if linked:
        (tmp_path / "elsewhere").mkdir()
        os.symlink("../new/page.html", tmp_path / "elsewhere" / "first")
        page = tmp_path / "link"
        page.symlink_to(tmp_path / "elsewhere" / "first")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises(RunError, match=r"\(File too large\): pass another"):
            write_text(page, "x" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert page.read_text() == "the old page"
    with pytest.raises(RunError, match="a file stands where its folder would be"):
        write_text(page / "inside.html", "x")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page.html"]
    write_text(page, "the new page")
    assert page.is_symlink() == linked
    assert (tmp_path / "new" / "page.html").read_text() == "the new page"


def test_a_link_to_itself_is_refused(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(RunError, match=os.strerror(errno.ELOOP)):
        write_text(loop, "a page")
    assert loop.is_symlink()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_file_that_is_held_open_is_written_through(tmp_path):
    page = tmp_path / "page.html"
    with page.open("wb") as file:
        link = tmp_path / "link"
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        write_text(link, "a page")
        # Whoever holds it open still holds the file of this name.
        assert os.fstat(file.fileno()).st_ino == page.stat().st_ino
    assert page.read_text() == "a page"
