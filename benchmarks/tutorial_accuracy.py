"""The F1 of a CRF with exactly the attributes of CRFsuite's chunking tutorial, first and last token marked."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.features import likelihoods, template_keys
from trelliswork.data import Choices, Sentence, open_conll
from trelliswork.data.attributes import KeyIndex
from trelliswork.models.taggers.evaluation import evaluate_tags
from trelliswork.models.taggers.features.crf.model import FeatureCRF
from trelliswork.training.lbfgs import LBFGS


def tutorial_scores(train: list[Sentence], test: list[Sentence]) -> dict[str, Any]:
    """Train with c2 = 1 on one thread; per cent on the test sentences."""
    torch.set_num_threads(1)
    began = time.process_time()
    objective, _ = likelihoods(train)
    *_, last = LBFGS(l2=1.0).minimise(objective, np.zeros(len(objective.parameters)))
    seconds = time.process_time() - began
    index = KeyIndex()
    index.add(template_keys(train)[2])
    labels = tuple(dict.fromkeys(tag for sentence in train for tag in sentence.tags or ()))
    crf = FeatureCRF(labels, index, objective.parameters, last.weights)
    found = evaluate_tags([each.tags or () for each in test], crf.predict(crf.rows(*template_keys(test))), "IOB2")
    shares = {name: round(100 * found[name], 2) for name in ("precision", "recall", "f1", "accuracy")}
    return {"seconds": round(seconds, 1), "iterations": last.iteration, "weights": len(last.weights), **shares}


def sentences_of(path: Path) -> list[Sentence]:
    return list(open_conll(path, Choices(feature_columns=(2,)))[1])
