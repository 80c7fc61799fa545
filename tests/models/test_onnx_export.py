"""The ONNX graph of a trained model gives the library's tags, for any number of sentences and tokens."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor

from trelliswork import __version__
from trelliswork.data import Sentence, VectorSequence, WordVectors
from trelliswork.data.corpus import builtin_corpus
from trelliswork.errors import ModelError, OutputError
from trelliswork.models import (
    FeatureTagger,
    MultiTagger,
    Segmenter,
    Tagger,
    TaggerConfig,
    VectorTagger,
    VectorTaggerConfig,
)
from trelliswork.models.taggers.networks.onnx_export import export, export_onnx
from trelliswork.models.taggers.networks.onnx_export.onnx_tagger import OnnxTagger
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

Model = Tagger | Segmenter | MultiTagger

SMALL = TaggerConfig(
    word_dim=12, affix_dim=4, column_dim=6, hidden=24, window=3, heads=2, dropout=0.1, affix_min_count=2,
    character_dim=6, character_hidden=8, segment_dim=12, max_length=4,
)  # fmt: skip
A_LITTLE = TrainingConfig(epochs=3, batch_tokens=200, lr=0.02)
TASKS = ("pos", "chunk")
BATCHES = (1, 1, 1, 2, 95, 200)  # the first has one token

MODELS: dict[str, dict[str, Any]] = {
    "window": {"label_scheme": "data", "constrained": False},
    "window, vectors, context": {"scorer": "context"},
    "bilstm, characters cnn": {"encoder": "lstm", "layers": 2, "characters": "cnn"},
    "bigru, characters lstm": {"encoder": "gru", "characters": "lstm"},
    "transformer, n-grams": {"encoder": "transformer", "layers": 2, "ngrams": (3, 4), "ngram_buckets": 300},
    "dilated, templates": {"encoder": "dilated", "layers": 3, "templates": ("default",)},
    "dilated causal, tensor": {"encoder": "dilated", "layers": 2, "causal": True, "scorer": "tensor"},
    "sentence": {"encoder": "sentence"},
    "neural CRF": {"encoder": "deep", "layers": 2, "transitions": "network", "scorer": "hidden-units"},
    "local": {"encoder": "gru", "normalization": "local"},
    "segmenter, pyramid": {"encoder": "none"},
    "segmenter, endpoints": {
        "encoder": "gru",
        "segments": "endpoints",
        "templates": ("U0:%x[0,0]", "U1:%x[-1,0.short]"),
    },
    "several tasks": {"encoder": "gru", "characters": "cnn"},
}


@pytest.fixture(scope="module")
def corpus() -> list[Sentence]:
    """300 sentences with a part of speech beside each word; the first has one token, another more than 100."""
    found = [Sentence(each.words, each.chunks, (each.pos,)) for each in builtin_corpus(sizes=(300, 1, 1))["train"]]
    long = _joined(found[100:112])
    assert len(long) > 100
    return [
        _cut(found[0], 1),
        found[1],
        long,
        *found[3:150],
        *(_cut(each, 1 + i % 4) for i, each in enumerate(found[150:])),
    ]


def _cut(sentence: Sentence, n: int) -> Sentence:
    return Sentence(sentence.words[:n], (sentence.tags or ())[:n], (sentence.features[0][:n],))


def _joined(sentences: list[Sentence]) -> Sentence:
    words, tags, pos = ([value for each in sentences for value in of(each)] for of in (_words, _tags, _pos))
    return Sentence(tuple(words), tuple(tags), (tuple(pos),))


def _words(sentence: Sentence) -> tuple[str, ...]:
    return sentence.words


def _tags(sentence: Sentence) -> tuple[str, ...]:
    return sentence.tags or ()


def _pos(sentence: Sentence) -> tuple[str, ...]:
    return sentence.features[0]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(name: str, corpus: list[Sentence]) -> Model:
    config, learned = replace(SMALL, **MODELS[name]), corpus[3:100]
    model: Model
    if name == "several tasks":
        model = MultiTagger.from_data(learned, TASKS, config, seed=1)
    elif "vectors" in name:
        words = sorted({word.lower() for each in learned[::2] for word in each.words})
        matrix = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
        model = Tagger.from_data(learned, config, vectors=WordVectors(words, matrix), seed=1)
    else:
        model = (Segmenter if "segmenter" in name else Tagger).from_data(learned, config, seed=1)
    train(model, learned, None, A_LITTLE, progress=Progress())
    return model


def opened(folder: Path) -> OnnxTagger:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return OnnxTagger(folder, sess_options=options)


def inputs_of(model: Model, sentences: list[Sentence]) -> dict[str, np.ndarray[Any, Any]]:
    tagger = model.first if isinstance(model, MultiTagger) else model
    batch = tagger.token_batch(tagger.encode(sentences))
    return {name: each.numpy() for name, each in batch._asdict().items() if isinstance(each, Tensor)}


def score_of(model: Model, sentences: list[Sentence]) -> Tensor:
    """The score of the best answer of the library."""
    if isinstance(model, MultiTagger):
        model = model.heads[TASKS[-1]]
    found = model.segmentations(sentences) if isinstance(model, Segmenter) else model.distribution(sentences)
    return found.score(found.argmax)


def answers(model: Model, sentences: list[Sentence]) -> list[Any]:
    bare = [Sentence(each.words) for each in sentences] if isinstance(model, MultiTagger) else sentences
    return list(model.tag(bare))


def is_tie(model: Model, sentence: Sentence) -> bool:
    """Whether the two best answers of the library are as good as each other, up to the rounding of float32."""
    if not isinstance(model, Tagger):
        return False
    best, second = model.distribution([sentence]).top_k(2)[1].double().view(-1)[:2].tolist()
    return best - second < 1e-6 * abs(best)


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_the_library_on_300_sentences(name: str, corpus: list[Sentence], tmp_path: Path) -> None:
    model = trained(name, corpus)
    own = answers(model, corpus)
    assert len({str(tag) for tags in own for tag in (tags["chunk"] if isinstance(tags, dict) else tags)}) > 3
    plain = opened(export_onnx(model, tmp_path / "graph"))
    first = 0
    for size in BATCHES:
        part = corpus[first : first + size]
        if isinstance(model, MultiTagger):
            part = [Sentence(each.words) for each in part]
        inputs = inputs_of(model, part)
        tags, scores = (plain.session.run([task[name] for task in plain.tasks], inputs) for name in ("tags", "score"))
        found = plain.decoded(tags, [len(each) for each in part])
        for sentence, one, other in zip(part, found, own[first : first + size], strict=True):
            assert one == other or is_tie(model, sentence)
        torch.testing.assert_close(torch.from_numpy(scores[-1]), score_of(model, part).float(), atol=2e-3, rtol=1e-4)
        assert all((each[~inputs["mask"]] == 0).all() for each in tags), "0 where there is none"
        names = [task[name] for task in plain.tasks for name in ("potentials", "transitions")]
        assert {len(each) for each in plain.session.run(names, inputs)} == {size}
        first += size
    assert first == len(corpus) == 300
    some = corpus[140:160]
    columns = None if isinstance(model, MultiTagger) else [each.features for each in some]
    assert plain.tag_all([each.words for each in some], columns) == own[140:160], "without the library"
    for each in some[:8]:
        found = plain.confidences(each.words, () if isinstance(model, MultiTagger) else each.features)
        bare = Sentence(each.words)
        for task, head in model.heads.items():
            of_task = found[task] if task else found
            (wanted,) = head.confidences([bare if isinstance(model, MultiTagger) else each])
            assert of_task["tags"] == wanted.tags
            assert of_task["tokens"] == pytest.approx(wanted.tokens, abs=1e-4)
            assert [span[:3] for span in of_task["spans"]] == [(s.start, s.end, s.label) for s in wanted.spans]
            assert [span[3] for span in of_task["spans"]] == pytest.approx(
                [span.probability for span in wanted.spans], abs=1e-4
            )


@pytest.mark.parametrize("transitions", ["fixed", "network"])
def test_a_tagger_of_vectors(transitions: Any, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    labelled = []
    for n in (1, 4, 2, 9, 30, 3) * 20:
        vectors = torch.randn(n, 5, generator=generator)
        labelled.append(VectorSequence(vectors, tuple("abcde"[i] for i in vectors.argmax(1).tolist())))
    config = VectorTaggerConfig(window=3, hidden=16, scorer="hidden-units", n_units=6, transitions=transitions)
    tagger = VectorTagger.from_data(labelled, config)
    train(tagger, labelled, None, A_LITTLE, progress=Progress())
    folder = export_onnx(tagger, tmp_path / "graph")
    plain, own = opened(folder), tagger.tag(labelled)
    assert len({tag for tags in own for tag in tags}) > 2
    assert plain.tag_all([each.vectors.numpy() for each in labelled]) == own
    assert [plain.tag(each.vectors.numpy()) for each in labelled[:6]] == own[:6]
    for each, answer in zip(labelled[:6], tagger.predict(labelled[:6]), strict=True):
        tokens = plain.confidences(each.vectors.numpy())["tokens"]
        assert tokens == pytest.approx([part.probability for part in answer.parts], abs=1e-4)
    assert "an array [n, 5]" in (folder / "README.md").read_text(encoding="utf-8")


def test_ties_go_to_the_first_label(corpus: list[Sentence], tmp_path: Path) -> None:
    for kind in (Tagger, Segmenter):
        model = kind.from_data(corpus[:20], replace(SMALL, constrained=False))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        plain = opened(export_onnx(model, tmp_path / kind.__name__))
        assert plain.tag_all([each.words for each in corpus[:20]], [each.features for each in corpus[:20]]) == (
            model.tag(corpus[:20])
        )


@pytest.fixture(scope="module")
def exported(corpus: list[Sentence], tmp_path_factory: pytest.TempPathFactory) -> tuple[Tagger, Path]:
    """A tagger that reads words alone, and its folder."""
    bare = [Sentence(each.words, each.tags) for each in corpus[3:100]]
    tagger = Tagger.from_data(bare, replace(SMALL, characters="cnn"))
    train(tagger, bare, None, A_LITTLE, progress=Progress())
    return tagger, export_onnx(tagger, tmp_path_factory.mktemp("exports") / "ner")


def test_the_graph_says_what_it_is(exported: tuple[Tagger, Path]) -> None:
    tagger, folder = exported
    graph = onnx.load(str(folder / "model.onnx"))
    props = {each.key: each.value for each in graph.metadata_props}
    assert props["library_version"] == graph.producer_version == __version__
    assert props["inputs"].split(",") == ["features", "mask", "forms", "spellings"]
    assert [each.name for each in graph.graph.output] == props["outputs"].split(",") == [
        "tags", "score", "potentials", "transitions",
    ]  # fmt: skip
    assert all(each.doc_string for each in (*graph.graph.input, *graph.graph.output))
    described = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    assert described["tasks"][0]["labels"] == tagger.labels.vocabulary.to_list()
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in readme for name in described["inputs"]) and "{" not in readme


def test_the_folder_is_enough(exported: tuple[Tagger, Path], corpus: list[Sentence]) -> None:
    """Another process, which knows nothing of the library, tags a raw sentence."""
    tagger, folder = exported
    words = corpus[3].words
    blocked = "import sys; sys.modules['trelliswork'] = sys.modules['torch'] = None; sys.path.insert(0, sys.argv[1]);"
    code = f"{blocked} import onnx_tagger; onnx_tagger.main(sys.argv[2:])"
    said = subprocess.run(
        [sys.executable, "-c", code, str(folder), " ".join(words)], capture_output=True, text=True, check=True
    )
    tags = tagger.tag(" ".join(words))
    assert said.stdout.split() == [part for both in zip(words, tags, strict=True) for part in both]
    assert said.stderr == ""
    script = [sys.executable, str(folder / "onnx_tagger.py")]
    text = "".join(f"{word}\n" for word in words) + "\n\nStop\n"
    again = subprocess.run(script, input=text, capture_output=True, text=True, check=True)
    assert again.stdout.split()[: 2 * len(words)] == said.stdout.split()
    assert again.stdout.split()[-2] == "Stop"


def test_no_words_and_wrong_columns(exported: tuple[Tagger, Path]) -> None:
    plain = OnnxTagger(exported[1])
    assert plain.tag([]) == [] and plain.tag_all([[], ["Stop"]])[0] == []
    with pytest.raises(ValueError, match="expected each word with 0 more columns"):
        plain.tag(["Stop"], [["V"]])
    script = [sys.executable, str(exported[1] / "onnx_tagger.py")]
    for text, problem in (("Stop V\n", "expected each word with 0 more"), ("Ann N\nsings\n", "same number of columns")):
        said = subprocess.run(script, input=text, capture_output=True, text=True)
        assert said.returncode == 1 and said.stderr.startswith("error: ") and problem in said.stderr


def test_what_is_not_exported(sentences: list[Sentence], config: TaggerConfig, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="got a FeatureTagger"):
        export_onnx(FeatureTagger.fit(sentences), tmp_path / "graph")
    tagger = Tagger.from_data(sentences, config)
    tagger.config = replace(config, pretrained="bert-base-cased")
    with pytest.raises(ModelError, match="pretrained encoder cannot be exported"):
        export_onnx(tagger, tmp_path / "graph")
    assert not any(tmp_path.iterdir())


def test_places_that_are_refused(exported: tuple[Tagger, Path], tmp_path: Path) -> None:
    tagger, folder = exported
    with pytest.raises(OutputError, match=r"there is an export already.*--force"):
        export_onnx(tagger, folder)
    with pytest.raises(OutputError, match="expected a folder for the graph"):
        export_onnx(tagger, tmp_path / "m.onnx")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("x")
    with pytest.raises(OutputError, match="got other files"):
        export_onnx(tagger, tmp_path / "notes", force=True)


def test_all_or_nothing(exported: tuple[Tagger, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    tagger, folder = exported
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    tagger.train()
    export_onnx(tagger, folder, force=True)
    assert tagger.training, "exporting leaves a model as it was"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before, "the same bytes again"

    def fails(_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "readme", fails)
    with pytest.raises(OutputError, match="No space left on device; free space"):
        export_onnx(tagger, folder, force=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_the_runtime_prints_nothing(exported: tuple[Tagger, Path], capfd: pytest.CaptureFixture[str]) -> None:
    """Shapes that a runtime does not expect would be warned about at every step of the search."""
    onnxruntime.set_default_logger_severity(2)
    OnnxTagger(exported[1]).tag(["Stop"] * 30)
    assert capfd.readouterr() == ("", "")


def test_a_damaged_export_is_refused(tmp_path: Path) -> None:
    sentences = [Sentence(("Ann", "sings"), ("B-PER", "O"))]
    folder = export_onnx(Tagger.from_data(sentences, SMALL), tmp_path / "onnx")
    graph, description = folder / "model.onnx", folder / "model.json"
    whole = graph.read_bytes()
    for place in (40, len(whole) // 2, len(whole) - 1):
        graph.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"model\.onnx: the checksum does not match model\.json; copy the folder"):
            OnnxTagger(folder)
    graph.write_bytes(whole)
    stored = json.loads(description.read_text(encoding="utf-8"))
    del stored["sha256"]  # as earlier versions wrote it
    description.write_text(json.dumps(stored), encoding="utf-8")
    assert len(OnnxTagger(folder).tag(["Ann", "sings"])) == 2
    for text in ("[" * 100_000, "{"):
        description.write_text(text)
        with pytest.raises(ValueError, match=r"model\.json: truncated or not JSON"):
            OnnxTagger(folder)
