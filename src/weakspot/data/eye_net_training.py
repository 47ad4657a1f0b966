"""Makes the weights of the embedded gaze detector: python -m weakspot.data.eye_net_training"""

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from weakspot.data.eye_net import WEIGHTS, EyeNet, train


def trained(*, epochs: int = 30, seed: int = 0) -> nn.Module:
    """The net, trained on usual eyes: Adam with a falling rate, every image moved by up to a pixel."""
    torch.manual_seed(seed)
    net, source = EyeNet(), train()
    batch = source.read(np.arange(source.count))
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(source.count).split(64):
            down, right = torch.randint(-1, 2, (2,)).tolist()
            moved = batch.inputs[rows].roll((down, right), (2, 3))
            optimiser.zero_grad()
            F.cross_entropy(net(moved), batch.known_targets[rows]).backward()
            optimiser.step()
        schedule.step()
    return net.eval()


if __name__ == "__main__":
    save_file(trained().state_dict(), WEIGHTS)
