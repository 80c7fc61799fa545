"""The settings of a feature CRF, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.settings import LARGEST_SEED, Around, Numbers, OneOf, Settings, setting, settings_in
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.kinds import KINDS, Kind

Algorithm = Literal["lbfgs", "sgd", "perceptron", "pa", "arow", "margin", "herding"]
Method = Literal["laplace", "hamiltonian"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
METHODS: tuple[Method, ...] = get_args(Method)
PROBABILISTIC = ("lbfgs", "sgd")  # know what an unknown label is, and a sentence that counts twice
_REGULARIZED = ("lbfgs", "sgd", "margin")
_ONLINE = tuple(name for name in ALGORITHMS if name not in _REGULARIZED)
_LEARNED = tuple(name for name, kind in KINDS.items() if not kind.counted)
_COUNTED = tuple(name for name, kind in KINDS.items() if kind.counted)
_LBFGS: dict[str, tuple[str, ...]] = {"algorithm": ("lbfgs",), "model": ("crf",)}


@dataclass(frozen=True)
class LearningConfig(Settings):
    """Settings of learning. The loss is Σ -log p + c2 ‖w‖² + c1 ‖w‖₁ (no ½, as in CRFsuite).

    `min_count` leaves out rare pairs (attribute with label, label with label), as CRFsuite's feature.minfreq does;
    `cutoff` leaves out rare attributes, whatever their labels, as CRF++'s -f does. `hidden_units` above 0 make a
    hidden-unit CRF, which is trained by Adam instead of `algorithm`; its `min_count` leaves out rare attributes.

    With `samples`, answers are averages over this many weight vectors (Qi et al. 2005, Bayesian conditional random
    fields): with lbfgs they are drawn from the `posterior`, sharpened by a `temperature` below 1; with herding they are
    those of the last epochs, which vote. At temperature 1, the posterior itself, rare weights are so uncertain that the
    average is worse than the optimum. `model` reads the same weights as another classical model (see `kinds`).
    """

    PANEL = "Features (crf, hucrf, memm, logistic, hmm, naive-bayes)"
    ERROR = ScoreError

    algorithm: Algorithm = setting("lbfgs", choices=ALGORITHMS, option=True, goes_with={"model": ("crf", "logistic")})
    c1: float = setting(
        0.0, "L1 regularisation coefficient c1 of c1 |w|.", at_least=0, option=True,
        goes_with={"algorithm": ("lbfgs",), "model": _LEARNED}, search=Numbers(0.0, 1.0),
        searched_with={"algorithm": ("lbfgs",), "samples": (0,), "hidden_units": (0,),
                       "model": _LEARNED},
    )  # fmt: skip
    c2: float = setting(
        1.0, "L2 regularisation coefficient c2 of c2 w^2 (no factor 1/2).", at_least=0, option=True,
        goes_with={"algorithm": _REGULARIZED, "model": _LEARNED}, search=Numbers(0.01, 10.0, log=True),
        searched_with={"algorithm": _REGULARIZED, "model": _LEARNED},
    )  # fmt: skip
    max_iterations: int | None = setting(
        None, "Maximum number of iterations.", at_least=1, option=True, default_text="that of the algorithm",
        goes_with={"model": _LEARNED},
        search=Numbers(5, 100, log=True, whole=True), searched_with={"algorithm": _ONLINE, "model": _LEARNED},
    )  # fmt: skip
    min_count: float = setting(
        0.0, "Features (attribute-tag and tag-tag pairs) seen fewer times than this are dropped.", option="min_freq",
        goes_with={"model": _LEARNED},
        search=OneOf((0.0, 2.0, 3.0, 5.0)), searched_with={"model": _LEARNED},
    )  # fmt: skip
    all_states: bool = setting(
        False,
        "Also create features for attribute-tag pairs not seen in training.",
        option=True,
        goes_with={"model": _LEARNED},
    )
    all_transitions: bool = setting(
        False, "Also create features for tag pairs not seen in training.", option=True, goes_with={"model": _LEARNED}
    )
    batch_sentences: int = setting(
        0, "Number of sentences per step of sgd (0: 1, or with several processes 64 for each).", at_least=0,
        option=True, metavar="N", goes_with={"algorithm": ("sgd",), "model": ("crf",)},
    )  # fmt: skip
    seed: int = setting(0, "Random seed; the same seed gives the same model.", at_most=LARGEST_SEED, option=None)
    latent: int = setting(
        1, "Number of latent states per tag.", at_least=1, option=True,
        goes_with={"algorithm": PROBABILISTIC, "order": (1,), "model": ("crf",)},
    )  # fmt: skip
    order: int = setting(
        1,
        "Markov order: number of previous tags a tag depends on, 1 or 2.",
        choices=(1, 2),
        option=True,
        goes_with=_LBFGS,
    )
    samples: int = setting(
        0, "Number of weight vectors to average predictions over (lbfgs, herding).", at_least=0, option=True,
        goes_with={"algorithm": ("lbfgs", "herding"), "c1": (0,), "latent": (1,), "order": (1,), "model": ("crf",)},
    )  # fmt: skip
    posterior: Method = setting("laplace", "How lbfgs samples them", choices=METHODS, option=True)
    temperature: float = setting(
        0.03, "Scale of the posterior that is sampled from; 1 is the exact one.", above=0, option=True
    )
    model: Kind = setting("crf", "Model: what is normalised and how it is learned", choices=tuple(KINDS), option=None)
    smoothing: float = setting(
        0.1, "Additive smoothing of counts (hmm, naive-bayes).", above=0, option=True, goes_with={"model": _COUNTED},
        search=Numbers(0.001, 10.0, log=True),
        searched_with={"model": _COUNTED},
    )  # fmt: skip
    cutoff: int = setting(
        0, "Attributes seen fewer times than this are dropped.", at_least=0, option=True, goes_with={"model": _LEARNED}
    )
    hash_bits: int | None = setting(
        None, "Hash attributes to N bits: bounded memory, no attribute names.", at_least=1, below=29, option=True,
        default_text="names that are kept", goes_with={"model": _LEARNED},
    )  # fmt: skip
    induce: int = setting(
        0, "Number of conjunctions of attributes to induce, by their gain.", at_least=0, option=True, metavar="N",
        goes_with={"model": ("crf",)},
    )  # fmt: skip
    constrained: bool = setting(True, "Forbid tag sequences that violate the scheme.", option=True, off="unconstrained")
    hidden_units: int = setting(
        0, "Number of binary hidden units (hucrf).", at_least=0, option=True, option_default=100,
        search=Around(2), searched_with={"model": ("crf",)},
        goes_with={**_LBFGS, "c1": (0,), "latent": (1,), "order": (1,), "samples": (0,), "hash_bits": (None,),
                   "induce": (0,), "cutoff": (0,)},
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.c2 and (self.algorithm in ("sgd", "margin") or (self.samples and self.algorithm == "lbfgs")):
            what = "samples" if self.samples else f"the algorithm {self.algorithm}"
            raise ScoreError(f"c2 must be above 0 for {what}; got 0; give 0.001")
        self._check_combinations()

    def _check_combinations(self) -> None:
        defaults = {each.name: each.default for each, _ in settings_in(type(self))}
        for name, others in COMBINATIONS.items():
            value = getattr(self, name)
            for other, allowed in others.items():
                got = getattr(self, other)
                if value != defaults[name] and got not in allowed:
                    what = "hidden units" if name == "hidden_units" else f"{name} {_shown(value)}"
                    choice = f"choose {other} {' or '.join(map(_shown, allowed))}"
                    fix = f"leave out {other}" if allowed == (defaults[other],) else choice
                    raise ScoreError(f"{what} cannot be combined with {other} {_shown(got)}; {fix}")


# A setting that is not left at its default can be combined only with these values of others.
COMBINATIONS = {each.name: about.goes_with for each, about in settings_in(LearningConfig) if about.goes_with}


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class UntaggedFile(Settings):
    """The file that hidden units are pre-trained on."""

    PANEL = LearningConfig.PANEL

    pretrain: str | None = setting(
        None,
        "Unlabelled file with the same columns to pre-train the hidden units on (hucrf).",
        option=True,
        metavar="FILE",
    )


@dataclass(frozen=True)
class AttributeSources(Settings):
    """The sources of the attributes of tokens."""

    PANEL = LearningConfig.PANEL

    template: str | None = setting(
        None, "File of CRF++ feature templates.", option=True, metavar="FILE", default_text="chosen by the columns"
    )
    features: str | None = setting(
        None, "Python function that maps a sentence to a dict or a list of feature names for each token.",
        option=True, metavar="MODULE:FUNCTION",
    )  # fmt: skip
    partial: bool = setting(
        False, "Partial labels: read the tag ? as unknown and A|B as either of the two.", option=True
    )
    scratch: str | None = setting(
        None, "Keep the training data in temporary files in this directory instead of memory: for data larger than "
        "memory.", option=True, metavar="DIR",
    )  # fmt: skip
