"""Tables 4 to 8 of the paper (arXiv 1804.05774), as printed.

The key of each row is the method and the number of selected features; a star means that the columns were discretised.
The values are the numbers of relevant, redundant and irrelevant features among the selected ones, the success score,
and the accuracies of naive Bayes, a decision tree and logistic regression. None means that the paper has a dash.
"""

from __future__ import annotations

Figures = tuple[int, int | None, int, float, float | None, float, float]

PAPER: dict[str, dict[tuple[str, int], Figures]] = {
    "Corral-100": {
        ("BELIEF", 4): (2, None, 2, 0.50, 0.7105, 0.6605, 0.6716),
        ("BELIEF", 10): (3, None, 7, 0.75, 0.8077, 0.6405, 0.6216),
        ("BELIEF + mCR", 4): (1, None, 3, 0.25, 0.6155, 0.7266, 0.7627),
        ("BELIEF + mCR", 10): (3, None, 7, 0.75, 0.7466, 0.7516, 0.7066),
        ("mRMR", 4): (1, None, 3, 0.25, 0.6072, 0.7266, 0.7716),
        ("mRMR", 10): (4, None, 6, 1.00, 0.7655, 0.6316, 0.8438),
    },
    "XOR-100": {
        ("BELIEF", 2): (0, None, 2, 0.00, 0.7440, 1.0000, 0.6204),
        ("BELIEF", 10): (0, None, 10, 0.00, 0.7197, 0.8383, 0.7840),
        ("BELIEF + mCR", 2): (0, None, 2, 0.00, 0.7440, 1.0000, 0.6204),
        ("BELIEF + mCR", 10): (0, None, 10, 0.00, 0.7190, 0.9040, 0.6840),
        ("mRMR", 2): (0, None, 2, 0.00, 0.4854, 0.7157, 0.6957),
        ("mRMR", 10): (0, None, 10, 0.00, 0.7116, 0.6173, 0.6866),
    },
    "Parity3+3": {
        ("BELIEF", 3): (2, 1, 0, 0.63, 0.3045, 0.2902, 0.2902),
        ("BELIEF", 5): (3, 2, 0, 0.93, 0.3045, 0.8914, 0.2645),
        ("BELIEF + mCR", 3): (3, 0, 0, 1.00, 0.3245, 0.8914, 0.2645),
        ("BELIEF + mCR", 5): (3, 2, 0, 0.93, 0.3045, 0.8914, 0.2645),
        ("mRMR", 3): (0, 0, 3, -0.11, 0.6195, 0.5160, 0.6170),
        ("mRMR", 5): (2, 0, 3, 0.56, 0.5795, 0.4704, 0.6295),
    },
    "SD3": {
        ("BELIEF", 6): (1, 5, 0, 0.17, None, 0.5205, 0.5171),
        ("BELIEF", 20): (2, 8, 10, 0.33, None, 0.4927, 0.6344),
        ("BELIEF + mCR", 6): (1, 1, 4, 0.17, None, 0.5447, 0.6033),
        ("BELIEF + mCR", 20): (2, 7, 11, 0.33, None, 0.4821, 0.7053),
        ("mRMR", 6): (2, 0, 4, 0.33, 0.7831, 0.8815, 0.8758),
        ("mRMR", 20): (4, 3, 13, 0.67, 0.7921, 0.6562, 0.9423),
        ("BELIEF *", 6): (2, 4, 0, 0.33, 0.1225, 0.5780, 0.5080),
        ("BELIEF *", 20): (3, 16, 1, 0.50, 0.6470, 0.7073, 0.7058),
        ("BELIEF + mCR *", 6): (1, 0, 5, 0.17, 0.6796, 0.7240, 0.7788),
        ("BELIEF + mCR *", 20): (4, 10, 6, 0.67, 0.6928, 0.6644, 0.8006),
    },
    "Madelon": {
        ("BELIEF", 5): (0, 0, 5, 0.00, None, 0.6890, 0.6180),
        ("BELIEF", 20): (0, 0, 20, 0.00, None, 0.7664, 0.6045),
        ("BELIEF + mCR", 5): (0, 0, 5, 0.00, None, 0.6890, 0.6180),
        ("BELIEF + mCR", 20): (0, 0, 20, 0.00, None, 0.7953, 0.6082),
        ("mRMR", 5): (1, 0, 4, 0.20, 0.6180, 0.6338, 0.6083),
        ("mRMR", 20): (5, 5, 10, 1.00, 0.6074, 0.6742, 0.6101),
        ("BELIEF *", 5): (0, 0, 5, 0.00, 0.5761, 0.6337, 0.5761),
        ("BELIEF *", 20): (2, 0, 18, 0.40, 0.6195, 0.6778, 0.6128),
        ("BELIEF + mCR *", 5): (0, 0, 5, 0.00, 0.5761, 0.6337, 0.5761),
        ("BELIEF + mCR *", 20): (5, 0, 15, 1.00, 0.6058, 0.6732, 0.6177),
    },
}
