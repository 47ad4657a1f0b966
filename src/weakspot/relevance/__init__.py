"""Layer-wise relevance propagation for the network one really has."""

from weakspot.relevance.composites import (
    Composite,
    deep_importance,
    epsilon_alpha2_beta1,
    epsilon_alpha2_beta1_flat,
    epsilon_gamma_box,
    epsilon_plus,
    epsilon_plus_flat,
    hudd,
)
from weakspot.relevance.gradients import GradientTimesInput, IntegratedGradients
from weakspot.relevance.handlers import Pass, Route, Share
from weakspot.relevance.ledger import Balance, Conservation
from weakspot.relevance.operations import register
from weakspot.relevance.propagation import Method, propagation, relevance
from weakspot.relevance.result import Relevance
from weakspot.relevance.rules import LRP0, AlphaBeta, Epsilon, Flat, Gamma, Rule, WSquare, ZBox, ZPlus
from weakspot.relevance.starts import ClassContrast, ForClass, Output, Region, Start, Winner, Winners, Worst
from weakspot.relevance.trace import Trace

__all__ = [
    "LRP0",
    "AlphaBeta",
    "Balance",
    "ClassContrast",
    "Composite",
    "Conservation",
    "Epsilon",
    "Flat",
    "ForClass",
    "Gamma",
    "GradientTimesInput",
    "IntegratedGradients",
    "Method",
    "Output",
    "Pass",
    "Region",
    "Relevance",
    "Route",
    "Rule",
    "Share",
    "Start",
    "Trace",
    "WSquare",
    "Winner",
    "Winners",
    "Worst",
    "ZBox",
    "ZPlus",
    "deep_importance",
    "epsilon_alpha2_beta1",
    "epsilon_alpha2_beta1_flat",
    "epsilon_gamma_box",
    "epsilon_plus",
    "epsilon_plus_flat",
    "hudd",
    "propagation",
    "register",
    "relevance",
]
