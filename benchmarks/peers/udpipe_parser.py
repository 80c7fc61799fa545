"""UDPipe 1 (Straka and Straková 2017) with the sizes of its models for UD English EWT: the parser, tags from the file.

Tags are read, not predicted, which spares it the tagger: with it, it would take longer. Its oracle is the static one,
which is learned with sooner and makes no difference to how fast it parses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from served import commands
from ufal.udpipe import (
    InputFormat,
    Model,
    Pipeline,
    ProcessingError,
    Sentence,
    Sentences,
    Trainer,
)

MOST_SENTENCES = 1500
SIZES = (
    "transition_system=projective;transition_oracle=static;structured_interval=0;hidden_layer=200;"
    "embedding_upostag=20;embedding_feats=20;embedding_xpostag=0;embedding_form=50;embedding_lemma=0;"
    "embedding_deprel=20;learning_rate=0.02;learning_rate_final=0.001;l2=0.5;iterations=1;batch_size=10;"
    "use_gold_tags=1"
)


def train(source: str, model: str) -> None:
    reader, found = InputFormat.newConlluInputFormat(), Sentences()
    reader.setText("\n\n".join(Path(source).read_text(encoding="utf-8").split("\n\n")[:MOST_SENTENCES]) + "\n\n")
    error, sentence = ProcessingError(), Sentence()
    while reader.nextSentence(sentence, error):
        found.push_back(sentence)
        sentence = Sentence()
    made = Trainer.train("morphodita_parsito", found, Sentences(), "none", "none", SIZES, error)
    if error.occurred():
        raise SystemExit(error.message)
    Path(model).write_bytes(made)


def parser(model: str, source: str, target: str) -> Callable[[], object]:
    loaded, error = Model.load(model), ProcessingError()  # the pipeline does not keep the model alive
    pipeline = Pipeline(loaded, "conllu", Pipeline.NONE, Pipeline.DEFAULT, "conllu")

    def job() -> None:
        assert loaded is not None
        parsed = pipeline.process(Path(source).read_text(encoding="utf-8"), error)
        if error.occurred():
            raise SystemExit(error.message)
        Path(target).write_text(parsed, encoding="utf-8")

    return job


if __name__ == "__main__":
    commands(train, parser)
