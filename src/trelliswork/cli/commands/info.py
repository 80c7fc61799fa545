"""`trelliswork info`: what a model is."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trelliswork.cli.given_function import given_function
from trelliswork.cli.options import Features, ModelFolder
from trelliswork.cli.tasks import heads_of
from trelliswork.cli.visible import visible
from trelliswork.data.attributes.hashing import HINT
from trelliswork.errors import TrellisworkError
from trelliswork.models import (
    Ensemble,
    FeatureTagger,
    MultiTagger,
    Segmenter,
    SentenceTagger,
    Tagger,
    VectorTagger,
    load_tagger,
)
from trelliswork.models.card import flatten
from trelliswork.models.taggers.features.crf.kinds import kind_of
from trelliswork.models.taggers.features.tagger import strongest

if TYPE_CHECKING:
    from trelliswork.models.loading import OneTagger

STRONGEST = 8


def info(
    model: ModelFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    top_features: Annotated[
        int, typer.Option(metavar="N", min=0, help="Of a feature CRF, show the N strongest weights.")
    ] = 20,
    features: Features = None,
) -> None:
    """Show what a model is.

    Its data, labels, scores, settings and sizes, and which tag it has
    learned to expect after which.

    \b
    Example:
      trelliswork info ner
    """
    tagger = load_tagger(model, features=given_function(features))
    if isinstance(tagger, Ensemble):
        folders = ", ".join(tagger.folders)
        raise TrellisworkError(f"{model}: expected one model, got the folders of several; name one: {folders}")
    if as_json:
        print(json.dumps(_record(tagger, top_features), indent=1, ensure_ascii=False))
        return
    print(f"{model}: {_kind(tagger)}, {tagger.n_parameters:,} parameters")
    for title, rows in _sections(tagger, top_features):
        print(f"\n{title}")
        shown = [(visible(name), visible(value)) for name, value in rows]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            print(f"  {name:{width}}  {value}")


def _kind(tagger: OneTagger) -> str:
    if isinstance(tagger, FeatureTagger):
        return f"{kind_of(tagger.config.model).phrase} over features"
    if isinstance(tagger, VectorTagger):
        return f"a deep network over vectors of {tagger.dim} numbers under a linear-chain CRF"
    structure = "a semi-Markov CRF" if isinstance(tagger, Segmenter) else "a linear-chain CRF"
    if tagger.config.normalization == "local":
        structure = "local normalisation"
    if isinstance(tagger, MultiTagger):
        structure += f" for each of {', '.join(tagger.tasks)}"
    encoder = {"lstm": "an LSTM from both ends", "gru": "a GRU from both ends"}.get(tagger.config.encoder)
    return f"{encoder or f'a {tagger.config.encoder} network'} under {structure}"


def _sections(tagger: OneTagger, top_features: int) -> list[tuple[str, list[tuple[str, str]]]]:
    data = dict(tagger.metrics.get("data") or {})
    layout = data.pop("format", None)
    training = tagger.metrics.get("training") or {}
    trained = {name: training[name] for name in ("epochs", "best_epoch", "seconds") if name in training}
    sections = [
        ("data", [*_rows(data), *_layout_rows(layout)]),
        ("labels", _label_rows(tagger)),
        ("dev scores", _rows(flatten(tagger.metrics.get("dev") or {}))),
        ("training", _rows(trained | (training.get("settings") or {}))),
        *(_feature_sections(tagger, top_features) if isinstance(tagger, FeatureTagger) else _network_sections(tagger)),
        ("strongest learned transitions (score added to a sequence)", _transition_rows(tagger)),
    ]
    return [(title, rows) for title, rows in sections if rows]


def _network_sections(
    tagger: Tagger | Segmenter | MultiTagger | VectorTagger,
) -> list[tuple[str, list[tuple[str, str]]]]:
    if isinstance(tagger, VectorTagger):
        return [("network", _rows(asdict(tagger.config)))]
    vocabularies = {name: f"{len(items):,} entries" for name, items in tagger.features.vocabularies.items()}
    return [("lookup tables", _rows(vocabularies)), ("network", _rows(tagger.config.to_dict()))]


def _feature_sections(tagger: FeatureTagger, n: int) -> list[tuple[str, list[tuple[str, str]]]]:
    sizes: dict[str, Any] = {"templates": len(tagger.templates.templates), "attributes": len(tagger.crf.index)}
    sizes |= {"conjunctions": len(tagger.crf.conjunctions) or None}
    sizes |= {"function": tagger.features.name if tagger.features is not None else None}
    sizes |= {"names": HINT if tagger.hashed else None}
    top = [(f"{name} -> {label}", f"{weight:+.2f}") for weight, name, label in strongest(tagger, n)]
    return [("features", _rows(sizes | asdict(tagger.config))), ("strongest features (score added to a tag)", top)]


def _layout_rows(layout: dict[str, Any] | None) -> list[tuple[str, str]]:
    if not layout:
        return []
    names = layout.get("names") or ()

    def shown(i: int | None) -> str:
        return str(names[i - 1]) if i and i <= len(names) else str(i)

    features = ", ".join(map(shown, layout.get("feature_columns") or ())) or "none"
    columns = f"word {shown(layout.get('word_column'))}, tag {shown(layout.get('tag_column'))}, features {features}"
    return [("columns", columns)]


def _label_rows(tagger: OneTagger) -> list[tuple[str, str]]:
    if isinstance(tagger, VectorTagger):
        return [("labels", f"{len(tagger.labels)}: {', '.join(tagger.label_names)}")]
    return [row for name, head in heads_of(tagger).items() for row in _rows_of_head(name, head)]


def _rows_of_head(name: str, tagger: SentenceTagger) -> list[tuple[str, str]]:
    labels, of = tagger.labels, f" of {name}" if name else ""
    return [
        (f"tags{of}", f"{len(labels.data_tags)} ({labels.data_scheme}): {', '.join(labels.data_tags)}"),
        ("learned as", f"{len(labels.vocabulary)} labels ({labels.scheme})"),
    ]


def transitions(tagger: OneTagger) -> list[tuple[float, str, str]]:
    """Learned transition scores between legal neighbours, strongest first."""
    if isinstance(tagger, FeatureTagger):
        return sorted(tagger.crf.arc_names(), reverse=True)
    if isinstance(tagger, MultiTagger):
        found = ((name, arc) for name, head in tagger.heads.items() for arc in transitions(head))
        return sorted(((score, f"{name}: {a}", b) for name, (score, a, b) in found), reverse=True)
    labels = tagger.kinds if isinstance(tagger, Segmenter) else tagger.label_names
    if tagger.crf.transitions is None:
        return []
    allowed = None if isinstance(tagger, Segmenter) else tagger.crf.allowed_transitions
    legal = allowed.tolist() if allowed is not None else [[True] * len(labels)] * len(labels)
    scored = [
        (score, labels[i], labels[j])
        for i, row in enumerate(tagger.crf.transitions.tolist())
        for j, score in enumerate(row)
        if legal[i][j]
    ]
    return sorted(scored, reverse=True)


def _transition_rows(tagger: OneTagger) -> list[tuple[str, str]]:
    found = transitions(tagger)
    extremes = found if len(found) <= 2 * STRONGEST else [*found[:STRONGEST], *found[-STRONGEST:]]
    return [(f"{before} -> {after}", f"{score:+.2f}") for score, before, after in extremes]


def _record(tagger: OneTagger, top_features: int) -> dict[str, Any]:
    of_features = isinstance(tagger, FeatureTagger)
    top = strongest(tagger, top_features) if isinstance(tagger, FeatureTagger) else ()
    features = [{"attribute": name, "tag": label, "weight": round(weight, 4)} for weight, name, label in top]
    return {
        **({"features": features} if of_features else {}),
        "parameters": tagger.n_parameters,
        **_record_of_labels(tagger),
        "settings": asdict(tagger.config),
        "metrics": tagger.metrics,
        "transitions": [
            {"from": before, "to": after, "score": round(score, 4)} for score, before, after in transitions(tagger)
        ],
    }


def _record_of_labels(tagger: OneTagger) -> dict[str, Any]:
    if isinstance(tagger, VectorTagger):
        return {"labels": tagger.label_names}
    records = {
        name: {
            "labels": head.labels.vocabulary.to_list(),
            "tags": head.labels.data_tags,
            "scheme": head.labels.data_scheme,
        }
        for name, head in heads_of(tagger).items()
    }
    return records.get("", {"tasks": records})


def _rows(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), _shown(value)) for name, value in values.items() if value is not None]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value >= 10_000 else str(value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
