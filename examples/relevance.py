"""Which pixels speak for a digit, and what speaks for it rather than for the next likely digit?

Trains a small residual network on scikit-learn's 8×8 digits in a few seconds, prints the conservation table, and
draws the relevance of the predicted class and of the contrast with the runner-up.

Usage: python examples/relevance.py [relevance.png]
"""

import sys

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from weakspot.relevance import ClassContrast, epsilon_plus, picture, relevance


class SmallResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.conv1, self.norm1 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.head = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.stem(x))
        branch = functional.relu(self.norm1(self.conv1(x)), inplace=True)
        x = functional.relu(x + self.norm2(self.conv2(branch)))
        return self.head(functional.max_pool2d(x, 2).flatten(1))


def train(net: nn.Module, images: Tensor, labels: Tensor) -> None:
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(4):
        for chosen in torch.randperm(len(images)).split(64):
            optimiser.zero_grad()
            functional.cross_entropy(net(images[chosen]), labels[chosen]).backward()
            optimiser.step()


def main(path: str = "relevance.png") -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.images).float().div(16)[:, None], torch.tensor(digits.target)
    net = SmallResNet()
    train(net, images[:1500], labels[:1500])
    net.eval()

    chosen = images[1500:1504]
    found = relevance(net, chosen, method=epsilon_plus(bias="redistributed"), layers=["conv2"])
    best, second = found.outputs.topk(2).indices.T
    contrast = relevance(net, chosen, method=epsilon_plus(bias="redistributed"), start=ClassContrast(best, second))

    print(relevance(net, chosen).conservation)
    print("most relevant channels of conv2:", found.channels("conv2").sum(0).topk(3).indices.tolist())
    for sample in range(len(chosen)):
        print(f"image {1500 + sample}: {int(best[sample])} rather than {int(second[sample])}")
    picture.side_by_side(
        [image for image in chosen for _ in range(2)],
        [values for pair in zip(found.input, contrast.input, strict=True) for values in pair],
    ).save(path)
    print(f"rows of {path}: relevance of the digit, then what sets it apart from the runner-up")


if __name__ == "__main__":
    main(*sys.argv[1:])
