"""Every model that reads words trains over a pretrained encoder, and its folder has all that it needs."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from tests.cli.conftest import SMALL
from tests.cli.conftest import cli as cli
from tests.tiny_bert import write_bert
from tests.training.test_resume import DEV, EVERY_STEP, NETWORK, TRAIN, Notes, killed_at, weights
from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.data.corpus.trees import write_events, write_treebank
from trelliswork.data.pairs import PairFormat
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models import Segmenter, Tagger, TaggerConfig, load_tagger
from trelliswork.models.networks.pretrained import encoders_of
from trelliswork.models.transducers.attention.network import AttentionNetwork
from trelliswork.models.transducers.config import AttentionConfig
from trelliswork.nn.encoders.pretrained import PretrainedEncoder
from trelliswork.training import TrainingConfig, train
from trelliswork.training.schedules import make_optimizer
from trelliswork.web import worker

FILES = {
    "window": "train.conll", "bilstm-semicrf": "train.conll", "multi-task": "train.conll", "biaffine": "train.conllu",
    "transition": "train.conllu", "span-cky": "train.mrg", "joint-events": "train.jsonl",
    "seq2seq": "train.tsv", "transformer": "train.tsv",
}  # fmt: skip
MODES = {
    "window": ["--pretrained-training", "frozen", "--pretrained-layers", "mix"],
    "bilstm-semicrf": ["--pretrained-words", "mean"],
    "transition": ["--pretrained-training", "frozen-first"],
    "span-cky": ["--pretrained-storage", "float16"],
    "seq2seq": ["--pretrained-training", "frozen", "--pretrained-words", "mean"],
}
PAIRS = [tw.Sentence(("Ann", "sees", name), target=(name, "voit", "Ann")) for name in ("Bob", "Eve", "Zoë", "Kim")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files of each kind, and a tiny BERT."""
    made = tmp_path_factory.mktemp("pretrained")
    write_corpus(builtin_corpus(sizes=(12, 4, 4)), made)
    write_treebank(builtin_corpus(sizes=(12, 4, 4)), made)
    write_events(builtin_corpus(sizes=(12, 4, 4)), made)
    write_bert(made / "bert")
    rows = ["\t".join(" ".join(side) for side in (pair.words, pair.target or ())) for pair in PAIRS]
    (made / "train.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return made


@pytest.mark.parametrize("name", FILES)
def test_a_model_is_trained_loaded_asked_and_scored(cli: Any, folder: Path, tmp_path: Path, name: str) -> None:
    bert = shutil.copytree(folder / "bert", tmp_path / "bert")
    data, out = folder / FILES[name], tmp_path / "model"
    small = ["--hidden", "16"] if data.suffix == ".tsv" else [*SMALL, "--tokeniser", "rules"]
    small += MODES.get(name, [])
    trained = cli("train", data, "--model", name, "--pretrained", bert, "--epochs", "2", "--out", out, *small)
    assert trained.status == 0, trained.err
    assert "pretrained encoder: " in trained.err
    shutil.rmtree(bert)
    assert {"tokenizer.json", "config.json", "weights.safetensors"} <= {path.name for path in out.iterdir()}
    assert json.loads((out / "tokenizer.json").read_text())["model"]["type"] == "WordPiece"
    assert "rules" not in json.loads((out / "config.json").read_text())["pretrained"]["tokenizer"]
    assert cli("evaluate", out, data).status == 0
    answered = cli("predict", out, data)
    assert answered.status == 0 and answered.out, answered.err
    shown = cli("info", out)
    assert shown.status == 0 and "parameters" in shown.out


def pair_network(folder: Path, **settings: Any) -> AttentionNetwork:
    config = AttentionConfig(dim=8, hidden=16, dropout=0.0, pretrained=str(folder / "bert"), **settings)
    return AttentionNetwork.from_data(PAIRS, config, format=PairFormat("words", "words", "none"))


def test_a_transducer_reads_its_sources_through_the_encoder(folder: Path) -> None:
    model = pair_network(folder)
    model.loss(PAIRS).backward()
    (encoder,) = encoders_of(model)
    assert encoder.model.embeddings.word_embeddings.weight.grad.any()
    model = pair_network(folder, pretrained_training="frozen").eval()
    (encoder,) = encoders_of(model)
    loss = model.loss(PAIRS)
    model.begin_training(PAIRS, [], 1, lambda text: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "vectors_of", None)  # kept vectors are those of the same words
        torch.testing.assert_close(model.loss(PAIRS), loss, rtol=1e-5, atol=1e-5)
    encoder.cache = None
    with torch.no_grad():
        encoder.model.embeddings.word_embeddings.weight[4:].mul_(-1)
    assert not torch.isclose(model.loss(PAIRS), loss, rtol=1e-4)
    assert model.cost(10) > super(AttentionNetwork, model).cost(10)


def test_a_transducer_of_characters_or_subwords_has_no_encoder(folder: Path) -> None:
    config = AttentionConfig(pretrained=str(folder / "bert"))
    with pytest.raises(TrellisworkError, match="units of sources are characters; add --source-units words or leave"):
        AttentionNetwork.from_data(PAIRS, config, format=PairFormat("characters", "words", "none"))
    with pytest.raises(TrellisworkError, match="cuts words by itself; leave subwords or pretrained out"):
        AttentionConfig(pretrained=str(folder / "bert"), subwords=10)


def config_of(folder: Path, **settings: Any) -> TaggerConfig:
    return replace(NETWORK, pretrained=str(folder / "bert"), **settings)


def trained(model: Any, out: Path | None = None, *, resume: bool = False, **settings: Any) -> list[str]:
    shown = Notes()
    train(model, TRAIN, DEV, TrainingConfig(**{**EVERY_STEP, **settings}), out=out, resume=resume, progress=shown)
    return shown.notes


def encoder_weights(model: Any) -> dict[str, torch.Tensor]:
    (encoder,) = encoders_of(model)
    return {name: tensor.clone() for name, tensor in encoder.model.state_dict().items()}


@pytest.mark.parametrize(("how", "epochs", "moves"), [("frozen", 2, False), ("frozen-first", 1, False),
                                                      ("frozen-first", 2, True), ("tuned", 1, True)])  # fmt: skip
def test_a_frozen_encoder_stays_as_it_is(folder: Path, how: Any, epochs: int, moves: bool) -> None:
    model = Tagger.from_data(TRAIN, config_of(folder, pretrained_training=how))
    before, head = encoder_weights(model), model.scorer.linear.weight.detach().clone()
    train(model, TRAIN, None, TrainingConfig(**{**EVERY_STEP, "epochs": epochs}), progress=Notes())  # keeps the last
    after = encoder_weights(model)
    assert any(not torch.equal(before[name], after[name]) for name in before) == moves
    assert not torch.equal(head, model.scorer.linear.weight)
    assert encoders_of(model)[0].cache is None


def test_an_earlier_way_to_freeze(folder: Path) -> None:
    config = config_of(folder, tune_pretrained=False)
    assert config.encoder_training == "frozen"
    assert not any(each.requires_grad for each in Tagger.from_data(TRAIN, config).inputs.pretrained.model.parameters())


def test_a_head_learns_the_same_from_kept_vectors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache changes how fast it goes; to the last bits, vectors depend on the sentences that are read together."""
    models = [Tagger.from_data(TRAIN, config_of(folder, pretrained_training="frozen")) for _ in range(2)]
    notes = trained(models[0])
    assert any("vectors of 32 sentences computed once" in note for note in notes), notes
    monkeypatch.setattr(Tagger, "begin_training", lambda *arguments: None)
    trained(models[1])
    for ours, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(Tagger, {"pretrained_training": "frozen"}), (Tagger, {"pretrained_training": "frozen-first"}),
     (Segmenter, {"pretrained_training": "tuned", "pretrained_layers": "mix", "segment_dim": 6})],
)  # fmt: skip
def test_killed_and_resumed_to_the_same_bits(
    kind: Any, settings: dict[str, Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, of_training = config_of(folder, **settings), {"layer_decay": 1.1, "warmup": 0.2}
    trained(kind.from_data(TRAIN, config), tmp_path / "whole", **of_training)
    for call, resume in ((4, False), (3, True)):
        with killed_at(monkeypatch, kind, "loss", call):
            trained(kind.from_data(TRAIN, config), tmp_path / "m", resume=resume, **of_training)
    trained(kind.from_data(TRAIN, config), tmp_path / "m", resume=True, **of_training)
    assert weights(tmp_path / "m") == weights(tmp_path / "whole")


RATES = {
    "inputs.pretrained.model.embeddings": 2e-5, "inputs.pretrained.model.encoder.layer.0": 4e-5,
    "inputs.pretrained.model.encoder.layer.1": 8e-5, "inputs.pretrained.model.pooler": 8e-5, "inputs": 2.5e-4,
    "encoder": 5e-4,
}  # fmt: skip


def test_rates_layer_by_layer_and_name_by_name(folder: Path) -> None:
    model = Tagger.from_data(TRAIN, config_of(folder, pretrained_layers="mix"))
    config = TrainingConfig(lr=1e-3, encoder_lr=8e-5, layer_decay=2.0)
    groups = make_optimizer(model, config).param_groups
    rates = {id(parameter): group["lr"] for group in groups for parameter in group["params"]}
    for name, parameter in model.named_parameters():
        expected = next((rate for start, rate in RATES.items() if name.startswith(start)), 1e-3)
        assert rates[id(parameter)] == pytest.approx(expected), name
    assert len(rates) == len(list(model.parameters()))
    rates_alike = {group["lr"] for group in make_optimizer(model, TrainingConfig(lr=1e-3)).param_groups}
    assert rates_alike == {1e-3, 5e-5}
    frozen = Tagger.from_data(TRAIN, config_of(folder, pretrained_training="frozen"))
    assert {group["lr"] for group in make_optimizer(frozen, TrainingConfig(lr=1e-3)).param_groups} == {1e-3}


@pytest.mark.parametrize("precision", ["bf16", "float32"])
def test_defaults_of_fine_tuning_are_chosen_and_shown(
    cli: Any, folder: Path, tmp_path: Path, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trelliswork.models.networks.pretrained.multiplies_bf16", lambda: precision == "bf16")
    command = ["train", folder / "train.conll", "--pretrained", folder / "bert", *SMALL, "--tokeniser", "rules"]
    shown = cli(*command, "--out", tmp_path / "m", "--lr", "0.004", "--epochs", "1").err
    assert "model: bilstm-crf" in shown
    assert (
        "pretrained encoder: fine-tuned at rate 5e-05, / 1.1 for each lower layer; all else at 0.004; warm-up over 10% "
        f"of the steps, linear decay, clipped at 1; {precision} (--encoder-lr, --lr, --pretrained-training, "
        "--precision)" in shown
    )
    settings = (tmp_path / "m" / "config.toml").read_text()
    assert all(f"{line}\n" in settings for line in ("warmup = 0.1", "clip = 1.0", "layer_decay = 1.1", "lr = 0.004"))
    assert f'precision = "{precision}"\n' in settings
    shown = cli(*command, "--out", tmp_path / "f", "--pretrained-training", "frozen", "--epochs", "1",
                "--pretrained-cache", tmp_path / "kept").err  # fmt: skip
    assert "pretrained encoder: frozen; all else at rate 0.002" in shown and "warmup = 0.0" not in shown
    assert list((tmp_path / "kept").glob("*/*.vectors"))


def test_half_precision_on_request(folder: Path, tmp_path: Path) -> None:
    models = [Tagger.from_data(TRAIN, config_of(folder, pretrained_storage=each)) for each in ("float32", "float16")]
    for model, name in zip(models, ("whole", "half"), strict=True):
        model.eval().save(tmp_path / name)
    sizes = [(tmp_path / name / "weights.safetensors").stat().st_size for name in ("whole", "half")]
    n_values = sum(each.numel() for each in encoders_of(models[0])[0].model.parameters())
    assert sizes[0] - sizes[1] == pytest.approx(2 * n_values, abs=2000)
    loaded = Tagger.load(tmp_path / "half")
    assert all(each.dtype == torch.float32 for each in loaded.parameters())
    for ours, theirs in zip(loaded.confidences(DEV), models[1].confidences(DEV), strict=True):
        assert ours.tokens == pytest.approx(theirs.tokens, abs=1e-2)


def test_loading_asks_nobody(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Tagger.from_data(TRAIN, config_of(folder)).eval().save(tmp_path / "m")
    monkeypatch.setattr(PretrainedEncoder, "from_name", None)
    monkeypatch.setattr("socket.socket.connect", None)
    assert load_tagger(tmp_path / "m").predict(DEV[:1])
    (tmp_path / "m" / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json: missing; copy the whole model folder"):
        load_tagger(tmp_path / "m")
    (tmp_path / "m" / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="expected rules of a tokenizer, got other text"):
        load_tagger(tmp_path / "m")


def test_a_server_answers_with_it(folder: Path, tmp_path: Path) -> None:
    """What a worker of `trelliswork serve` does: it loads folders, warms them up, and replies to requests."""
    words = [tw.Sentence(sentence.words, sentence.tags) for sentence in TRAIN]
    model = Tagger.from_data(words, config_of(folder)).eval()
    model.save(tmp_path / "m")
    models = worker.load_models({"m": str(tmp_path / "m")}, "cpu")
    tokens = [["Ann", "sings"], ["שלום", "👩‍👩‍👧"]]
    asked = {"tokens": tokens, "top_k": 0, "confidences": True, "choices": 0, "expected": False}
    calls = [{"op": "predict", "body": asked}, {"op": "explain", "body": {"tokens": [["Ann", "sings"]], "shown": 3}}]
    predicted, explained = worker.replies(models["m"], calls)
    assert (predicted.status, explained.status) == (200, 200)
    results = json.loads(predicted.body)["results"]
    assert [sentence["value"] for result in results for sentence in result["sentences"]] == [
        model.tag(words) for words in tokens
    ]
    assert "pretrained" in explained.body.decode()


def test_a_folder_of_an_earlier_version(folder: Path, tmp_path: Path) -> None:
    """Its tokenizer is in config.json, and it knows nothing of later settings."""
    model = Tagger.from_data(TRAIN, config_of(folder)).eval()
    model.save(tmp_path / "m")
    file = tmp_path / "m" / "config.json"
    config = json.loads(file.read_text())
    config["pretrained"]["tokenizer"]["rules"] = (tmp_path / "m" / "tokenizer.json").read_text()
    later = ("pretrained_training", "pretrained_frozen_epochs", "pretrained_words", "pretrained_layers")
    for name in (*later, "pretrained_storage"):
        del config["settings"][name]
    del config["pretrained"]["words"], config["pretrained"]["layers"]
    file.write_text(json.dumps(config))
    (tmp_path / "m" / "tokenizer.json").unlink()
    assert Tagger.load(tmp_path / "m").confidences(DEV) == model.confidences(DEV)


def test_a_request_costs_what_the_encoder_takes(folder: Path) -> None:
    """So that a server refuses or divides what would take too long."""
    plain, model = Tagger.from_data(TRAIN, NETWORK), Tagger.from_data(TRAIN, config_of(folder))
    more = model.cost(100) - plain.cost(100)
    assert 0 < more < model.cost(100, explain=True) - plain.cost(100, explain=True)
