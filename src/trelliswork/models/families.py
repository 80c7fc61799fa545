"""The models that can be trained by name, and the recipe and the settings of each: a new family is one more entry.

A recipe is imported when a model of its family is trained, so that features need no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trelliswork.data.settings import Settings, setting, settings_in
from trelliswork.lazy import named
from trelliswork.models.events.config import EventConfig
from trelliswork.models.events.frame_config import FrameConfig
from trelliswork.models.events.presets import FRAME_PRESETS as FRAMES
from trelliswork.models.events.presets import PRESETS as EVENTS
from trelliswork.models.language.config import NgramConfig, TextConfig, TextFiles
from trelliswork.models.networks.preset import Preset
from trelliswork.models.parsers.constituency.pcfg_config import GrammarConfig
from trelliswork.models.parsers.constituency.span_config import SpanConfig
from trelliswork.models.parsers.dependency.config import ParserConfig
from trelliswork.models.parsers.presets import CONSTITUENCY, TRANSITION_PRESETS
from trelliswork.models.parsers.presets import PRESETS as PARSERS
from trelliswork.models.parsers.transition.config import TransitionConfig
from trelliswork.models.taggers.features.learners.config import LearningConfig
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.presets import PRESETS
from trelliswork.models.tokenisers.config import RawFiles, TokeniserConfig
from trelliswork.models.transducers.attention.config import AttentionConfig
from trelliswork.models.transducers.config import PairFiles
from trelliswork.models.transducers.edit.config import EditConfig
from trelliswork.models.transducers.edit.presets import EDIT
from trelliswork.models.transducers.pair_ngram.config import PairNgramConfig
from trelliswork.models.transducers.presets import ATTENTION
from trelliswork.models.transducers.semantic.config import SqlConfig, TreeConfig
from trelliswork.models.transducers.semantic.presets import QUERIES, TREES
from trelliswork.training.config import TrainingConfig

if TYPE_CHECKING:
    from trelliswork.models.recipe import Recipe

SHARED = ("seed",)  # settings of training that every family has


@dataclass(frozen=True)
class VectorFile(Settings):
    """What a network reads beside the data."""

    PANEL = TaggerConfig.PANEL

    vectors: str | None = setting(
        None,
        "Pretrained word vectors in text format, optionally .gz (GloVe, word2vec, fastText).",
        option=True,
        metavar="FILE",
    )


@dataclass(frozen=True)
class TrainedNetwork(Settings):
    """What a network begins with."""

    PANEL = TrainingConfig.PANEL

    init: str | None = setting(
        None, "Start from the network in this directory: its settings, and its weights for all words and labels in "
        "common. The data may contain new words and labels.", option=True, metavar="DIR",
        goes_with={"kind": ("Tagger", "Segmenter")},
    )  # fmt: skip


@dataclass(frozen=True)
class Machine(Settings):
    """Where a network is trained."""

    PANEL = TrainingConfig.PANEL

    device: str = setting(
        "auto", "Device to train on; auto is the first CUDA GPU, or the CPU", choices=("auto", "cpu", "cuda", "mps"),
        option=True,
    )  # fmt: skip


@dataclass(frozen=True)
class UntaggedFile(Settings):
    """What hidden units are pre-trained on."""

    PANEL = LearningConfig.PANEL

    pretrain: str | None = setting(
        None,
        "Unlabelled file with the same columns to pre-train the hidden units on (hucrf).",
        option=True,
        metavar="FILE",
    )


@dataclass(frozen=True)
class AttributeSources(Settings):
    """What makes the attributes of tokens."""

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


@dataclass(frozen=True)
class Family:
    """Models that are made by one recipe: phrases by name, and the settings of each section of a TOML file.

    Families of one `title` are listed together.
    """

    title: str
    recipe: str
    phrases: Mapping[str, str]
    data: tuple[type[Settings], ...] = ()
    model: tuple[type[Settings], ...] = ()
    training: tuple[type[Settings], ...] = ()
    presets: Mapping[str, Preset] = field(default_factory=dict)  # of networks

    @property
    def settings(self) -> tuple[type[Settings], ...]:
        """All of them."""
        return (*self.training, *self.data, *self.model)

    @property
    def options(self) -> set[str]:
        """The names of the settings that are options."""
        return {about.option for config in self.settings for _, about in settings_in(config) if about.option}


def phrases_of(presets: Mapping[str, Preset]) -> dict[str, str]:
    """What each network is, in a few words."""
    return {name: preset.phrase for name, preset in presets.items()}


FAMILIES = (
    Family(
        "Neural taggers",
        "trelliswork.models.taggers.networks.recipe:TaggerRecipe",
        phrases_of(PRESETS),
        (VectorFile, TrainedNetwork), (TaggerConfig,), (TrainingConfig, Machine), PRESETS,
    ),
    Family(
        "Dependency parsers",
        "trelliswork.models.parsers.recipe:ParserRecipe",
        phrases_of(PARSERS),
        (VectorFile,), (ParserConfig,), (TrainingConfig, Machine), PARSERS,
    ),
    Family(
        "Dependency parsers",
        "trelliswork.models.parsers.recipe:TransitionRecipe",
        phrases_of(TRANSITION_PRESETS),
        (VectorFile,), (TransitionConfig,), (TrainingConfig, Machine), TRANSITION_PRESETS,
    ),
    Family(
        "Constituency parsers",
        "trelliswork.models.parsers.constituency.span_recipe:SpanRecipe",
        phrases_of(CONSTITUENCY),
        (VectorFile,), (SpanConfig,), (TrainingConfig, Machine), CONSTITUENCY,
    ),
    Family(
        "Constituency parsers",
        "trelliswork.models.parsers.constituency.pcfg_recipe:GrammarRecipe",
        {"pcfg": "treebank grammar, trained by counting in seconds"},
        (), (GrammarConfig,),
    ),
    Family(
        "Events and frames",
        "trelliswork.models.events.recipe:EventRecipe",
        phrases_of(EVENTS),
        (VectorFile,), (EventConfig,), (TrainingConfig, Machine), EVENTS,
    ),
    Family(
        "Events and frames",
        "trelliswork.models.events.recipe:FrameRecipe",
        phrases_of(FRAMES),
        (VectorFile,), (FrameConfig,), (TrainingConfig, Machine), FRAMES,
    ),
    Family(
        "Transducers",
        "trelliswork.models.transducers.edit.recipe:EditRecipe",
        phrases_of(EDIT),
        (PairFiles,), (EditConfig,), (TrainingConfig, Machine), EDIT,
    ),
    Family(
        "Transducers",
        "trelliswork.models.transducers.recipe:PairRecipe",
        phrases_of(ATTENTION),
        (PairFiles,), (AttentionConfig,), (TrainingConfig, Machine), ATTENTION,
    ),
    Family(
        "Transducers",
        "trelliswork.models.transducers.pair_ngram.recipe:PairNgramRecipe",
        {"pair-ngram": "joint n-gram model, exact and trained in seconds"},
        (PairFiles,), (PairNgramConfig,),
    ),
    Family(
        "Semantic parsers",
        "trelliswork.models.transducers.semantic.recipe:TreeRecipe",
        phrases_of(TREES),
        (PairFiles, VectorFile), (TreeConfig,), (TrainingConfig, Machine), TREES,
    ),
    Family(
        "Semantic parsers",
        "trelliswork.models.transducers.semantic.recipe:QueryRecipe",
        phrases_of(QUERIES),
        (PairFiles, VectorFile), (SqlConfig,), (TrainingConfig, Machine), QUERIES,
    ),
    Family(
        "Feature-based taggers",
        "trelliswork.models.taggers.features.recipe:FeatureRecipe",
        {
            "crf": "linear-chain CRF over sparse features",
            "hucrf": "hidden-unit CRF",
            "memm": "maximum-entropy Markov model",
            "logistic": "logistic regression, each tag independently",
            "hmm": "hidden Markov model, trained by counting in seconds, less accurate",
            "naive-bayes": "naive Bayes, trained by counting",
        },
        (UntaggedFile,), (AttributeSources, LearningConfig),
    ),
    Family(
        "Tokenisers",
        "trelliswork.models.tokenisers.recipe:TokeniserRecipe",
        {"tokeniser": "tokeniser and sentence splitter, trained on CoNLL-U or any tokens (--raw)"},
        (RawFiles,), (TokeniserConfig,),
    ),
    Family(
        "Language models",
        "trelliswork.models.language.recipe:NgramRecipe",
        {"ngram": "n-gram language model of plain text, counted in seconds"},
        (TextFiles,), (TextConfig, NgramConfig),
    ),
)  # fmt: skip
TOKENISER, HIDDEN_UNITS = "tokeniser", "hucrf"
NETWORK = "bilstm-crf"  # the most accurate tagger with vectors, see docs/results/accuracy.md
OF_HIDDEN_UNITS = ("hidden_units", "pretrain")
MODELS = tuple(name for family in FAMILIES for name in family.phrases)


def family_of(name: str) -> Family:
    """The family of a model; the first one for a name that nobody knows."""
    return next((family for family in FAMILIES if name in family.phrases), FAMILIES[0])


def nearest_model(name: str, others: Sequence[str]) -> str:
    """Return the one of other models that is most like a model: for the same data, else the first of them.

    >>> nearest_model("crf", ["window", "bilstm-crf", "biaffine"]), nearest_model("biaffine", ["window", "transition"])
    ('bilstm-crf', 'transition')
    """
    title = family_of(name).title
    alike = [each for each in others if family_of(each).title == title]
    return next(iter(alike), NETWORK if NETWORK in others and title.endswith("taggers") else others[0])


def models_with(option: str, options: Mapping[str, Any]) -> list[str]:
    """The models that use an option, beside the others that are given."""
    return [name for family in FAMILIES if option in family.options for name in family.phrases
            if _uses(family, name, option, options)]  # fmt: skip


def _uses(family: Family, name: str, option: str, options: Mapping[str, Any]) -> bool:
    """Whether a model of a family that has an option reads it."""
    if name in family.presets:
        return _network_uses(family, name, option, options)
    if option in OF_HIDDEN_UNITS:
        return name == HIDDEN_UNITS
    kinds = next(
        about.goes_with for each in family.settings for _, about in settings_in(each) if about.option == option
    )
    return ("crf" if name == HIDDEN_UNITS else name) in kinds.get("model", (name, "crf"))


def _network_uses(family: Family, name: str, option: str, options: Mapping[str, Any]) -> bool:
    """Whether a network has the parts that read a setting; the options may have chosen others than the name says."""
    preset, config = family.presets[name], family.model[0]()
    values = {**vars(config), **preset.network, "kind": preset.kind}
    chosen = {each: options[each] for each in values if options.get(each) is not None}
    values |= chosen if name == options.get("model") else {}
    wanted = {about.option: about.goes_with for each in family.settings for _, about in settings_in(each)}
    return all(values[each] in allowed for each, allowed in wanted[option].items())


def recipe_class(name: str) -> type[Recipe]:
    """The class of what makes the model of a name."""
    found: type[Recipe] = named(family_of(name).recipe)
    return found


def recipe_of(options: Mapping[str, Any]) -> Recipe:
    """What makes the model that the options name."""
    return recipe_class(options["model"])(options)
