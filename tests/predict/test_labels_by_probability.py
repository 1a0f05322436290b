"""compile(labels="probability"): the most probable class, where a source's two answers differ."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import UnsupportedModelError

pytestmark = pytest.mark.filterwarnings("ignore:The `probability` parameter", "ignore:Attribute `prob")
RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(150, 4)), RNG.normal(size=(2000, 4))
NOISE = RNG.integers(0, 3, 150)


def test_what_has_no_probabilities():
    votes = VotingClassifier([("a", SVC()), ("b", LogisticRegression())]).fit(X, NOISE)
    for source in (SVC().fit(X, NOISE), SVR().fit(X, X[:, 0]), votes):
        with pytest.raises(UnsupportedModelError, match="labels='probability' needs a model with class probabilities"):
            approxsvm.compile(source, labels="probability")
    with pytest.raises(ValueError, match="labels must be 'source' or 'probability', got 'votes'"):
        approxsvm.compile(SVC().fit(X, NOISE), labels="votes")
    logistic = LogisticRegression().fit(X, NOISE > 0)
    assert (approxsvm.compile(logistic, labels="probability").predict(Z) == logistic.predict(Z)).all()


def test_on_the_command_line(tmp_path):
    svmutil = pytest.importorskip("libsvm.svmutil")
    model = svmutil.svm_train(NOISE.astype(float).tolist(), X, "-b 1 -q")
    svmutil.svm_save_model(str(tmp_path / "m.model"), model)
    result = CliRunner().invoke(
        main, ["convert-model", str(tmp_path / "m.model"), "-o", str(tmp_path / "m.asvm"), "--labels-by", "probability"]
    )
    assert result.exit_code == 0, result.output
    again = svmutil.svm_load_model(str(tmp_path / "m.model"))
    own = np.array(svmutil.svm_predict([], Z, again, "-b 1 -q")[0])
    assert (approxsvm.load(tmp_path / "m.asvm").predict(Z) == own).all()
