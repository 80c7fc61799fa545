"""Recognizers: frames, exact probabilities, alignments, what is refused, and what a batch must not change."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import trelliswork as tw
from trelliswork.data.choices import Choices
from trelliswork.data.media import Media
from trelliswork.data.recordings import Recording, RecordingFormat, open_recordings
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.recipe import Material
from trelliswork.models.recognizers.config import DecodingSettings, RecognizerConfig
from trelliswork.models.recognizers.ctc import CTCRecognizer, frames_needed
from trelliswork.models.recognizers.features import frames_of, log_mel, scaled, slopes
from trelliswork.models.recognizers.network import distorted, masked_out
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

TINY = RecognizerConfig(hidden=6, layers=1, channels=4, convolutions=1, stride=1, dropout=0.0, time_masks=0,
                        feature_masks=0, filters=8, height=4, beam=32)  # fmt: skip
LETTERS = "abc"
VECTORS = RecordingFormat("characters", "characters", media="vectors", dim=3)


def spelled(text: str, width: int = 2) -> torch.Tensor:
    """A frame of zeros, then `width` frames of each letter and one of zeros."""
    rows = [torch.zeros(1, 3)]
    for letter in text:
        rows += [torch.eye(3)[LETTERS.index(letter)].expand(width, 3), torch.zeros(1, 3)]
    return torch.cat(rows)


def recording(text: str, width: int = 2) -> Recording:
    return Recording((text,), text=text, target=tuple(text), target_text=text, frames=spelled(text, width))


STRINGS = ["".join(each) for n in (1, 2, 3) for each in itertools.product(LETTERS, repeat=n)]


def model_of(config: RecognizerConfig = TINY, seed: int = 0) -> CTCRecognizer:
    return CTCRecognizer.from_data([recording(each) for each in STRINGS], config, format=VECTORS, seed=seed).eval()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[CTCRecognizer, Path]:
    model, out = model_of(), tmp_path_factory.mktemp("recognizers") / "reader"
    gold = [recording(each, 2 + i % 2) for i, each in enumerate(STRINGS)]
    train(model, gold, gold, TrainingConfig(epochs=12, lr=0.03, batch_tokens=60), out=out, progress=Progress())
    return model, out


# Probabilities


def every_probability(log_probs: np.ndarray, symbols: str) -> dict[str, float]:
    """p(string) of every string, by adding up all paths."""
    shares: dict[str, float] = {}
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        p = math.exp(sum(log_probs[t, symbol] for t, symbol in enumerate(path)))
        text = "".join(symbols[k - 1] for k, _ in itertools.groupby(path) if k)
        shares[text] = shares.get(text, 0.0) + p
    return shares


def test_answers_have_the_probabilities_of_all_their_paths() -> None:
    model, frames = model_of(seed=3), torch.randn(5, 3, generator=torch.Generator().manual_seed(1)) * 3
    with model.evaluating():
        log_probs = model.network(frames[None], torch.tensor([5]))[0].double().numpy()
    shares = every_probability(log_probs, LETTERS)
    assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
    (answer,) = model.decoded_by(DecodingSettings(), 2000).predict(frames, top_k=5)
    best = sorted(shares.items(), key=lambda each: -each[1])[:5]
    assert [each.value for each in answer.alternatives] == [text for text, _ in best]
    assert [each.probability for each in answer.alternatives] == pytest.approx([p for _, p in best], rel=1e-4)
    assert answer.probability == answer.alternatives[0].probability and answer.certain == (best[0][1] >= 0.5)
    for i, part in enumerate(answer.parts):
        others = [answer.value[:i] + letter + answer.value[i + 1 :] for letter in ("", *LETTERS)]
        total = sum(shares.get(each, 0.0) for each in others)
        assert part.probability == pytest.approx(shares[answer.value] / total, rel=1e-4)


def test_the_loss_is_minus_log_p_of_the_transcripts() -> None:
    model = model_of()
    batch = [recording("ab"), recording("c", 3)]
    aligned = model.decoded_by(DecodingSettings(align=True)).predict(batch, top_k=0)
    wanted = -sum(math.log(each.probability or 0) for each in aligned)
    assert float(model.loss(batch).detach()) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("kind", ["vectors", "image", "sound"])
def test_padding_and_company_change_nothing(kind: str) -> None:
    format = RecordingFormat("characters", "characters", media=kind, dim=3, rate=8000)
    planes = {"vectors": 3, "image": 4, "sound": 24}[kind]
    config = replace(TINY, stride=2, convolutions=2)
    generator = torch.Generator().manual_seed(0)
    rows = [
        Recording((str(n),), target=("a",), frames=torch.randn(n, planes, generator=generator)) for n in (9, 1, 14, 6)
    ]
    model = CTCRecognizer.from_data(rows, config, format=format).eval()
    together, alone = model.predict(rows, top_k=3), [model.predict([each], top_k=3)[0] for each in rows]
    for one, other in zip(together, alone, strict=True):
        assert [each.value for each in one.alternatives] == [each.value for each in other.alternatives]
        assert one.probability == pytest.approx(other.probability, rel=1e-4)
        assert [(p.start, p.end) for p in one.parts] == [(p.start, p.end) for p in other.parts]


def test_a_trained_model_reads_aligns_and_is_the_same_after_loading(trained: tuple[CTCRecognizer, Path]) -> None:
    model, folder = trained
    for each in (model, tw.load(folder)):
        answers = each.predict([spelled("abba"), spelled("cab", 3)], top_k=2)
        assert [answer.value for answer in answers] == ["abba", "cab"]
        places = [(part.start, part.end) for part in answers[0].parts]
        assert all(start < 3 + 3 * i and end > 1 + 3 * i for i, (start, end) in enumerate(places)), places
    scores = model.evaluate([recording("ab"), recording("ca")])
    assert (scores["symbol_error_rate"], scores["word_error_rate"], scores["exact_match"]) == (0, 0, 1)
    wrong = [replace(recording("ab"), target=("a", "c", "b", "z"))]  # z was never seen
    assert model.evaluate(wrong)["symbol_error_rate"] == 0.5
    assert "1 symbol of the transcripts never seen" in model.readable_gold(wrong)[1][0]
    (beam,), (greedy,) = (
        model.decoded_by(DecodingSettings(each)).predict(spelled("abc")) for each in ("beam", "greedy")
    )
    assert (beam.search, greedy.search) == ("beam", "greedy") and greedy.probability <= beam.probability


def test_alignment_of_what_cannot_be_aligned(trained: tuple[CTCRecognizer, Path]) -> None:
    model = trained[0].decoded_by(DecodingSettings(align=True))
    answer = model.predict([replace(recording("a"), target=tuple("abcabcabc"))])[0]
    assert answer.probability == 0 and not answer.parts and answer.value == "abcabcabc"
    with pytest.raises(DataError, match="expected symbols of the training transcripts, got 'z'"):
        model.predict([replace(recording("a"), target=("z",))])
    with pytest.raises(DataError, match="got a file alone; add its transcript"):
        model.predict([replace(recording("a"), target=None)])


def test_what_a_model_does_not_read(trained: tuple[CTCRecognizer, Path]) -> None:
    with pytest.raises(TrellisworkError, match="expected vectors of 3 numbers, as in training, got 2"):
        trained[0].predict(np.zeros((4, 2)))
    with pytest.raises(TrellisworkError, match="expected no pins"):
        trained[0].predict(spelled("a"), pins=[{0: "a"}])
    with pytest.raises(TrellisworkError, match="--threshold is for spans"):
        trained[0].report([recording("a")], threshold=0.5)


# Transcripts that do not fit


def test_transcripts_need_a_frame_for_each_symbol_and_between_equal_neighbours(tmp_path: Path) -> None:
    assert [frames_needed(each) for each in ("", "a", "book", "aaa")] == [0, 1, 5, 5]
    for name, n in (("two", 2), ("three", 3)):
        np.save(tmp_path / f"{name}.npy", np.ones((n, 3)))
    (tmp_path / "m.tsv").write_text("two.npy\tab\ntwo.npy\taa\nthree.npy\taa\n")
    columns, recordings = open_recordings(tmp_path / "m.tsv", Choices())
    choices = replace(columns.choices(), pairs=columns.pairs)
    material = Material(list(recordings), [], None, None, choices, {})
    notes: list[str] = []
    rule = (
        r"1 of 3 .*m.tsv:2 \(two.npy: 2 symbols, 2 frames\): CTC needs one frame for each symbol and one more between"
    )
    with pytest.raises(DataError, match=rule):
        CTCRecognizer.learnable(material, TINY, "m.tsv", notes.append)
    kept = CTCRecognizer.learnable(material, replace(TINY, skip_impossible=True), "m.tsv", notes.append)
    assert [len(each) for each in kept] == [2, 3] and "1 recording left out" in notes[0]
    with pytest.raises(DataError, match="3 of 3 that do not"):
        CTCRecognizer.learnable(material, replace(TINY, stride=4), "m.tsv", notes.append)


# Frames


def test_filter_banks_are_those_of_the_plain_version() -> None:
    samples = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    config = replace(TINY, filters=6, frame_ms=20, step_ms=10)
    frames = log_mel(samples, 8000, config)
    assert frames.shape == (1 + (1000 - 160) // 80, 6)
    edges = [
        700 * (10 ** (m / 2595) - 1)
        for m in np.linspace(2595 * math.log10(1 + 20 / 700), 2595 * math.log10(1 + 4000 / 700), 8)
    ]
    part = samples[240:400] - samples[240:400].mean()
    shaped = [part[i] * (0.5 - 0.5 * math.cos(2 * math.pi * i / 159)) for i in range(160)]
    for k in range(6):
        energy = 0.0
        for j in range(129):
            hertz, low, middle, high = j * 8000 / 256, *edges[k : k + 3]
            weight = max(0.0, min((hertz - low) / (middle - low), (high - hertz) / (high - middle)))
            bin_ = sum(x * np.exp(-2j * math.pi * j * i / 256) for i, x in enumerate(shaped))
            energy += weight * abs(bin_) ** 2
        assert frames[3, k] == pytest.approx(math.log(energy + 1e-8), rel=1e-2, abs=1e-2)
    assert log_mel(samples[:5], 8000, config).shape == (1, 6), "shorter than a frame"


def test_sound_has_deltas_mean_0_and_the_rate_of_training() -> None:
    tone = np.sin(np.arange(8000) * 2 * np.pi * 500 / 8000).astype(np.float32) * np.linspace(
        0.1, 1, 8000, dtype=np.float32
    )
    format = RecordingFormat(media="sound", rate=8000)
    frames = frames_of(Media("sound", tone, 8000), TINY, format)
    assert frames.shape == (98, 24) and frames[:, :8].mean(0) == pytest.approx(0, abs=1e-4)
    assert frames[:, :8].std(0) == pytest.approx(1, abs=1e-2) and frames.dtype == np.float32
    line = np.arange(10.0)[:, None]
    assert slopes(line)[2:-2] == pytest.approx(1.0) and slopes(-2 * line)[2:-2] == pytest.approx(-2.0)
    fast = np.repeat(tone, 2)  # the same at twice the rate
    again = frames_of(Media("sound", fast, 16000), TINY, format)
    assert again.shape == frames.shape and np.abs(again[:, :3] - frames[:, :3]).mean() < 0.1
    assert np.isfinite(frames_of(Media("sound", np.zeros(400, np.float32), 8000), TINY, format)).all(), "silence"


def test_images_are_scaled_by_the_means_of_what_is_covered() -> None:
    ink = np.arange(24, dtype=np.float32).reshape(6, 4)  # columns, rows
    assert scaled(ink, 4) is ink
    half = scaled(ink, 2)
    assert half.shape == (3, 2) and half[0, 0] == np.mean([0, 1, 4, 5]) and half[2, 1] == np.mean([18, 19, 22, 23])
    assert scaled(ink, 3).mean() == pytest.approx(ink.mean(), rel=0.1) and scaled(ink, 8).shape == (12, 8)
    assert scaled(np.ones((1, 50), np.float32), 5).shape == (1, 5)


def test_distortions_are_for_training_and_leave_lengths_in_place() -> None:
    images = torch.rand(3, 20, 4)
    still = replace(TINY, slant=0.0, shift=0.0, scale=0.0)
    same, lengths = distorted(images, torch.tensor([20, 7, 12]), still)
    assert torch.allclose(same, images, atol=1e-5) and lengths.tolist() == [20, 7, 12]
    torch.manual_seed(0)
    moved, longer = distorted(images, torch.tensor([20, 7, 12]), replace(TINY, scale=0.2))
    assert moved.shape[1] == int(longer.max()) and bool(((longer >= 5) & (longer <= 25)).all())
    frames, mean = torch.rand(2, 40, 10), torch.full((10,), -1.0)
    masks = replace(TINY, time_masks=1, time_mask=5, feature_masks=1, feature_mask=0.3)
    hidden = torch.stack([masked_out(frames, torch.tensor([40, 40]), mean, masks) == -1 for _ in range(50)])
    rows, columns = hidden.all(-1).sum(-1), hidden.all(-2).sum(-1)
    assert 1 <= int(rows.max()) <= 5 and 1 <= int(columns.max()) <= 3 and int(rows.min()) == 0
    model = model_of(replace(TINY, time_masks=2, dropout=0.5))
    losses = {round(float(model.loss([recording("ab", 8)]).detach()), 6) for _ in range(3)}
    assert len(losses) == 1, "not in evaluation"
    model.train()
    assert len({round(float(model.loss([recording("ab", 8)]).detach()), 6) for _ in range(3)}) == 3
