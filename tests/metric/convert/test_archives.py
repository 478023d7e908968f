"""Zips from elsewhere: what is unpacked, what is refused, and that nothing lands outside."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest

from bleurt_repro.metric.convert.convert import SMALL, unpack_zip


def make_zip(file, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(file, "w", compression) as zipped:
        for name, content in members:
            zipped.writestr(name, content)
    return file


def link(name):
    member = zipfile.ZipInfo(name)
    member.create_system = 3
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return member


def test_files_and_folders_are_unpacked(tmp_path):
    members = [("BLEURT/", ""), ("BLEURT/a.txt", "one"), ("BLEURT/variables/b", b"\x00" * 5000), ("c", "")]
    unpack_zip(make_zip(tmp_path / "z.zip", members), tmp_path / "out")
    files = {str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert files == {"BLEURT/a.txt": b"one"}
    assert (tmp_path / "out" / "BLEURT" / "variables" / "b").stat().st_size == 5000
    assert (tmp_path / "out" / "c").read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("../evil", "evil"),
        ("a/../../evil", "a/evil"),
        ("/evil", "evil"),
        ("..\\evil", "..\\evil"),
        (link("evil"), "evil"),
    ],
)
def test_nothing_lands_outside_and_no_link_is_made(tmp_path, name, inside):
    archive = make_zip(tmp_path / "z.zip", [("first.txt", "harmless"), (name, "/etc/passwd")])
    out = tmp_path / "within" / "out"
    unpack_zip(archive, out)
    assert (out / inside).read_text() == "/etc/passwd" and not (out / inside).is_symlink()
    files = [path for path in tmp_path.rglob("*") if not path.is_dir()]
    assert sorted(files) == sorted([archive, out / "first.txt", out / inside])


@pytest.mark.parametrize("name", ["n" * 300, "first.txt/second.txt"])
def test_a_name_that_cannot_be(tmp_path, name):
    with pytest.raises(ValueError, match="no sound zip"):
        unpack_zip(make_zip(tmp_path / "z.zip", [("first.txt", ""), (name, "")]), tmp_path / "out")


def test_a_bomb_is_refused_before_it_grows(tmp_path):
    archive = make_zip(tmp_path / "z.zip", [("zeros", bytes(SMALL + 1))])
    assert archive.stat().st_size < 100_000
    with pytest.raises(ValueError, match="would grow from"):
        unpack_zip(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bomb_that_understates_its_size_does_not_grow(tmp_path):
    archive = make_zip(tmp_path / "z.zip", [("zeros", bytes(1_000_000))])
    content = archive.read_bytes().replace((1_000_000).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    archive.write_bytes(content)
    with pytest.raises(ValueError, match="no sound zip"):
        unpack_zip(archive, tmp_path / "out")
    assert (tmp_path / "out" / "zeros").stat().st_size <= 100


def test_too_many_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="holds 1001 files"):
        unpack_zip(make_zip(tmp_path / "z.zip", [(f"f{i}", "") for i in range(1001)]), tmp_path / "out")


def test_a_name_that_comes_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive = make_zip(tmp_path / "z.zip", [("a", "1"), ("a", "2")])
    with pytest.raises(ValueError, match="twice"):
        unpack_zip(archive, tmp_path / "out")


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.9])
def test_a_damaged_zip_is_refused(tmp_path, keep):
    archive = make_zip(tmp_path / "z.zip", [("a", bytes(range(256)) * 100)], zipfile.ZIP_STORED)
    content = archive.read_bytes()
    archive.write_bytes(content[: int(keep * len(content)) if keep < 1 else keep])
    with pytest.raises(ValueError, match="no sound zip"):
        unpack_zip(archive, tmp_path / "out")


def test_a_changed_byte_is_noticed(tmp_path):
    archive = make_zip(tmp_path / "z.zip", [("a", b"weights" * 1000)], zipfile.ZIP_STORED)
    archive.write_bytes(archive.read_bytes().replace(b"weights", b"wEights", 1))
    with pytest.raises(ValueError, match="no sound zip"):
        unpack_zip(archive, tmp_path / "out")


def test_an_encrypted_zip_is_refused(tmp_path):
    buffer = io.BytesIO()
    make_zip(buffer, [("a", "secret")], zipfile.ZIP_STORED)
    content = bytearray(buffer.getvalue())
    content[6] |= 1  # the flag of encryption, in the local header
    content[content.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    (tmp_path / "z.zip").write_bytes(content)
    with pytest.raises(ValueError, match="no sound zip"):
        unpack_zip(tmp_path / "z.zip", tmp_path / "out")
