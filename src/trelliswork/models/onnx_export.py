"""A tagger as one ONNX graph: from the indices of tokens to the best tags and their score."""

from __future__ import annotations

import json
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from trelliswork.data import Sentence, atomic_write
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models.tagger import Tagger
from trelliswork.nn.inputs import TokenBatch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

OPSET = 17
IMPOSSIBLE = -1e30  # -inf of a transition that the scheme forbids; finite, so that no runtime makes NaN of it


@torch.jit.script_if_tracing
def viterbi(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """The best labels [batch, n] (0 behind the last token) and their scores [batch]; tokens come first in a row.

    best_k(y) = max over y' of best_{k-1}(y') + transitions(y', y), plus emissions_k(y); where there is no token, the
    best stays and each label points to itself.
    """
    n, c = emissions.shape[1], emissions.shape[2]
    best = start + emissions[:, 0]
    itself = torch.arange(c).expand_as(best)
    pointers = itself.unsqueeze(0)  # (n, batch, c); row 0 is never followed
    for k in range(1, n):
        scores, before = (best.unsqueeze(2) + transitions).max(1)
        there = mask[:, k].unsqueeze(1)
        best = torch.where(there, scores + emissions[:, k], best)
        pointers = torch.cat([pointers, torch.where(there, before, itself).unsqueeze(0)], 0)
    score, label = (best + end).max(1)
    path = label.unsqueeze(1)
    for back in range(1, n):
        label = pointers[n - back].gather(1, label.unsqueeze(1)).squeeze(1)
        path = torch.cat([label.unsqueeze(1), path], 1)
    return path * mask.long(), score


class DecodingTagger(nn.Module):
    """The network of a tagger with Viterbi behind it; takes the tensors of a `TokenBatch` one by one."""

    def __init__(self, tagger: Tagger) -> None:
        super().__init__()
        if tagger.config.normalization == "local":
            raise ModelError("expected a CRF to export, got local normalisation; train with --model bilstm-crf")
        self.tagger = tagger
        with torch.no_grad():
            for name, scores in zip(("transitions", "start", "end"), tagger.crf._scores(), strict=True):
                self.register_buffer(name, scores.detach().clamp(min=IMPOSSIBLE))

    transitions: Tensor
    start: Tensor
    end: Tensor

    def forward(
        self,
        features: Int[Tensor, "batch n f"],
        mask: Bool[Tensor, "batch n"],
        forms: Int[Tensor, "batch n"] | None = None,
        spellings: Int[Tensor, "u m"] | None = None,
    ) -> tuple[Int[Tensor, "batch n"], Float[Tensor, " batch"]]:
        emissions = self.tagger(TokenBatch(features, mask, forms, spellings))
        return viterbi(emissions, mask, self.transitions, self.start, self.end)


def export_onnx(tagger: Any, file: str | Path) -> Path:
    """Write the graph, and beside it, as FILE.json, the vocabularies and labels; returns the second path.

    Inputs: `features` and `mask`, with characters also `forms` and `spellings`; batch and length are free. Outputs:
    `tags`, indices into the labels, and `score`.
    """
    if not isinstance(tagger, Tagger):
        raise ModelError(f"expected a network under a CRF to export, got a {type(tagger).__name__}")
    if find_spec("onnx") is None:
        raise TrellisworkError("expected the package onnx to be installed; run pip install 'trelliswork[onnx]'")
    tagger.eval()
    sample = [Sentence(("a", "bc", "d"), None, ((("x",) * 3),) * tagger.n_columns), _short(tagger)]
    _refuse_other_inputs(tagger)
    inputs = tuple(each for each in tagger.token_batch(tagger.encode(sample)) if isinstance(each, Tensor))
    with atomic_write(file, "wb") as target, warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the tracer, about checks of shapes that hold for any batch
        _export(DecodingTagger(tagger).eval(), inputs, target)
    beside = Path(f"{file}.json")
    with atomic_write(beside) as target:
        target.write(json.dumps(_vocabularies(tagger), ensure_ascii=False, indent=1) + "\n")
    return beside


def _refuse_other_inputs(tagger: Tagger) -> None:
    """What the graph has no inputs for."""
    config = tagger.config
    given = {"ngrams": config.ngrams, "templates": config.templates, "pretrained": config.pretrained}
    for name, value in (given | {"transitions": config.transitions != "fixed"}).items():
        if value:
            raise ModelError(f"a model with {name} cannot be exported; train one without it")


def _short(tagger: Tagger) -> Sentence:
    return Sentence(("a", "b"), None, ((("x",) * 2),) * tagger.n_columns)


def _export(model: nn.Module, inputs: tuple[Tensor, ...], target: Any) -> None:
    names = ["features", "mask", "forms", "spellings"][: len(inputs)]
    axes = {name: {0: "batch", 1: "n"} for name in [*names, "tags"]} | {"score": {0: "batch"}}
    if "spellings" in names:
        axes["spellings"] = {0: "u", 1: "m"}
    torch.onnx.export(
        model, inputs, target, input_names=names, output_names=["tags", "score"], dynamic_axes=axes,
        opset_version=OPSET, dynamo=False,
    )  # fmt: skip


def _vocabularies(tagger: Tagger) -> dict[str, Any]:
    return {
        "features": tagger.features.names,
        "vocabularies": {name: each.to_list() for name, each in tagger.features.vocabularies.items()},
        "labels": tagger.labels.vocabulary.to_list(),
        "scheme": tagger.labels.scheme,
        "data_scheme": tagger.labels.data_scheme,
        "settings": tagger.config.to_dict(),
    }
