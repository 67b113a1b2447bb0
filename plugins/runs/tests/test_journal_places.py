"""Which file systems a run can be kept on."""

from __future__ import annotations

from pathlib import Path

import pytest
from karenina_runs.files.run_files import Place, check_place, place_of
from karenina_runs.journal.journal import Journal

from karenina_core.errors import RunDirectoryError

MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/root rw
30 22 0:30 / {0}/data rw - tmpfs tmpfs rw
31 22 0:31 / {0}/data/net rw master:1 - {1} server:/export rw
32 31 0:32 / {0}/data/net/with\\040space rw - xfs /dev/sdb rw
33 22 0:33 / {0}/twice rw - ext4 /dev/sdc rw
34 22 0:34 / {0}/twice rw - nfs4 server:/x rw
nonsense
"""
KINDS = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "lustre", "glusterfs", "beegfs", "afs", "fuse.sshfs"]
KINDS += ["fuse", "fuse.glusterfs", "vboxsf", "davfs"]


def mounts(folder: Path, kind: str = "nfs4") -> Path:
    file = folder / "mountinfo"
    file.write_text(MOUNTS.format(folder.resolve(), kind), "utf-8")
    return file


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "ceph",
        "lustre",
        "glusterfs",
        "beegfs",
        "afs",
        "fuse.sshfs",
        "fuse",
        "fuse.glusterfs",
        "vboxsf",
        "davfs",
    ],
)
def test_network_file_systems_are_refused(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "data" / "net" / "run"
    folder.mkdir(parents=True)
    with pytest.raises(RunDirectoryError, match=rf"network file system \({kind} at .*--out DIR"):
        check_place(folder, mounts(tmp_path, kind))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "apfs", "fuseblk"])
def test_local_file_systems_are_not(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "data" / "net"
    folder.mkdir(parents=True)
    check_place(folder, mounts(tmp_path, kind))
    assert list(folder.iterdir()) == []


def test_the_innermost_and_the_last_mount_counts(tmp_path: Path) -> None:
    file, root = mounts(tmp_path), tmp_path.resolve()
    assert place_of(tmp_path / "data" / "x", file) == Place(f"{root}/data", "tmpfs")
    assert place_of(tmp_path / "data" / "net" / "with space" / "x", file).kind == "xfs"
    assert place_of(tmp_path / "data" / "network", file).kind == "tmpfs"
    assert place_of(tmp_path / "twice", file).kind == "nfs4"
    assert place_of(tmp_path / "elsewhere", file) == Place("/", "ext4")


def test_a_link_to_a_network_file_system_is_one(tmp_path: Path) -> None:
    (tmp_path / "data" / "net").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data" / "net")
    assert place_of(tmp_path / "link", mounts(tmp_path)).kind == "nfs4"


def test_what_is_unknown_is_tried(tmp_path: Path) -> None:
    assert place_of(tmp_path, tmp_path / "nothing") == Place("", "")
    check_place(tmp_path, tmp_path / "nothing")


def test_this_machine_has_a_place_for_temporary_files(tmp_path: Path) -> None:
    assert place_of(tmp_path).suitable
    check_place(tmp_path)


def test_no_journal_is_begun_on_a_network_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data" / "net" / "run"
    folder.mkdir(parents=True)
    monkeypatch.setattr(check_place, "__defaults__", (mounts(tmp_path),))
    with pytest.raises(RunDirectoryError, match="network file system"):
        Journal.open(folder)
    assert list(folder.iterdir()) == []
