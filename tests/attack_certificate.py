"""A long attack on the certificate, by hand: python tests/attack_certificate.py [minutes] [first seed]

Draws models and adversarial rows as tests/test_certificate.py does, only more of them and with more support vectors
and features, and judges every answer of every mode, target and layout of rows. Stops at the first bound that is broken,
with the arguments that make it again; otherwise prints how many answers were judged and the worst error / bound of each
target and stage. Run it after any change to cascade.hpp, certificate.hpp, prepared.hpp, sparse.hpp, rbf.hpp or
certificate.py.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from test_certificate import COEFFICIENTS, STAGES, VECTORS, Tally, random_attack


def draw(seed: int) -> dict[str, Any]:
    """Arguments of random_attack."""
    rng = np.random.default_rng([seed, 1])
    return {
        "seed": seed,
        "n_sv": int(10 ** rng.uniform(0, 2.9)),
        "n_features": int(10 ** rng.uniform(0, 2.2)),
        "scaled_gamma": rng.uniform(-8, 4),
        "offset": float(rng.choice([0.0, 0.0, 0.0, 1.0, 100.0, 1e4, 1e6])),
        "vectors": str(rng.choice(VECTORS)),
        "coefficients": str(rng.choice(COEFFICIENTS)),
        "choice": str(rng.choice(["mean", "mean", "origin"])),
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
    for (target, stage), ratio in sorted(tally.worst.items()):
        print(f"  {target:9} {STAGES[stage]:10} {ratio:.4f}")


if __name__ == "__main__":
    attack(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
