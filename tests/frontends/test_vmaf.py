"""VMAF models, in the format read by libvmaf. The zoo compares one with LIBSVM and the surrounding formula."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from libsvm.svmutil import svm_save_model, svm_train

import approxsvm
from approxsvm.errors import ModelFormatError, UnsupportedModelError

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

RNG = np.random.default_rng(0)
NAMES = [f"VMAF_feature_{name}_score" for name in ("adm2", "motion2", "vif_scale0", "vif_scale1")]
SLOPES = [0.0125, 2.81, 0.0627, 1.22, 1.53]
INTERCEPTS = [-0.31, -1.79, -0.003, -0.22, -0.53]
ROWS = np.column_stack([RNG.uniform(0.5, 1, 80), RNG.uniform(0, 15, 80), RNG.uniform(0.2, 1, (80, 2))])
SCALED = ROWS * SLOPES[1:] + INTERCEPTS[1:]
TARGET = np.clip(SCALED @ [0.5, -0.1, 0.2, 0.3] + 0.05 * RNG.normal(size=80), 0, 1)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    path = tmp_path_factory.mktemp("vmaf") / "model"
    trained = svm_train(TARGET.tolist(), SCALED.tolist(), "-s 4 -t 2 -g 0.5 -c 4 -n 0.9 -q")
    svm_save_model(str(path), trained)
    return path.read_text()


def content(machine, **changes):
    fields = {
        "model_type": "LIBSVMNUSVR",
        "model": machine,
        "norm_type": "linear_rescale",
        "slopes": SLOPES,
        "intercepts": INTERCEPTS,
        "feature_names": NAMES,
        "feature_opts_dicts": [{}, {}, {}, {}],
        "score_clip": [0.0, 100.0],
        "score_transform": {"p0": 1.7, "p1": 1.7, "p2": -0.007, "out_gte_in": "true"},
    } | changes
    return {
        "param_dict": {"C": 4.0, "norm_type": "clip_0to1", "score_clip": [0.0, 100.0]},
        "model_dict": {name: value for name, value in fields.items() if value is not None},
    }


def saved(tmp_path, held):
    path = tmp_path / "vmaf.json"
    path.write_text(json.dumps(held))
    return path


def test_scores_are_those_before_transform_and_clip(machine, tmp_path):
    fast = approxsvm.compile(approxsvm.read_any(saved(tmp_path, content(machine))), mode="exact")
    assert list(fast.feature_names_in_) == NAMES
    assert fast.artifact.source == "VMAF, before transform and clip"
    plain = approxsvm.read_any(saved(tmp_path, content(machine, score_transform=None)))
    assert plain.source == "VMAF, before clip to [0, 100]"
    held = content(machine, norm_type="none", slopes=None, intercepts=None)
    unscaled = approxsvm.compile(saved(tmp_path, held), mode="exact").predict(SCALED)
    np.testing.assert_allclose((unscaled - INTERCEPTS[0]) / SLOPES[0], fast.predict(ROWS), rtol=1e-9)


def test_a_feature_that_no_vector_has(machine, tmp_path):
    """LIBSVM omits zeros, so the model text may have fewer columns than there are names."""
    expected = approxsvm.compile(saved(tmp_path, content(machine)), mode="exact").predict(ROWS)
    names = [*NAMES, "VMAF_feature_extra_score"]
    held = content(machine, feature_names=names, slopes=[*SLOPES, 0.0], intercepts=[*INTERCEPTS, 0.0])
    wide = np.column_stack([ROWS, np.full(80, 2.0)])
    np.testing.assert_allclose(
        approxsvm.compile(saved(tmp_path, held), mode="exact").predict(wide), expected, rtol=1e-9
    )


BROKEN = [
    ({"slopes": SLOPES[1:]}, "slopes: 4 numbers, expected 5"),
    ({"slopes": [0.0, *SLOPES[1:]]}, "slopes: the first, which scores are divided by, is 0"),
    ({"intercepts": [*INTERCEPTS[1:], "1_0"]}, "intercepts: holds something else than numbers"),
    ({"intercepts": [*INTERCEPTS[1:], float("nan")]}, "intercepts: holds NaN"),
    ({"slopes": [10**400, *SLOPES[1:]]}, "slopes: holds a number beyond float64"),
    ({"feature_names": NAMES[:3], "slopes": SLOPES[:4], "intercepts": INTERCEPTS[:4]}, "a regression of 1 to 3"),
    ({"feature_names": []}, "feature_names: expected a list"),
    ({"score_clip": [0.0]}, "score_clip: 1 numbers, expected 2"),
    ({"model": "svm_type nu_svr\nkernel_type rbf\n"}, "model_dict.model"),
    ({"model": ["svm_type nu_svr"]}, "expected the text"),
    ({"norm_type": "linear_rescale2"}, "norm_type is 'linear_rescale2'"),
    ({"model_type": "LIBLINEAR"}, "model_type is 'LIBLINEAR', only LIBSVMNUSVR, BOOTSTRAP_LIBSVMNUSVR"),
    ({"score_transform": {"enabled": True, "p0": 1.0}}, "score_transform is enabled: delete its field enabled"),
]


@pytest.mark.parametrize(("changes", "what"), BROKEN)
def test_what_contradicts_itself_or_cannot_be_compiled(machine, changes, what, tmp_path):
    with pytest.raises((ModelFormatError, UnsupportedModelError), match=what) as caught:
        approxsvm.read_any(saved(tmp_path, content(machine, **changes)))
    assert str(caught.value).startswith(str(tmp_path / "vmaf.json"))


def test_other_json_is_refused(machine, tmp_path, monkeypatch):
    one = content(machine)
    many = {"0": one, "1": content(machine, model_type="RESIDUEBOOTSTRAP_LIBSVMNUSVR")}
    path = saved(tmp_path, many)
    with pytest.raises(UnsupportedModelError, match=r"holds 2 models of VMAF, '0' to '1', of which '0'") as caught:
        approxsvm.read_any(path)
    monkeypatch.chdir(tmp_path)
    exec(str(caught.value).split("as a file: ")[1].replace("['0']", "['1']"), {"json": json, "Path": Path})
    np.testing.assert_array_equal(
        approxsvm.read_any("one.json").support_vectors, approxsvm.read_any(saved(tmp_path, one)).support_vectors
    )
    with pytest.raises(UnsupportedModelError, match="a line scaling, which libvmaf does not read"):
        approxsvm.read_any(saved(tmp_path, content(machine.replace("SV\n", "scaling 1:2\nSV\n"))))
    with pytest.raises(ModelFormatError, match="no model_dict"):
        approxsvm.read_any(saved(tmp_path, [{"a": {"model_dict": 1}}]))
    path = saved(tmp_path, one)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ModelFormatError, match="not readable JSON"):
        approxsvm.read_any(path)
