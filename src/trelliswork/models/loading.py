"""Any tagger from its folder."""

from __future__ import annotations

from pathlib import Path

from trelliswork.data.attributes.function import FeatureFunction, Function
from trelliswork.data.crfsuite_models import is_crfsuite_model
from trelliswork.errors import ModelError
from trelliswork.models.storage import kind_of_model
from trelliswork.models.taggers.ensemble import Ensemble, model_folders
from trelliswork.models.taggers.features.attribute_tagger import AttributeTagger
from trelliswork.models.taggers.features.tagger import FeatureTagger
from trelliswork.models.taggers.networks.multi_tagger import MultiTagger
from trelliswork.models.taggers.networks.segmenter import Segmenter
from trelliswork.models.taggers.networks.tagger import Tagger
from trelliswork.models.taggers.networks.vector_tagger import VectorTagger

OneTagger = Tagger | Segmenter | FeatureTagger | MultiTagger | VectorTagger
AnyTagger = OneTagger | Ensemble
NETWORKS: dict[str, type[Tagger | Segmenter | MultiTagger | VectorTagger]] = {
    kind.__name__: kind for kind in (Tagger, Segmenter, MultiTagger, VectorTagger)
}


def load_tagger(directory: str | Path, *, features: Function | str | FeatureFunction | None = None) -> AnyTagger:
    """The tagger in a model folder, whichever kind it is; `features` as for `FeatureTagger.load`.

    A folder that holds folders of models, as several seeds leave it, is an `Ensemble` of them.
    """
    if is_crfsuite_model(directory):
        raise ModelError(
            f"{directory}: expected a model folder, got a model of CRFsuite; run trelliswork convert first"
        )
    if model_folders(directory):
        return Ensemble.load(directory, features=features)
    kind = kind_of_model(directory)
    if kind == AttributeTagger.KIND:
        return AttributeTagger.load(directory)
    if kind == FeatureTagger.KIND:
        return FeatureTagger.load(directory, features=features)
    return NETWORKS.get(kind or "", Tagger).load(directory)
