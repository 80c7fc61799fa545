"""Kept vectors of a frozen encoder are those that it computes, and belong to one state of it."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.tiny_bert import encoder
from trelliswork.errors import OutputError
from trelliswork.nn.encoders import encoding_cache
from trelliswork.nn.encoders.encoding_cache import cache_for, cached_encodings, digest_of, encoder_key
from trelliswork.nn.encoders.pretrained import PretrainedEncoder

SENTENCES = [["Ann", "sings", "."], ["abc"] * 30, ["."], ["Ann", "sings", "."], ["a b", "."], ["a", "b", "."]]


def frozen(**settings: str) -> PretrainedEncoder:
    made = encoder(**settings)
    made.freeze(True)
    return made


def notes() -> list[str]:
    return []


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("settings", [{}, {"words": "mean"}, {"layers": "mix"}])
def test_kept_vectors_are_the_computed_ones(tmp_path: Path, on_disk: bool, settings: dict[str, str]) -> None:
    made, told = frozen(**settings), notes()
    plain = made(SENTENCES)
    made.cache = cached_encodings(made, SENTENCES, tmp_path / "kept" if on_disk else None, told.append)
    assert (
        made.cache is not None
        and len(made.cache) == 5
        and told == ["frozen encoder: vectors of 5 sentences computed once"]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "vectors_of", None)  # nothing is computed
        torch.testing.assert_close(made(SENTENCES), plain, rtol=1e-4, atol=1e-5)
        assert torch.equal(made([SENTENCES[1]])[0], made(SENTENCES)[1])


def test_sentences_that_are_not_kept_and_scales_are_computed() -> None:
    made = frozen()
    made.cache = cached_encodings(made, SENTENCES[:2], None, notes().append)
    torch.testing.assert_close(made(SENTENCES), encoder()(SENTENCES), rtol=1e-4, atol=1e-5)
    half = torch.full((1, 3), 0.5)
    assert not torch.allclose(made([SENTENCES[0]], half), made([SENTENCES[0]]))


def test_a_tuned_encoder_reads_nothing_that_was_kept() -> None:
    made = frozen()
    made.cache = cached_encodings(made, SENTENCES, None, notes().append)
    made.freeze(False)
    with torch.no_grad():
        made.model.embeddings.word_embeddings.weight.mul_(2)
    other = encoder()
    other.load_state_dict(made.state_dict())
    torch.testing.assert_close(made.eval()(SENTENCES), other(SENTENCES))


def test_later_runs_and_others_find_what_is_kept(tmp_path: Path) -> None:
    made, told = frozen(), notes()
    first = cached_encodings(made, SENTENCES[:2], tmp_path, told.append)
    more = cached_encodings(frozen(), SENTENCES, tmp_path, told.append)
    third = cached_encodings(made, SENTENCES, tmp_path, told.append)
    assert first is not None and more is not None and third is not None
    assert told[1:] == [
        "frozen encoder: vectors of 3 sentences computed once, 2 were there",
        "frozen encoder: vectors of 0 sentences computed once, 5 were there",
    ]
    looked_up = [cache.look_up(SENTENCES) for cache in (more, third)]
    assert all(torch.equal(*pair) for pair in zip(*(each or () for each in looked_up), strict=True))
    assert first.look_up(SENTENCES) is None  # it sees what was there when it was made


def test_two_runs_fill_one_directory_at_a_time(tmp_path: Path) -> None:
    """Neither waits nor sees half a file; both compute what was missing when they began."""
    made = frozen()
    first, second = cache_for(made, tmp_path), cache_for(made, tmp_path)
    assert (first.fill(made, SENTENCES), second.fill(made, SENTENCES[:3])) == (5, 3)
    third = cache_for(made, tmp_path)
    assert len(third) == 5 and third.fill(made, SENTENCES) == 0
    looked_up = [cache.look_up(SENTENCES[:3]) or [] for cache in (first, second, third)]
    for vectors in zip(*looked_up, strict=True):
        torch.testing.assert_close(vectors[0], vectors[1], rtol=1e-4, atol=1e-5)
        assert torch.equal(vectors[2], vectors[0]) or torch.equal(vectors[2], vectors[1])


@pytest.mark.parametrize("end", [KeyboardInterrupt, MemoryError])
def test_a_run_that_is_stopped_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
) -> None:
    made, reads = frozen(), itertools.count()
    read = made.vectors_of

    def stopped(sentences: Sequence[Sequence[str]], scales: object = None) -> list[torch.Tensor]:
        if next(reads) == 2:
            raise end
        return read(sentences)

    monkeypatch.setattr(encoding_cache, "BATCH_TOKENS", 1)
    with monkeypatch.context() as patch:
        patch.setattr(made, "vectors_of", stopped)
        with pytest.raises(end):
            cache_for(made, tmp_path).fill(made, SENTENCES)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []
    assert cache_for(made, tmp_path).fill(made, SENTENCES) == 5


def test_a_directory_that_is_read_alone_serves_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = frozen()
    cache_for(made, tmp_path).fill(made, SENTENCES[:2])
    monkeypatch.setattr("tempfile.mkstemp", _refused)
    monkeypatch.setattr("os.open", _refused)
    again = cache_for(made, tmp_path)
    assert again.fill(made, SENTENCES[:2]) == 0 and again.look_up(SENTENCES[:2]) is not None
    with pytest.raises(OutputError, match="the disk is read-only; choose another folder"):
        again.fill(made, SENTENCES)


def _refused(*arguments: object, **named: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_the_key_changes_with_all_that_vectors_depend_on() -> None:
    keys = [encoder_key(encoder(**settings)) for settings in ({}, {"words": "mean"}, {"layers": "mix"}, {"overlap": 3})]
    changed = encoder()
    with torch.no_grad():
        changed.model.embeddings.word_embeddings.weight[4, 0] += 1e-6
    other_rules = encoder()
    other_rules.subwords.tokenizer.backend_tokenizer.add_tokens(["abc"])
    assert len({*keys, encoder_key(changed), encoder_key(other_rules)}) == 6
    assert encoder_key(encoder()) == keys[0]
    assert digest_of(["a b", "."]) != digest_of(["a", "b", "."])


def test_damaged_files_are_as_good_as_missing(tmp_path: Path) -> None:
    made = frozen()
    cached_encodings(made, SENTENCES, tmp_path, notes().append)
    (folder,) = tmp_path.iterdir()
    (index,) = folder.glob("*.json")
    (vectors,) = folder.glob("*.vectors")
    vectors.write_bytes(vectors.read_bytes()[:-100])
    assert len(cache_for(made, tmp_path)) == 0
    index.write_text("{")
    assert len(cache_for(made, tmp_path)) == 0


def test_a_full_disk_or_a_file_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, told = frozen(), notes()
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="expected a directory for encodings, got"):
        cached_encodings(made, SENTENCES, tmp_path / "file", told.append)
    monkeypatch.setattr(encoding_cache, "LARGEST_SHARE", 0.0)
    assert cached_encodings(made, SENTENCES, None, told.append) is None
    assert told == ["note: no room to keep the vectors of 42 tokens; the encoder reads them again in each epoch"]
