"""Noisy gradient descent by Opacus, in an environment of its own: this file runs there by its path, without stratsynth.

    python opacus_rival.py IN.npz OUT.npz

IN has x (features between -1 and 1), y (0 or 1), and noise, clip, rate, steps, batch. OUT has the seconds of a training
and the accuracy on its own rows in two ways. `loader`: batches by Opacus' own loader of Poisson samples, as its users
have them. `tensors`: batches cut from a tensor by one index, which spares Opacus the collection of single rows.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np


def main(source: str, result: str) -> None:
    """Train in both ways, after everything is imported."""
    import opacus  # noqa: F401 - imports PyTorch too
    import torch

    torch.set_num_threads(1)  # sooner done than by several, which wait for each other: steps are of a thousand rows
    given = np.load(source)
    found: dict[str, Any] = {}
    for way, train in (("tensors", _by_tensors), ("loader", _by_loader)):
        begun = time.perf_counter()
        model = train(given)
        found[f"{way}_seconds"] = time.perf_counter() - begun
        found[f"{way}_accuracy"] = _accuracy(given, model)
    np.savez(result, **found)


def _parts(given: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Features, labels, a linear model that starts at 0, its optimizer and the loss."""
    import torch

    x, y = (torch.from_numpy(given[name].astype(np.float32)) for name in ("x", "y"))
    model = torch.nn.Linear(x.shape[1], 1)
    for weight in model.parameters():
        torch.nn.init.zeros_(weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=float(given["rate"]))
    return x, y[:, None], model, optimizer, torch.nn.BCEWithLogitsLoss()


def _by_loader(given: Any) -> Any:
    """Train by the loop of Opacus' introduction until all steps are taken; its accountant is asked at the end."""
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    x, y, model, optimizer, loss = _parts(given)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=int(given["batch"])),
        noise_multiplier=float(given["noise"]),
        max_grad_norm=float(given["clip"]),
    )
    taken, steps = 0, int(given["steps"])
    while taken < steps:
        for part, label in loader:
            optimizer.zero_grad()
            loss(model(part), label).backward()
            optimizer.step()
            taken += 1
            if taken == steps:
                break
    engine.get_epsilon(1e-6)
    return model


def _by_tensors(given: Any) -> Any:
    """Opacus' gradients, clip and noise, on samples drawn with one coin a row."""
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    x, y, model, optimizer, loss = _parts(given)
    model, batch = GradSampleModule(model), int(given["batch"])
    private = DPOptimizer(
        optimizer,
        noise_multiplier=float(given["noise"]),
        max_grad_norm=float(given["clip"]),
        expected_batch_size=batch,
    )
    for _ in range(int(given["steps"])):
        chosen = torch.nonzero(torch.rand(len(x)) < batch / len(x))[:, 0]
        private.zero_grad()
        loss(model(x[chosen]), y[chosen]).backward()
        private.step()
    return model


def _accuracy(given: Any, model: Any) -> float:
    import torch

    with torch.no_grad():
        said = model(torch.from_numpy(given["x"].astype(np.float32)))[:, 0].numpy() > 0
    return float((said == (given["y"] > 0)).mean())


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # about noise that is not of a cryptographic generator
    main(*sys.argv[1:])
