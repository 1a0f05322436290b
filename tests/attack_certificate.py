"""A long attack on the certificate, by hand: python tests/attack_certificate.py [minutes] [first seed]

Draws models and adversarial rows as tests/expansion/test_every_plan.py does, but more of them, with more support
vectors, features and centers. Checks every answer of every mode, target and layout of rows, with the compiler's own
router and with one that sends rows anywhere. Stops at the first broken bound and prints the arguments that reproduce
it; otherwise prints the number of answers and the worst error / bound of each target, degree and stage. Run it after
any change to cascade.hpp, certificate.hpp, evaluate.hpp, polynomial.hpp, prepared.hpp, sparse.hpp, rbf.hpp or
approxsvm/expansion/.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from attacks import COEFFICIENTS, VECTORS, Tally, random_attack


def draw(seed: int) -> dict[str, Any]:
    """Arguments of random_attack."""
    rng = np.random.default_rng([seed, 1])
    degree = int(rng.integers(1, 7))
    most_features = {1: 200, 2: 100, 3: 30, 4: 16, 5: 9, 6: 7}[degree]
    return {
        "seed": seed,
        "n_sv": int(10 ** rng.uniform(0, 2.5)),
        "n_features": int(most_features ** rng.uniform(0, 1)),
        "scaled_gamma": rng.uniform(-8, 4),
        "offset": float(rng.choice([0.0, 0.0, 0.0, 1.0, 100.0, 1e4, 1e6])),
        "vectors": str(rng.choice(VECTORS)),
        "coefficients": str(rng.choice(COEFFICIENTS)),
        "degree": degree,
        "n_centers": int(rng.choice([1, 2, 5, 8, 20, 40])),
        "n_categories": int(rng.choice([0, 0, 2, 3])),
        "balanced": bool(rng.random() < 0.5),
        "precise": bool(rng.random() < 0.5),
    }


def attack(minutes: float, seed: int) -> None:
    tally, n_models, end = Tally(), 0, time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        arguments = draw(seed + n_models)
        try:
            tally += random_attack(**arguments)
        except BaseException:
            print(f"random_attack(**{arguments})", flush=True)
            raise
        n_models += 1
    print(f"{n_models:,} models from seed {seed}, {tally.n_answers:,} answers, no bound broken; worst error / bound:")
    for (target, degree, stage), ratio in sorted(tally.worst.items()):
        print(f"  {target:9} degree {degree} {stage:13} {ratio:.4f}")


if __name__ == "__main__":
    attack(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
