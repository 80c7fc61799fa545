"""Steps around the learning that all ways of training share: the folder, the data, notes about them, the result."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from trelliswork.cli.compiling import announce_compiling
from trelliswork.cli.config_file import CONFIG_FILE
from trelliswork.cli.early import AUTO, tokeniser_folder
from trelliswork.cli.gold_files import GOLD_FILES, GoldFiles
from trelliswork.cli.inputs import format_to_store, layout
from trelliswork.cli.messages import say
from trelliswork.data import Choices, ColumnFormat, CsvFormat, Sentence, atomic_write, file_kind, infer_format
from trelliswork.data.choices import CONLLU_NAMES
from trelliswork.data.pairs import PairColumns
from trelliswork.data.readers import open_untagged, read_pretokenised
from trelliswork.data.spilled import keep_sentences
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import count
from trelliswork.models.catalogue import TOKENISER, entry_of
from trelliswork.models.lemmatiser import Lemmatiser, is_lemma, words_with_lemmas
from trelliswork.models.loading import FolderTokeniser, tokeniser_in
from trelliswork.models.recipe import Material, Note, Options
from trelliswork.models.storage import CONFIG
from trelliswork.models.taggers.column_taggers import predicted_columns
from trelliswork.models.taggers.networks.tasks import MULTI_TASK
from trelliswork.models.tokenisers.recipe import hold_out as hold_out_texts
from trelliswork.models.tokenisers.recipe import learn_from_tokens, learn_tokeniser, spaced_documents
from trelliswork.reading import numbered_lines, open_text
from trelliswork.runtime.scratch import Scratch
from trelliswork.text import Document
from trelliswork.text.spacing import is_unspaced

PARTS_OF_SPEECH = tuple(CONLLU_NAMES.index(name) + 1 for name in ("UPOS", "XPOS"))
HELD_OUT = 10  # one sentence in ten is held out when there is no dev file
N_EXAMPLES, LOOKED_AT = 3, 1000  # examples that a model keeps, and sentences that they are chosen from
LEAST_WORDS, LONGEST_EXAMPLE = 4, 80  # words and characters of an example


@contextmanager
def config_first(folder: Path, text: str) -> Iterator[None]:
    """Write the settings of a run before what is done inside, so that it can be done again after a kill.

    The folder must be locked. An error that leaves it without a new model puts back what was there.
    """
    path = folder / CONFIG_FILE
    before, model_before = _content_of(path), _content_of(folder / CONFIG)
    _write(path, text.encode("utf-8"))
    try:
        yield
    except Exception:
        if _content_of(folder / CONFIG) == model_before:
            _write(path, before)
        raise


def _write(path: Path, content: bytes | None) -> None:
    """Without content, the file goes."""
    if content is not None:
        with atomic_write(path, "wb") as file:
            file.write(content)
        return
    path.unlink(missing_ok=True)


def _content_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def read_data(options: Options, choices: Choices, files: GoldFiles) -> Material:
    """Read training and dev sentences, in one layout; without a dev file the last part of the training file.

    Args:
        options: Options of the command.
        choices: Columns that the user has named.
        files: How files of this kind are read.

    Returns:
        The training material.
    """
    train_file, dev_file, quiet = options["train"], options["dev"], options["quiet"]
    given = given_tokeniser(options)
    choices = choices if given is None else replace(choices, tokeniser=given)
    kind = file_kind(train_file)
    format, stream = files.open(train_file, choices, kind)
    if choices.detail != "labels" and (format is not None or kind not in ("brackets", "conll")):
        raise DataError(train_file, "--detail is for trees in brackets, got a file without; leave it out")
    scratch = Scratch.at(options.get("scratch"))
    train = keep_sentences(stream, scratch)
    again = columns_of(format, choices)
    if dev_file is not None:
        dev = list(files.open(dev_file, again, file_kind(dev_file))[1])
    else:
        train, dev = hold_out(train, train_file)
    least = options.get("min_tag_count", 1)
    n_all, train = len(train), without_rare_tags(train, least, options, scratch)
    say(f"{train_file}: {layout(format, kind)}", quiet=quiet)
    if dev_file is None:
        say(f"dev: the last {len(dev):,} of the sentences (10%), as there is no --dev", quiet=quiet)
    if n_all > len(train):
        gone = count(n_all - len(train), "sentence")
        say(f"left out of train: {gone} with a tag seen fewer than {least} times", quiet=quiet)
    predicted = bool(options.get("predict_columns"))
    if format is not None and format.feature_columns and options["model"] != MULTI_TASK:
        say(_columns_note(format, predicted), quiet=quiet)
    say(f"train: {files.size(train)}; dev: {files.size(dev)}", quiet=quiet)
    for note in files.notes(train):
        say(note)
    scheme = choices.scheme or (format.scheme if format is not None else None)
    about = _provenance(options, train, dev, format, choices)
    tokeniser: Any = given  # a tokeniser, or a stand-in that reads it when it is first used
    if given is None and files.tells_tokens and kind != "crfsuite":
        tokeniser = learned_tokeniser(options, format, train)
    listed = cast("list[Sentence]", train)  # on disk, it is a sequence of which nobody changes anything
    lemmatiser = _learned_lemmas(listed, dev, format, options)
    material = Material(listed, dev, format, scheme, again, about, tokeniser=tokeniser, lemmatiser=lemmatiser)
    return _with_predicted_columns(material, options) if predicted else material


def _learned_lemmas(
    train: Sequence[Sentence], dev: Sequence[Sentence], format: ColumnFormat | None, options: Options
) -> Lemmatiser | None:
    """Learn lemmas, if the file has some and the model predicts the parts of speech that they depend on."""
    if format is None or not format.conllu or options.get("partial") or options["model"] == MULTI_TASK:
        return None
    with_tags = options.get("tags") not in (None, "none")
    if not (with_tags if format.head_column is not None else format.tag_column in PARTS_OF_SPEECH):
        return None
    learned = Lemmatiser.fit(words_with_lemmas(train))
    if not learned.n_words:
        return None
    known = [each for each in words_with_lemmas(dev) if is_lemma(each[2], each[0])]
    lemmas = learned.lemmas([word for word, _, _ in known], [tag for _, tag, _ in known])
    n_right = sum(lemma == each[2] for lemma, each in zip(lemmas, known, strict=True))
    share = f"; right on dev with gold tags: {100 * n_right / len(known):.2f}%" if known else ""
    say(f"lemmas: {learned.size} learned{share}", quiet=options["quiet"])
    return learned


def read_texts(options: Options, choices: Choices) -> Material:
    """Return texts whose tokens are known, for a tokeniser; without a dev file the last part of the training file."""
    train_file, dev_file, quiet = options["train"], options["dev"], options["quiet"]
    note = partial(say, quiet=quiet)
    if dev_file is None and options["raw_dev"] is not None:
        raise TrellisworkError("--raw-dev is the raw text of --dev, which is not given; leave it out, or add --dev")
    train = known_texts(train_file, options["raw"], choices, note)
    if dev_file is not None:
        dev = known_texts(dev_file, options["raw_dev"], choices, note)
    else:
        train, dev = hold_out_texts(train, train_file)
        note("dev: the last 10%, as there is no --dev")
    learned, held_out = ([sentence for text in texts for sentence in text.sentences] for texts in (train, dev))
    about = _provenance(options, learned, held_out, None, choices)
    return Material(train, dev, None, None, choices, about)  # type: ignore[arg-type]  # texts, as such a recipe reads


def read_plain_texts(options: Options, choices: Choices) -> Material:
    """Return the files that a language model learns from, which its recipe reads as a stream, and the dev sentences."""
    reading, files = choices.pairs, [options["train"], *(options.get("more") or ())]
    tokeniser = given_tokeniser(options)
    reading = reading if tokeniser is None else replace(reading, tokeniser=tokeniser)
    judged_by, dev = GOLD_FILES[named(entry_of(options["model"]).home).learns_from], options["dev"]
    dev = [] if dev is None else list(judged_by.open(dev, replace(choices, pairs=reading), "text")[1])
    about = {"date": datetime.date.today().isoformat(), "train": ", ".join(Path(each).name for each in files)}
    about |= {"dev": Path(options["dev"]).name} if dev else {}
    choices = replace(choices, pairs=reading)
    return Material(cast("list[Sentence]", files), dev, None, None, choices, about, tokeniser=tokeniser)


def _with_predicted_columns(material: Material, options: Options) -> Material:
    """Return columns as taggers guess them, which are kept with the model."""
    if options["model"] == MULTI_TASK or not material.train[0].features:
        problem = "--predict-columns: expected columns in addition to the words and the tags, got none"
        raise DataError(options["train"], f"{problem}; name them with --feature-columns, or leave it out")
    quiet = options["quiet"]
    announce_compiling(quiet=quiet)
    train, dev, taggers = predicted_columns(material.train, material.dev, partial(say, quiet=quiet))
    return material._replace(train=train, dev=dev, column_taggers=taggers)


def _columns_note(format: ColumnFormat, predicted: bool) -> str:
    """Return the note that the model needs more than words, or predicts it."""
    names = format.names if isinstance(format, CsvFormat) else CONLLU_NAMES if format.conllu else ()
    shown = ", ".join(names[i - 1] if names else str(i) for i in format.feature_columns)
    columns = f"column{'s' if len(format.feature_columns) > 1 else ''} {shown}"
    if predicted:
        return f"the model reads {columns} in addition to the words, and learns to predict what new text lacks of them"
    return (
        f"note: the model reads {columns} in addition to the words, and new text must have them; "
        "add --feature-columns none to learn from the words alone, or --predict-columns to have them predicted"
    )


def columns_of(format: ColumnFormat | None, choices: Choices) -> Choices:
    """Return the layout of the training file as choices for another; only the delimiter may differ."""
    if format is None:
        return choices
    if isinstance(format, CsvFormat | PairColumns):
        columns = format.choices()
    else:
        columns = Choices(None, format.word_column, format.tag_column, format.feature_columns, format.scheme)
    return replace(columns, delimiter=choices.delimiter, fields=choices.fields, tokeniser=choices.tokeniser)


def hold_out(sentences: Sequence[Sentence], file: str) -> tuple[Sequence[Sentence], list[Sentence]]:
    """Return all but the last tenth, and the last tenth."""
    if len(sentences) < 2:
        raise DataError(file, "expected at least 2 sentences to hold one out; add sentences or name a --dev file")
    n_dev = max(1, len(sentences) // HELD_OUT)
    return sentences[:-n_dev], list(sentences[-n_dev:])


def without_rare_tags(
    sentences: Sequence[Sentence], least: int, options: Options, scratch: Scratch
) -> Sequence[Sentence]:
    """Return the sentences all of whose tags occur at least `least` times, counted before any is left out.

    Whole sentences go: an unknown tag inside of one is more than most models can learn from.

    Args:
        sentences: Training sentences.
        least: How often a tag must occur.
        options: Options of the command, for the sentence of an error.
        scratch: Where large arrays lie.

    Returns:
        The sentences that stay.
    """
    if least < 1:
        raise TrellisworkError(f"--min-tag-count must be at least 1; got {least}")
    if least == 1:
        return sentences
    if options.get("partial") or options["model"] == MULTI_TASK:
        unfit = "--partial" if options.get("partial") else f"--model {MULTI_TASK}"
        raise TrellisworkError(f"--min-tag-count needs one known tag for each token, got {unfit}; leave one out")
    seen = Counter(tag for sentence in sentences for tag in sentence.tags or ())
    kept = keep_sentences((each for each in sentences if all(seen[tag] >= least for tag in each.tags or ())), scratch)
    if not kept:
        problem = f"expected sentences whose tags are seen at least {least} times, got none"
        raise DataError(options["train"], f"{problem}; lower --min-tag-count")
    return kept


def _examples(train: Sequence[object]) -> list[str]:
    """Return a few short inputs to try the model with, those with the most different labels first."""
    n_labels: dict[str, int] = {}
    for each in itertools.islice(train, LOOKED_AT):
        words = getattr(each, "words", ())
        text = getattr(each, "text", "") or " ".join(words)
        is_short = len(text) <= LONGEST_EXAMPLE and (len(words) >= LEAST_WORDS or getattr(each, "target", None))
        if is_short and text.isprintable() and "|" not in text:  # the model card has them in a table
            n_labels.setdefault(text, len(set(getattr(each, "tags", None) or ())))
    return sorted(n_labels, key=lambda text: -n_labels[text])[:N_EXAMPLES]


def _provenance(
    options: Options, train: Sequence[Sized], dev: Sequence[Sized], format: ColumnFormat | None, choices: Choices
) -> dict[str, object]:
    """Describe the data for the model to keep: sizes, date and the layout of the columns."""
    fields = choices.fields
    return {
        "date": datetime.date.today().isoformat(),
        "train": Path(options["train"]).name,
        "dev": Path(options["dev"]).name if options["dev"] is not None else "last 10% of train",
        "train_sentences": len(train),
        "train_tokens": sum(map(len, train)),
        "dev_sentences": len(dev),
        "format": format_to_store(format),
        "examples": _examples(train),
        **({"fields": fields.given()} if fields.given() else {}),
        **({"detail": choices.detail} if choices.detail != "labels" else {}),
    }


# The tokeniser that `trelliswork train` keeps in the folder of a model.

MOST_SENTENCES = 200_000  # that a tokeniser is learned from
SAMPLE = 2000  # lines that tell how tokens are written


def known_texts(path: str, raw: str | None, choices: Choices, note: Note) -> list[Document]:
    """Return the texts of a file of tokens: as CoNLL-U spells them, or as the file of raw text has them.

    Args:
        path: File of tokens.
        raw: File of the raw text; None if the tokens say it.
        choices: Columns that the user has named.
        note: Called with sentences that are worth telling.

    Returns:
        The texts with their tokens.
    """
    format = (
        None if file_kind(path) != "conll" or _is_pretokenised(path) else infer_format(path, choices, with_tags=False)
    )
    if format is not None and format.conllu:
        if raw is not None:
            raise DataError(path, f"CoNLL-U contains its text, got --raw {raw} as well; leave it out")
        documents = spaced_documents(path)
        if documents is not None:
            return documents
    if raw is None:
        problem = "expected CoNLL-U in which SpaceAfter=No says where words touch, got none"
        raise DataError(path, f"{problem}; give the raw text too, with --raw (of --dev: --raw-dev)")
    if format is None and file_kind(path) == "conll":
        note(f"{path}: a sentence on each line, white space between tokens")
        sentences = read_pretokenised(path)
    else:
        sentences = open_untagged(path, file_kind(path), choices)[1]
    with open_text(raw) as lines:
        text = "".join(f"{line}\n" for line in lines)
    return [Document.aligned(text, (sentence.words for sentence in sentences), raw)]


def _is_pretokenised(path: str) -> bool:
    """Return whether lines have different numbers of tokens, so that they are sentences."""
    sample = [line for _, line in islice(numbered_lines(path), SAMPLE) if line.strip() and not line.startswith("#")]
    return not any("\t" in line for line in sample) and len({len(line.split()) for line in sample}) > 1


def given_tokeniser(options: Options) -> FolderTokeniser | None:
    """Return the one in the folder that --tokeniser names, which is a tokeniser or keeps one."""
    folder = tokeniser_folder(options)
    if folder is None:
        return None
    tokeniser = FolderTokeniser(folder)
    tokeniser.tokenise("")  # damage is reported before training
    return tokeniser


def learned_tokeniser(options: Options, format: ColumnFormat | None, train: Sequence[Sentence]) -> object:
    """Return one that is learned from the training data, for text to be cut as they are; on --resume, that of the run.

    None where they say nothing of it: texts that rules have cut, pairs of strings, attributes, whole documents.

    Args:
        options: Options of the command.
        format: Layout of the training file; None if it has no columns.
        train: Training sentences.

    Returns:
        The tokeniser, or None.
    """
    if options.get("tokeniser") != AUTO or options["model"] == TOKENISER:
        return None
    out = Path(options["out"])
    before = tokeniser_in(out) or tokeniser_in(out / f"seed-{options['seed']}") if options["resume"] else None
    if before is not None:
        return before
    quiet = options["quiet"]
    note = partial(say, quiet=quiet)
    if format is not None and format.conllu:
        announce_compiling(quiet=quiet)
        return learn_tokeniser(options["train"], options["dev"], note, options["seed"])
    words = [sentence.words for sentence in islice(train, MOST_SENTENCES) if not sentence.offsets]
    if is_unspaced(words):
        announce_compiling(quiet=quiet)
    return learn_from_tokens(words, note, options["seed"]) if words else None
