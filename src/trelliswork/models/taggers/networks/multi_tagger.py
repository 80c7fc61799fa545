"""Several tasks on one encoder: parts of speech, chunks and entities tagged by heads that share all but the last layer.

>>> tagger = MultiTagger.from_data(train_sentences, tasks=("pos", "chunk"))      # doctest: +SKIP
>>> train(tagger, train_sentences, dev_sentences, out="both")                    # doctest: +SKIP
>>> MultiTagger.load("both").tag([Sentence(("Ann", "sings"))])                   # doctest: +SKIP
[{'pos': ['NNP', 'VBZ'], 'chunk': ['B-NP', 'B-VP']}]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Self, overload

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.base import Answer, Description, Readable, Report, Scores
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import StoredNetwork, network_described
from trelliswork.models.networks.word_network import EncodedSentence
from trelliswork.models.recipe import Material, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.models.taggers.labels import Labels, Pins, labels_described, record_of_labels
from trelliswork.models.taggers.networks.building import stored_labels
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.tagger import Tagger
from trelliswork.models.taggers.networks.tasks import task_names
from trelliswork.models.taggers.networks.word_votes import TaskExplanation
from trelliswork.models.taggers.sentence_tagger import is_one
from trelliswork.runtime.arrays import Float, Int

OF_LABELS = ("labels", "scheme", "data_scheme")  # what each task has for itself
SHARED = ("inputs", "encoder", "input_dropout", "hidden_dropout")


class EncodedTasks(NamedTuple):
    """A sentence as indices, and the right answer of each task."""

    sentence: EncodedSentence
    gold: tuple[Int[Tensor, " n"], ...]

    def __len__(self) -> int:
        return len(self.sentence)


class MultiTagger(StoredNetwork):
    """One encoder, a scorer and a CRF for each task; the loss is the sum over the tasks.

    A sentence brings the tags of the last task as its `tags` and those of the others as its `features`, in order, which
    is how a CoNLL file with the columns word, pos, chunk, entity is read. `heads[task]` is a `Tagger` like any other.

    Collobert et al. (2011), Natural language processing (almost) from scratch.

    Args:
        config: the settings, the same for all tasks.
        features: what is read of words.
        labels: the labels of each task, by its name.
    """

    # [S4, multi-task tagging]
    graph = "chain"
    CONFIG = TaggerConfig
    explains = True

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Mapping[str, Labels]) -> None:
        super().__init__()
        self.config, self.features = config, features
        taggers = {task: Tagger(config, features, its_labels) for task, its_labels in labels.items()}
        self.tasks = tuple(taggers)
        self.first = taggers[self.tasks[0]]
        for tagger in taggers.values():
            for name in SHARED:
                setattr(tagger, name, getattr(self.first, name))
        self._heads = taggers
        self.others = nn.ModuleList(taggers[task] for task in self.tasks[1:])

    @property
    def heads(self) -> dict[str, Tagger]:
        """The tagger of each task; all of them read with the same encoder."""
        return dict(self._heads)

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        tasks: Sequence[str],
        config: TaggerConfig | None = None,
        *,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new model whose vocabularies and labels come from sentences with tags for each of the `tasks`.

        `vectors` and `seed` are as for `Tagger.from_data`.

        Args:
            train: sentences with a column of tags for each task.
            tasks: the names of the tasks, in the order of the columns.
            config: the settings; those of `TaggerConfig()` if None.
            vectors: pretrained vectors, read in addition to the words of the training data.
            seed: what the initial weights depend on.

        Returns:
            The model, with its initial weights.
        """
        if not train:
            raise TrellisworkError("expected tagged sentences to build a tagger from, got none; check the data")
        if not tasks or len(set(tasks)) < len(tasks):
            raise TrellisworkError(f"tasks must be different names, one at least; got {', '.join(tasks) or 'none'}")
        config = replace(config or TaggerConfig(), vector_dim=0 if vectors is None else vectors.dim)
        by_task = [of_tasks(sentence, tasks) for sentence in train]
        labels = {
            task: Labels.from_sentences([each[task] for each in by_task], label_scheme=config.label_scheme)
            for task in tasks
        }
        words = [Sentence(sentence.words) for sentence in train]
        features = TokenFeatures.from_sentences(words, config, () if vectors is None else vectors.words)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = cls(config, features, labels)
        model.first.begin(words, vectors, seed)
        return model

    @classmethod
    def from_material(cls, material: Material, config: TaggerConfig, options: Options, seed: int) -> Self:
        """Return a new model, as the command line asks for it.

        Args:
            material: Sentences to learn from, for each task.
            config: Settings of the network.
            options: What the command line says in addition, such as vectors.
            seed: What the first weights depend on.

        Returns:
            The model, not trained.
        """
        names = task_names(options.get("tasks"), material.format, material.train)
        return cls.from_data(material.train, names, config, vectors=material.files, seed=seed)

    @property
    def n_columns(self) -> int:
        """Number of columns that it learns from in addition to the words and the tags of the last task."""
        return len(self.tasks) - 1

    def encode(self, sentences: Sequence[Sentence], *, with_tags: bool = False) -> list[EncodedTasks]:
        """Return sentences as indices, to be reused from epoch to epoch."""
        encoded = self.first.encode([Sentence(sentence.words) for sentence in sentences])
        if not with_tags:
            return [EncodedTasks(each, ()) for each in encoded]
        return [
            EncodedTasks(each, tuple(torch.tensor(self._heads[task].gold(of)) for task, of in tagged.items()))
            for each, tagged in zip(encoded, (of_tasks(sentence, self.tasks) for sentence in sentences), strict=True)
        ]

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedTasks]) -> Float[Tensor, ""]:
        """Return Σ over the tasks of -log p(tags | words), summed over the batch."""
        # [S4, multi-task tagging]
        encoded = [each if isinstance(each, EncodedTasks) else self.encode([each], with_tags=True)[0] for each in batch]
        tokens = self.first.token_batch([each.sentence for each in encoded])
        vectors = self.first.encode_tokens(tokens)
        total = vectors.new_zeros(())
        for i, task in enumerate(self.tasks):
            gold = pad_sequence([each.gold[i] for each in encoded], batch_first=True).to(vectors.device)
            total = total + self._heads[task].loss_of_vectors(vectors, gold, tokens)
        return total

    @overload
    def tag(  # type: ignore[overload-overlap]  # a text is a sequence of texts too
        self, sentences: str | Sequence[str] | Sentence
    ) -> dict[str, list[str]]: ...

    @overload
    def tag(self, sentences: Sequence[Sentence | Sequence[str]]) -> list[dict[str, list[str]]]: ...

    def tag(
        self, sentences: str | Sentence | Sequence[str] | Sequence[Sentence | Sequence[str]]
    ) -> dict[str, list[str]] | list[dict[str, list[str]]]:
        """Return the best tags of each task for each sentence; raw text or one sentence gives one answer."""
        answers = self._tag_all(self.sentences_of(sentences))
        if not is_one(sentences):
            return answers
        return {task: [tag for each in answers for tag in each[task]] for task in self.tasks}

    def _tag_all(self, sentences: Sequence[Sentence]) -> list[dict[str, list[str]]]:
        bare = [Sentence(sentence.words) for sentence in sentences]
        by_task = {task: head.tag(bare) for task, head in self._heads.items()}
        return [{task: tags[i] for task, tags in by_task.items()} for i in range(len(sentences))]

    def predict(
        self,
        inputs: str | Sentence | Sequence[str] | Sequence[Sentence | Sequence[str]],
        *,
        top_k: int = 1,
        pins: Mapping[str, Sequence[Pins]] | None = None,
        confidence: bool = True,
        threshold: float | None = None,
    ) -> list[Answer]:
        """Return the answers of all tasks; given the words they are independent. `pins` are by task.

        Args:
            inputs: raw text, one sentence, or several.
            top_k: how many tag sequences of each task to return; 0 for none.
            pins: by task, for each sentence the tags that are known.
            confidence: whether tokens and spans have their probabilities.
            threshold: the least probability of a span; None takes the most probable tags.

        Returns:
            An answer for each sentence, with one for each task in `tasks`.
        """
        bare = [replace(sentence, tags=None, features=()) for sentence in self.sentences_of(inputs)]
        known = pins or {}
        by_task = {
            task: head.predict(bare, top_k=top_k, pins=known.get(task), confidence=confidence, threshold=threshold)
            for task, head in self._heads.items()
        }
        return [_together({task: answers[i] for task, answers in by_task.items()}) for i in range(len(bare))]

    def explain(self, sentences: Readable) -> list[TaskExplanation]:
        """Return the tags of each task, the words that they are due to, and the alternatives."""
        bare = [replace(sentence, tags=None, features=()) for sentence in self.sentences_of(sentences)]
        by_task = {task: head.explain(bare) for task, head in self._heads.items()}
        return [TaskExplanation({task: each[i] for task, each in by_task.items()}) for i in range(len(bare))]

    def evaluate(self, sentences: Sequence[Sentence]) -> Scores:
        """Return scores of each task, and their mean as the one that counts."""
        gold = self.gold_by_head(sentences)
        scores = {task: head.evaluate(gold[task]) for task, head in self._heads.items()}
        mean = sum(each["score"] for each in scores.values()) / len(scores)
        return {"metric": "mean over tasks", "score": mean, "tasks": scores}

    # Disk

    def stored_config(self) -> dict[str, object]:
        of_first = {name: value for name, value in self.first.stored_config().items() if name not in OF_LABELS}
        return of_first | {"tasks": {task: stored_labels(head.labels) for task, head in self._heads.items()}}

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        settings = TaggerConfig.from_dict(config["settings"])
        labels = {task: Labels.from_stored(**each) for task, each in config["tasks"].items()}
        return cls(settings, TokenFeatures.from_stored(settings, config), labels)

    def stored_weights(self) -> dict[str, Tensor]:
        state = self.state_dict()
        return {name: state[name] for name in self._own_names()}

    def restore_weights(self, weights: Mapping[str, Tensor]) -> None:
        if set(weights) != set(self._own_names()):
            raise TrellisworkError("other weights than those of the tasks")
        self.load_state_dict(dict(weights), strict=False)

    # What it is

    def gold_by_head(self, gold: Sequence[Sentence]) -> dict[str, list[Sentence]]:
        """Return the sentences of each task, with its tags."""
        by_task = [of_tasks(sentence, self.tasks) for sentence in gold]
        return {task: [each[task] for each in by_task] for task in self.tasks}

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return a report of each task."""
        by_task = self.gold_by_head(gold)
        reports = {task: head.report(by_task[task], threshold=threshold) for task, head in self._heads.items()}
        text = "\n\n".join(f"{task}:\n{each.text}" for task, each in reports.items())
        record = {"tasks": {task: each.record for task, each in reports.items()}}
        return Report(text, record, {task: each.examined[""] for task, each in reports.items()})

    def knows(self, word: str) -> bool:
        return self.first.knows(word)

    def readable_gold(self, gold: Sequence[Sentence], scheme: str | None = None) -> tuple[list[Sentence], list[str]]:
        by_task = self.gold_by_head(gold)
        readable = {task: head.readable_gold(by_task[task], scheme) for task, head in self._heads.items()}
        columns = zip(*([each.tags or () for each in sentences] for sentences, _ in readable.values()), strict=True)
        sentences = [replace(each, features=tags[:-1], tags=tags[-1]) for each, tags in zip(gold, columns, strict=True)]
        return sentences, [note for _, notes in readable.values() for note in notes]

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        of_train, of_dev = self.gold_by_head(train), self.gold_by_head(dev)
        return [note for task, head in self._heads.items() for note in head.notes(of_train[task], of_dev[task])]

    @property
    def size(self) -> str:
        labels = [f"{len(head.labels.vocabulary)} labels of {task}" for task, head in self._heads.items()]
        return f"{', '.join(labels)}, {self.n_parameters:,} parameters"

    def describe(self, top: int = 20) -> Description:
        structure = f"{Tagger.STRUCTURE} for each of {', '.join(self.tasks)}"
        labels = {
            title: row
            for task, head in self._heads.items()
            for title, row in labels_described(head.labels, task).items()
        }
        record = {"tasks": {task: record_of_labels(head.labels) for task, head in self._heads.items()}}
        scored = ((task, arc) for task, head in self._heads.items() for arc in head.transitions())
        arcs = sorted(((score, f"{task}: {a}", b) for task, (score, a, b) in scored), reverse=True)
        return network_described(self, structure, labels, record, arcs)

    def _own_names(self) -> list[str]:
        """Return the names in the state dict, without the second names of what is shared."""
        return [
            name for name in self.state_dict() if not name.startswith("others.") or name.split(".")[2] not in SHARED
        ]


def of_tasks(sentence: Sentence, tasks: Sequence[str]) -> dict[str, Sentence]:
    """Return a sentence for each task, without columns: the columns and then the tags are the tags of the tasks.

    >>> of_tasks(Sentence(("Ann",), ("B-NP",), (("NNP",),)), ("pos", "chunk"))["pos"].tags
    ('NNP',)
    """
    columns = [*sentence.features, *([] if sentence.tags is None else [sentence.tags])]
    if len(columns) != len(tasks):
        raise DataError(
            sentence.file or "sentence",
            f"expected {len(tasks)} columns of tags ({', '.join(tasks)}) in addition to the word, got {len(columns)}; "
            "choose the columns to read",
            line=sentence.line,
        )
    return {
        task: Sentence(sentence.words, column, line=sentence.line, file=sentence.file, lines=sentence.lines)
        for task, column in zip(tasks, columns, strict=True)
    }


def _together(answers: Mapping[str, Answer]) -> Answer:
    """Return one answer of all tasks: its probability is the product of theirs, if all are known."""
    known = [answer.probability for answer in answers.values() if answer.probability is not None]
    probability = math.prod(known) if len(known) == len(answers) else None
    first, values = next(iter(answers.values())), {task: each.value for task, each in answers.items()}
    return Answer(values, probability, first.inputs, tasks=dict(answers), offsets=first.offsets)
