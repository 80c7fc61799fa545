"""Who did what to whom: entities, triggers and arguments of events found together, on the built-in corpus.

python examples/events.py                   # two minutes; prints F1 of triggers and of arguments
"""

from __future__ import annotations

import torch

from trelliswork.data.corpus import builtin_corpus, event_sentences
from trelliswork.models.events.config import EventConfig
from trelliswork.models.events.memory_events import MemoryEvents
from trelliswork.training import TrainingConfig, train

SETTINGS = EventConfig(encoder="lstm", hidden=60, word_dim=40, dropout=0.3, hidden_dropout=0.2)


def main(n_train: int = 2000, n_test: int = 300, epochs: int = 12, batch_tokens: int = 300) -> dict[str, float]:
    """Train on one part of the corpus, print the scores on another and the events of some sentences."""
    torch.set_num_threads(1)
    corpus = builtin_corpus(sizes=(n_train, 1, n_test))
    learned, held_out = (event_sentences(corpus[part]) for part in ("train", "test"))
    model = MemoryEvents.from_data(learned, SETTINGS)
    train(model, learned, None, TrainingConfig(epochs=epochs, batch_tokens=batch_tokens, lr=3e-3))
    print(model.report(held_out).text)
    for sentence, answer in zip(held_out, model.predict(held_out[:5]), strict=False):
        print("\n" + " ".join(sentence.words))
        for event in answer.value["events"]:
            arguments = [f"{role}: {' '.join(sentence.words[a:b])}" for a, b, role in event["arguments"]]
            print(f"    {event['type']} ({sentence.words[event['trigger']]})", *arguments, sep=", ")
    scores = model.evaluate(held_out)
    return {name: scores[name] for name in ("entities", "triggers", "arguments")}


if __name__ == "__main__":
    main()
