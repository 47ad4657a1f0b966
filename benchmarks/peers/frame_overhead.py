"""What taps and probes cost beside the bare forward pass: WideResNet-28-2, all convolutions and linears tapped.

    python benchmarks/peers/frame_overhead.py [--device cuda] [--repeats 10] [--precision bf16] [--cuda-graphs]

Bars: neuron coverage and k-multisection together at most 1.25 times the bare forward, k-multisection alone 1.10; the
pass that compares classes, which keeps bits and thumbnails of every image, is within the first.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from measuring import architectures, interleaved, machine, ratio, write

from weakspot.classes.probes import ClassPairs
from weakspot.core.examine import observe_batches
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.job import Job
from weakspot.core.progress import Silent
from weakspot.core.subject import Subject
from weakspot.core.taps import Recorder
from weakspot.coverage.neuron_probes import KMultisection, NeuronCoverage
from weakspot.data.sources import ArraySource

BATCH = 128
BARS = {"nc+kmnc": 1.25, "kmnc": 1.10, "class pairs": 1.25}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--cuda-graphs", action="store_true")
    options = parser.parse_args()
    dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
    torch.backends.cudnn.benchmark = True
    net = architectures().build("WideResN", "cifar10").to(options.device, dtype).eval()
    subject = Subject(net, preprocess=lambda images: images.to(dtype), cuda_graphs=options.cuda_graphs)
    images = np.random.default_rng(0).random((BATCH * options.batches, 3, 32, 32), dtype=np.float32)
    source = ArraySource(images)
    batches = [source.read(np.arange(i, i + BATCH)).to(subject.device) for i in range(0, len(images), BATCH)]
    neurons = sum(m.weight.shape[0] for m in net.modules() if isinstance(m, torch.nn.Conv2d | torch.nn.Linear))
    ranges = Finding("ranges", arrays={"low": np.full(neurons, -3.0), "high": np.full(neurons, 3.0)})

    def bare() -> None:
        with torch.no_grad():
            for batch in batches:
                net(batch.inputs.to(dtype))

    with tempfile.TemporaryDirectory() as work:
        probes = [NeuronCoverage(), KMultisection(ranges=ranges)]
        both = Job(subject, source, probes, ExecutionOptions(batch_size=BATCH), Path(work))
        alone = Job(subject, source, probes[1:], ExecutionOptions(batch_size=BATCH), Path(work))
        pairs = Job(subject, source, [ClassPairs()], ExecutionOptions(batch_size=BATCH), Path(work))

        def observe(job: Job) -> None:
            writers = [writer for probe in job.probes for writer in probe.begin_shard(Path(work))]
            observe_batches(subject, batches, job.probes, job.setting, Silent().advance)
            for writer in writers:
                writer.close()

        def bare_replayed() -> None:
            recorder = Recorder(net, {})
            replayed = subject.replays.of(subject.forward, recorder)
            with torch.no_grad():
                for batch in batches:
                    with recorder.recording(BATCH):
                        replayed(batch.inputs)

        tasks = {
            "bare": bare,
            "nc+kmnc": lambda: observe(both),
            "kmnc": lambda: observe(alone),
            "class pairs": lambda: observe(pairs),
        }
        if options.cuda_graphs:
            tasks["bare, replayed"] = bare_replayed
        with subject.borrowed():
            seconds = interleaved(tasks, options.repeats, options.device)
    named = machine(options.device) + (", CUDA graphs" if options.cuda_graphs else "")
    rows = [
        {
            "machine": f"{named}, {options.precision}",
            "task": task,
            "ratio_to_bare": round(ratio(seconds, task, "bare"), 3),
            "bar": BARS.get(task, ""),
            "images_per_second": round(len(images) / float(np.median(seconds[task]))),
        }
        for task, bar in (
            ("bare", ""),
            ("bare, replayed", ""),
            ("nc+kmnc", 1.25),
            ("kmnc", 1.10),
            ("class pairs", 1.25),
        )
        if task in seconds
    ]
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
