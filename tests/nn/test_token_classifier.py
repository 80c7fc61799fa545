"""The head for the Trainer of transformers: alignment, constraints, outputs, folders, spans; over a tiny BERT."""

from __future__ import annotations

import itertools
import math
import re
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.tiny_bert import SPELLING, bert, tokenizer, write_bert
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.nn import TokenClassifierWithCRF
from trelliswork.tags.schemes import violations

GUIDE = Path(__file__).parents[2] / "docs/guides/pretrained.md"
LABELS = ["O", "B-PER", "I-PER"]
DATA = [
    (["Ann", "Lee", "sings", "."], ["B-PER", "I-PER", "O", "O"]), (["Stop", "!"], ["O", "O"]),
    (["Bob", "met", "Ann"], ["B-PER", "O", "B-PER"]), (["Eve"], ["B-PER"]),
]  # fmt: skip


def classifier(**settings: Any) -> TokenClassifierWithCRF:
    rules = tokenizer(SPELLING)
    rules.model_max_length = 64
    torch.manual_seed(1)
    model = bert(len(SPELLING), 64)
    return TokenClassifierWithCRF(model, rules, settings.pop("labels", LABELS), **settings).eval()


def batch_of(model: TokenClassifierWithCRF, with_tags: bool = True) -> dict[str, torch.Tensor]:
    return model.collate([model.features(words, tags if with_tags else None) for words, tags in DATA])


def test_a_word_starts_at_its_first_sub_word() -> None:
    model = classifier()
    example = model.features(["Ann", "Lee"], ["B-PER", "I-PER"])
    assert example["word_starts"] == [0, 1, 0, 0, 1, 0, 0, 0]
    assert example["labels"] == [-100, 1, -100, -100, 2, -100, -100, -100]
    batch = batch_of(model)
    assert {name: tuple(tensor.shape) for name, tensor in batch.items()} == dict.fromkeys(
        ("input_ids", "attention_mask", "word_starts", "labels"), (4, 14)
    )
    assert (batch["labels"] != -100).sum(1).tolist() == [4, 2, 3, 1]


def test_loss_and_tags_are_those_of_the_words_alone() -> None:
    """Against every tag sequence of the words, one sentence at a time."""
    model = classifier()
    outputs = model(**batch_of(model))
    assert list(outputs) == ["loss", "logits", "tags"] and outputs["logits"].shape == (4, 14, 3)
    total = 0.0
    for row, (words, tags) in enumerate(DATA):
        emissions = model.scorer(model.encoder([words]))[0]
        scores = {}
        for sequence in itertools.product(range(3), repeat=len(words)):
            legal = 2 not in (sequence[0],) and all(a != 0 or b != 2 for a, b in itertools.pairwise(sequence))
            score = model.crf.start_transitions[sequence[0]] + model.crf.end_transitions[sequence[-1]]
            score = score + sum(emissions[i, tag] for i, tag in enumerate(sequence))
            score = score + sum(model.crf.transitions[a, b] for a, b in itertools.pairwise(sequence))
            scores[sequence] = score.item() if legal else -torch.inf
        gold = tuple(LABELS.index(tag) for tag in tags)
        total += torch.tensor(list(scores.values())).logsumexp(0).item() - scores[gold]
        found = outputs["tags"][row]
        assert tuple(found[found != -100].tolist()) == max(scores, key=scores.get)  # type: ignore[arg-type]
    assert outputs["loss"].item() == pytest.approx(total / 10, rel=1e-4)


def test_outputs_without_labels_and_in_training() -> None:
    model = classifier()
    outputs = model(**batch_of(model, with_tags=False))
    assert list(outputs) == ["logits", "tags"] and torch.equal(outputs["tags"], model(**batch_of(model))["tags"])
    outputs = model.train()(**batch_of(model))
    assert list(outputs) == ["loss", "logits"]
    outputs["loss"].backward()
    assert model.encoder.model.embeddings.word_embeddings.weight.grad.any() and model.crf.transitions.grad is not None
    empty = model(**model.collate([model.features([], [])]))
    assert empty["loss"].item() == 0


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
def test_no_answer_breaks_the_scheme(scheme: str) -> None:
    labels = LABELS if scheme == "IOB2" else [*LABELS, "E-PER", "S-PER"]
    model = classifier(labels=labels, scheme=scheme)
    with torch.no_grad():
        model.scorer.bias[2] += 5  # inside, everywhere
    for words, _ in DATA:
        tags = model(**model.collate([model.features(words)]))["tags"]
        named = [labels[tag] for tag in tags[0].tolist() if tag >= 0]
        assert not violations(named, scheme)


def test_spans_of_a_text_have_offsets_and_exact_probabilities() -> None:
    model = classifier()
    with torch.no_grad():
        model.scorer.weight.mul_(20)
    text = "  Ann Lee, sings! " * 5
    spans = model.predict(text)
    assert spans and all(text[span.start : span.end] == span.text for span in spans)
    words = ["Ann", "Lee", ",", "sings", "!"] * 5
    chain = model.crf.distribution(model.scorer(model.encoder([words])))
    for span in spans:
        places = [match for match in range(25) if _place(text, words, match) == span.start]
        n = len(span.text.replace(",", " ,").replace("!", " !").split())
        expected = chain.span_probability(places[0], places[0] + n, "PER", tags=LABELS, scheme="IOB2").item()
        assert span.probability == pytest.approx(expected, rel=1e-4)
    joined = model.predict(["Ann", "Lee", "sings"])
    assert all("Ann Lee sings"[span.start : span.end] == span.text for span in joined)
    assert model.predict("") == [] and model.predict([]) == []
    plain = classifier(labels=["N", "V"], scheme="plain").predict("Ann sings")
    assert [span.text for span in plain] == ["Ann", "sings"] and all(0.5 <= span.probability <= 1 for span in plain)


WORDS = [
    "Jürgen",
    "Müller",
    "👩‍👩‍👧",
    "\u200b",
    "grüßt",
    "मुंबई",
    "北",
    "京",
    "!",
]  # the tokenizer drops the zero-width space


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_text_in_any_script_against_every_tag_sequence(form: Any) -> None:
    """Words keep their marks, and a span its exact probability, whatever the tokenizer makes of them."""
    from tokenizers import normalizers

    model = classifier()
    rules = model.encoder.subwords.tokenizer.backend_tokenizer
    rules.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=True)
    assert model.encoder.subwords.split(["\u200b"]) == ([rules.token_to_id("[UNK]")], [0])
    with torch.no_grad():
        model.scorer.weight.mul_(30)
        model.crf.transitions.mul_(3)
    words = [unicodedata.normalize(form, word) for word in WORDS]
    text = "  {} {} {}\t{}\n{} {} {}{}{} ".format(*words)
    spans = model.predict(text)
    assert spans and all(text[span.start : span.end] == span.text for span in spans)
    weights = _weight_of_each_sequence(model, words)
    best = max(weights, key=weights.__getitem__)
    runs = [set(_spans(sequence)) for sequence in weights]
    for span, (first, last) in zip(spans, _spans(best), strict=True):
        assert "".join(span.text.split()) == "".join("".join(words[first:last]).split())
        inside = sum(weight for each, weight in zip(runs, weights.values(), strict=True) if (first, last) in each)
        assert span.probability == pytest.approx(inside / sum(weights.values()), rel=1e-4)


def _weight_of_each_sequence(model: TokenClassifierWithCRF, words: list[str]) -> dict[tuple[int, ...], float]:
    """exp(score) of each legal sequence of O, B-PER, I-PER."""
    with torch.no_grad():
        emissions = model.scorer(model.encoder([words]))[0].double().numpy()
    start, end = (each.detach().double().numpy() for each in (model.crf.start_transitions, model.crf.end_transitions))
    arcs, weights = model.crf.transitions.detach().double().numpy(), {}
    for sequence in itertools.product(range(3), repeat=len(words)):
        if sequence[0] != 2 and (0, 2) not in itertools.pairwise(sequence):
            score = start[sequence[0]] + end[sequence[-1]] + sum(emissions[i, tag] for i, tag in enumerate(sequence))
            weights[sequence] = math.exp(score + sum(arcs[a, b] for a, b in itertools.pairwise(sequence)))
    return weights


def _spans(sequence: tuple[int, ...]) -> list[tuple[int, int]]:
    firsts = [i for i, tag in enumerate(sequence) if tag == 1]
    return [(i, next((j for j in range(i + 1, len(sequence)) if sequence[j] != 2), len(sequence))) for i in firsts]


def test_text_longer_than_the_window_is_read_to_its_end() -> None:
    model = classifier()
    words = ["Ann", "Lee", "sings", "."] * 50  # 600 sub-words, windows of 62
    states = model.encoder([words])
    assert states.shape == (1, 200, 8) and not torch.allclose(states[0, 0], states[0, -4])
    with torch.no_grad():
        model.scorer.weight.copy_(torch.stack([states[0, 3], states[0, 0], states[0, 1]]) * 5)
    text = "".join(f"{word} " for word in words)
    spans = model.predict(text)
    assert spans[-1].start == len(text) - 16 and all(text[span.start : span.end] == span.text for span in spans)


def _place(text: str, words: list[str], i: int) -> int:
    """Where a word starts in a text."""
    at = 0
    for word in words[: i + 1]:
        at = text.index(word, at) + len(word)
    return at - len(words[i])


def test_comes_back_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier(dropout=0.3)
    model.save_pretrained(tmp_path / "m")
    monkeypatch.setattr("socket.socket.connect", None)
    again = TokenClassifierWithCRF.from_pretrained(tmp_path / "m")
    assert (again.labels, again.scheme, again.dropout.p) == (model.labels, "IOB2", 0.3)
    batch = batch_of(model)
    torch.testing.assert_close(again(**batch), model(**batch))
    assert again.predict("Ann Lee sings " * 20) == model.predict("Ann Lee sings " * 20)
    (tmp_path / "m" / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="expected a folder of save_pretrained"):
        TokenClassifierWithCRF.from_pretrained(tmp_path / "m")


def test_a_new_head_over_a_folder_of_a_transformer(tmp_path: Path) -> None:
    bert(len(SPELLING)).save_pretrained(tmp_path)
    tokenizer(SPELLING).save_pretrained(tmp_path)
    model = TokenClassifierWithCRF.from_pretrained(tmp_path, LABELS)
    assert all(module.training for module in model.modules())
    assert model.config.model_type == "bert" and model.crf.tags == tuple(LABELS)
    with pytest.raises(ModelError, match="the head is new; give the names of its tags as labels"):
        TokenClassifierWithCRF.from_pretrained(tmp_path)


def test_what_does_not_fit_is_said() -> None:
    model = classifier()
    with pytest.raises(TrellisworkError, match="expected at most 64 sub-words in a sentence, got 92"):
        model.features(["abc"] * 30)
    with pytest.raises(TrellisworkError, match="expected tags among O, B-PER, I-PER, got B-LOC"):
        model.features(["Ann"], ["B-LOC"])
    with pytest.raises(TrellisworkError, match="expected a tag for each of the 2 words, got 1"):
        model.features(["Ann", "Lee"], ["O"])
    with pytest.raises(TrellisworkError, match="expected word_starts or labels"):
        model(torch.ones(1, 3, dtype=torch.long))


def test_the_trainer_trains_evaluates_and_saves_it(tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments

    model = classifier()
    data = [model.features(words, tags) for words, tags in DATA * 4]

    def accuracy(answer: Any) -> dict[str, float]:
        _, tags = answer.predictions
        known = answer.label_ids != -100
        return {"accuracy": float((tags == answer.label_ids)[known].mean())}

    arguments = TrainingArguments(
        output_dir=str(tmp_path / "run"), num_train_epochs=40, learning_rate=5e-3, per_device_train_batch_size=8,
        report_to=[], disable_tqdm=True, use_cpu=True, save_strategy="no", logging_strategy="no",
    )  # fmt: skip
    trainer = Trainer(
        model, arguments, train_dataset=data, eval_dataset=data, data_collator=model.collate, compute_metrics=accuracy
    )
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_loss"] < before["eval_loss"] and after["eval_accuracy"] > before["eval_accuracy"]
    model.save_pretrained(tmp_path / "m")
    assert TokenClassifierWithCRF.from_pretrained(tmp_path / "m").predict("Ann") == model.eval().predict("Ann")


def test_the_lightning_module_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the guide has it, over a stand-in for the class of lightning, which asks the same two methods."""
    (code,) = [
        block for block in re.findall(r"```py\n(.*?)```", GUIDE.read_text("utf-8"), re.S) if "lightning" in block
    ]
    monkeypatch.setitem(sys.modules, "lightning", SimpleNamespace(LightningModule=torch.nn.Module))
    names: dict[str, Any] = {}
    exec(code, names)
    torch.manual_seed(1)
    module = names["Tagging"](write_bert(tmp_path), LABELS)
    optimizer, losses = module.configure_optimizers(), []
    batch = module.model.collate([module.model.features(*pair) for pair in DATA])
    optimizer.param_groups[0]["lr"] = 0.01
    for i in range(20):
        losses.append(module.training_step(batch, i))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert len(optimizer.param_groups[0]["params"]) == len(list(module.parameters())) and losses[-1] < losses[0] / 2
