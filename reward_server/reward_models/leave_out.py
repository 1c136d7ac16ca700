"""The noise of labels from the training rows themselves: each dialogue is predicted by a ridge that has not seen it.

For where the validation part has too few rows to tell. The ridge has the features and the penalty of the trained head,
and it is refitted: the residuals of the head itself say little, because it may have been stopped early.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reward_server.reward_models.heads import Exact
from reward_server.reward_models.uncertainty import MIN_GROUPS, MIN_ROWS


def noise_left_out(rows: Exact, labels: Exact, groups: Sequence[str], strength: float) -> float | None:
    """The noise variance of labels (n,) over rows (n, width); None where there are too few rows or groups.

    `strength` is the ratio of noise to prior variance. What a ridge misses of rows it has not seen follows from one
    fit: (I - H_gg)^-1 e_g for group g, with H the hat matrix and e the residuals (Allen's PRESS, 1974, by groups: Cook
    & Weisberg, Residuals and Influence in Regression, 1982, section 2.2). Under the model its covariance is the noise
    variance times (I - H_gg)^-1 (of single rows Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006,
    eq. 5.10-5.12), so that e_g' (I - H_gg)^-1 e_g is expected to be the noise variance for each row of the group.
    """
    names, place = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
    if len(rows) < MIN_ROWS or len(names) < MIN_GROUPS:
        return None
    basis, singular, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    # The intercept is free of the penalty: it takes one share of every row.
    hat = (basis * (singular**2 / (singular**2 + strength))) @ basis.T + 1.0 / len(rows)
    residuals = labels - hat @ labels
    total = 0.0
    for index in range(len(names)):
        own = np.flatnonzero(place == index)
        total += float(residuals[own] @ np.linalg.solve(np.eye(len(own)) - hat[np.ix_(own, own)], residuals[own]))
    return total / len(rows)
