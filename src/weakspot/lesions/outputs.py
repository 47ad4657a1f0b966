"""What the Findings of the lesions room hold, and how they are read: torch-free."""

from weakspot.core.figures import Bars, ReliabilityCurve, Scatter
from weakspot.core.outputs import (
    Advice,
    ArraySpec,
    Headline,
    Outputs,
    ValueSpec,
    count,
    flag,
    number,
    optional,
    share,
    text,
)
from weakspot.core.room import Room, ViewerPage
from weakspot.lesions.evaluation_outputs import AREAS, EVALUATION, SENSITIVITIES
from weakspot.lesions.lesion_pictures import lesion_pictures

_CASES = {
    "lesions": count("lesions found"),
    "cases": count("cases examined"),
    "patients": count("patients, by the pattern that names them", optional=True),
    "without_lesion": count("cases without a lesion"),
    "true_positives": count("lesions that agree with the ground truth", optional=True),
    "false_positives": count("lesions that do not", better="lower", optional=True),
    "missed_lesions": count("true lesions that none touches", better="lower", optional=True),
    "dice": number("mean Dice over the cases, or the patients where they are named", better="higher", optional=True),
    "recall": share("true lesions that a lesion touches", better="higher", optional=True),
    "precision": share("lesions that agree with the ground truth", better="higher", optional=True),
    "f1": number("harmonic mean of recall and precision", better="higher", optional=True),
    "panoptic_quality": number("mean panoptic quality of the cases, or patients", better="higher", optional=True),
    "hd95": number(
        "95 % surface distance to the true lesion, median of those that match", better="lower", optional=True
    ),
}
_PLACE = {
    "case": text("the case"),
    "lesion": ValueSpec("number of the lesion in its case", "count", role="code"),
}
_CENTRE = {axis: ValueSpec(f"centre of the lesion along {axis}", role="coordinate") for axis in ("z", "y", "x")}
_TRUTH = {
    "adjusted_iou": number("adjusted intersection over union with the ground truth", better="higher", optional=True),
    "true_positive": flag("whether the lesion agrees with the ground truth", better="higher", optional=True),
    "true_lesion": ValueSpec(
        "number of the true lesion that it shares most voxels with, 0 for none", "count", role="code", optional=True
    ),
    "iou": number("intersection over union with that lesion alone", better="higher", optional=True),
    "hd95": number("95 % of the distances between both surfaces are at most this, in mm if known", optional=True),
}
_MEASURES = {
    "voxels": count("size in voxels"),
    "volume_mm3": ValueSpec("size", "mm³"),
    "entropy": number("mean entropy of the mean softmax"),
    "variance": number("mean variance over the looks"),
    "pcs": number("mean predicted confidence score p: highest less second highest probability, high where certain"),
    "mutual_information": number("mean mutual information"),
    "entropy_logsum": number("sum of the logarithms of the entropy over the lesion's voxels"),
    "variance_logsum": number("sum of the logarithms of the variance over the lesion's voxels"),
    "pcs_logsum": number("sum of log(1 − p) over the lesion's voxels, p the predicted confidence score"),
    "structural": number(
        "1 − mean over the looks of the lesion's IoU with the look's lesion that shares most with it", optional=True
    ),
    "position_up": number("place from 0, the lowest slice of the head, to 1", optional=True),
    "position_front": number("place from 0, the back of the head, to 1", optional=True),
    "position_right": number("place from 0, the left of the head, to 1", optional=True),
    "border_distance": number("distance to the border of what is imaged, in mm if known", optional=True),
    "lesion_class": ValueSpec("most probable of several lesion classes", "count", role="code", optional=True),
    "nodes": count("voxels of the lesion's graph"),
}
_CASE_ARRAYS = {
    "cases": ArraySpec("the cases", ("case",)),
    "case_lesions": ArraySpec("lesions found in each case", ("case",)),
    "case_dice": ArraySpec("Dice of each case", ("case",), optional=True),
    "case_true_lesions": ArraySpec("true lesions of each case", ("case",), optional=True),
    "case_missed_lesions": ArraySpec("true lesions that none touches", ("case",), optional=True),
    "case_panoptic_quality": ArraySpec("panoptic quality of each case", ("case",), optional=True),
    "case_structural": ArraySpec("1 − mean IoU of a look's lesions with those of the mean", ("case",), optional=True),
    "case_sampled_voxels": ArraySpec("voxels where any look has a lesion", ("case",), optional=True),
    "case_looks": ArraySpec("looks at each case", ("case",), optional=True),
    "case_sides": ArraySpec("voxels along each axis", ("case", "axis"), optional=True),
    "case_trained_on": ArraySpec("whether the network was trained on the case", ("case",), optional=True),
}
_RELIABILITY_ARRAYS = {
    "reliability_predicted": ArraySpec("mean predicted probability of each bin", ("bin",), optional=True),
    "reliability_observed": ArraySpec("share of false positives in each bin", ("bin",), optional=True),
    "reliability_lesions": ArraySpec("lesions in each bin", ("bin",), optional=True),
}
_RELIABILITY = ReliabilityCurve(
    predicted="reliability_predicted",
    observed="reliability_observed",
    counts="reliability_lesions",
    caption="Reliability: n lesions with about this predicted probability, and the share of false positives among them "
    "with its interval (lesions taken as independent). A row stands out where the predicted probability lies outside.",
)
_PATIENT_ARRAYS = optional(
    {
        "patients": ArraySpec("the patients with lesions", ("patient",)),
        "patient_lesions": ArraySpec("lesions of each patient", ("patient",)),
        "patient_expected": ArraySpec("false positives to expect, the sum of probabilities", ("patient",)),
        "patient_false_positives": ArraySpec("false positives of each patient", ("patient",)),
        "patient_brier": ArraySpec("mean squared error of the probability", ("patient",)),
        "patient_brier_of_share": ArraySpec("the same of the share of false positives", ("patient",)),
    }
)
_PATIENTS = Scatter(
    x="patient_expected", y="patient_false_positives", x_label="expected false positives", y_label="false positives",
    caption="Expected false positives of each patient (the sum of the probabilities), and how many there are.",
)  # fmt: skip
_SIZES = Scatter(
    x="table.voxels", y="table.entropy", x_label="voxels", y_label="mean entropy", log_x=True,
    marked="table.true_positive", mark_known=True, names=("true", "false"),
    caption="Size and uncertainty of each lesion; true and false ones where the ground truth is known.",
)  # fmt: skip
_METHOD = {
    "method": text("what gives the probability of a false positive"),
    "calibrated": flag("whether the probability is calibrated"),
    "brier": number("mean squared error of the probability", better="lower", optional=True),
    "calibration_error": number("expected calibration error over ten bins", better="lower", optional=True),
    "brier_of_share": number(
        "mean squared error where every lesion gets the share of false positives as its probability", optional=True
    ),
    "patients_worse_than_share": count(
        "patients for whom the probability errs more than that share", better="lower", optional=True
    ),
}
LESIONS = Outputs(
    summary=_CASES,
    columns={**_PLACE, **_CENTRE, **_TRUTH, **_MEASURES},
    arrays={
        **_CASE_ARRAYS,
        "node_features": ArraySpec("features of each voxel of the lesions", ("node", "feature")),
        "node_places": ArraySpec("its place", ("node", "axis")),
        "sample_places": ArraySpec(
            "voxels where any look has a lesion, case by case, by their place in C order", ("voxel",), optional=True
        ),
        "sample_masks": ArraySpec("masks of all looks there, 8 in a byte", ("voxel", "byte"), optional=True),
    },
    figures=(_SIZES,),
    headlines=(Headline("{lesions} lesions are found in {cases} cases.", 20),),
)
_CHOICE = {
    "compared": count("methods compared on held-out patients", optional=True),
    "corrected_area": number(
        "area on patients that had no part in the choice of the method", better="higher", optional=True
    ),
    "best_untrained": text("the score without training that has the largest area", optional=True),
    "area_of_best_untrained": number("its area", optional=True),
    "gain": number("area of the method less that of the best score without training", better="higher", optional=True),
}
_COMPARED = Bars(
    labels=("compared_methods",), values="compared_area", low="compared_low", high="compared_high", readable=True,
    x_label="area",
    caption="How well each method separates false from true positives of patients that it was not trained on: area "
    "with interval; ½ is chance. Of those less than one standard error below the best, the simplest is taken.",
)  # fmt: skip
_WEIGHTS = {name: ArraySpec("numbers of this method", optional=True) for name in (
    "gcn_*", "metaseg_*", "entropy_size.*", "location.*", "node_means.*", "boosted_trees.*",
)}  # fmt: skip
_OF_METHODS = {
    name: number("uncertainty by this method", optional=True)
    for name in ("gcn_*", "metaseg_*", "entropy_size", "location", "node_means", "boosted_trees")
}
_KEEP = {
    "keep": share("share of the true lesions found to keep of a new patient, on average at least", optional=True),
    "keep_threshold": number("score above which lesions are dropped for that", optional=True),
    "keep_patients": count("patients that the threshold was set on", optional=True),
    "keep_removed": count("false positives dropped there", optional=True),
}
LESION_FIT = Outputs(
    summary={
        "lesions": count("lesions learnt from"),
        "false_positives": count("of them false positives"),
        "cases": count("cases with lesions"),
        "patients": count("patients with lesions", optional=True),
        **_METHOD,
        "area": number(
            "area under the accuracy–confidence curve on held-out patients; ½ is chance", better="higher", optional=True
        ),
        **_CHOICE,
        **_KEEP,
    },
    columns={
        **_PLACE,
        "false_positive_probability": share("probability that the lesion is a false positive"),
        "score": number("score of the lesion when its patient was held out"),
        **_TRUTH,
    },
    arrays={
        **_WEIGHTS,
        **optional(
            {
                "compared_methods": ArraySpec("the methods compared, the best first", ("method",)),
                "compared_area": ArraySpec("area of each on held-out patients", ("method",)),
                "compared_low": ArraySpec("low end of its interval", ("method",)),
                "compared_high": ArraySpec("high end of its interval", ("method",)),
            }
        ),
        **_RELIABILITY_ARRAYS,
        **_PATIENT_ARRAYS,
    },
    figures=(_COMPARED, _RELIABILITY, _PATIENTS),
)
_EXPORT = Advice(
    "Look at the {lesions} lesions, the most likely false positives first: write them as tables, maps and slices.",
    "weakspot lesions export weakspot.yaml",
    rank=60,
)
SCORES = Outputs(
    summary={
        **_CASES,
        **_METHOD,
        "expected_false_positives": number("false positives to expect: the sum of the probabilities", optional=True),
        "shifted_features": count(
            "features of which these patients differ from those learnt from", better="lower", optional=True
        ),
        "calibration_gap": number("mean probability less the share of false positives", optional=True),
        "dropped": count("lesions to drop, to keep the share of true ones asked for", optional=True),
        "false_positives_dropped": count("false positives among them", better="higher", optional=True),
        "true_positives_kept": share(
            "true lesions found that are kept, mean over patients", better="higher", optional=True
        ),
        **AREAS,
        **SENSITIVITIES,
    },
    columns={
        **_PLACE,
        **_CENTRE,
        "false_positive_probability": share("probability that the lesion is a false positive"),
        "rank": ValueSpec("place, the most likely false positive first", "count", role="rank"),
        "uncertainty": number("uncertainty by the chosen method"),
        "kept": flag("whether the lesion is kept at the operating point", optional=True),
        **_TRUTH,
        **_MEASURES,
        **_OF_METHODS,
    },
    arrays={
        **_CASE_ARRAYS,
        **_RELIABILITY_ARRAYS,
        **_PATIENT_ARRAYS,
        "shift_feature": ArraySpec("features compared with those learnt from", ("feature",), optional=True),
        "shift_p": ArraySpec("chance of such a difference between alike patients", ("feature",), optional=True),
    },
    figures=(_SIZES, _RELIABILITY, _PATIENTS),
    headlines=(
        Headline(
            "Of {lesions} lesions in {cases} cases, about {expected_false_positives} are expected to be false "
            "positives; {false_positives} are, by the ground truth. {method} separates them with an area of {area}, "
            "where 0.5 is chance; the best baseline, {best_baseline}, chosen on the same cases, reaches "
            "{area_of_best_baseline}.",
            0,
        ),
        Headline(
            "Of {lesions} lesions in {cases} cases, about {expected_false_positives} are expected to be false "
            "positives; {false_positives} are, by the ground truth.",
            1,
        ),
        Headline(
            "Of {lesions} lesions in {cases} cases, about {expected_false_positives} are expected to be false "
            "positives; the table has the probability of each.",
            2,
        ),
        Headline("{lesions} lesions are found in {cases} cases, ranked by how likely each is a false positive.", 10),
    ),
    advice=(_EXPORT,),
)
CASE_VOLUMES = Outputs(
    summary={"cases": count("cases that can be looked at"), "bytes": ValueSpec("what they take", "bytes")},
    columns={
        "case": text("the case"),
        **{axis: count(f"voxels along {axis}") for axis in ("z", "y", "x")},
        "spacing_*": ValueSpec("size of a voxel", "mm", optional=True),
        "axes": text("where x, y and z point to, as RAS"),
        "truth": flag("whether the ground truth is known"),
    },
    arrays={
        "image_*": ArraySpec("the sequences of a case", ("sequence", "z", "y", "x")),
        "lesions_*": ArraySpec("voxels of lesions: place in C order, number of the lesion", ("voxel", "entry")),
        "maps_*": ArraySpec(
            "mean probability of a lesion, and entropy; in 255ths of 1 and of the largest entropy",
            ("map", "z", "y", "x"), optional=True,
        ),
        "most_entropy": ArraySpec("largest entropy that there can be, in nats", ("case",), optional=True),
        "truth_*": ArraySpec("places of truly lesional voxels", ("voxel",), optional=True),
        **{
            name: ArraySpec(about, ("case", "sequence"))
            for name, about in {
                "scale": "intensity for each stored step",
                "offset": "intensity of a stored 0",
                "low": "low end of a window that shows the image well",
                "high": "high end of that window",
                "smallest": "smallest intensity",
                "largest": "largest intensity",
            }.items()
        },
    },
)  # fmt: skip
ROOM = Room(
    "lesions",
    findings={
        "lesions.lesions": LESIONS,
        "lesions.lesion_fit": LESION_FIT,
        "lesions.scores": SCORES,
        "lesions.evaluation": EVALUATION,
        "lesions.case_volumes": CASE_VOLUMES,
    },
    pictures=lesion_pictures,
    pages=(
        ViewerPage(
            "lesions",
            "Lesions",
            "Detected lesions by how likely each is a false positive.",
            ("lesions.lesions", "lesions.scores"),
        ),
    ),
)
