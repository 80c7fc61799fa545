"""A feature CRF is trained, saved and used for tags without torch, which takes more memory than all of its data."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, tempfile
from trelliswork.data import Sentence
from trelliswork.models import FeatureTagger, LearningConfig

train = [Sentence(("Ann", "sings"), ("B-PER", "O")), Sentence(("Bob", "Lee", "ran"), ("B-PER", "I-PER", "O"))] * 3
for algorithm in ("lbfgs", "perceptron"):
    tagger = FeatureTagger.fit(train, LearningConfig(algorithm, max_iterations=5))
assert tagger.tag(train[:2]) == [list(each.tags) for each in train[:2]], tagger.tag(train[:2])
tagger.save(tempfile.mkdtemp() + "/model")
print("torch" in sys.modules)
"""


def test_no_torch_in_training() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr
