"""Pretrained transformers of Hugging Face as encoders of words. Needs the extra `[transformers]`.

Devlin, Chang, Lee and Toutanova (2019), BERT: Pre-training of deep bidirectional transformers for language
understanding, for the use of the first sub-word.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import optional
from trelliswork.nn.encoders.subwords import Subwords, mean_by_word, owners_of, window_of, windows
from trelliswork.runtime.arrays import Float

if TYPE_CHECKING:
    from trelliswork.nn.encoders.encoding_cache import EncodingCache

WordVector = Literal["first", "mean"]
LayerChoice = Literal["last", "mix"]
Loaded = TypeVar("Loaded")
OVERLAP = 64  # default number of sub-words that windows share, at most a quarter of a window
NO_LIMIT = 1 << 20  # tokenizers without a limit state a number above this
POSITIONS_AFTER_PADDING = ("roberta", "xlm-roberta", "camembert", "longformer")  # count from the padding index on


class PretrainedWords(nn.Module):
    """Base of pretrained encoders of words: frozen or not, with a cache, one layer or a mix of all.

    Args:
        model: The network that was trained before.
        dim: Width of its vectors of words.
        layers: Vectors are those of the "last" layer, or a learned "mix" of all layers (`LayerMix`).
        n_layers: Number of layers, the embeddings included.
    """

    def __init__(self, model: nn.Module, dim: int, layers: LayerChoice, n_layers: int) -> None:
        super().__init__()
        self.model, self.dim, self.layers = model, dim, layers
        self.mix = LayerMix(n_layers) if layers == "mix" else None
        self.frozen = False
        self.cache: EncodingCache | None = None

    @abstractmethod
    def vectors_of(self, sentences: Sequence[Sequence[str]], scales: Tensor | None = None) -> list[Tensor]:
        """Compute the vectors of each sentence, [n, layers, dim], with no cache."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """Return everything but the weights as JSON values."""

    def freeze(self, frozen: bool) -> None:
        """Keep the network as it is, without dropout and gradients, until this is called with False."""
        self.frozen = frozen
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.frozen:
            self.model.eval()
        return self

    def layers_from_below(self) -> list[list[nn.Parameter]]:
        """Return the parameters of the transformer layer by layer: embeddings first, and what follows the layers in
        the last group."""
        return parameters_by_layer(self.model)

    def forward(
        self, sentences: Sequence[Sequence[str]], scales: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n dim"]:
        """Encode words.

        Args:
            sentences: The words of each sentence.
            scales: Factor of the embeddings of all sub-words of each word, before the first layer.

        Returns:
            Vectors of words, 0 after the last word of a sentence.
        """
        vectors = self.word_layers(sentences, scales)
        return vectors.squeeze(2) if self.mix is None else self.mix(vectors)

    def word_layers(
        self, sentences: Sequence[Sequence[str]], scales: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n layers dim"]:
        """Return the vectors of words in each layer that is used; those of a frozen encoder come from its cache."""
        fixed = self.frozen and scales is None
        if fixed and self.cache is not None and (stored := self.cache.look_up(sentences)) is not None:
            return pad_sequence(stored, batch_first=True).to(next(self.model.parameters()).device)
        with torch.no_grad() if fixed else nullcontext():
            return pad_sequence(self.vectors_of(sentences, scales), batch_first=True)

    @property
    def n_layers(self) -> int:
        """Number of layers in what `word_layers` returns."""
        return 1 if self.mix is None else len(self.mix.weights)


class PretrainedEncoder(PretrainedWords):
    """Encodes each word by the vectors of its sub-words in a pretrained transformer.

    A sentence with more sub-words than the model accepts is read in overlapping windows; each sub-word is taken from
    the window in which it is furthest from an edge, and nothing is truncated.

    Args:
        model: A transformer of Hugging Face.
        tokenizer: Its fast tokenizer.
        overlap: Number of sub-words that neighbouring windows share.
        longest: Number of sub-words that the model accepts, including special tokens; by default what model and
            tokenizer state.
        words: A word is its "first" sub-word or the "mean" of all of them.
        layers: Vectors are those of the "last" layer, or a learned "mix" of all layers (`LayerMix`).

        >>> encoder = PretrainedEncoder.from_name("bert-base-cased")         # doctest: +SKIP
        >>> encoder([["Ann", "sings", "."], ["Stop"]]).shape                 # doctest: +SKIP
        torch.Size([2, 3, 768])
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        overlap: int | None = None,
        longest: int | None = None,
        words: WordVector = "first",
        layers: LayerChoice = "last",
    ):
        if words not in get_args(WordVector) or layers not in get_args(LayerChoice):
            raise TrellisworkError(
                f'words must be "first" or "mean", layers "last" or "mix"; got {words!r}, {layers!r}'
            )
        settings = config_of(model)
        super().__init__(model, int(settings.hidden_size), layers, int(settings.num_hidden_layers) + 1)
        self.subwords, self.words = Subwords(tokenizer), words
        self.longest = longest or _longest(tokenizer, settings)
        room = self.longest - self.subwords.n_special
        self.overlap = min(OVERLAP, room // 4) if overlap is None else overlap
        if not 0 <= self.overlap < room:
            raise TrellisworkError(
                f"overlap must lie in 0..{room - 1} for windows of {room} sub-words; got {overlap}; lower it"
            )

    @classmethod
    def from_name(
        cls, name: str, *, overlap: int | None = None, words: WordVector = "first", layers: LayerChoice = "last"
    ) -> Self:
        """Load a model and its tokenizer from a folder, or by their name on the hub.

        What the cache of the hub holds is taken from there without a request. Weights must be safetensors, and code
        that a repository brings is never run.

        Args:
            name: A folder with a model, or its name on the hub.
            overlap: Number of sub-words that neighbouring windows of a long sentence share; None for a default.
            words: The vector of a word: its first sub-word, or the mean of all.
            layers: The last layer, or a learned mix of all.

        Returns:
            The encoder, in float32.
        """
        transformers = import_transformers()
        safe = {"trust_remote_code": False}
        try:
            with _quiet(transformers):
                tokenizer = _local_first(
                    transformers.AutoTokenizer.from_pretrained, name, add_prefix_space=True, **safe
                )
                model, report = _local_first(
                    transformers.AutoModel.from_pretrained, name, use_safetensors=True, output_loading_info=True, **safe
                )
        except (OSError, ValueError, RuntimeError, SafetensorError) as error:
            raise TrellisworkError(
                f"expected a model of Hugging Face, got {name!r} ({_reason(error)}); check the name or give a folder"
            ) from error
        _check_fit(name, model, tokenizer, report["missing_keys"])
        return cls(model.float(), tokenizer, overlap=overlap, words=words, layers=layers)

    def vectors_of(self, sentences: Sequence[Sequence[str]], scales: Tensor | None = None) -> list[Tensor]:
        """Compute the vectors of each sentence, [n, layers, dim], with no cache."""
        pieces = [self.subwords.split(words) for words in sentences]
        room = self.longest - self.subwords.n_special
        cuts = [windows(len(ids), room, self.overlap) for ids, _ in pieces]
        inputs = [
            torch.tensor(self.subwords.with_special_tokens(ids[first:last]))
            for (ids, _), bounds in zip(pieces, cuts, strict=True)
            for first, last in bounds
        ]
        factors = None
        if scales is not None:
            owners = [owners_of(firsts, len(ids)) for ids, firsts in pieces]
            factors = [
                self._with_special_tokens(scales[row].index_select(0, owners[row][first:last].to(scales.device)))
                for row, bounds in enumerate(cuts)
                for first, last in bounds
            ]
        states, row, vectors = self._read(inputs, factors), 0, []
        for (ids, firsts), bounds in zip(pieces, cuts, strict=True):
            wanted = firsts if self.words == "first" else list(range(len(ids)))
            which = [window_of(at, bounds) for at in wanted]
            places = [at - bounds[w][0] + self.subwords.n_before for at, w in zip(wanted, which, strict=True)]
            of_pieces = states[[row + w for w in which], places]
            vectors.append(of_pieces if self.words == "first" else mean_by_word(of_pieces, firsts))
            row += len(bounds)
        return vectors

    def _with_special_tokens(self, factors: Float[Tensor, " m"]) -> Float[Tensor, " m_and_special"]:
        """Add the factors of the special tokens, which are 1."""
        n_before, n_after = self.subwords.n_before, self.subwords.n_special - self.subwords.n_before
        return nn.functional.pad(factors, (n_before, n_after), value=1.0)

    def _read(self, inputs: list[Tensor], factors: list[Tensor] | None = None) -> Float[Tensor, "w m layers dim"]:
        """Return the layers for all windows at once; `factors` multiply the embeddings of sub-words."""
        device = next(self.model.parameters()).device
        if not inputs:
            return torch.zeros(0, 0, self.n_layers, self.dim, device=device)
        ids = pad_sequence(inputs, batch_first=True, padding_value=self.subwords.padding).to(device)
        lengths = torch.tensor([len(window) for window in inputs], device=device)
        mask = torch.arange(ids.shape[1], device=device) < lengths[:, None]
        if factors is None:
            return self._layers(ids, mask)
        scales = pad_sequence(factors, batch_first=True, padding_value=1.0)[..., None]
        # A hook, since with `inputs_embeds` some models count positions differently.
        model: Any = self.model
        hook = model.get_input_embeddings().register_forward_hook(lambda *called: called[-1] * scales)
        try:
            return self._layers(ids, mask)
        finally:
            hook.remove()

    def _layers(self, ids: Tensor, mask: Tensor) -> Float[Tensor, "w m layers dim"]:
        if self.mix is None:
            return self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state.unsqueeze(2)
        states = self.model(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True).hidden_states
        return torch.stack(tuple(states), 2)

    def to_dict(self) -> dict[str, object]:
        """Return everything but the weights as JSON values, so that `from_dict` works offline."""
        return {
            "model": config_of(self.model).to_dict(),
            "tokenizer": self.subwords.to_dict(),
            "overlap": self.overlap,
            "longest": self.longest,
            "words": self.words,
            "layers": self.layers,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Create an encoder from the result of `to_dict`; its weights must be loaded afterwards."""
        transformers = import_transformers()
        settings = {name: value for name, value in stored["model"].items() if name not in _CHOOSES_CODE}
        config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
        tokenizer = Subwords.tokenizer_from(stored["tokenizer"])
        model = transformers.AutoModel.from_config(config, trust_remote_code=False).float()
        own = {name: stored[name] for name in ("words", "layers") if name in stored}  # older models have none
        return cls(model, tokenizer, overlap=stored["overlap"], longest=stored["longest"], **own)


class LayerMix(nn.Module):
    """Learned mix of layers: their mean at first, then scale · Σ softmax(weights)_l · layer_l.

    Args:
        n_layers: Number of layers, the embeddings included.

    >>> LayerMix(2)(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [2.0, 3.0]

    Peters et al. (2018), Deep contextualized word representations.
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(n_layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, layers: Float[Tensor, "*batch layers dim"]) -> Float[Tensor, "*batch dim"]:
        return self.scale * (self.weights.softmax(0)[:, None] * layers).sum(-2)  # [S4.467]


def import_transformers() -> ModuleType:
    """Import the library, or raise an error that says how to install it."""
    transformers: ModuleType = optional("transformers", "a pretrained encoder", "transformers")
    return transformers


@contextmanager
def _quiet(transformers: ModuleType) -> Iterator[None]:
    """Inside, the library shows no bars and no remarks, such as those about heads that are not used."""
    logging = transformers.utils.logging
    verbosity, with_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if with_bars:
            logging.enable_progress_bar()


def _reason(error: Exception) -> str:
    """Return what went wrong, in a few words; some messages speak of options or logs that nobody here has seen."""
    if isinstance(error, SafetensorError):
        return f"its weights are damaged: {error}"
    if isinstance(error, RuntimeError):
        return "its config.json and weights do not fit"
    text = str(error).strip().splitlines()[0]
    return "it has no tokenizer.json" if "backend tokenizer" in text else text


def _check_fit(name: str, model: Any, tokenizer: Any, missing: Iterable[str]) -> None:
    """Refuse what transformers would fill in where files are missing: random weights, a tokenizer of nothing; and a
    tokenizer of another model, and models that write."""
    problem, fix = "", "copy its folder again"
    n_pieces, n_special = len(tokenizer), len(tokenizer.all_special_tokens)
    n_vectors = len(model.get_input_embeddings().weight)
    if lacking := sorted(each for each in missing if _POOLER not in each):
        problem = f"expected the weights of its config.json, got a file that lacks {len(lacking)}, such as {lacking[0]}"
    elif n_pieces <= n_special:
        problem, fix = f"expected a tokenizer, got {n_special} special tokens and no sub-words", "copy tokenizer.json"
    elif max(tokenizer.get_vocab().values()) >= n_vectors:
        problem = f"expected at most {n_vectors:,} sub-words, as the model has vectors for, got {n_pieces:,}"
        fix = "use the tokenizer of this model"
    elif getattr(config_of(model), "is_encoder_decoder", False):
        problem = f"expected an encoder, got an encoder with a decoder ({config_of(model).model_type})"
        fix = "choose a model such as bert or roberta"
    if problem:
        raise TrellisworkError(f"{name}: {problem}; {fix}")


_POOLER = "pooler"  # many checkpoints have none, and none is read


def _local_first(load: Callable[..., Loaded], name: str, **settings: object) -> Loaded:
    """Load files of this machine; the hub is asked for a name whose files are not here."""
    try:
        return load(name, local_files_only=True, **settings)
    except OSError:
        if Path(name).is_dir() or os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
            raise
        return load(name, **settings)


_CHOOSES_CODE = {  # what may name code of others, or needs further packages
    "auto_map", "attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation",
    "quantization_config", "dtype", "torch_dtype",
}  # fmt: skip
_NUMBERED = re.compile(r"(?:^|\.)(?:\w*layers?|\w*layer_groups|h|blocks?)\.(\d+)\.")


def parameters_by_layer(model: nn.Module) -> list[list[nn.Parameter]]:
    """Group the parameters of a transformer by the number of their layer in its module names.

    Parameters declared before the first layer, such as embeddings, are the lowest group; those after it, such as a
    final norm or a pooler, belong to the last layer.

    >>> layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    >>> model = nn.ModuleDict({"embeddings": nn.Embedding(9, 2), "layer": layers, "pooler": nn.Linear(2, 1)})
    >>> [sum(parameter.numel() for parameter in group) for group in parameters_by_layer(model)]
    [18, 6, 9]
    """
    below: list[nn.Parameter] = []
    numbered: dict[int, list[nn.Parameter]] = {}
    above: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if match := _NUMBERED.search(name):
            numbered.setdefault(int(match[1]), []).append(parameter)
        else:
            (above if numbered else below).append(parameter)
    groups = [below, *(numbered[number] for number in sorted(numbered))]
    groups[-1] = [*groups[-1], *above]
    return [group for group in groups if group]


def config_of(model: nn.Module) -> Any:
    """Return the settings of a transformer, an object of transformers."""
    return model.config


def _longest(tokenizer: Any, config: Any) -> int:
    """Return how many sub-words the model accepts at once, including special tokens."""
    positions = int(getattr(config, "max_position_embeddings", 512))
    if config.model_type in POSITIONS_AFTER_PADDING:
        positions -= int(config.pad_token_id) + 1
    stated = int(tokenizer.model_max_length)
    return min(positions, stated) if stated < NO_LIMIT else positions
