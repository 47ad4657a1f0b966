"""Lightning and Hugging Face, the real packages: the model is examined when the training ends; a gate fails the job."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from tests.integrations.conftest import CLASSES, Net, images
from weakspot import Run
from weakspot.core.errors import ConfigError
from weakspot.integrations import Examination, GateFailed, lightning_callback, trainer_callback

ASK = {"robustness": {"looks": 4}}
SUBJECT = {"classes": CLASSES, "scores": "logits", "bounds": (0, 1)}


def examination(source, tmp_path, **options):
    return Examination(ASK, {"test": source}, tmp_path / "run", **options)


def test_what_cannot_be_asked_fails_before_the_training(source, tmp_path, policy):
    with pytest.raises(ConfigError, match="needs the split 'train'"):
        Examination({"coverage": {"criteria": ["nc"], "select": {"from": "pool"}}}, {"test": source}, tmp_path / "run")
    with pytest.raises((ConfigError, OSError), match=r"missing\.yaml"):
        examination(source, tmp_path, policy=tmp_path / "missing.yaml")


@pytest.fixture(autouse=True)
def _variables(monkeypatch):
    """Lightning sets this for good."""
    monkeypatch.setenv("PYTORCH_NVML_BASED_CUDA_CHECK", "1")


def fitted(callback, tmp_path):
    lightning = pytest.importorskip("lightning.pytorch", reason="needs weakspot[lightning]")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def forward(self, batch):
            return self.net(batch)

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    values, labels = images(20)
    loader = DataLoader(TensorDataset(torch.from_numpy(values), torch.from_numpy(labels)), batch_size=10)
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[callback], default_root_dir=tmp_path,
    )  # fmt: skip
    module = Module()
    trainer.fit(module, loader)
    return module


@pytest.mark.filterwarnings("ignore")
def test_lightning_examines_when_the_fit_has_ended(source, tmp_path, policy):
    pytest.importorskip("lightning.pytorch", reason="needs weakspot[lightning]")
    callback = lightning_callback(examination(source, tmp_path, subject=SUBJECT, policy=policy(0.0)))
    module = fitted(callback, tmp_path)
    assert "robustness.neighbour_accuracy" in callback.run
    assert (callback.run.folder / "report.html").stat().st_size > 1000
    expected = (module(torch.from_numpy(images()[0])).argmax(1).numpy() == images()[1]).mean()
    assert callback.run["robustness.neighbour_accuracy"].summary["accuracy"].value == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore")
def test_a_gate_that_does_not_hold_fails_lightnings_job(source, tmp_path, policy):
    pytest.importorskip("lightning.pytorch", reason="needs weakspot[lightning]")
    callback = lightning_callback(examination(source, tmp_path, subject=SUBJECT, policy=policy(0.9999)))
    with pytest.raises(GateFailed, match="1 of 1 rules do not hold: accurate enough"):
        fitted(callback, tmp_path)
    assert (tmp_path / "run" / "report.html").exists()


def trained(callback, tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate", reason="needs weakspot[huggingface]")
    config = transformers.ViTConfig(
        image_size=8, patch_size=4, num_channels=1, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, id2label={0: "dark", 1: "bright"}, label2id={"dark": 0, "bright": 1},
    )  # fmt: skip
    values, labels = images(16)
    rows = [{"pixel_values": torch.from_numpy(v), "labels": int(n)} for v, n in zip(values, labels, strict=True)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), max_steps=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True
    )
    model = transformers.ViTForImageClassification(config)
    transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[callback]).train()
    return model


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_examines_when_the_training_has_ended(source, tmp_path, policy):
    pytest.importorskip("accelerate", reason="needs weakspot[huggingface]")
    callback = trainer_callback(examination(source, tmp_path, subject={"bounds": (0, 1)}, policy=policy(0.0)))
    model = trained(callback, tmp_path).eval()
    finding = Run.open(tmp_path / "run")["robustness.neighbour_accuracy"]
    assert Run.open(tmp_path / "run").manifest()["subject"]["classes"] == CLASSES
    with torch.no_grad():
        logits = model(torch.from_numpy(images()[0])).logits
    expected = (logits.argmax(1).numpy() == images()[1]).mean()
    assert finding.summary["accuracy"].value == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore")
def test_a_gate_that_does_not_hold_fails_hugging_faces_job(source, tmp_path, policy):
    pytest.importorskip("accelerate", reason="needs weakspot[huggingface]")
    callback = trainer_callback(examination(source, tmp_path, subject={"bounds": (0, 1)}, policy=policy(0.9999)))
    with pytest.raises(GateFailed) as failed:
        trained(callback, tmp_path)
    assert not failed.value.verdict.passed
