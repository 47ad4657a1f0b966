"""What do noise and attacks do to the embedded digits, how far must they go, and what do they reach inside the model?

python examples/attacks.py
"""

from weakspot import Subject, examine
from weakspot.attacks import Attacked, Bim, CarliniWagner, Fgsm, GaussianNoise, Jsma, RelevantNoise, Together
from weakspot.core.source import limited
from weakspot.coverage.neuron_probes import NeuronCoverage
from weakspot.data import digits

ATTACKS = {
    "noise on random pixels": GaussianNoise(),
    "noise on relevant pixels": RelevantNoise(),
    "FGSM": Fgsm(epsilon=0.1),
    "BIM": Bim(epsilon=0.1),
    "JSMA": Jsma(),
    "Carlini-Wagner": CarliniWagner(search_steps=4, iterations=30, learning_rate=0.1),
}


def main() -> None:
    subject = Subject(digits.model(), classes=digits.CLASSES, scores="logits", bounds=digits.BOUNDS)
    originals = limited(digits.test(), 100)
    print(f"{'':26}turned  L0    L2    Linf  neurons covered with the originals")
    print(f"{'originals alone':50}{covered(subject, originals):.1%}")
    for name, attack in ATTACKS.items():
        changed = Attacked(originals, subject, attack)
        did = {key: estimate.value or 0 for key, estimate in changed.outcome.summary().items()}
        both = covered(subject, Together({"original": originals, "changed": changed}))
        print(f"{name:26}{did['turned']:4.0%}  {did['l0']:4.1f}  {did['l2']:4.2f}  {did['linf']:4.2f}  {both:.1%}")


def covered(subject: Subject, data: object) -> float:
    return examine(subject, data, [NeuronCoverage()])[0].summary["coverage"].value


if __name__ == "__main__":
    main()
