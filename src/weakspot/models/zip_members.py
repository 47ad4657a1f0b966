"""The members of a zip that torch wrote: stored as they are, each once, all below one folder.

Readers of zips differ where a name is there twice, or differs between two places, and compressed members can be
much larger than the file. torch writes none of this, so a file that has it is refused.
"""

import zipfile


def plain_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members by their names below the folder; a ValueError where this is no zip as torch writes it.

    size: of the file, in bytes.
    """
    members: dict[str, zipfile.ZipInfo] = {}
    roots = set()
    for info in archive.infolist():
        root, _, name = info.filename.partition("/")
        roots.add(root)
        if name in members:
            raise ValueError(f"it holds {name[:60]!r} twice")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise ValueError(f"{name[:60]!r} is compressed or encrypted, which torch never does")
        members[name] = info
    if len(roots) > 1:
        raise ValueError(f"it holds {len(roots)} folders, and torch writes one")
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("its members are larger than the file")
    return members
