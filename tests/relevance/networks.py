"""Small versions of the networks people really use, with random weights."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Residual(nn.Module):
    """conv-BN-ReLU-conv-BN, += shortcut, ReLU in place, as torchvision writes it."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(Residual(8, 8), Residual(8, 8))
        self.layer2 = nn.Sequential(Residual(8, 16, 2), Residual(16, 16))
        self.fc = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 3, 2, 1)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(self.layer2(self.layer1(x)), 1), 1))


class PreActivation(nn.Module):
    """Wide ResNet: BN-ReLU-conv twice, plus the input."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, bias=False) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(F.relu(self.bn1(x)))
        return self.conv2(F.dropout(F.relu(self.bn2(y)), 0.3, self.training)) + self.shortcut(x)


def wide_resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), PreActivation(8, 16), PreActivation(16, 16),
        nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip


def vgg_bn() -> nn.Module:
    def stage(i: int, o: int) -> list[nn.Module]:
        return [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True), nn.MaxPool2d(2)]

    return nn.Sequential(
        *stage(3, 8), *stage(8, 16), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(64, 16), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(16, 5),
    )  # fmt: skip


class DenseBlock(nn.Module):
    def __init__(self, inputs: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(inputs + i * growth), nn.ReLU(inplace=True),
                nn.Conv2d(inputs + i * growth, 2 * growth, 1, bias=False), nn.BatchNorm2d(2 * growth),
                nn.ReLU(inplace=True), nn.Conv2d(2 * growth, growth, 3, padding=1, bias=False),
            )
            for i in range(layers)
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


class DenseNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv0 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.block1 = DenseBlock(8, 4, 3)
        self.transition = nn.Sequential(
            nn.BatchNorm2d(20), nn.ReLU(True), nn.Conv2d(20, 10, 1, bias=False), nn.AvgPool2d(2)
        )
        self.block2 = DenseBlock(10, 4, 2)
        self.norm = nn.BatchNorm2d(18)
        self.classifier = nn.Linear(18, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.block2(self.transition(self.block1(self.conv0(x)))))
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(F.relu(x, inplace=True), (1, 1)), 1))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, gate: nn.Module) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, channels // 2, 1), nn.Conv2d(channels // 2, channels, 1)
        self.gate = gate

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(self.fc2(F.relu(self.fc1(self.avgpool(x))))) * x


class InvertedResidual(nn.Module):
    """MobileNetV3 and EfficientNet: expand, depthwise, squeeze-excite, project."""

    def __init__(self, channels: int, activation: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        wide = channels * 3
        self.block = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), activation,
            nn.Conv2d(wide, wide, 5, padding=2, groups=wide, bias=False), nn.BatchNorm2d(wide), activation,
            SqueezeExcite(wide, gate), nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(x)
        y += x
        return y


def _mobile(activation: nn.Module, gate: nn.Module) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), activation,
        InvertedResidual(8, activation, gate), InvertedResidual(8, activation, gate),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 16), activation, nn.Dropout(0.2), nn.Linear(16, 5),
    )  # fmt: skip


def mobilenet_v3() -> nn.Module:
    return _mobile(nn.Hardswish(inplace=True), nn.Hardsigmoid())


def efficientnet() -> nn.Module:
    return _mobile(nn.SiLU(inplace=True), nn.Sigmoid())


class ConvNeXtBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.wide, self.narrow = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.randn(channels, 1, 1) * 0.5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.narrow(F.gelu(self.wide(y))).permute(0, 3, 1, 2)
        return x + self.scale * y


class ConvNeXt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 4, 4)
        self.stem_norm, self.norm = nn.LayerNorm(8), nn.LayerNorm(8)
        self.blocks = nn.Sequential(ConvNeXtBlock(8), ConvNeXtBlock(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem_norm(self.stem(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.head(self.norm(self.blocks(x).mean([-2, -1])))


class SelfAttention(nn.Module):
    """As timm writes it, around scaled_dot_product_attention."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, channels = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, channels // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(batch, tokens, channels))


class ManualAttention(SelfAttention):
    """The same, written out with matmul and softmax."""

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, channels = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, channels // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        weights = F.dropout((q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)).softmax(-1), 0.1, self.training)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, tokens, channels))


class TorchAttention(nn.Module):
    """The same, by nn.MultiheadAttention."""

    def __init__(self, channels: int, heads: int, need_weights: bool = False) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(channels, heads, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=self.need_weights)[0]


class Encoder(nn.Module):
    def __init__(self, attention: nn.Module, channels: int) -> None:
        super().__init__()
        self.attention = attention
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.mlp = nn.Sequential(nn.Linear(channels, 2 * channels), nn.GELU(), nn.Linear(2 * channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, attention: type[nn.Module] = SelfAttention) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.positions = nn.Parameter(torch.randn(1, 17, 16) * 0.1)
        self.blocks = nn.Sequential(*(Encoder(attention(16, 4), 16) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class UNet(nn.Module):
    """Encoder, decoder and skips in 2 or 3 dimensions; one level goes up by interpolation, one by transposed conv."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        conv, up = (nn.Conv2d, nn.ConvTranspose2d) if dimensions == 2 else (nn.Conv3d, nn.ConvTranspose3d)
        norm = nn.GroupNorm
        self.mode = "bilinear" if dimensions == 2 else "trilinear"
        self.pool = nn.MaxPool2d(2) if dimensions == 2 else nn.MaxPool3d(2)
        self.down1 = nn.Sequential(conv(1, 4, 3, padding=1), norm(2, 4), nn.LeakyReLU(0.1, inplace=True))
        self.down2 = nn.Sequential(
            conv(4, 8, 3, padding=1), nn.InstanceNorm2d(8) if dimensions == 2 else norm(4, 8), nn.ELU()
        )
        self.bottom = nn.Sequential(conv(8, 8, 3, padding=1), nn.ReLU())
        self.up = up(8, 8, 2, 2)
        self.middle = nn.Sequential(conv(16, 4, 3, padding=1), nn.PReLU())
        self.top = conv(8, 4, 3, padding=1)
        self.head = conv(4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        level1 = self.down1(x)
        level2 = self.down2(self.pool(level1))
        x = self.middle(torch.cat([self.up(self.bottom(self.pool(level2))), level2], 1))
        x = F.interpolate(x, scale_factor=2, mode=self.mode, align_corners=False)
        return self.head(torch.tanh(self.top(torch.cat([x, level1], 1))))


class Reused(nn.Module):
    """One residual block used twice, with in-place ReLU, += and nearest interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.block = Residual(8, 8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.block(self.stem(x))
        x = self.block(F.interpolate(x, scale_factor=2))
        return self.fc(x.mean((2, 3)))


class TwoInputs(nn.Module):
    """An image and numbers, joined; gated by the numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.numbers, self.gate = nn.Conv2d(3, 6, 3), nn.Linear(4, 6), nn.Linear(4, 6)
        self.head = nn.Linear(12, 5)

    def forward(self, image: Tensor, numbers: Tensor) -> Tensor:
        features = F.relu(self.image(image)).amax((2, 3)) * torch.sigmoid(self.gate(numbers))
        return self.head(torch.cat([features, F.silu(self.numbers(numbers))], dim=1))


IMAGE = (2, 3, 32, 32)
NETWORKS = {
    "VGG-BN": (vgg_bn, IMAGE),
    "ResNet": (ResNet, IMAGE),
    "Wide ResNet": (wide_resnet, (2, 3, 16, 16)),
    "DenseNet": (DenseNet, (2, 3, 16, 16)),
    "MobileNetV3": (mobilenet_v3, IMAGE),
    "EfficientNet": (efficientnet, IMAGE),
    "ConvNeXt": (ConvNeXt, IMAGE),
    "ViT (SDPA)": (ViT, IMAGE),
    "ViT (matmul)": (lambda: ViT(ManualAttention), IMAGE),
    "ViT (MultiheadAttention)": (lambda: ViT(TorchAttention), IMAGE),
    "U-Net 2-D": (lambda: UNet(2), (2, 1, 16, 16)),
    "U-Net 3-D": (lambda: UNet(3), (2, 1, 8, 8, 8)),
    "reused layer": (Reused, (2, 3, 8, 8)),
}


def build(name: str, seed: int = 0) -> tuple[nn.Module, Tensor]:
    """A network with lived-in batch norms and non-zero biases, in evaluation mode, and an input for it."""
    make, shape = NETWORKS[name]
    torch.manual_seed(seed)
    model = lived_in(make())
    return model, torch.rand(shape)


def lived_in(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.normal_(module.weight, mean=1.0, std=0.3)
            nn.init.normal_(module.bias, std=0.1)
        elif isinstance(module, nn.LayerNorm | nn.GroupNorm):
            nn.init.normal_(module.bias, std=0.1)
    return model.eval()


def without_biases(model: nn.Module) -> nn.Module:
    """The same network with nothing in it that could absorb relevance but stabilisers."""
    for name, parameter in model.named_parameters():
        if name.endswith(("bias", "positions", "token")):
            nn.init.zeros_(parameter)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.zeros_(module.running_mean)
    return model
