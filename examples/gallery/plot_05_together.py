"""
Interactions
============

Two columns can be informative together even if neither is informative by itself. Univariate tests miss such
interactions, but BELIEF detects them.
"""

# %%
# In the textbook case, the class is x0 xor x1, and the other 97 columns are noise. Univariate χ² tests
# (``p_univariate``) find neither x0 nor x1 significant.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import belief

X = np.random.default_rng(3).integers(0, 2, (400, 99))
result = belief.select(X, X[:, 0] ^ X[:, 1], "auto", discrete_features=np.ones(99, bool), random_state=0)
print(result.explain())

# %%
# The second table is real: the 958 final boards of tic-tac-toe. The target is whether crosses won ("tic-tac-toe
# endgame" in the UCI repository).
ROWS = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def has_won(board, player):
    return any(all(board[i] == player for i in row) for row in ROWS)


def ends(board=" " * 9, player="x"):
    """Return all final boards that can follow this one."""
    if has_won(board, "x") or has_won(board, "o") or " " not in board:
        return {board}
    other = "o" if player == "x" else "x"
    free = [i for i in range(9) if board[i] == " "]
    return set().union(*(ends(board[:i] + player + board[i + 1 :], other) for i in free))


boards = sorted(ends())
squares = [f"{row} {column}" for row in ("top", "middle", "bottom") for column in ("left", "centre", "right")]
table = pd.DataFrame([list(board) for board in boards], columns=squares)
won = np.array([has_won(board, "x") for board in boards])
result = belief.select(table, won, 9, random_state=0)
print(f"{len(boards)} boards, crosses won {won.mean():.0%} of them\n")
print(result.explain())

# %%
# The squares at the edges are hardly relevant by themselves. ``explain()`` and the report name the square that they
# interact with.
ARROW = {"arrowstyle": "->", "color": "#cc6a1f", "shrinkA": 18, "shrinkB": 18, "connectionstyle": "arc3,rad=0.25"}
weight = result.relevance.reshape(3, 3)
figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.imshow(weight, cmap="Blues", vmin=0)
for (r, c), w in np.ndenumerate(weight):
    ax.text(c, r, f"{w:.2f}", ha="center", va="center", color="white" if w > 0.6 else "black")
for j, partner in zip(result.selected, result.partner, strict=True):
    if partner >= 0:
        (r, c), (r2, c2) = divmod(j, 3), divmod(partner, 3)
        ax.annotate("", (c2, r2), (c, r), arrowprops=ARROW)
_ = ax.set(xticks=[], yticks=[], title="relevance of each square; arrows: interacts with")
