"""All sources by name: arrays, IDX files, image folders, archives and manifests, torch's data sets, volumes."""

from weakspot.data.arrays import ArraySource
from weakspot.data.datasets import DatasetSource, LoaderSource
from weakspot.data.folders import ImageFolder, ImageZip
from weakspot.data.framing import Framing
from weakspot.data.groups import Grouped
from weakspot.data.idx import IdxSource
from weakspot.data.manifest import ImageManifest
from weakspot.data.metadata import WithMetadata
from weakspot.data.nifti import NiftiFolder, is_nifti_folder

__all__ = [
    "ArraySource",
    "DatasetSource",
    "Framing",
    "Grouped",
    "IdxSource",
    "ImageFolder",
    "ImageManifest",
    "ImageZip",
    "LoaderSource",
    "NiftiFolder",
    "WithMetadata",
    "is_nifti_folder",
]
