"""Small networks that tests export, save and load."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)

    def forward(self, values):
        return F.relu(self.norm(self.conv(values))) + values


class Net(nn.Module):
    """A stem, a block that runs twice, dropout and a linear layer."""

    def __init__(self, classes=10):
        super().__init__()
        self.stem, self.block = nn.Conv2d(3, 4, 3, stride=2), Block()
        self.drop, self.fc = nn.Dropout(0.5), nn.Linear(4, classes)

    def forward(self, images):
        values = self.block(self.block(torch.relu(self.stem(images))))
        return self.fc(self.drop(values.mean((2, 3))))


def net(classes=10):
    torch.manual_seed(0)
    made = Net(classes).eval()
    with torch.no_grad():
        made.block.norm.running_mean += 0.1
    return made
