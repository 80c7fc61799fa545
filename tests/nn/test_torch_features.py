"""Each row of the table in docs/guides/pytorch.md is true."""

from __future__ import annotations

import copy
import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing
from torch import Tensor, nn
from torch.distributed import destroy_process_group, init_process_group
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap
from torch.nn.parallel import DistributedDataParallel

import trelliswork as tw
from trelliswork.errors import TrellisworkError
from trelliswork.nn import CRF, ChainAttention, DependencyCRF, SemiCRF, TreeCRF

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "pytorch.md"
torch.manual_seed(0)
X, TAGS = torch.randn(4, 5, 7), torch.randint(3, (4, 5))
MASK = torch.arange(5) < torch.tensor([5, 3, 1, 4])[:, None]
HOLES = torch.tensor([[1, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
SCORES, TRANSITIONS = torch.randn(4, 4, 4, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
DISTRIBUTIONS: dict[str, Callable[[Tensor], Any]] = {
    "LinearChain": lambda s: tw.LinearChain(s[..., 0], TRANSITIONS),
    "SemiMarkov": lambda s: tw.SemiMarkov(s),
    "SpanTree": lambda s: tw.SpanTree(s),
    "ProjectiveTree": lambda s: tw.ProjectiveTree(s[..., 0]),
    "SpanningTree": lambda s: tw.SpanningTree(s[..., 0]),
    "CTC": lambda s: tw.CTC(s[..., 0].log_softmax(-1)),
    "EditAlignment": lambda s: tw.EditAlignment(s[..., :3]),
}


class Network(nn.Module):
    """An encoder and a CRF; the loss, or another query."""

    def __init__(self, query: str = "loss") -> None:
        super().__init__()
        self.encoder, self.crf, self.query = nn.Linear(7, 3), CRF(3, batch_first=True), query

    def forward(self, x: Tensor, tags: Tensor, mask: Tensor) -> Any:
        emissions = self.encoder(x)
        if self.query == "loss":
            return -self.crf(emissions, tags, mask, "mean")
        return self.crf.viterbi(emissions, mask) if self.query == "viterbi" else self.crf.marginals(emissions, mask)


def gradient(network: nn.Module, value: Tensor) -> Tensor:
    network.zero_grad()
    value.backward()
    found = next(network.parameters()).grad
    assert found is not None
    return found.clone()


# --- the rows ------------------------------------------------------------------------------------------------------


def compiles() -> None:
    network = Network()
    wanted = network(X, TAGS, MASK)
    found = torch.compile(network, backend="aot_eager")(X, TAGS, MASK)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(gradient(network, found), gradient(network, wanted))
    scored = torch.compile(lambda s: tw.SpanTree(s).log_partition, backend="aot_eager")(SCORES)
    torch.testing.assert_close(scored, tw.SpanTree(SCORES).log_partition)


def autocasts() -> None:
    network = Network()
    wanted, precise = network(X, TAGS, MASK), gradient(network, network(X, TAGS, MASK))
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            found = network(X, TAGS, MASK)
        torch.testing.assert_close(found.float(), wanted, rtol=0.02, atol=0.05)
        torch.testing.assert_close(gradient(network, found), precise, rtol=0.05, atol=0.05)
        assert tw.SpanTree(SCORES.to(dtype)).log_partition.dtype == dtype


def train_part(rank: int, folder: str, state: dict[str, Tensor]) -> None:
    init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    network = Network()
    network.load_state_dict(state)
    wrapped, half = DistributedDataParallel(network), slice(2 * rank, 2 * rank + 2)
    torch.save(gradient(network, wrapped(X[half], TAGS[half], MASK[half])), f"{folder}/{rank}.pt")
    destroy_process_group()


def distributes(tmp_path: Path) -> None:
    network = Network()
    torch.multiprocessing.spawn(train_part, (str(tmp_path), network.state_dict()), nprocs=2)
    wanted = gradient(network, network(X, TAGS, MASK))  # the mean over all rows is the mean of the two means
    for rank in (0, 1):
        torch.testing.assert_close(torch.load(tmp_path / f"{rank}.pt"), wanted)


def vmaps() -> None:
    for of in DISTRIBUTIONS.values():
        wanted = of(SCORES)
        torch.testing.assert_close(vmap(lambda s, of=of: of(s[None]).log_partition[0])(SCORES), wanted.log_partition)
        mapped = vmap(grad(lambda s, of=of: of(s[None]).log_partition.sum()))(SCORES)
        torch.testing.assert_close(mapped, grad(lambda s, of=of: of(s).log_partition.sum())(SCORES))
    chain = tw.LinearChain(X, torch.randn(7, 7))
    for query in ("marginals", "argmax", "entropy", "log_prob"):
        torch.testing.assert_close(vmap(lambda x, q=query: asked(chain, x, q))(X), asked(chain, X, query))
    network = Network()
    each = vmap(lambda x, y, m: network(x[None], y[None], m[None]))(X, TAGS, MASK)
    torch.testing.assert_close(each.mean(), network(X, TAGS, MASK))


def asked(chain: tw.LinearChain, x: Tensor, query: str) -> Tensor:
    given = tw.LinearChain(x if x.dim() == 3 else x[None], chain.transitions)
    value = {
        "entropy": given.entropy,
        "log_prob": lambda: given.log_prob(torch.zeros(given.emissions.shape[:2]).long()),
    }
    found = value[query]() if query in value else getattr(given, query)
    return found if x.dim() == 3 else found[0]


def differentiates() -> None:
    for of in DISTRIBUTIONS.values():
        total = lambda s, of=of: of(s).log_partition  # noqa: E731
        scores = SCORES.clone().requires_grad_()
        (wanted,) = torch.autograd.grad(total(scores).sum(), scores)
        torch.testing.assert_close(grad(lambda s, total=total: total(s).sum())(SCORES), wanted)
        torch.testing.assert_close(jacrev(total)(SCORES).sum(0), wanted)
        torch.testing.assert_close(jvp(total, (SCORES,), (SCORES,))[1], (wanted * SCORES).flatten(1).sum(1))
        second = hessian(lambda s, total=total: total(s[None]).sum())(SCORES[0]).flatten(3).flatten(0, 2)
        torch.testing.assert_close(second, second.T)
    network = Network()
    parameters = dict(network.named_parameters())
    loss = lambda p, x, y, m: functional_call(network, p, (x[None], y[None], m[None]))  # noqa: E731
    each = vmap(grad(loss), in_dims=(None, 0, 0, 0))(parameters, X, TAGS, MASK)
    torch.testing.assert_close(each["encoder.weight"].mean(0), gradient(network, network(X, TAGS, MASK)))


def differentiates_twice() -> None:
    scores = SCORES[:1, :3, :3, :2].clone().requires_grad_()
    for of in (tw.SpanTree, lambda s: tw.LinearChain(s[..., 0], s[0, 0, :, :1] + torch.zeros(3, 3).double())):
        assert torch.autograd.gradgradcheck(lambda s, of=of: of(s).log_partition, (scores,))
        assert torch.autograd.gradcheck(lambda s, of=of: of(s).entropy(), (scores,))


def programs(record: Callable[[nn.Module, tuple[Tensor, ...]], Callable[..., Any]]) -> None:
    """A recorded program gives the answers to other numbers, masks and unknown tags too."""
    others = torch.randn_like(X), TAGS.flip(0), MASK.flip(0)
    holes, unknown = (X, TAGS, HOLES), (X, torch.where(TAGS == 1, -100, TAGS), MASK)
    for query in ("loss", "marginals", "viterbi"):
        network = Network(query)
        program = record(network, (X, TAGS, MASK))
        for given in (others, holes, unknown):
            torch.testing.assert_close(program(*given), network(*given))


def exports() -> None:
    programs(lambda network, given: torch.export.export(network, given).module())


def traces() -> None:
    programs(lambda network, given: torch.jit.trace(network, given, check_trace=False))


def scripts() -> None:
    layers = CRF(3), SemiCRF(3, 2), TreeCRF(3), DependencyCRF(), ChainAttention()
    for layer in (*layers, Network()):
        with pytest.raises(TrellisworkError, match=r"torch\.jit\.script cannot compile .*; record the network with"):
            torch.jit.script(layer)
    torch.jit.script(Network().encoder)


def infers() -> None:
    network = Network()
    wanted = network(X, TAGS, MASK)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            torch.testing.assert_close(network(X, TAGS, MASK), wanted.detach())
            network.crf.decode(network.encoder(X), MASK)
            for of in DISTRIBUTIONS.values():
                dist = of(SCORES.clone())
                found = (
                    dist.log_partition,
                    dist.marginals,
                    dist.argmax,
                    dist.sample((2,)),
                    dist.top_k(2),
                    dist.entropy(),
                )
                assert found[0].isfinite().all() and not found[0].requires_grad


def copies() -> None:
    network = Network()
    wanted = network(X, TAGS, MASK)
    file = io.BytesIO()
    torch.save(network, file)
    saved = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    for again in (copy.deepcopy(network), pickle.loads(pickle.dumps(network)), saved):
        torch.testing.assert_close(again(X, TAGS, MASK), wanted)
    for of in DISTRIBUTIONS.values():
        for again in (copy.deepcopy(of(SCORES)), pickle.loads(pickle.dumps(of(SCORES)))):
            torch.testing.assert_close(again.log_partition, of(SCORES).log_partition)


def keeps_states() -> None:
    first, second = CRF.from_tags(["O", "B-X", "I-X"], "IOB2", batch_first=True), CRF(3, batch_first=True)
    assert list(first.state_dict()) == ["start_transitions", "end_transitions", "transitions"]
    second.load_state_dict(first.state_dict())
    again = CRF.from_tags(["O", "B-X", "I-X"], "IOB2", batch_first=True)
    again.load_state_dict(second.state_dict())
    emissions = torch.randn(2, 4, 3)
    assert again.decode(emissions) == first.decode(emissions)


def moves() -> None:
    network = Network()
    assert network.to("meta").crf.transitions.device.type == "meta"
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert Network().to(dtype)(X.to(dtype), TAGS, MASK).dtype == dtype
    by_torch = tw.SpanTree(SCORES, backend="torch")
    torch.testing.assert_close(by_torch.log_partition, tw.SpanTree(SCORES).log_partition)


CHECKS: dict[str, Callable[..., None]] = {
    "`torch.compile`": compiles,
    "`torch.autocast` (AMP)": autocasts,
    "`DistributedDataParallel`": distributes,
    "`torch.func.vmap`": vmaps,
    "`torch.func.grad`, `jacrev`, `jvp`, `hessian`": differentiates,
    "double backward": differentiates_twice,
    "`torch.export`": exports,
    "`torch.jit.trace`": traces,
    "`torch.jit.script`": scripts,
    "`torch.no_grad`, `torch.inference_mode`": infers,
    "`pickle`, `copy.deepcopy`": copies,
    "`state_dict`": keeps_states,
    "`.to(device)`, `.to(dtype)`": moves,
}


def test_the_page_has_a_row_for_each_check() -> None:
    rows = re.findall(r"^\| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert rows[0] == "feature" and rows[1:] == list(CHECKS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "feature",
    [pytest.param(each, marks=pytest.mark.thorough if check is distributes else ()) for each, check in CHECKS.items()],
)  # test_processes.py trains by several processes as well
def test_features(feature: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    check = CHECKS[feature]
    check(tmp_path) if check is distributes else check()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_what_vmap_and_recorders_cannot_follow_is_one_sentence(name: str) -> None:
    of, crf = DISTRIBUTIONS[name], CRF(7, batch_first=True)
    sentence = "needs numbers that vmap, torch.export and torch.jit.trace hide; call it outside of them"
    queries: list[Callable[[Any], Any]] = [lambda d: d.sample((2,)), lambda d: d.top_k(2)]
    queries += [] if name == "LinearChain" else [lambda d: d.argmax]
    for query in queries:
        with pytest.raises(TrellisworkError, match=sentence):
            vmap(lambda s, query=query: query(of(s[None])), randomness="different")(SCORES)
    with pytest.raises(TrellisworkError, match=sentence):
        vmap(lambda x: crf.decode(x[None]))(X)
