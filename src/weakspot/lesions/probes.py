"""Lesions of a segmentation, a model that says which are real, and its scores for others (Lambert et al. 2022)."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.look import Look
from weakspot.core.probe import complete_options
from weakspot.core.source import Source
from weakspot.core.step import Step
from weakspot.core.trial_run import trial_run
from weakspot.lesions import outputs as declared
from weakspot.lesions.analysis import check_alike, fit_finding, ordered, scores_finding
from weakspot.lesions.case_probes import CaseProbe, LesionProbe, Sampling
from weakspot.lesions.cases import LesionDefinition
from weakspot.lesions.estimates import case_summary
from weakspot.lesions.fit_forecast import tried_fit
from weakspot.lesions.gcn import Learning, Readout
from weakspot.lesions.leakage import check_not_learnt, check_unseen, check_untrained
from weakspot.lesions.lesion_model import BEST, LesionModel, fit_lesion_model
from weakspot.lesions.lesion_set import LesionSet, patients_of
from weakspot.lesions.methods import METHODS
from weakspot.lesions.operating_points import fewest_patients
from weakspot.looks.dropout import McDropout


class Lesions(LesionProbe):
    """Every lesion that a segmentation finds, with its place, its size and its uncertainty.

    Over T looks at a case: entropy of the mean softmax, variance over the looks, predicted confidence score (the
    difference of the two largest mean probabilities) and mutual information, as means over the lesion's voxels, and
    log-sums of the first three. A lesion is a 26-connected component of the mean lesion probability above the
    threshold. Where the truth is known, its adjusted IoU (Rottmann et al. 2020), and whether it is a true positive. The
    arrays hold each lesion's graph: the voxels in it and around it, with the features of Lambert et al. 2022.

    look: how a case is looked at; without one, Monte-Carlo dropout with this seed.
    looks: T, how many looks at each case.
    foreground: the class that is a lesion, or several that are together.
    threshold: above which a voxel's mean probability makes it part of a lesion.
    smallest: the fewest voxels of a lesion; smaller components are left out.
    dilation: how many voxels around a lesion its graph takes in.
    least_iou: ε, the adjusted IoU from which on a lesion is a true positive.
    log_epsilon: what is added to a measure before its logarithm is taken.
    small_cover: whether components of fewer voxels than `smallest`, which are no lesions, still cover the truth in
        adjusted IoU and Dice; the paper leaves no component out.
    standardise: whether the graphs hold z-scores of each case's intensities over its voxels that are not 0.
    trained_on: ids of cases that the network was trained on; they are marked, no lesion model learns from them, and
        none of them may be a test case.
    patient: a pattern for the patient at the beginning of a case's id; without it each case is a patient.
    seed: of the dropout masks.
    """

    outputs = declared.LESIONS

    look: Look | None = None
    looks: int = 20
    foreground: int | tuple[int, ...] = 1
    threshold: float = 0.5
    smallest: int = 3
    dilation: int = 1
    least_iou: float = 0.1
    log_epsilon: float = 1e-6
    small_cover: bool = True
    standardise: bool = True
    trained_on: tuple[str, ...] = ()
    patient: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self.case_sampling  # noqa: B018 - refuses what it cannot do

    @classmethod
    def check_splits(
        cls, split: str, options: Mapping[str, Any], data: Mapping[str, Source], upstream: Mapping[str, str]
    ) -> None:
        """Refuse test cases that the network was trained on; of other splits they are marked."""
        if split == "test" and split in data:
            check_untrained(data[split].ids, _trained_on(options, data), patient=options.get("patient"))

    @cached_property
    def case_sampling(self) -> Sampling:
        """How cases are looked at and cut."""
        classes = (self.foreground,) if isinstance(self.foreground, int) else tuple(self.foreground)
        definition = LesionDefinition(
            self.threshold, self.smallest, self.dilation, self.least_iou, self.log_epsilon, self.small_cover
        )
        return Sampling(self.look or McDropout(self.seed), self.looks, classes, definition, self.standardise)

    def finish(self) -> Finding:
        """The lesions of all cases."""
        table, arrays = self.gathered()
        arrays["case_trained_on"] = np.isin(arrays["cases"], np.array(self.trained_on, dtype=np.str_))
        owners = None if self.patient is None else patients_of(arrays["cases"], self.patient)
        return self.finding(summary=case_summary(table, arrays, owners), table=ordered(table), arrays=arrays)


class SamplingProbe(CaseProbe):
    """What the probes share that look at cases as `Lesions` does."""

    sampling: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lesions_probe  # noqa: B018 - refuses what it cannot do

    @cached_property
    def lesions_probe(self) -> Lesions:
        """The probe whose way of looking is taken over."""
        return Lesions(**complete_options(Lesions, self.sampling))

    @property
    def case_sampling(self) -> Sampling:
        """How cases are looked at and cut."""
        return self.lesions_probe.case_sampling


class SampledLesionProbe(SamplingProbe, LesionProbe):
    """Gathers the lesions that `Lesions` would find."""

    def gathered_lesions(self) -> Finding:
        """The lesions as `Lesions` would give them."""
        table, arrays = self.gathered()
        return self.lesions_probe.finding(table=table, arrays=arrays)


class LesionFit(SampledLesionProbe):
    """A lesion model: tells true from false positives, trained on cases with known truth.

    All methods are compared on patients that they were not trained on: the graph networks of Lambert et al. 2022 and
    the baselines of their Table 2, logistic regressions, boosted trees, and the network without edges. The simplest of
    the best gives the probability of a false positive, calibrated (Platt 1999) on these patients. With fewer than ten
    true or false positives there, or where a higher score does not mean more false positives, it gives ranks only.
    Cases that the segmentation network was trained on are refused: there it makes fewer and other errors.

    sampling: options of `Lesions`, how cases are looked at and cut.
    method: which gives the probability: "best", chosen on held-out patients, or the name of one, such as
        "gcn_classification", the paper's.
    epochs: how often to go over all lesions.
    batch_size: lesions per step.
    hidden: units of each graph convolution.
    first_rate: the learning rate of the first epoch.
    last_rate: that of the last; in between it falls by the same factor every epoch.
    readout: from the nodes to the lesion: their mean, max or sum.
    folds: how many parts to cut the patients into for the calibration.
    patient: a pattern for the patient at the beginning of a case's id; without it each case is a patient.
    training_cases: true to allow cases that the network was trained on.
    keep_true: the share of the true lesions to keep, such as 0.95: sets a threshold above which lesions are dropped,
        on a third of the patients, 19 or more for 0.95, which then do not train.
    seed: of the training.
    device: where the graph networks are trained: "cpu", so that models are equal whatever machine ends a Run, or
        "cuda", which pays for lesions of thousands of voxels.
    """

    outputs = declared.LESION_FIT

    split = "validation"

    method: str = BEST
    epochs: int = 60
    batch_size: int = 10
    hidden: int = 64
    first_rate: float = 1e-2
    last_rate: float = 1e-5
    readout: Readout = "mean"
    folds: int = 5
    patient: str | None = None
    training_cases: bool = False
    keep_true: float | None = None
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.learning  # noqa: B018 - refuses what it cannot do
        if self.method not in (BEST, *METHODS):
            choices = ", ".join((BEST, *METHODS))
            raise ConfigError(f"method is {self.method!r}: expected one of {choices}")
        if self.folds < 2:
            raise ConfigError(f"folds is {self.folds}: expected 2 or more, so that some patients are held out")
        if self.keep_true is not None:
            fewest_patients(self.keep_true)  # refuses what is no share

    @cached_property
    def learning(self) -> Learning:
        """How the networks are trained."""
        rates = self.first_rate, self.last_rate
        return Learning(self.epochs, self.batch_size, self.hidden, *rates, self.readout, self.seed, self.device)

    @classmethod
    def check_splits(
        cls, split: str, options: Mapping[str, Any], data: Mapping[str, Source], upstream: Mapping[str, str]
    ) -> None:
        """Refuse cases, and patients, that the network was trained on."""
        training_cases = bool(options.get("training_cases"))
        check_split(split, training_cases=training_cases)
        if not training_cases and split in data:
            check_unseen(data[split].ids, _trained_on(options["sampling"], data), patient=options["patient"])

    def wants(self, ids: Sequence[str]) -> None:
        """All cases; those that the network was trained on are refused before anything is computed."""
        if not self.training_cases:
            check_unseen(ids, self.lesions_probe.trained_on, patient=self.patient)

    def finish(self) -> Finding:
        """The trained methods, and what they say of held-out patients."""
        lesions = LesionSet.of(self.gathered_lesions())
        patients, trial = patients_of(lesions.case, self.patient), trial_run()
        if trial is not None:
            share = trial.whole / trial.tried
            fitted, trial.seconds = tried_fit(lesions, self.learning, method=self.method, folds=self.folds, share=share)
            return fit_finding(lesions, fitted, patients)
        how: dict[str, Any] = {"method": self.method, "learning": self.learning, "folds": self.folds}
        how["keep"] = self.keep_true
        how |= {"parameters": self.lesions_probe.parameters(), "patient": self.patient}
        return fit_finding(lesions, fit_lesion_model(lesions, patients, **how), patients)


class Scores(SampledLesionProbe):
    """Which of the lesions are real: every lesion with the probability that it is a false positive.

    The probability comes from a trained lesion model (Lambert et al. 2022). With masks, also how well the model and its
    baselines separate true from false positives, with intervals by resampling patients.

    sampling: options of `Lesions`, as the model's lesions were cut.
    training: options of `LesionFit`, where no model is given.
    model: the Finding of `LesionFit`.
    patient: a pattern for the patient at the beginning of a case's id; without it each case is a patient.
    replicates: how often to resample the patients for the intervals.
    """

    outputs = declared.SCORES

    training: Mapping[str, Any] = field(default_factory=dict)
    model: Finding
    patient: str | None = None
    replicates: int = 1000

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The lesion model, trained on cases that were kept apart."""
        return {"model": Step.of(LesionFit, **{"sampling": options["sampling"], **options["training"]})}

    @cached_property
    def trained(self) -> LesionModel:
        """The lesion model; an error where its lesions were cut in another way."""
        model = LesionModel.of_finding(self.model)
        check_alike(model.parameters, self.lesions_probe.parameters())
        return model

    @classmethod
    def check_splits(
        cls, split: str, options: Mapping[str, Any], data: Mapping[str, Source], upstream: Mapping[str, str]
    ) -> None:
        """Refuse cases, and patients, that the network was trained on or that the lesion model is to learn from."""
        if split not in data:
            return
        check_untrained(data[split].ids, _trained_on(options["sampling"], data), patient=options["patient"])
        if upstream.get("model") in data:
            check_not_learnt(data[split].ids, data[upstream["model"]].ids, patient=options["patient"])

    def wants(self, ids: Sequence[str]) -> None:
        """All cases, if the model fits them and learnt from others; refused before anything is computed."""
        check_untrained(ids, self.lesions_probe.trained_on, patient=self.patient)
        check_not_learnt(ids, self.trained.cases, patient=self.patient or self.trained.patient)

    def finish(self) -> Finding:
        """The lesions, with what the model says of each."""
        cut = self.gathered_lesions()
        return scores_finding(cut, self.trained, patient=self.patient, replicates=self.replicates)


def _trained_on(sampling: Mapping[str, Any], data: Mapping[str, Source]) -> list[str]:
    """The cases that the network was trained on: those that are listed, and those of the split `train`."""
    return [*sampling.get("trained_on", ()), *(data["train"].ids if "train" in data else ())]


def check_split(split: str, *, training_cases: bool) -> None:
    """Refuse the split that the segmentation network was trained on, by its usual name."""
    if split == "train" and not training_cases:
        raise ConfigError(
            "fit is 'train', the cases that the network was trained on: a lesion model must learn from other cases; "
            "keep some apart as a split of their own, or say training_cases: true"
        )
