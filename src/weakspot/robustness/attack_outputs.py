"""What the Finding about attacks holds. Torch-free."""

from weakspot.core.figures import Curves, Matrix
from weakspot.core.outputs import (
    ArraySpec,
    Headline,
    Outputs,
    correct,
    count,
    flag,
    number,
    prediction,
    sample_id,
    share,
    target,
    text,
)

ROBUST_ACCURACY = Outputs(
    summary={
        "robust_accuracy": share(
            "share of the inputs that no attack turns within the largest ε", better="higher", mean_of="robust"
        ),
        "epsilon": number("that ε, in the units of the inputs"),
        "accuracy": share(
            "share of the inputs that are predicted correctly as they are", better="higher", mean_of="correct"
        ),
        "turned_without_gradients": share(
            "share of the inputs that only an attack without gradients turned, after those with gradients",
            optional=True,
        ),
        "robust_accuracy_*": share("share of the inputs that no attack turns within this ε", better="higher"),
        "norm": text("how the size of a change is measured"),
        "attacks": text("the attacks, in their order"),
        "inputs": count("samples examined"),
    },
    columns={
        "id": sample_id(),
        "robust": flag("whether no attack turns it within the largest ε", better="higher"),
        "turned_at": number("the smallest ε asked for at which an attack turns it; 0 where it is incorrect as it is"),
        "turned_by": text("the attack that turned it"),
        "correct": correct("whether the original is predicted correctly"),
        "target": target(),
        "prediction": prediction(),
    },
    arrays={
        "epsilon": ArraySpec("the sizes of the ball, 0 first", ("epsilons",)),
        "robust_accuracy": ArraySpec("share of the inputs that no attack turns", ("epsilons",)),
        "robust_accuracy_low": ArraySpec("low end of its interval", ("epsilons",)),
        "robust_accuracy_high": ArraySpec("high end of its interval", ("epsilons",)),
        "attack": ArraySpec("names of the attacks", ("attacks",)),
        "epsilon_name": ArraySpec("names of the sizes above 0", ("attacked epsilons",)),
        "turned": ArraySpec("share of the inputs that each attack turned", ("attacked epsilons", "attacks")),
    },
    figures=[
        Curves(
            x="epsilon",
            lines={
                "robust accuracy": "robust_accuracy",
                "95 % interval, low": "robust_accuracy_low",
                "95 % interval, high": "robust_accuracy_high",
            },
            x_label="ε",
            y_label="share of the inputs",
            y_format="percent",
            caption="Robust accuracy by ε: the share of the inputs that none of these attacks turns.",
        ),
        Matrix(
            values="turned",
            rows="epsilon_name",
            columns="attack",
            format="percent",
            caption="Share of the inputs that each attack was the first to turn; each was tried on what was left.",
        ),
    ],
    headlines=[
        Headline(
            "{robust_accuracy} of the inputs are predicted correctly as they are and under these attacks ({attacks}) "
            "within {epsilon} ({norm}); {accuracy} as they are.",
            rank=2,
            further=True,
        )
    ],
)
