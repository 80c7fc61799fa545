"""Settings of recognizers: recordings and their transcripts, the network, and decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.pairs import NormalForm, Units
from trelliswork.data.recordings import RecordingFormat
from trelliswork.data.settings import WIDEST, Around, Numbers, Settings, setting

TranscriptUnits = Literal["auto", "characters", "symbols", "words"]
Search = Literal["beam", "greedy"]
_UNITS: dict[str, Units] = {"auto": "auto", "characters": "characters", "symbols": "blanks", "words": "words"}


@dataclass(frozen=True)
class RecordingFiles(Settings):
    """Settings of manifests: how transcripts are cut into symbols."""

    PANEL = "Recordings"

    units: TranscriptUnits = setting(
        "auto", "Units of the transcripts; symbols have blanks between them", choices=get_args(TranscriptUnits),
        option=True,
    )  # fmt: skip
    normalise: NormalForm = setting(
        "auto", "Unicode normal form of the symbols; answers are spelt as the training transcripts are",
        choices=get_args(NormalForm), option=True,
    )  # fmt: skip

    @property
    def format(self) -> RecordingFormat:
        """The same for readers."""
        return RecordingFormat("characters", _UNITS[self.units], self.normalise)


@dataclass(frozen=True)
class RecognizerConfig(Settings):
    """Settings of a recognizer: frames, convolutions, BiLSTM layers, distortions in training, and the beam.

    Park et al. (2019), SpecAugment: a simple data augmentation method for automatic speech recognition.
    """

    PANEL, BY_MODEL = "Network", True

    filters: int = setting(40, "Number of mel filters (sound).", at_least=1, below=513, option=True)
    frame_ms: float = setting(25.0, "Length of a frame in milliseconds (sound).", at_least=1, below=1001)
    step_ms: float = setting(10.0, "Milliseconds from one frame to the next (sound).", at_least=1, below=1001)
    deltas: bool = setting(True, "Add first and second differences of the filters (sound).")
    height: int = setting(32, "Height that images are scaled to.", at_least=1, below=1025, option=True)
    convolutions: int = setting(2, "Number of convolutions.", at_least=1, below=9)
    channels: int = setting(32, "Channels of the convolutions.", at_least=1, option=True, search=Around(2))
    kernel: int = setting(3, "Frames that a convolution sees.", choices=(1, 3, 5, 7, 9))
    stride: int = setting(
        2, "Frames that one frame of the output stands for: as many convolutions as it has factors of 2 skip every "
        "other frame.", choices=(1, 2, 4, 8), option=True,
    )  # fmt: skip
    hidden: int = setting(128, "Hidden units (per direction).", at_least=1, option=True, search=Around(2))
    layers: int = setting(2, "Number of encoder layers.", at_least=1, option=True)
    dropout: float = setting(
        0.2, "Dropout on the inputs of the encoder, between its layers, and on its output.", at_least=0, below=1,
        option=True, search=Numbers(0.0, 0.6, step=0.1),
    )  # fmt: skip
    time_masks: int = setting(
        2, "Stretches of frames that are blanked out in training (not of images).", at_least=0, option=True
    )
    time_mask: int = setting(10, "Largest number of frames in such a stretch.", at_least=1)
    feature_masks: int = setting(
        2, "Bands of features that are blanked out in training (not of images).", at_least=0, option=True
    )
    feature_mask: float = setting(0.2, "Largest share of the features in such a band.", at_least=0, below=1)
    shift: float = setting(
        0.05, "Largest shift of an image up or down in training, as a share of its height.", at_least=0, below=1,
        option=True,
    )  # fmt: skip
    slant: float = setting(0.2, "Largest slant of an image in training, in columns for each row.", at_least=0, below=4,
                           option=True)  # fmt: skip
    scale: float = setting(0.1, "Largest change of the size of an image in training, as a share.", at_least=0, below=1)
    skip_impossible: bool = setting(
        False, "Leave out training recordings with more symbols than CTC has frames for.", option=True
    )
    lm: str | None = setting(
        None, "n-gram model of the symbols of transcripts, whose weight in the beam is fitted on the dev recordings; "
        "predict --lm DIR uses it.", option=True, metavar="DIR",
    )  # fmt: skip
    beam: int = setting(16, "Beam size: strings kept at each frame.", at_least=1, below=WIDEST, option=True)


@dataclass(frozen=True)
class DecodingSettings(Settings):
    """The search for the string of a recording, and a language model that takes part in it.

    A string is scored by log p(string | recording) + `lm_weight` log p_lm(string) + `lm_bonus` for each symbol.
    """

    PANEL = "Recognizers"

    search: Search = setting(
        "beam", "Search for the transcript of a recording; --beam N sets the width of the beam",
        choices=get_args(Search), option=True,
    )  # fmt: skip
    lm: str | None = setting(
        None, "n-gram model whose scores of the transcripts take part in the beam.", option=True, metavar="DIR"
    )
    lm_weight: float | None = setting(
        None, "Weight of the language model.", at_least=0, option=True, default_text="as fitted by train --lm, else 0.5"
    )
    lm_bonus: float | None = setting(
        None, "Addition to the score for each symbol, if there is a language model.", option=True,
        default_text="as fitted by train --lm, else 0.5",
    )  # fmt: skip
    align: bool = setting(
        False, "Align the transcripts of a manifest with their recordings instead of predicting them.", option=True
    )
