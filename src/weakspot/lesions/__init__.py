"""Which detected lesions are real? After Lambert et al. 2022 (`lambert2022`).

Names are loaded when they are first used: what the room declares is read without torch.
"""

from typing import TYPE_CHECKING

from weakspot.lazy import lazy_names

if TYPE_CHECKING:
    from weakspot.lesions.analysis import evaluation_finding, scores_finding
    from weakspot.lesions.baselines import (
        MetaSeg,
        direct_uncertainties,
        fit_metaseg_classification,
        fit_metaseg_regression,
    )
    from weakspot.lesions.cases import CaseLesions, LesionDefinition, case_lesions, dice, lesion_measures, z_scored
    from weakspot.lesions.export import export_case, export_cases
    from weakspot.lesions.folds import CaseFold, load_folds, make_folds, save_folds, trained_on
    from weakspot.lesions.gcn import Learning, LesionGcn, LesionGraph, TrainedGcn, lesion_graphs, train_gcn
    from weakspot.lesions.graphs import LesionNodes, lesion_edges, lesion_nodes, node_features
    from weakspot.lesions.lesion_model import Calibration, LesionModel, fit_lesion_model
    from weakspot.lesions.lesion_set import LesionSet, patients_of
    from weakspot.lesions.metrics import RunningSamples, VoxelMaps, entropy, predicted_confidence_score
    from weakspot.lesions.metrics_components import (
        Geometry,
        adjusted_iou,
        lesion_components,
        lesion_geometry,
        true_positives,
        voxel_volume,
    )
    from weakspot.lesions.metrics_evaluation import (
        AccuracyConfidence,
        Evaluation,
        ScoredFold,
        accuracy_confidence,
        evaluate,
        mean_dice,
        weighted_areas,
    )
    from weakspot.lesions.model_files import load_model, save_model
    from weakspot.lesions.probes import LesionFit, Lesions, Scores
    from weakspot.lesions.volume_probes import CaseVolumes
    from weakspot.lesions.volumes import Volume, open_volume

__all__ = [
    "AccuracyConfidence",
    "Calibration",
    "CaseFold",
    "CaseLesions",
    "CaseVolumes",
    "Evaluation",
    "Geometry",
    "Learning",
    "LesionDefinition",
    "LesionFit",
    "LesionGcn",
    "LesionGraph",
    "LesionModel",
    "LesionNodes",
    "LesionSet",
    "Lesions",
    "MetaSeg",
    "RunningSamples",
    "ScoredFold",
    "Scores",
    "TrainedGcn",
    "Volume",
    "VoxelMaps",
    "accuracy_confidence",
    "adjusted_iou",
    "case_lesions",
    "dice",
    "direct_uncertainties",
    "entropy",
    "evaluate",
    "evaluation_finding",
    "export_case",
    "export_cases",
    "fit_lesion_model",
    "fit_metaseg_classification",
    "fit_metaseg_regression",
    "lesion_components",
    "lesion_edges",
    "lesion_geometry",
    "lesion_graphs",
    "lesion_measures",
    "lesion_nodes",
    "load_folds",
    "load_model",
    "make_folds",
    "mean_dice",
    "node_features",
    "open_volume",
    "patients_of",
    "predicted_confidence_score",
    "save_folds",
    "save_model",
    "scores_finding",
    "train_gcn",
    "trained_on",
    "true_positives",
    "voxel_volume",
    "weighted_areas",
    "z_scored",
]

__getattr__, __dir__ = lazy_names(
    "weakspot.lesions",
    {
        "analysis": "evaluation_finding scores_finding",
        "baselines": "MetaSeg direct_uncertainties fit_metaseg_classification fit_metaseg_regression",
        "cases": "CaseLesions LesionDefinition case_lesions dice lesion_measures z_scored",
        "export": "export_case export_cases",
        "folds": "CaseFold load_folds make_folds save_folds trained_on",
        "gcn": "Learning LesionGcn LesionGraph TrainedGcn lesion_graphs train_gcn",
        "graphs": "LesionNodes lesion_edges lesion_nodes node_features",
        "lesion_model": "Calibration LesionModel fit_lesion_model",
        "lesion_set": "LesionSet patients_of",
        "metrics": "RunningSamples VoxelMaps entropy predicted_confidence_score",
        "metrics_components": "Geometry adjusted_iou lesion_components lesion_geometry true_positives voxel_volume",
        "metrics_evaluation": "AccuracyConfidence Evaluation ScoredFold accuracy_confidence evaluate mean_dice "
        "weighted_areas",
        "model_files": "load_model save_model",
        "probes": "LesionFit Lesions Scores",
        "volume_probes": "CaseVolumes",
        "volumes": "Volume open_volume",
    },
)
