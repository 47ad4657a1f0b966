"""What a model says of its outputs, and how the classes of data agree with it."""

from types import SimpleNamespace

import pytest

from weakspot.core.errors import ConfigError, SubjectError
from weakspot.models.model_classes import another_order, in_order_of_outputs, model_classes

OWN = ("owl", "dog", "cat")
NUMBERED, BY_NAME = dict(enumerate(OWN)), {name: number for number, name in enumerate(OWN)}


def model(**config):
    return SimpleNamespace(config=SimpleNamespace(**config))


@pytest.mark.parametrize(
    "config",
    [
        {"id2label": NUMBERED},
        {"id2label": {str(number): name for number, name in NUMBERED.items()}},
        {"id2label": dict(reversed(NUMBERED.items())), "label2id": None},
        {"label2id": BY_NAME},
        {"id2label": NUMBERED, "label2id": BY_NAME},
        {"id2label": {0: "LABEL_0", 1: "LABEL_1"}, "label2id": BY_NAME},
    ],
)
def test_the_names_of_the_outputs_are_read_in_their_order(config):
    assert model_classes(model(**config)) == OWN


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"id2label": {0: "LABEL_0", 1: "LABEL_1"}},
        {"id2label": {}},
        {"id2label": ["owl"]},
        {"id2label": {1: "owl", 2: "dog"}},
        {"id2label": {0: "owl", 1: "owl"}},
        {"id2label": {0: 7, 1: 8}},
    ],
)
def test_what_names_no_output_is_no_name(config):
    assert model_classes(model(**config)) is None
    assert model_classes(object()) is None


def test_a_config_that_contradicts_itself_is_refused():
    with pytest.raises(SubjectError, match=r"contradicts itself: id2label says .*'owl', 'dog'.* label2id says"):
        model_classes(model(id2label=NUMBERED, label2id={"owl": 2, "dog": 1, "cat": 0}))


def test_hugging_face():
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    named = transformers.ViTConfig(**small, image_size=8, patch_size=4, id2label=NUMBERED)
    assert model_classes(transformers.ViTForImageClassification(named)) == OWN
    unnamed = transformers.ViTConfig(**small, image_size=8, patch_size=4, num_labels=3)
    assert model_classes(transformers.ViTForImageClassification(unnamed)) is None


def test_classes_of_the_data_go_to_the_outputs_of_the_same_name():
    assert in_order_of_outputs(OWN, ["cat", "dog", "owl"]) == OWN
    assert in_order_of_outputs(("Snowy Owl", "dog"), ["dog", "snowy_owl"]) == ("snowy_owl", "dog")
    assert in_order_of_outputs(OWN, ["fish", "bird"]) is None
    assert in_order_of_outputs(("a", "A"), ["A", "a"]) == ("a", "A")
    with pytest.raises(ConfigError, match=r"other classes, too: \['bird'\]; name all classes as the data do"):
        in_order_of_outputs(OWN, ["cat", "bird"])


def test_another_order_is_one_of_the_same_names():
    assert another_order(OWN, ["Cat", "dog", "owl"]) and not another_order(OWN, ["Owl", "dog", "cat"])
    assert not another_order(OWN, ["cat", "dog"]) and not another_order(OWN, ["a", "b", "c"])
