"""`trelliswork check`: look at tagged files before training on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from trelliswork.cli.findings import Finding, Survey, TreeSurvey, overlap, survey_pairs
from trelliswork.cli.inputs import expanded, kind_of, layout
from trelliswork.cli.messages import visible
from trelliswork.cli.options import TO_COMPARE, layout_in, with_options
from trelliswork.data import Choices, PairFormat
from trelliswork.data.readers import open_tagged
from trelliswork.data.treebank import TREEBANK

SHOWN = 10
CONLLU = "CoNLL-U"


@with_options(TO_COMPARE)
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files to check, or quoted patterns; the training file first."),
    ],
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with status 1 if any tag violates the scheme or any tree is malformed."),
    ] = False,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Read the files as pairs of strings: source, tab, target.")
    ] = False,
    **columns: object,
) -> None:
    """Check data files before training.

    Reports sizes, labels, scheme violations, unusual words, duplicates, and
    the overlap of each file with the first. For treebanks it also reports
    malformed trees; for pairs of strings (--pairs) the symbols of both
    sides, lengths, mixed Unicode normal forms and repeated pairs.
    The exit status is 0 whatever is found, 2 if a file cannot be read, and
    1 with --strict if any tag or tree is invalid.

    \b
    Examples:
      trelliswork check train.conll dev.conll test.conll
      trelliswork check train.conllu dev.conllu
      trelliswork check train.tsv dev.tsv --pairs
    """
    choices, files = layout_in(columns), expanded(files)
    if pairs:
        for text in survey_pairs(files, choices, PairFormat()):
            print(visible(text) + "\n")
        return
    surveys: list[Survey] = []
    banks: list[TreeSurvey | None] = []
    for file in files:
        survey, layout = _survey(file, choices)
        banks.append(_treebank(file, layout))
        trees = "" if banks[-1] is None else f", {TREEBANK.describe_arcs()}"
        print(visible("\n".join([f"{file}: {layout}{trees}", *_description(survey), *_trees(banks[-1], file)])))
        if surveys:
            shared = overlap(surveys[0], survey)
            print(f"  against {surveys[0].file}")
            print(f"    sentences in both  {shared.n_same:,} of {shared.n_sentences:,}")
            print(f"    unseen words       {shared.unseen_tokens:.1%} of tokens, {shared.unseen_types:.1%} of types")
            print(visible(f"    new tags           {', '.join(shared.new_tags) or 'none'}"))
        print()
        surveys.append(survey)
    if strict and (any(survey.violations for survey in surveys) or any(bank and bank.broken for bank in banks)):
        raise typer.Exit(1)


def _survey(file: str, choices: Choices) -> tuple[Survey, str]:
    format, sentences = open_tagged(file, choices)
    scheme = format.scheme if format is not None else choices.scheme
    survey = Survey.of(file, list(sentences), scheme)
    described = layout(format, kind_of(file))
    return survey, described if format is not None else f"{described}, tags {survey.scheme}"


def _treebank(file: str, layout: str) -> TreeSurvey | None:
    """Return the trees of a CoNLL-U file, if it has any; standard input is read already."""
    return TreeSurvey.of(file) if layout.startswith(CONLLU) and file != "-" else None


def _trees(treebank: TreeSurvey | None, file: str) -> list[str]:
    if treebank is None:
        return []
    share = f"{treebank.n_crossing:,} ({100 * treebank.n_crossing / max(treebank.n_trees, 1):.1f}%) not projective"
    return [
        f"  trees      {treebank.n_trees:,}, {share}; deepest {treebank.deepest} (line {treebank.deepest_line})",
        f"  labels     {_counts(treebank.labels)}",
        *_finding_lines("sentences that are not trees", treebank.broken, file),
        *_finding_lines("words without a label", treebank.unlabelled, file, shown=3),
        f"  labels seen once: {', '.join(treebank.rare[:SHOWN]) or 'none'}",
    ]


def _description(survey: Survey) -> list[str]:
    """Return the body of the answer about one file."""
    n_tokens, longest = survey.words.total(), survey.longest
    n = len(survey.sentences)
    lines = [
        f"  sentences  {n:,}, mean length {n_tokens / n:.1f}, longest {len(longest)} (line {longest.line})",
        f"  tokens     {n_tokens:,}, of {len(survey.words):,} different words",
        f"  tags       {_counts(survey.tags)}",
    ]
    if survey.scheme != "plain":
        lines.append(f"  spans      {_counts(survey.spans)}")
        lines += _finding_lines(f"tags that break {survey.scheme}", survey.violations, survey.file)
    lines += _finding_lines("sentences far longer than the rest", survey.long_sentences, survey.file)
    lines += _finding_lines("odd words", survey.odd_words, survey.file)
    lines += _finding_lines("repeated sentences", survey.duplicates, survey.file, shown=3)
    lines.append(f"  tags seen once: {', '.join(survey.rare_tags[:SHOWN]) or 'none'}")
    return lines


def _counts(counter: Counter[str]) -> str:
    shown = ", ".join(f"{name or '(untyped)'} {n:,}" for name, n in counter.most_common(SHOWN))
    more = f", and {len(counter) - SHOWN} more" if len(counter) > SHOWN else ""
    return f"{len(counter)}: {shown}{more}" if counter else "none"


def _finding_lines(title: str, findings: Sequence[Finding], file: str, *, shown: int = SHOWN) -> list[str]:
    """Return a count, and the first findings with their places."""
    if not findings:
        return [f"  {title}: none"]
    lines = [f"  {title}: {len(findings):,}"]
    lines += [f"    {finding.file or file}:{finding.line}: {finding.text}" for finding in findings[:shown]]
    if len(findings) > shown:
        lines.append(f"    ... and {len(findings) - shown:,} more")
    return lines
