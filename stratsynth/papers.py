"""The papers that mechanisms follow: the one place that names their authors, titles, years and links.

Docstrings call five of them by number: paper 000 is TAILORING, 001 FAIRNESS_LENS, 002 REDUCTIONS, 003 STRATIFICATION
and 004 FAIR_LEARNING. A mechanism declares its paper (`Mechanism.paper`), which reports, `stratsynth mechanisms` and
`stratsynth cite` show.
"""

from __future__ import annotations

from stratsynth.references import Reference

ADASSP = Reference(
    key="wang2018revisiting",
    kind="inproceedings",
    title="Revisiting differentially private linear regression: optimal and adaptive prediction and estimation in "
    "unbounded domain",
    authors=("Wang, Yu-Xiang",),
    year="2018",
    venue="Uncertainty in Artificial Intelligence",
    link="https://arxiv.org/abs/1803.02596",
)
AIM = Reference(
    key="mckenna2022aim",
    kind="article",
    title="AIM: an adaptive and iterative mechanism for differentially private synthetic data",
    authors=("McKenna, Ryan", "Mullins, Brett", "Sheldon, Daniel", "Miklau, Gerome"),
    year="2022",
    venue="Proceedings of the VLDB Endowment",
    volume="15",
    number="11",
    link="https://arxiv.org/abs/2201.12677",
)
COINPRESS = Reference(
    key="biswas2020coinpress",
    kind="inproceedings",
    title="CoinPress: practical private mean and covariance estimation",
    authors=("Biswas, Sourav", "Dong, Yihe", "Kamath, Gautam", "Ullman, Jonathan"),
    year="2020",
    venue="Advances in Neural Information Processing Systems",
    volume="33",
    pages="14475-14485",
    link="https://arxiv.org/abs/2006.06618",
)
FAIR_LEARNING = Reference(
    key="lowy2023stochastic",
    kind="inproceedings",
    title="Stochastic differentially private and fair learning",
    authors=("Lowy, Andrew", "Gupta, Devansh", "Razaviyayn, Meisam"),
    year="2023",
    venue="International Conference on Learning Representations",
    link="https://arxiv.org/abs/2210.08781",
)
"""Paper of DP-FERMI."""
FAIRNESS_LENS = Reference(
    key="tran2021fairness",
    kind="inproceedings",
    title="Differentially private empirical risk minimization under the fairness lens",
    authors=("Tran, Cuong", "Dinh, My", "Fioretto, Ferdinando"),
    year="2021",
    venue="Advances in Neural Information Processing Systems",
    volume="34",
    pages="27555-27565",
    link="https://arxiv.org/abs/2106.02674",
)
GEM = Reference(
    key="liu2021iterative",
    kind="inproceedings",
    title="Iterative methods for private synthetic data: unifying framework and new methods",
    authors=("Liu, Terrance", "Vietri, Giuseppe", "Wu, Zhiwei Steven"),
    year="2021",
    venue="Advances in Neural Information Processing Systems",
    volume="34",
    pages="690-702",
    link="https://arxiv.org/abs/2106.07153",
)
MST = Reference(
    key="mckenna2021winning",
    kind="article",
    title="Winning the NIST Contest: a scalable and general approach to differentially private synthetic data",
    authors=("McKenna, Ryan", "Miklau, Gerome", "Sheldon, Daniel"),
    year="2021",
    venue="Journal of Privacy and Confidentiality",
    volume="11",
    number="3",
    link="https://arxiv.org/abs/2108.04978",
)
REDUCTIONS = Reference(
    key="alabi2019cost",
    kind="misc",
    title="The cost of a reductions approach to private fair optimization",
    authors=("Alabi, Daniel",),
    year="2019",
    link="https://arxiv.org/abs/1906.09613",
)
STRATIFICATION = Reference(
    key="rosenblatt2024simple",
    kind="inproceedings",
    title="A simple and practical method for reducing the disparate impact of differential privacy",
    authors=("Rosenblatt, Lucas", "Stoyanovich, Julia", "Musco, Christopher"),
    year="2024",
    venue="Proceedings of the AAAI Conference on Artificial Intelligence",
    link="https://arxiv.org/abs/2312.11712",
)
TAILORING = Reference(
    key="budgettailoring",
    kind="misc",
    title="Privacy budget tailoring in private data analysis",
    note="Anonymous manuscript under double-blind review",
)
PAPERS = (STRATIFICATION, TAILORING, FAIRNESS_LENS, REDUCTIONS, FAIR_LEARNING, MST, AIM, GEM, COINPRESS, ADASSP)
"""All papers: first the five that the project reproduces (`scripts/reproduce_NAME`), then those of its mechanisms."""
