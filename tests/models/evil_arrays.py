"""Files of arrays that try to run code: pickles in npy and npz files, headers that are code, members of odd names."""

import io
import pickle
import struct
import zipfile

import numpy as np

from tests.models.evil_archives import MEMBERS, Evil, Touches, zipped

HONEST = {"x": np.ones((4, 3), np.float32), "y": np.arange(4)}


def npy(array, **options) -> bytes:
    made = io.BytesIO()
    np.save(made, array, **options)
    return made.getvalue()


def headed(text: str, content: bytes = b"", version: int = 1) -> bytes:
    """An npy file with any text as its header."""
    coded = text.encode()
    length = struct.pack("<H" if version == 1 else "<I", len(coded) % (1 << (16 if version == 1 else 32)))
    return b"\x93NUMPY" + bytes([version, 0]) + length + coded + content


class EvilArrays(Evil):
    """Files of arrays."""

    def objects(self) -> np.ndarray:
        made = np.empty(self.random.choice([(), (1,), (4, 3)]), dtype=object)
        made[...] = Touches(str(self.mark))
        return made

    def stored(self, changed=(), *, more=(), compression=zipfile.ZIP_STORED) -> bytes:
        members = {f"{name}.npy": npy(array) for name, array in HONEST.items()}
        return zipped([*{**members, **dict(changed)}.items(), *more], root="", compression=compression)

    def with_objects(self):
        return ".npy", npy(self.objects(), allow_pickle=True)

    def with_a_pickle_alone(self):
        return self.random.choice([".npy", ".npz"]), pickle.dumps(Touches(str(self.mark)), self.random.randint(0, 5))

    def with_objects_in_an_npz(self):
        name = self.random.choice(["x.npy", "y.npy"])
        return ".npz", self.stored({name: npy(self.objects(), allow_pickle=True)})

    def with_a_pickle_in_an_npz(self):
        return ".npz", self.stored(
            {self.random.choice(["x.npy", "y.npy", "x", "y"]): pickle.dumps(Touches(str(self.mark)))}
        )

    def with_an_array_twice(self):
        evil = ("x.npy", npy(self.objects(), allow_pickle=True))
        honest = ("x.npy", npy(HONEST["x"]))
        pair = [evil, honest] if self.random.random() < 0.5 else [honest, evil]
        return ".npz", zipped([*pair, ("y.npy", npy(HONEST["y"]))], root="")

    def with_members_outside(self):
        name = self.random.choice([*MEMBERS, "../x.npy", "/tmp/evil.npy", "x.npy/../../evil"])
        return ".npz", self.stored(more=[(name, npy(self.objects(), allow_pickle=True))])

    def with_code_in_a_header(self):
        code = f"__import__('os').mkdir({str(self.mark)!r})"
        texts = (
            code, f"{{'descr': {code}, 'fortran_order': False, 'shape': (4, 3)}}",
            f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({code},)}}", f"[{code} for a in (1,)]",
            f"{{'descr': '<f4', 'fortran_order': {code} or False, 'shape': (4, 3)}}", f"(lambda: {code})()",
        )  # fmt: skip
        return self.in_either(headed(self.random.choice(texts) + "\n", bytes(48), self.random.choice([1, 2, 3])))

    def in_either(self, content):
        """An npy file, alone or in an npz file."""
        return (".npy", content) if self.random.random() < 0.5 else (".npz", self.stored({"x.npy": content}))

    def with_another_header(self):
        draw = self.random.choice
        descr = draw(["'<f4'", "'|O'", "[('a', '|O')]", "'<f99'", "'V9999999999'", "None", "[]", "('<f4', (2**40,))",
                      "'<U9999999'", "{'names': ['a'], 'formats': ['O']}", "'<M8[xx]'"])  # fmt: skip
        shape = draw(["(4, 3)", "(2**70,)", "(-1, 3)", "(1.5,)", "()", "(9223372036854775807, 2)", "'ab'", "None",
                      "(True,)", "(0, 4611686018427387904, 0)"])  # fmt: skip
        order = draw(["False", "True", "None", "1", "'x'"])
        text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{draw(['', ', ', ''])}}}\n"
        return self.in_either(headed(text, pickle.dumps(Touches(str(self.mark))), draw([1, 2, 3, 9])))

    def with_a_nested_header(self):
        opened = self.random.choice(["[", "(", "{1:", "-", "(1+"])
        return self.in_either(headed(opened * self.random.choice([90, 5000, 30_000]), bytes(48), 2))

    def with_a_bomb(self):
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1048576)}\n"
        compressed = self.stored({"x.npy": headed(header, bytes(2**24))}, compression=zipfile.ZIP_DEFLATED)
        return ".npz", compressed.replace(struct.pack("<I", 2**24 + len(header) + 10), b"\x10\0\0\0")

    def with_other_bytes(self):
        suffix, content = self.in_either(npy(self.random.choice([HONEST["x"], HONEST["y"]])))
        changed = bytearray(content)
        for _ in range(self.random.randint(1, 20)):
            changed[self.random.randrange(len(changed))] ^= 1 << self.random.randrange(8)
        return suffix, bytes(changed)

    def with_its_end_cut_off(self):
        suffix, content = self.in_either(npy(HONEST["x"]))
        return suffix, content[: self.random.randrange(len(content))]

    def with_another_suffix(self):
        """An archive called npy, an array called npz."""
        return (".npy", self.stored()) if self.random.random() < 0.5 else (".npz", npy(HONEST["x"]))
