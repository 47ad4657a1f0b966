"""What the Findings about copies hold: numbers, columns, arrays and sentences. Torch-free."""

from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    correct,
    count,
    flag,
    number,
    optional,
    sample_id,
    share,
    text,
)

IMAGE_HASHES = Outputs(
    summary={"inputs": count("samples examined")},
    arrays={
        "image_id": ArraySpec("ids of the images", ("image",)),
        "content": ArraySpec("digest of each image's numbers", ("image", "byte")),
        "hash": ArraySpec("perceptual hash of each image", ("image",)),
        "picture": ArraySpec("a small picture of each image", ("image", "row", "column", "channel")),
        "target": ArraySpec("label of each image", optional=True),
        "features": ArraySpec("channel means of the layer named, of each image", ("image", "channel"), optional=True),
    },
)
_IN_TRAINING = "copy in the training data"
_IN_TEST = "copy in the test data"

DUPLICATES = Outputs(
    summary={
        "leaked_exact": count(f"test images with an exact {_IN_TRAINING}", better="lower", optional=True),
        "leaked_near": count(f"test images with a near {_IN_TRAINING}", better="lower", optional=True),
        "leaked_share": share(
            f"share of the test images with a {_IN_TRAINING}", better="lower", mean_of="leaked", optional=True
        ),
        "leaked": count(f"test images with a {_IN_TRAINING}; not there where there is none", optional=True),
        "repeated_exact": count(f"test images with an exact {_IN_TEST}", better="lower"),
        "repeated_near": count(f"test images with a near {_IN_TEST}", better="lower"),
        "repeated_share": share(f"share of the test images with a {_IN_TEST}", better="lower", mean_of="repeated"),
        "repeated": count(f"test images with a {_IN_TEST}; not there where there is none", optional=True),
        "alike": share(f"share of the test images with a near {_IN_TEST}, where these are many", optional=True),
        "leaked_alike": count("test images that are alike to the network to a training image", optional=True),
        "repeated_alike": count("test images that are alike to the network to another test image", optional=True),
        "other_labels": count("exact copies in the test data with another label than their copy", optional=True),
        "accuracy": share(
            "share of the test images predicted correctly", better="higher", mean_of="correct", optional=True
        ),
        "accuracy_without_leaked": share(f"the same of those without a {_IN_TRAINING}", better="higher", optional=True),
        "accuracy_of_leaked": share(f"the same of those with a {_IN_TRAINING}", optional=True),
        "accuracy_without_copies": share("the same of those without any copy", better="higher", optional=True),
        "accuracy_without_alike": share(
            "the same of those without any copy, by picture or to the network", better="higher", optional=True
        ),
        "inputs": count("samples examined"),
    },
    columns={
        "id": sample_id(),
        **optional(
            {
                "leaked": flag(f"whether it has a {_IN_TRAINING}", better="lower"),
                "leaked_copy": text("the training image that is most like it"),
                "leaked_exactly": flag("whether that is an exact copy"),
                "leaked_similarity": number("correlation of the small pictures of both, 0 without a copy"),
            }
        ),
        "repeated": flag(f"whether it has a {_IN_TEST}", better="lower"),
        "repeated_copy": text("the other test image that is most like it"),
        "repeated_exactly": flag("whether that is an exact copy"),
        "repeated_similarity": number("correlation of the small pictures of both, 0 without a copy"),
        **{
            name: spec
            for of in ("leaked", "repeated")
            for name, spec in optional(
                {
                    f"{of}_alike": flag("whether another image is alike to the network", better="lower"),
                    f"{of}_alike_copy": text("which image that is"),
                    f"{of}_alike_distance": number("distance of the nearest, as a share of the usual distance"),
                }
            ).items()
        },
        "correct": correct(optional=True),
    },
    pictures="Pairs of copies side by side, as the small pictures that are compared.",
    headlines=[
        Headline("{leaked_share} of the {inputs} test images have a copy in the training data.", rank=90),
        Headline("{repeated_share} of the {inputs} test images have a copy among the test images.", rank=91),
        Headline(
            "Of the test images with a copy in the training data, {leaked_share} of all, the model predicts "
            "{accuracy_of_leaked} correctly; of the others {accuracy_without_leaked}.",
            rank=90,
            further=True,
        ),
        Headline(
            "{alike} of the test images look like another test image. If they are frames or slices of one thing, name "
            "the column that says which belong together (group:): they are not independent.",
            rank=91,
            further=True,
        ),
    ],
    advice=[
        Advice(
            "Take the {leaked} test images with a copy in the training data out of either: what was trained on is no "
            "test. The Finding lists the pairs.",
            rank=5,
        ),
        Advice("Check the labels of {other_labels} test images: their exact copies have other labels.", rank=6),
    ],
)
