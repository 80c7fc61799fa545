"""A worker: a process that holds the models and answers batches of calls until the server is gone.

It is a process of its own so that a call that takes too long can really be stopped: the server kills the worker and
starts another. `python -m trelliswork.web.worker FD` speaks `frames` over an inherited socket.
"""

from __future__ import annotations

import gc
import json
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from trelliswork.data import Sentence
from trelliswork.errors import ConstraintError, ScoreError, TrellisworkError, is_out_of_memory
from trelliswork.logs import count
from trelliswork.models import load
from trelliswork.models.base import Model
from trelliswork.models.loading import place
from trelliswork.models.votes import Explanation
from trelliswork.runtime.parents import end_with_parent
from trelliswork.runtime.threads import use_threads
from trelliswork.web.asking import LONGEST, Body, Question, has_span_tags, predictions, read_question, sentence_json
from trelliswork.web.describing import can_choose, describe_model, pictures, require_servable
from trelliswork.web.frames import (
    Reply,
    pack_call,
    pack_json,
    pack_pieces,
    pack_replies,
    receive,
    unpack_replies,
)
from trelliswork.web.problems import Problem, Throttle, json_bytes, place_of, problem_json
from trelliswork.web.requests import Limits
from trelliswork.web.teaching.uncertainty import sentences_in_file, uncertainties


def explanations(model: Model, question: Question) -> list[dict[str, object]]:
    """Return the explanations of the answers to the sentences of a question."""
    if not model.explains:
        raise Problem(422, f"expected a model with explanations, got a {type(model).__name__}; see can.explain")
    most = question.body["shown"]
    return [_record(each, most) for each in model.explain(question.sentences)]


def _record(explanation: Explanation, most: int) -> dict[str, object]:
    heading = {"title": explanation.title, "lead": explanation.lead, "tokens": list(explanation.words)}
    return {**heading, **explanation.record(most)}


Models = Mapping[str, Model]
T = TypeVar("T")
THROTTLE = Throttle()
DEFAULT = Limits()
WARM = ("Ann", "lives", "here", ".")


def serve(connection: socket.socket, models: Models, limits: Limits) -> None:
    """Answer batches until the other side is gone.

    Args:
        connection: The socket to the server.
        models: The models by name.
        limits: The limits of the server.
    """
    while (message := receive(connection)) is not None:
        name, *calls = unpack_replies(message)
        questions = [json.loads(call.body) for call in calls]
        connection.sendall(pack_replies(replies(models[name.body.decode()], questions, limits)))


def replies(model: Model, calls: Sequence[Body], limits: Limits = DEFAULT) -> list[Reply]:
    """Return the replies to some calls about one model; predictions that ask for the same are made together.

    What would take longer than a batch should comes back in pieces, before anything of it is answered.

    Args:
        model: The model that is asked.
        calls: The questions, each with "op" and "body".
        limits: The limits of the server.

    Returns:
        A reply to each call, in their order.
    """
    answers: list[Reply | None] = [None] * len(calls)
    groups: dict[tuple[object, ...], list[tuple[int, Question]]] = {}
    left = PIECE
    for i, call in enumerate(calls):
        if call["op"] == "sentences":
            answers[i] = _reply(partial(_sentences, model, call["body"]))
            continue
        question = _catch_problems(partial(read_question, model, call))
        if isinstance(question, Reply):
            answers[i] = question
            continue
        plan = _catch_problems(partial(_plan, model, question, left, limits))
        if isinstance(plan, Reply):
            answers[i] = plan
            continue
        left -= plan
        if question.op == "predict":
            body = question.body
            key = (body["top_k"], body["confidences"], body["choices"], body["expected"], question.has_pins)
            groups.setdefault(key, []).append((i, question))
        else:
            answers[i] = _reply(partial(_answer_other, model, question))
    for group in groups.values():
        for (i, _), reply in zip(group, _together(model, [question for _, question in group]), strict=True):
            answers[i] = reply
    return [each for each in answers if each is not None]


def _sentences(model: Model, body: Body) -> bytes:
    return json_bytes(sentences_in_file(model, body))


def _plan(model: Model, question: Question, left: float, limits: Limits) -> Reply | float:
    return 0.0 if question.is_piece else plan_work(model, question, left, limits)


def _answer_other(model: Model, question: Question) -> bytes:
    return question.answer_json(OTHERS[question.op](model, question))


OTHERS: dict[str, Callable[[Model, Question], Sequence[object]]] = {
    "draw": pictures,
    "explain": explanations,
    "uncertainty": uncertainties,
}


def _together(model: Model, questions: Sequence[Question]) -> list[Reply]:
    """Return predictions of several requests; if one of them cannot be answered, each alone, so that the others are."""
    answers = _catch_problems(partial(predictions, model, questions))
    if not isinstance(answers, Reply):
        return [Reply(200, each) for each in answers]
    return [answers] if len(questions) == 1 else [_together(model, [each])[0] for each in questions]


def _reply(answer: Callable[[], bytes]) -> Reply:
    body = _catch_problems(answer)
    return body if isinstance(body, Reply) else Reply(200, body)


def _catch_problems(answer: Callable[[], T]) -> T | Reply:
    """Return the answer, or the reply that says what is wrong with the question."""
    try:
        return answer()
    except Problem as problem:
        return Reply(problem.status, problem.body())
    except (ConstraintError, ScoreError):
        return Reply(422, problem_json(422, "no answer agrees with the pins; drop one, or pin others that go together"))
    except TrellisworkError as error:
        return Reply(422, problem_json(422, str(error).removeprefix(": ")))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            return _broken(error)
        return Reply(413, problem_json(413, "expected a request that fits into memory; send less at once"))
    except Exception as error:
        return _broken(error)


def _broken(error: Exception) -> Reply:
    """Return the reply to an internal error, whose details go to the log of the server alone."""
    where = place_of(error)
    line = THROTTLE.text(where, f"error: {type(error).__name__}: {error} at {where}")
    if line is not None:
        print(line, file=sys.stderr, flush=True)
    return Reply(500, problem_json(500, "the model failed on this request; the server's log has the reason"))


# The work of a question by the estimate of its model: too much is refused, and much is divided into pieces.

PIECE = 0.25  # seconds of a piece
WRITING = 4e-5, 3e-6  # seconds for what is written of a word, and for each further thing: tags of others, choices
SPANS = 5e-4  # seconds for a word and the likely spans that begin there
ASIDE = ("text", "texts", "tokens", "columns", "sentence", "model")  # what a piece says otherwise
DRAWING = 2e-4  # seconds for a word in a picture


def plan_work(model: Model, question: Question, left: float, limits: Limits) -> Reply | float:
    """Return the cost of a question that fits into what is left of a batch; otherwise its pieces. Too much is a
    `Problem`.

    Args:
        model: The model that is asked.
        question: The question.
        left: Seconds that are left of the batch.
        limits: The limits of the server.

    Returns:
        Seconds, or a reply with the pieces of the question.
    """
    costs = [_cost(model, question, each) for each in question.sentences]
    total, worst = sum(costs), max(costs, default=0.0)
    if worst > limits.sentence_work:
        words = len(question.sentences[costs.index(worst)])
        raise Problem(413, _refusal(f"a sentence of {count(words, 'token')}", worst, limits.sentence_work, question))
    if total > limits.work:
        raise Problem(413, _refusal(count(len(costs), "sentence"), total, limits.work, question))
    if total <= left:
        return total
    return pack_pieces(_pieces(question, costs))


def _refusal(what: str, cost: float, limit: float, question: Question) -> str:
    """Return what is wrong with a question that is too much work, and how to ask for less."""
    body = question.body
    less = [f"a smaller {name} (now {body[name]})" for name in ("top_k", "choices") if body.get(name)]
    less += ["no expected"] if body.get("expected") else []
    advice = " or ".join(["shorter sentences" if what.startswith("a ") else "fewer sentences at once", *less])
    return f"expected work of at most {limit:.3g} s, got {what} that would take about {cost:.2g} s; send {advice}"


def _cost(model: Model, question: Question, sentence: Sentence) -> float:
    """Return seconds for one sentence."""
    body, n = question.body, len(sentence)
    top_k, choices = body.get("top_k", 0), body.get("choices", 0)
    if question.op == "uncertainty":
        top_k, choices = 2, 1
    is_trellis = question.op == "draw" and can_choose(model)
    seconds: float = model.cost(n, top_k=top_k, choices=bool(choices or is_trellis), explain=question.op == "explain")
    seconds += n * (WRITING[0] + WRITING[1] * (top_k + choices)) + DRAWING * n * (question.op == "draw")
    if body.get("expected"):
        seconds += len(model.known_labels) * model.cost(n)
    if choices and has_span_tags(model):
        seconds += SPANS * min(n, LONGEST)
    return seconds


def _pieces(question: Question, costs: list[float]) -> Iterator[tuple[float, bytes]]:
    """Yield the question about some of its sentences at a time, in order."""
    pins = _pins_by_sentence(question)
    first, cost = 0, 0.0
    for i, each in enumerate(costs):
        if i > first and cost + each > PIECE:
            yield cost, _piece(question, pins, first, i)
            first, cost = i, 0.0
        cost += each
    yield cost, _piece(question, pins, first, len(costs))


def _piece(question: Question, pins: list[list[Body]], first: int, last: int) -> bytes:
    named = [{**pin, "input": i, "sentence": 0} for i, of_one in enumerate(pins[first:last]) for pin in of_one]
    is_end = last == len(question.sentences)
    body = {
        **{name: value for name, value in question.body.items() if name not in ASIDE},
        "sentences": [sentence_json(each) for each in question.sentences[first:last]],
        "pins": named,
        "around": [*question.around[first:last], question.around[-1] if is_end else ""],
    }
    return pack_call(question.op, "", body)


def _pins_by_sentence(question: Question) -> list[list[Body]]:
    """Return the pins of each sentence, as the request has them."""
    pins: list[list[Body]] = [[] for _ in question.sentences]
    for pin in question.body.get("pins") or ():
        place = question.places.get((pin["input"], pin["sentence"]))
        if place is not None:  # a picture of one sentence leaves the others out
            pins[place].append(pin)
    return pins


def load_models(folders: Mapping[str, str], device: str) -> dict[str, Model]:
    """Return the models by name, on a device, each having answered once, so that its kernels are compiled."""
    models = {}
    for name, folder in folders.items():
        model: Model = load(folder)
        require_servable(folder, model)
        if (place_of_model := place(model, device)) != "cpu":
            print(f"{name}: on {place_of_model}", file=sys.stderr, flush=True)
        body = {"tokens": [list(WARM)], "top_k": 2, "confidences": True, "choices": 0, "expected": False}
        replies(model, [{"op": "predict", "body": {**body, "top_k": k}} for k in (0, 2)])
        models[name] = model
    return models


def main() -> None:
    """Load, say what there is, and serve."""
    end_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to stop
    connection = socket.socket(fileno=int(sys.argv[1]))
    settings = json.loads(receive(connection) or b"{}")
    if not settings:
        return
    use_threads(settings["threads"])
    try:
        models = load_models(settings["models"], settings["device"])
    except (TrellisworkError, OSError) as error:
        connection.sendall(pack_json({"error": str(error)}))
        return
    about = [describe_model(name, settings["models"][name], model) for name, model in models.items()]
    gc.freeze()  # what is here stays: no request waits while the collector goes through models and modules
    connection.sendall(pack_json({"models": about}))
    serve(connection, models, Limits(seconds=settings["seconds"]))


if __name__ == "__main__":
    main()
