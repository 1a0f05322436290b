"""Write the files in this folder: run python make.py in an environment with an old scikit-learn."""

import warnings

import joblib
import numpy as np
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

warnings.simplefilter("ignore")
X = np.random.RandomState(0).normal(size=(60, 3))
two = (X[:, 0] + X[:, 1] ** 2 > 0.7).astype(int)
three = two + (X[:, 2] > 0.5)
models = {
    "probabilities": SVC(gamma="scale", probability=True, random_state=0).fit(X, three),
    "regression": SVR().fit(X, X[:, 0]),
    "one class": OneClassSVM(nu=0.2, gamma=0.2).fit(X),
    "scaled": make_pipeline(StandardScaler(), SVC()).fit(X, two),
    "projected": make_pipeline(SimpleImputer(), MinMaxScaler(), PCA(2), SVC()).fit(X, two),
    "calibrated": CalibratedClassifierCV(SVC(), cv=2).fit(X, two),
}
answers = {name: model.predict(X).tolist() for name, model in models.items()}
shares = {name: models[name].predict_proba(X).tolist() for name in ("probabilities", "calibrated")}
joblib.dump((X.tolist(), models, answers, shares), f"{sklearn.__version__}.joblib", compress=9)
