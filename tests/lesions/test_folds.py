"""Folds: each case tests once, patients stay together, and nothing that trains the network trains the lesion model."""

import json

import pytest

from weakspot.core.errors import ConfigError, DataError, RunError
from weakspot.lesions.folds import CaseFold, load_folds, make_folds, save_folds, trained_on

CASES = [f"p{patient:02d}_{visit}" for patient in range(21) for visit in "ab"[: 1 + patient % 2]]


@pytest.mark.parametrize("seed", range(3))
def test_every_case_has_one_place_and_patients_stay_together(seed):
    folds = make_folds(CASES, patient=r"p\d+", seed=seed)
    assert len(folds) == 4
    assert sorted(case for fold in folds for case in fold.test) == sorted(CASES)
    for fold in folds:
        parts = [fold.train, fold.validation, fold.test]
        assert sorted(case for part in parts for case in part) == sorted(CASES)
        patients = [{case[:3] for case in part} for part in parts]
        assert not (patients[0] & patients[1] or patients[0] & patients[2] or patients[1] & patients[2])
        assert len(patients[1]) == 3 and 5 <= len(patients[2]) <= 6  # 20 % of the rest, 25 % of all
    assert len({fold.validation for fold in folds}) == 4


def test_the_seed_decides():
    assert make_folds(CASES) == make_folds(CASES) != make_folds(CASES, seed=1)


def test_saved_and_loaded_and_not_replaced(tmp_path):
    folds = make_folds(CASES, count=3)
    save_folds(folds, tmp_path / "folds.json")
    assert load_folds(tmp_path / "folds.json") == folds
    with pytest.raises(RunError, match="already exists"):
        save_folds(folds, tmp_path / "folds.json")


def test_nnunets_splits(tmp_path):
    path = tmp_path / "splits_final.json"
    path.write_text(json.dumps([{"train": ["a", "b"], "val": ["c"]}, {"train": ["a", "c"], "val": ["b"]}]))
    folds = load_folds(path)
    assert folds[0] == CaseFold(("a", "b"), ("c",), ())
    assert trained_on(folds) == ("a", "b", "c") and trained_on(folds[:1]) == ("a", "b")


def test_what_is_refused(tmp_path):
    with pytest.raises(DataError, match="'a' is in train and in test"):
        CaseFold(("a",), ("b",), ("a",))
    with pytest.raises(DataError, match="3 patients are too few for 4 folds"):
        make_folds(["a", "b", "c"])
    with pytest.raises(ConfigError, match="count ≥ 2"):
        make_folds(CASES, count=1)
    for text in ("{", "[3]", "{}", '[{"train": []}]'):
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(DataError, match="holds no folds"):
            load_folds(tmp_path / "wrong.json")


def test_the_published_folds(shared):
    folds = load_folds(shared / "data" / "lgg" / "folds.json")
    assert [len(fold.train) for fold in folds] == [66] * 4
    assert len({case for fold in folds for case in fold.test}) == 110
