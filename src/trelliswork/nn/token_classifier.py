"""A CRF over a transformer of Hugging Face, for those who train with `transformers.Trainer`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import regex
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.errors import ModelError, ScoreError, TrellisworkError
from trelliswork.nn.crf import CRF, UNKNOWN
from trelliswork.nn.encoders.pretrained import PretrainedEncoder, config_of, import_transformers
from trelliswork.nn.encoders.subwords import Subwords
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.tags.schemes import spans_of

HEAD, WEIGHTS = "token_classifier.json", "model.safetensors"
# Letters with their marks, or one grapheme: a sign, an emoji, a character of a script that writes no blanks.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(rf"[[\p{{L}}\p{{M}}\p{{N}}_\u00AD\u200C\u200D\u2060]--[{_UNSPACED}]]+|(?!\s)\X", regex.V1)


class TaggedSpan(NamedTuple):
    """A span of a text: its characters, label and exact probability under the model."""

    start: int
    end: int
    label: str
    text: str
    probability: float


class TokenClassifierWithCRF(nn.Module):
    """Token classification with a linear-chain CRF in the place of a softmax for each token.

    Tags are of words: a word is read from its first sub-word, and the chain runs over the words alone, so that what a
    scheme forbids is forbidden between words, whatever their number of sub-words.

    Args:
        encoder: A transformer, such as `AutoModel` returns.
        tokenizer: Its fast tokenizer.
        labels: Names of the tags, by their numbers.
        scheme: Their scheme: IOB1, IOB2, IOBES, or plain for tags that may follow each other in any order.
        dropout: Share of the dimensions of word vectors that are dropped in training.

        >>> model = TokenClassifierWithCRF.from_pretrained("bert-base-cased", labels=labels)   # doctest: +SKIP
        >>> data = [model.features(words, tags) for words, tags in sentences]                  # doctest: +SKIP
        >>> Trainer(model, arguments, train_dataset=data, data_collator=model.collate).train() # doctest: +SKIP
        >>> model.predict("Ann Lee sings .")                                                   # doctest: +SKIP
        [TaggedSpan(start=0, end=7, label='PER', text='Ann Lee', probability=0.98)]

    Souza, Nogueira and Lotufo (2019), Portuguese named entity recognition using BERT-CRF, for the use of the first
    sub-word.
    """

    def __init__(
        self,
        encoder: nn.Module,
        tokenizer: object,
        labels: Sequence[str],
        *,
        scheme: str = "IOB2",
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.encoder = PretrainedEncoder(encoder, tokenizer)
        self.labels, self.scheme = tuple(labels), scheme
        self.dropout = nn.Dropout(dropout)
        self.scorer = nn.Linear(self.encoder.dim, len(labels))
        self.crf = CRF.from_tags(labels, scheme=scheme, batch_first=True)

    # Examples

    def features(self, words: Sequence[str], tags: Sequence[str] | None = None) -> dict[str, list[int]]:
        """Return a sentence as the model reads it.

        Args:
            words: Its words.
            tags: A tag for each word, or None.

        Returns:
            Lists of the length of the sentence in sub-words with special tokens: `input_ids`, `attention_mask`,
            `word_starts` (1 at the first sub-word of each word) and, with tags, `labels` (-100 where no word starts).
        """
        subwords = self.encoder.subwords
        pieces, firsts = subwords.split(words)
        ids = subwords.with_special_tokens(pieces)
        if len(ids) > self.encoder.longest:
            problem = f"expected at most {self.encoder.longest} sub-words in a sentence, got {len(ids)}"
            raise TrellisworkError(f"{problem}; split it, or train with trelliswork train --pretrained")
        starts = [0] * len(ids)
        for first in firsts:
            starts[first + subwords.n_before] = 1
        example = {"input_ids": ids, "attention_mask": [1] * len(ids), "word_starts": starts}
        if tags is None:
            return example
        if len(tags) != len(words):
            raise ScoreError(f"expected a tag for each of the {len(words)} words, got {len(tags)}; check the data")
        numbers = iter(self._numbers(tags))
        return {**example, "labels": [next(numbers) if start else UNKNOWN for start in starts]}

    def _numbers(self, tags: Sequence[str]) -> list[int]:
        if unknown := set(tags) - set(self.labels):
            known = ", ".join(self.labels)
            raise ScoreError(f"expected tags among {known}, got {', '.join(sorted(unknown))}; add them to labels")
        return [self.labels.index(tag) for tag in tags]

    def collate(self, examples: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, Tensor]:
        """Return examples as one batch, filled up on the right; the `data_collator` of a Trainer."""
        filling = {"input_ids": self.encoder.subwords.padding, "labels": UNKNOWN}
        return {
            name: pad_sequence(
                [torch.tensor(example[name]) for example in examples],
                batch_first=True,
                padding_value=filling.get(name, 0),
            )
            for name in examples[0]
        }

    # The network

    def forward(
        self,
        input_ids: Int[Tensor, "batch m"],
        attention_mask: Int[Tensor, "batch m"] | None = None,
        word_starts: Int[Tensor, "batch m"] | None = None,
        labels: Int[Tensor, "batch m"] | None = None,
    ) -> dict[str, Tensor]:
        """Score tags.

        Args:
            input_ids: Sub-words.
            attention_mask: 0 at padding.
            word_starts: 1 at the first sub-word of each word; by default where labels are not -100.
            labels: Numbers of tags, -100 where no word starts.

        Returns:
            "loss" if there are labels: -log p(tags | words), the mean over words. "logits" [batch, m, c], the scores
            of each tag before the chain. In evaluation "tags" [batch, m], the best sequence, -100 where no word starts.
        """
        if word_starts is not None:
            starts = word_starts.bool()
        elif labels is not None:
            starts = torch.ne(labels, UNKNOWN)
        else:
            raise ScoreError("expected word_starts or labels, which say where words start; see features(words)")
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        states = self.encoder.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        logits = self.scorer(self.dropout(states))
        outputs = {"logits": logits}
        full = starts.any(1)  # rows with words: a chain of none has no tags
        if labels is not None:
            log_likelihood = self.crf(logits[full], labels[full], starts[full]) if full.any() else logits.sum() * 0
            outputs = {"loss": -log_likelihood / starts.sum().clamp(min=1), **outputs}
        if not self.training:
            outputs["tags"] = self._best(logits.detach(), starts, full)
        return outputs

    def _best(
        self, logits: Float[Tensor, "batch m c"], starts: Bool[Tensor, "batch m"], full: Bool[Tensor, " batch"]
    ) -> Int[Tensor, "batch m"]:
        tags = torch.full(starts.shape, UNKNOWN, device=logits.device)
        if full.any():
            rows = self.crf.decode(logits[full], starts[full])
            tags[starts] = torch.tensor([tag for row in rows for tag in row], device=logits.device)
        return tags

    @property
    def config(self) -> object:
        """The settings of the transformer, where tools of Hugging Face look for them."""
        return config_of(self.encoder.model)

    # Answers

    def predict(self, text: str | Sequence[str]) -> list[TaggedSpan]:
        """Return the spans of the best tags, with the exact probability of each.

        Args:
            text: A text, which is split at blanks and around punctuation (each character of Chinese or Thai is a word),
                or words. Of any length: what is longer than the window of the transformer is read in overlapping
                windows.

        Returns:
            Spans in order; offsets are in characters, those of words joined by blanks if words are given.
        """
        whole = text if isinstance(text, str) else " ".join(text)
        offsets = _offsets_of_words(text) if isinstance(text, str) else _offsets_of_joined(text)
        if not offsets:
            return []
        with self._evaluating():
            chain = self.crf.distribution(self.scorer(self.encoder([[whole[slice(*each)] for each in offsets]])))
            best = chain.argmax[0].tolist()
            tags = [self.labels[number] for number in best]
            if self.scheme.lower() == "plain":
                spans = [(i, i + 1, tag) for i, tag in enumerate(tags)]
                probabilities = [chain.marginals[0, i, number].item() for i, number in enumerate(best)]
            else:
                spans = spans_of(tags, self.scheme)
                (of_row,) = chain.span_probabilities([spans], tags=self.labels, scheme=self.scheme)
                probabilities = of_row.tolist()
        places = [(offsets[first][0], offsets[last - 1][1], label) for first, last, label in spans]
        return [
            TaggedSpan(start, end, label, whole[start:end], probability)
            for (start, end, label), probability in zip(places, probabilities, strict=True)
        ]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(was_training)

    # Disk

    def save_pretrained(self, directory: str | Path) -> None:
        """Write config.json and the tokenizer as transformers do, the weights, and the labels of the head."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        config_of(self.encoder.model).save_pretrained(folder)
        self.encoder.subwords.tokenizer.save_pretrained(folder)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        safetensors.torch.save_file(weights, folder / WEIGHTS, {"format": "pt"})
        head = {
            "labels": self.labels, "scheme": self.scheme, "dropout": self.dropout.p,
            "tokenizer": {name: value for name, value in self.encoder.subwords.to_dict().items() if name != "rules"},
            "longest": self.encoder.longest,
        }  # fmt: skip
        (folder / HEAD).write_text(json.dumps(head, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(
        cls, name: str | Path, labels: Sequence[str] = (), *, scheme: str = "IOB2", dropout: float = 0.1
    ) -> Self:
        """Load what `save_pretrained` has written, for evaluation, or begin with a transformer and a new head, for
        training.

        Args:
            name: A folder, or the name of a transformer on the hub.
            labels: Names of the tags; needed for a new head.
            scheme: As for the class, for a new head.
            dropout: As for the class, for a new head.
        """
        if (Path(name) / HEAD).is_file():
            return cls._loaded(Path(name))
        if not labels:
            raise ModelError(f"{name}: holds no {HEAD}, so the head is new; give the names of its tags as labels")
        pretrained = PretrainedEncoder.from_name(str(name))
        classifier = cls(pretrained.model, pretrained.subwords.tokenizer, labels, scheme=scheme, dropout=dropout)
        return classifier.train()  # transformers leaves its part in evaluation, and lightning would keep it so

    @classmethod
    def _loaded(cls, folder: Path) -> Self:
        transformers = import_transformers()
        try:
            head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            rules = (folder / "tokenizer.json").read_text(encoding="utf-8")
            tokenizer = Subwords.tokenizer_from({**head["tokenizer"], "rules": rules})
            tokenizer.model_max_length = head["longest"]
            model = transformers.AutoModel.from_config(config, trust_remote_code=False).float()
            classifier = cls(model, tokenizer, head["labels"], scheme=head["scheme"], dropout=head["dropout"])
            classifier.load_state_dict(safetensors.torch.load_file(folder / WEIGHTS))
        except (OSError, KeyError, TypeError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[-1].strip()
            raise ModelError(f"{folder}: expected a folder of save_pretrained ({reason}); copy it again") from error
        return classifier.eval()


def _offsets_of_words(text: str) -> list[tuple[int, int]]:
    """Return where words and marks of punctuation are.

    >>> _offsets_of_words("Ann, sing 北京")
    [(0, 3), (3, 4), (5, 9), (10, 11), (11, 12)]
    """
    return [match.span() for match in _WORD.finditer(text)]


def _offsets_of_joined(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return where words are when blanks join them."""
    offsets, start = [], 0
    for word in words:
        offsets.append((start, start + len(word)))
        start += len(word) + 1
    return offsets
