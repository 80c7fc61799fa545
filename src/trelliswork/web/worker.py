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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trelliswork.errors import ConstraintError, ScoreError, TrellisworkError, is_out_of_memory
from trelliswork.models import load
from trelliswork.models.loading import place
from trelliswork.runtime.parents import end_with_parent
from trelliswork.runtime.threads import use_threads
from trelliswork.web.asking import Asked, Body, asked, predictions
from trelliswork.web.describing import described, pictures, require_servable
from trelliswork.web.frames import Reply, packed_json, packed_replies, receive, unpacked_replies
from trelliswork.web.limits import Limits
from trelliswork.web.planning import PIECE, planned
from trelliswork.web.problems import Problem, json_bytes, problem_json
from trelliswork.web.seldom import Seldom, place_of
from trelliswork.web.teaching.uncertainty import sentences_in_file, uncertainties


def votes(model: Any, question: Asked) -> list[dict[str, Any]]:
    """Return the explanations of the answers to the sentences of a question."""
    if not model.explains:
        raise Problem(422, f"expected a model with explanations, got a {type(model).__name__}; see can.explain")
    most = question.body["shown"]
    return [_record(each, most) for each in model.explain(question.sentences)]


def _record(explained: Any, most: int) -> dict[str, Any]:
    told = {"title": explained.title, "lead": explained.lead, "tokens": list(explained.words)}
    return told | explained.record(most)


Models = Mapping[str, Any]
SELDOM = Seldom()
DEFAULT = Limits()
WARM = ("Ann", "lives", "here", ".")


def serve(connection: socket.socket, models: Models, limits: Limits) -> None:
    """Answer batches until the other side is gone."""
    while (message := receive(connection)) is not None:
        name, *calls = unpacked_replies(message)
        questions = [json.loads(call.body) for call in calls]
        connection.sendall(packed_replies(replies(models[name.body.decode()], questions, limits)))


def replies(model: Any, calls: Sequence[Body], limits: Limits = DEFAULT) -> list[Reply]:
    """Return the replies to some calls about one model; predictions that ask for the same are made together.

    What would take longer than a batch should comes back in pieces, before anything of it is answered.
    """
    answers: list[Reply | None] = [None] * len(calls)
    groups: dict[tuple[Any, ...], list[tuple[int, Asked]]] = {}
    left = PIECE
    for i, call in enumerate(calls):
        if call["op"] == "sentences":
            answers[i] = _reply(partial(_sentences, model, call["body"]))
            continue
        question = _guarded(partial(asked, model, call))
        plan = question if isinstance(question, Reply) else _guarded(partial(_planned, model, question, left, limits))
        if isinstance(plan, Reply):
            answers[i] = plan
            continue
        left -= plan
        if question.op == "predict":
            body = question.body
            key = (body["top_k"], body["confidences"], body["choices"], body["expected"], question.has_pins)
            groups.setdefault(key, []).append((i, question))
        else:
            answers[i] = _reply(partial(_answered, model, question))
    for group in groups.values():
        for (i, _), reply in zip(group, _together(model, [question for _, question in group]), strict=True):
            answers[i] = reply
    return [each for each in answers if each is not None]


def _sentences(model: Any, body: Body) -> bytes:
    return json_bytes(sentences_in_file(model, body))


def _planned(model: Any, question: Asked, left: float, limits: Limits) -> Reply | float:
    return 0.0 if question.is_piece else planned(model, question, left, limits)


def _answered(model: Any, question: Asked) -> bytes:
    return question.answered(OTHERS[question.op](model, question))


OTHERS: dict[str, Callable[[Any, Asked], Sequence[Any]]] = {
    "draw": pictures,
    "explain": votes,
    "uncertainty": uncertainties,
}


def _together(model: Any, questions: Sequence[Asked]) -> list[Reply]:
    """Return predictions of several requests; if one of them cannot be answered, each alone, so that the others are."""
    answers = _guarded(partial(predictions, model, questions))
    if not isinstance(answers, Reply):
        return [Reply(200, each) for each in answers]
    return [answers] if len(questions) == 1 else [_together(model, [each])[0] for each in questions]


def _reply(answer: Callable[[], bytes]) -> Reply:
    body = _guarded(answer)
    return body if isinstance(body, Reply) else Reply(200, body)


def _guarded(answer: Callable[[], Any]) -> Any:
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
    """Return a mistake of ours: one line for who runs the server, nothing of it for who asks."""
    where = place_of(error)
    line = SELDOM.text(where, f"error: {type(error).__name__}: {error} at {where}")
    if line is not None:
        print(line, file=sys.stderr, flush=True)
    return Reply(500, problem_json(500, "the model failed on this request; the server's log has the reason"))


def loaded(folders: Mapping[str, str], device: str) -> dict[str, Any]:
    """Return the models by name, on a device, each having answered once, so that its kernels are compiled."""
    models = {}
    for name, folder in folders.items():
        model: Any = load(folder)
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
    told = json.loads(receive(connection) or b"{}")
    if not told:
        return
    use_threads(told["threads"])
    try:
        models = loaded(told["models"], told["device"])
    except (TrellisworkError, OSError) as error:
        connection.sendall(packed_json({"error": str(error)}))
        return
    about = [described(name, told["models"][name], model) for name, model in models.items()]
    gc.freeze()  # what is here stays: no request waits while the collector goes through models and modules
    connection.sendall(packed_json({"models": about}))
    serve(connection, models, Limits(seconds=told["seconds"]))


if __name__ == "__main__":
    main()
