"""The lesson that is open, and what the paths under /v1/teach answer."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from trelliswork.data.json_values import Json, JsonObject
from trelliswork.errors import TrellisworkError
from trelliswork.web.frames import Reply
from trelliswork.web.pool import Pool, off_loop
from trelliswork.web.problems import Problem
from trelliswork.web.teaching.lesson import ARCS, SENTENCES, TAUGHT, TREES, Lesson, check_arcs, check_words
from trelliswork.web.teaching.training import Training

LARGE = 200_000  # characters of a file whose sentences are found by a worker of its own
AT_ONCE = 16  # sentences that are ranked with one call, so that other requests do not wait long for it
UNKNOWN_SCORES = {"entropy": 0.0, "margin": 0.0, "error": 0.0}  # of sentences that the model cannot answer
_NAME = re.compile(r"[\w][\w .+-]{0,99}")
ASKED = {"top_k": 3, "confidences": True, "choices": 12, "expected": False, "pins": ()}


class TeachingSession:
    """Lessons in a folder, one of which is open. Files are written outside of the event loop, one write at a time.

    Args:
        folder: The folder of all lessons.
        pool: The workers.
        data: Files `train` and `dev` to train on.
    """

    def __init__(self, folder: str, pool: Pool, data: dict[str, str | None]) -> None:
        self.folder, self.pool, self.lesson = Path(folder), pool, None
        self.training = Training(pool, data)
        self._writing = asyncio.Lock()
        self._ranking: asyncio.Task[None] | None = None

    lesson: Lesson | None

    def sets(self) -> list[str]:
        """Return the lessons that there are, the one that was last taught first."""
        folders = [each.parent for each in self.folder.glob(f"*/{SENTENCES}")]
        return [each.name for each in sorted(folders, key=_last_used, reverse=True)]

    async def resume(self) -> None:
        """Take up the lesson that was last taught, if its model is served."""
        for name in self.sets()[:1]:
            lesson = await asyncio.to_thread(Lesson, self.folder / name)
            if lesson.model in self.pool.folders:
                self._take_up(lesson)
            else:
                lesson.close()

    async def stop(self) -> None:
        """Stop ranking and training."""
        if self._ranking is not None:
            self._ranking.cancel()
        await self.training.stop()
        if self.lesson is not None:
            self.lesson.close()

    async def state(self) -> JsonObject:
        """Return the answer to GET /v1/teach."""
        about = None if self.lesson is None else await asyncio.to_thread(self.lesson.progress)
        sets = await asyncio.to_thread(self.sets)
        return {"open": about, "sets": sets, "training": self.training.state()}

    def _open_lesson(self) -> Lesson:
        if self.lesson is None:
            raise Problem(409, "no sentences are open; POST /v1/teach/open some first")
        return self.lesson

    async def open(self, name: str, model: str | None, kind: str, content: str | None) -> JsonObject:
        """Open a set of sentences, new or known.

        Args:
            name: Name of the set, which is that of its folder.
            model: Name of the model that is taught; None for that of a known set.
            kind: Format of the content.
            content: Sentences of a new set; None to open a known one.

        Returns:
            The state of the lesson.
        """
        if not _NAME.fullmatch(name):
            raise Problem(422, "body.name: expected letters, digits, spaces, dots, +, - and _, the first a letter")
        folder = self.folder / name
        if content is None and not (folder / SENTENCES).exists():
            raise Problem(404, f"there is no set {name!r}; send its content to make one")
        sentences = None if content is None else await self._sentences(model or "", kind, content)
        answers = str(self._model_entry(model).get("answers", "tags"))
        if sentences is not None and answers == ARCS:
            await asyncio.to_thread(check_words, [token for each in sentences for token in each["tokens"]])
        async with self._writing:
            if self.lesson is not None:
                self.lesson.close()
                self.lesson = None
            if sentences is None:
                lesson = await asyncio.to_thread(Lesson, folder)
            else:
                lesson = await asyncio.to_thread(Lesson.begin, folder, model or "", sentences, answers)
            if lesson.model not in self.pool.folders:
                lesson.close()
                raise Problem(409, f"the set {name!r} is for the model {lesson.model!r}, which is not served")
            self._take_up(lesson)
        return await self.state()

    def _model_entry(self, model: str | None) -> JsonObject:
        """Return the entry of a model in the list of models."""
        return next((each for each in self.pool.models if each["name"] == model), {})

    async def _sentences(self, model: str, kind: str, content: str) -> list[JsonObject]:
        ask = self.pool.ask if len(content) <= LARGE else self.pool.ask_alone
        reply = await ask("sentences", model, {"format": kind, "content": content}, len(content))
        sentences: list[JsonObject] = (await off_loop(len(reply.body), _value, reply))["sentences"]
        return sentences

    def _take_up(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self._rank()

    def _rank(self) -> None:
        if self._ranking is not None:
            self._ranking.cancel()
        self._ranking = asyncio.create_task(self._rank_all(self._open_lesson()))

    async def _rank_all(self, lesson: Lesson) -> None:
        """Ask how unsure the model is of each sentence, a few at a time."""
        waiting = await asyncio.to_thread(lesson.unscored)
        while waiting:
            chosen = waiting[:AT_ONCE]
            reply = await self._ask_worker("uncertainty", lesson, chosen)
            if reply.status == 503:
                await asyncio.sleep(1)
                continue
            scores = [UNKNOWN_SCORES] * len(chosen)
            if reply.status == 200:
                results = (await off_loop(len(reply.body), _value, reply))["results"]
                scores = [result["sentences"][0] for result in results]
            lesson.scores.update(zip(chosen, scores, strict=True))
            waiting = waiting[AT_ONCE:]

    async def _ask_worker(self, op: str, lesson: Lesson, chosen: list[int], **more: Json) -> Reply:
        """Return the reply of a worker about some sentences."""
        size = sum(map(len, (token for each in chosen for token in lesson.sentences[each]["tokens"])))
        reply: Reply = await self.pool.ask(op, lesson.model, {**_tokens(lesson, chosen), **more}, size)
        return reply

    async def next(self, by: str, number: int | None) -> JsonObject:
        """Return the sentence to decide now, with what the model says of it."""
        lesson = self._open_lesson()
        if by != "order" and not lesson.scores and self._ranking is not None:
            await asyncio.wait([self._ranking], timeout=0.5)
        chosen = await asyncio.to_thread(lesson.next, by) if number is None else number
        if chosen is None:
            return {"id": None, "score": None, "sentence": None, "open": await asyncio.to_thread(lesson.progress)}
        stored = lesson.at(chosen)
        reply = await self._ask_worker("predict", lesson, [chosen], **ASKED)
        sentence = (await off_loop(len(reply.body), _value, reply))["results"][0]["sentences"][0]
        sentence["text"] = stored.get("text")
        score = lesson.scores.get(chosen, {}).get(by)
        return {"id": chosen, "score": score, "sentence": sentence, "open": await asyncio.to_thread(lesson.progress)}

    async def decide(self, number: int, tags: list[str | None] | None, skip: bool) -> JsonObject:
        """Write a decision; it is on the disk before this returns.

        Args:
            number: Number of the sentence.
            tags: Its tags, None where there is no decision; None to skip it.
            skip: Whether to skip the sentence.

        Returns:
            The state of the lesson.
        """
        lesson = self._open_lesson()
        if skip == (tags is not None):
            raise Problem(422, "body: expected tags, or skip; got " + ("both" if skip else "neither"))
        if tags is not None:
            labels: list[str] = self._model_entry(lesson.model).get("labels", [])
            await asyncio.to_thread(_check_tags, lesson, number, tags, labels)
        async with self._writing:
            if skip:
                await asyncio.to_thread(lesson.skip, number)
            else:
                await asyncio.to_thread(lesson.decide, number, tags or [])
        return {"id": number, "open": await asyncio.to_thread(lesson.progress)}

    async def undo(self) -> JsonObject:
        """Take the last decision back."""
        lesson = self._open_lesson()
        async with self._writing:
            undone = await asyncio.to_thread(lesson.undo)
        return {**undone, "open": await asyncio.to_thread(lesson.progress)}

    async def train(self) -> JsonObject:
        """Begin to train on what was taught."""
        lesson = self._open_lesson()
        await self.training.begin(lesson, on_swap=self._rank_anew)
        return self.training.state()

    def _rank_anew(self) -> None:
        """Rank again, by a better model."""
        if self.lesson is not None:
            self.lesson.scores.clear()
            self._rank()


def _check_tags(lesson: Lesson, number: int, tags: list[str | None], labels: list[str]) -> None:
    """Refuse what the model cannot answer with."""
    known = dict.fromkeys(labels)
    if lesson.answers == ARCS:
        check_arcs(tags, lesson.at(number)["tokens"], known)
        return
    for i, tag in enumerate(tags):
        if tag is not None and tag not in known:
            raise Problem(422, f"body.tags[{i}]: expected one of the tags {', '.join(labels)}, or null; got {tag!r}")


def _tokens(lesson: Lesson, chosen: list[int]) -> JsonObject:
    rows = [lesson.sentences[each] for each in chosen]
    columns = [row.get("features", []) for row in rows]
    return {"tokens": [row["tokens"] for row in rows], "columns": columns if any(columns) else None}


def _value(reply: Reply) -> Json:
    value = json.loads(reply.body)
    if reply.status != 200:
        raise Problem(reply.status, value["detail"])
    return value


def _last_used(folder: Path) -> float:
    try:
        return max((each.stat().st_mtime for each in (folder / TAUGHT, folder / TREES) if each.exists()), default=0.0)
    except OSError as error:
        raise TrellisworkError(f"{folder}: cannot be read: {error.strerror}") from error
