"""A format of files: `Ann/B-PER sings/O`, one sentence per line. Its suffix is .slash, its name."""

from __future__ import annotations

from collections.abc import Iterator

from trelliswork.data import FileFormat, Sentence, open_text
from trelliswork.errors import DataError


class Slash(FileFormat):
    """Words and tags with a slash between them; what comes after the last slash of a token is its tag."""

    def read(self, path: str, *, with_tags: bool = True) -> Iterator[Sentence]:
        n_sentences = 0
        with open_text(path) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                n_sentences += 1
                pairs = [token.rpartition("/") for token in line.split()]
                if with_tags and not all(word and tag for word, _, tag in pairs):
                    raise DataError(path, "expected tokens such as Ann/B-PER, got one without a tag", line=number)
                words = tuple(word or tag for word, _, tag in pairs)
                tags = tuple(tag for _, _, tag in pairs) if with_tags else None
                yield Sentence(words, tags, line=number, file=path, lines=(number,) * len(words))
        if n_sentences == 0:
            raise DataError(path, "expected at least one sentence, got none; the file is empty")

    def text(self, sentence: Sentence) -> str:
        pairs = zip(sentence.words, sentence.tags or (), strict=True)
        return " ".join(f"{word}/{tag}" for word, tag in pairs) + "\n"
