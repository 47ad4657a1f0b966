"""Files of weights that try to run code: pickles of all ages, in zips and without, and safetensors with other bytes."""

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import torch
from safetensors.torch import save

from tests.models.evil_archives import Evil, Touches, members_of, zipped

HONEST = {"a.weight": torch.ones(3, 2), "a.bias": torch.zeros(3)}


class Calls:
    """Calls something when it is unpickled."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


class EvilWeights(Evil):
    """Files of weights."""

    def evil(self):
        mark = str(self.mark)
        call = self.random.choice(
            (Touches(mark), Calls(os.mkdir, mark), Calls(os.system, f"mkdir {mark}"), Calls(torch.save, 1, mark),
             Calls(eval, f"open({mark!r}, 'w')"), Calls(torch.load, mark),
             Calls(torch.from_file, mark, True, 4), Calls(Path.mkdir, Path(mark)))
        )  # fmt: skip
        wraps = (lambda it: it, lambda it: {"state_dict": it}, lambda it: {**HONEST, "x": it}, lambda it: [it] * 2)
        return self.random.choice(wraps)(call)

    def saved(self, content, **options):
        made = io.BytesIO()
        torch.save(content, made, **options)
        return made.getvalue()

    def suffix(self):
        return self.random.choice((".pt", ".pth", ".bin", ".ckpt"))

    def with_calls_in_a_zip(self):
        return self.suffix(), self.saved(self.evil(), pickle_protocol=self.random.randint(2, 5))

    def with_calls_without_a_zip(self):
        return self.suffix(), self.saved(self.evil(), _use_new_zipfile_serialization=False)

    def with_calls_in_a_pickle(self):
        return self.suffix(), pickle.dumps(self.evil(), protocol=self.random.randint(0, 5))

    def with_a_pickle_twice(self):
        members = members_of(self.saved(HONEST))
        both = [("data.pkl", self.saved_pickle()), ("data.pkl", members.pop("data.pkl"))]
        self.random.shuffle(both)
        return self.suffix(), zipped([both[0], *members.items(), both[1]], root="archive")

    def saved_pickle(self):
        return members_of(self.saved(self.evil()))["data.pkl"]

    def with_torchscript_members(self):
        members = {**members_of(self.saved(HONEST)), "constants.pkl": self.saved_pickle(), "code/x.py": b"import os"}
        return self.suffix(), zipped(members.items(), root="archive")

    def with_a_tar(self):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            for name in ("storages", "tensors", "pickle"):
                content = pickle.dumps(self.evil())
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return self.suffix(), made.getvalue()

    def with_compressed_members(self):
        members = {**members_of(self.saved(HONEST)), "data/9": b"\0" * 2**22}
        return self.suffix(), zipped(members.items(), root="archive", compression=zipfile.ZIP_DEFLATED)

    def with_other_bytes(self):
        content = bytearray(self.saved(self.random.choice((HONEST, self.evil()))))
        for _ in range(self.random.randint(1, 20)):
            content[self.random.randrange(len(content))] = self.random.randrange(256)
        return self.suffix(), bytes(content)

    def with_other_instructions(self):
        """Pickles with random instructions in them, which is what such a file really is."""
        content = bytearray(self.saved_pickle())
        for _ in range(self.random.randint(1, 6)):
            content.insert(self.random.randrange(2, len(content)), self.random.choice(b"cR0(.oibN]}tl\x81\x93\x94"))
        members = {**members_of(self.saved(HONEST)), "data.pkl": bytes(content)}
        return self.suffix(), zipped(members.items(), root="archive")

    def with_pickles_as_safetensors(self):
        return ".safetensors", self.saved(self.evil())

    def with_other_safetensors(self):
        content = bytearray(save(HONEST))
        length = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + length])
        entry = self.random.choice(list(header.values()))
        entry[self.random.choice(("dtype", "shape", "data_offsets"))] = self.random.choice(
            ([0, 2**62], [2**62], [-1, 4], "F999", None, [], {}, [0, 10**30])
        )
        text = json.dumps(header).encode()
        return ".safetensors", struct.pack("<Q", self.random.choice((len(text), 2**63, 0))) + text + content[
            8 + length :
        ]
