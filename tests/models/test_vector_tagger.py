"""VectorTagger: neural CRF and neural hidden-unit CRF over vectors learn, answer exactly, save and load."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trelliswork.data import VectorSequence
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models import VectorTagger, VectorTaggerConfig
from trelliswork.nn import PretrainingConfig
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

SMALL = VectorTaggerConfig(hidden=16, layers=2, window=1, n_units=8)
KINDS = {
    "neural CRF": replace(SMALL, transitions="network"),
    "neural hidden-unit CRF": replace(SMALL, layers=1, scorer="hidden-units", activation="relu"),
}


def words() -> list[VectorSequence]:
    """Two patterns of 6 bits; the label of the second kind depends on the label before it."""
    generator = torch.Generator().manual_seed(0)
    patterns = torch.tensor([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    found = []
    for n in (3, 5, 2, 6, 4, 5, 1, 4, 6, 3):
        kinds = torch.randint(2, (n,), generator=generator)
        labels: list[str] = []
        for kind in kinds.tolist():
            labels.append("a" if kind == 0 else "c" if labels[-1:] == ["b"] else "b")
        found.append(VectorSequence(patterns[kinds], tuple(labels)))
    return found


@pytest.fixture(scope="module", params=list(KINDS))
def fitted(request: pytest.FixtureRequest) -> VectorTagger:
    tagger = VectorTagger.from_data(words(), KINDS[request.param], seed=1)
    train(
        tagger, words(), words(), TrainingConfig(epochs=60, patience=60, batch_tokens=20, lr=0.03), progress=Progress()
    )
    return tagger


def test_learns_labels_that_depend_on_the_one_before(fitted: VectorTagger) -> None:
    assert fitted.tag(words()) == [list(word.labels or ()) for word in words()]
    assert fitted.evaluate(words())["score"] == 1


def test_loss_is_the_negative_log_probability(fitted: VectorTagger) -> None:
    sequences = words()
    gold = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(fitted.labels.indices(each.labels or ())) for each in sequences], batch_first=True
    )
    fitted.eval()
    expected = -fitted.distribution(sequences).log_prob(gold).sum()
    torch.testing.assert_close(fitted.loss(sequences), expected)
    torch.testing.assert_close(fitted.loss(fitted.encode(sequences, with_tags=True)), expected)


def test_saves_and_loads(fitted: VectorTagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = VectorTagger.load(tmp_path / "model")
    assert loaded.tag(words()) == fitted.tag(words())
    assert loaded.config == fitted.config
    config = (tmp_path / "model" / "config.json").read_text()
    (tmp_path / "model" / "config.json").write_text(config.replace('"dim": 6', '"dim": 7'))
    with pytest.raises(ModelError, match="do not fit"):
        VectorTagger.load(tmp_path / "model")


def test_pretrained_layers_stay_while_the_crf_above_them_learns() -> None:
    tagger = VectorTagger.from_data(words(), SMALL)
    assert len(tagger.pretrain(words(), PretrainingConfig(epochs=3, batch=8))) == 2
    before = {name: value.clone() for name, value in tagger.state_dict().items()}
    config = TrainingConfig(epochs=2, lr=0.01)
    with tagger.frozen_encoder():
        train(tagger, words(), None, config, progress=Progress())
    after = tagger.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before if name.startswith("encoder"))
    assert not torch.equal(before["scorer.linear.weight"], after["scorer.linear.weight"])
    train(tagger, words(), None, config, progress=Progress())
    assert not torch.equal(before["encoder.layers.0.weight"], tagger.state_dict()["encoder.layers.0.weight"])


def test_an_empty_sequence_has_no_labels(fitted: VectorTagger) -> None:
    assert fitted.tag([VectorSequence(torch.zeros(0, 6)), words()[0]])[0] == []


def test_wrong_input_is_explained(fitted: VectorTagger) -> None:
    with pytest.raises(TrellisworkError, match="expected vectors of 6 values"):
        fitted.tag([VectorSequence(torch.zeros(2, 5))])
    with pytest.raises(TrellisworkError, match="known labels; got 'z' at row 1"):
        fitted.loss([VectorSequence(torch.zeros(2, 6), ("a", "z"))])
    with pytest.raises(TrellisworkError, match="got one without labels"):
        fitted.loss([VectorSequence(torch.zeros(2, 6))])
    with pytest.raises(TrellisworkError, match="expected 2 labels"):
        VectorSequence(torch.zeros(2, 6), ("a",))
    with pytest.raises(TrellisworkError, match=r"must be \(n, d\)"):
        VectorSequence(torch.zeros(2))
    with pytest.raises(TrellisworkError, match="got none"):
        VectorTagger.from_data([])
    with pytest.raises(TrellisworkError, match="scorer must be one of"):
        VectorTaggerConfig(scorer="quadratic")  # type: ignore[arg-type]
    with pytest.raises(TrellisworkError, match="dropout must lie"):
        VectorTaggerConfig(dropout=1.0)
