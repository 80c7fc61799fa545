"""A user's program under `mypy --strict`: distributions, automata, semirings and layers. It is checked, not run."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any, assert_type

import torch
from torch import Tensor

import trelliswork as tw
from trelliswork import compat, distributions, fst, nn, semirings


def chains(emissions: Tensor, transitions: Tensor, tags: Tensor) -> Tensor:
    chain = tw.LinearChain(emissions, transitions, lengths=torch.tensor([3]))
    assert_type(chain.log_partition, Tensor)
    assert_type(chain.marginals, Tensor)
    assert_type(chain.argmax, Tensor)
    assert_type(chain.mode, Tensor)
    assert_type(chain.top_k(3), tuple[Tensor, Tensor])
    assert_type(chain.sample((2,)), Tensor)
    assert_type(chain.score(tags) + chain.log_prob(tags), Tensor)
    assert_type(chain.entropy() + chain.count, Tensor)
    assert_type(chain.variance(emissions) + chain.covariance(emissions, {"transitions": transitions}), Tensor)
    assert_type(tw.warmup("chain"), int)
    assert_type(chain.constrain(tags), tw.LinearChain)
    assert_type(chain.tempered(2.0), tw.LinearChain)
    assert_type(chain.log_prob_of_set(tags), Tensor)
    assert_type(chain.span_probability(0, 2, "PER", tags=["O", "B-PER", "I-PER"]), Tensor)
    assert_type(distributions.average_chain([chain]), tw.LinearChain)
    assert_type(distributions.average_log_prob([chain], tags), Tensor)
    assert_type(distributions.average_argmax([chain]).tags, Tensor)
    model = tw.HMM(emissions, transitions, emissions)
    assert_type(model.log_prob(tags), Tensor)
    assert_type(model.posterior(tags), tw.LinearChain)
    return tw.kl_divergence(chain, chain)


def trees(scores: Tensor, words: list[list[str]], heads: Tensor) -> None:
    for tree in (tw.ProjectiveTree(scores), tw.SpanningTree(scores)):
        assert_type(tree.argmax, Tensor)
        assert_type(tree.log_prob(heads), Tensor)
        assert_type(tree.arc_marginals, Tensor)
    spans = tw.SpanTree(scores)
    assert_type(spans.span_probability(0, 1), Tensor)
    assert_type(spans.argmax, list[Any])  # a list for each axis of the batch
    grammar = tw.Grammar.from_rules("S -> 'a'")
    assert_type(grammar, tw.Grammar)
    assert_type(tw.WeightedCFG(grammar, words).log_partition, Tensor)
    assert_type(tw.ProbabilisticCFG(grammar, words).rule_counts, Tensor)
    assert_type(tw.Tree("S", ("a",)).label, str)


def segments_and_alignments(scores: Tensor, targets: Tensor) -> None:
    assert_type(tw.SemiMarkov(scores).marginals, Tensor)
    assert_type(tw.SemiMarkov(scores).sample(), list[Any])
    frames = tw.CTC(scores)
    assert_type(frames.log_prob(targets, [2]), Tensor)
    assert_type(frames.best_path(), list[Any])
    assert_type(frames.given(targets), distributions.CTCAlignment)
    assert_type(tw.EditAlignment(scores).argmax, Tensor)
    assert_type(distributions.edit_distance(targets, targets), Tensor)


def graphs(unary: Tensor, pair: Tensor) -> None:
    templates = [*distributions.factorial_chain(3, [pair], []), *distributions.skip_chain(pair, pair, ["a", None])]
    assert_type(templates, list[distributions.CliqueTemplate])
    assert_type(distributions.unroll(pair, [0, 1], 3), distributions.CliqueTemplate)
    graph = tw.FactorGraph(unary)
    assert_type(graph.argmax, Tensor)
    assert_type(graph.tree_width, int)
    assert_type(graph.propagate(), distributions.Approximation)


def ask(given: tw.StructuredDistribution, value: Tensor) -> Tensor:
    """Whatever the structure."""
    assert_type(given.tempered(0.5), tw.StructuredDistribution)
    return given.log_prob(value) - given.log_partition


def automata(folder: File, weights: Tensor) -> None:
    symbols = fst.Symbols(["a", "b"])
    acceptor = fst.Acceptor([(0, 1, "a"), (1, 1, fst.EPSILON)], final=1, symbols=symbols)
    transducer = fst.Transducer([(0, 1, "a", "b")], final=1, input_symbols=symbols, output_symbols=symbols)
    assert_type(acceptor.log_partition, Tensor)
    assert_type(acceptor.determinise(), fst.Acceptor)
    assert_type(transducer.invert().project("input"), fst.Acceptor)
    assert_type(acceptor.total(semirings.Tropical()), Tensor)
    best: fst.Path = acceptor.argmax
    assert_type(best.arcs, tuple[int, ...])
    assert_type(fst.real_closure(weights) + fst.lehmann(weights, semirings.Real()), Tensor)
    model = fst.NGramModel.train([["a", "b"]], order=2)
    assert_type(model.perplexity([["a"]]), float)
    fst.write_arpa(model, folder / "model.arpa")
    fst.write_att(acceptor, folder / "acceptor.txt")
    fst.write_symbols(symbols, folder / "symbols.txt")
    assert_type(fst.read_arpa(folder / "model.arpa"), fst.NGramModel)
    assert_type(fst.read_acceptor(folder / "acceptor.txt"), fst.Acceptor)
    assert_type(fst.read_transducer(folder / "transducer.txt"), fst.Transducer)
    assert_type(fst.read_symbols(folder / "symbols.txt"), fst.Symbols)


def from_torch_struct(log_potentials: Tensor) -> None:
    chain = compat.torch_struct.LinearChainCRF(log_potentials)
    assert_type(chain.partition + chain.entropy + chain.kl(chain), Tensor)
    assert_type(chain.from_event(chain.argmax), tuple[Tensor, int])


RINGS: tuple[semirings.Semiring, ...] = (
    semirings.Boolean(), semirings.Counting(), semirings.Expectation(), semirings.KBest(3), semirings.Log(),
    semirings.Max(), semirings.Real(), semirings.Sampling(), semirings.Tropical(),
)  # fmt: skip


def searching() -> list[str]:
    return [tw.beam.__name__]


class Network(torch.nn.Module):
    """Layers in a module of one's own."""

    def __init__(self, dim: int, tags: list[str]) -> None:
        super().__init__()
        self.encoder = nn.RecurrentEncoder(dim, hidden=8)
        self.scorer = nn.LinearScorer(8, len(tags))
        self.crf = nn.CRF.from_tags(tags, scheme="IOB2", batch_first=True)

    def forward(self, vectors: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
        emissions: Tensor = self.scorer(self.encoder(vectors, mask))
        assert_type(self.crf(emissions, gold, mask), Tensor)
        assert_type(self.crf.decode(emissions, mask), list[list[int]])
        assert_type(self.crf.distribution(emissions, mask), tw.LinearChain)
        return -self.crf(emissions, gold, mask)


def layers(scores: Tensor, gold: Tensor, lengths: Tensor) -> Tensor:
    segments, trees, arcs = nn.SemiCRF(3, 4), nn.TreeCRF(3), nn.DependencyCRF()
    assert_type(segments.distribution(scores), tw.SemiMarkov)
    assert_type(trees.distribution(scores), tw.SpanTree)
    assert_type(arcs.decode(scores), list[list[int]] | list[list[tuple[int, int]]])  # with labels
    assert_type(nn.CTC()(scores, gold, lengths, lengths), Tensor)
    for attention in (nn.SoftmaxAttention(), nn.BernoulliAttention(), nn.ChainAttention(), nn.SegmentAttention(3)):
        assert_type(attention(scores, scores), nn.Attended)
    assert_type(nn.TreeAttention()(scores, scores).context, Tensor)
    return segments(scores, [[(0, 1, 2)]]) + trees(scores, [[(0, 1, 2)]]) + arcs(scores, gold)


ENCODERS: tuple[torch.nn.Module, ...] = (
    nn.DeepEncoder(8), nn.DilatedConvolution(8), nn.IdentityEncoder(8), nn.RecurrentEncoder(8),
    nn.SentenceConvolution(8), nn.TransformerEncoder(8), nn.WindowEncoder(8), nn.GatedRecursiveConvolution(8, 4),
)  # fmt: skip
SCORERS: tuple[torch.nn.Module, ...] = (
    nn.BiaffineScorer(8), nn.ContextScorer(8, 3), nn.EndpointScorer(8, 8, 3, 4), nn.HiddenUnitScorer(8, 3, 5),
    nn.LinearScorer(8, 3), nn.NeuralTensor(8, 8), nn.PyramidScorer(8, 8, 3, 4), nn.TensorScorer(8, 3),
    nn.TransitionScorer(8, 3),
)  # fmt: skip


def head(encoder: torch.nn.Module, tokenizer: object) -> nn.TokenClassifierWithCRF:
    """A head over an encoder of one's own."""
    return nn.TokenClassifierWithCRF(encoder, tokenizer, ["O", "B-X", "I-X"], scheme="IOB2")


INPUTS: tuple[torch.nn.Module, ...] = (
    nn.CharacterCNN(30), nn.CharacterLSTM(30), nn.DirectConnections(100, 3), nn.LookupTables([100], [8]),
    nn.NgramBag(1000), nn.TokenInputs(nn.LookupTables([100], [8])), nn.VariationalDropout(0.1), nn.WordDropout(0.1),
)  # fmt: skip


def preparing(layer: torch.nn.Linear, data: Tensor) -> list[float]:
    nn.initialize_fan_in(layer)
    assert_type(nn.fan_in_parameter_groups(layer, 0.1), list[dict[str, Any]])
    assert_type(nn.dynamic_multi_pooling(data, data, data), Tensor)
    assert_type(nn.RBM(layer), nn.RBM)
    return nn.pretrain_layers([layer], data, nn.PretrainingConfig(epochs=1))
