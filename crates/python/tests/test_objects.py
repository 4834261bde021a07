"""Solvers, preconditioners, reports, and the tools."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import convection, poisson, residual

import lacuna_sparse as la


def test_solve_chooses_and_raises() -> None:
    A, b = convection(30), np.ones(900)
    x, report = la.solve(A, b, full_output=True)
    assert report.converged and residual(A, x, b) <= 1.01e-8 and report.x is x
    assert residual(A, la.solve(A, b, rtol=1e-3, method="gmres"), b) <= 1e-3
    singular = sp.csr_array(np.ones((20, 20)))
    with pytest.raises(la.NotConverged) as caught:
        la.solve(singular, np.arange(20.0))
    assert not caught.value.report.converged and caught.value.x.shape == (20,)
    assert "residual" in str(caught.value)
    x, report = la.solve(singular, np.arange(20.0), full_output=True)
    assert report.reason != "converged" and report.code != 0 and report.why


def test_many_right_hand_sides() -> None:
    A = poisson(25)
    B = np.random.default_rng(5).standard_normal((625, 4))
    X, reports = la.solve(A, B, full_output=True)
    assert X.shape == B.shape and len(reports) == 4
    assert all(residual(A, X[:, j], B[:, j]) <= 1.01e-8 for j in range(4))
    assert all((reports[j].x == X[:, j]).all() for j in range(4))
    solver = la.Solver(A, "cg", "none")
    together = solver.solve(B)
    apart = np.stack([solver.solve(B[:, j]) for j in range(4)], axis=1)
    assert together.tobytes() == apart.tobytes()
    assert solver.solve(B, x0=together).tobytes() == together.tobytes()
    with pytest.raises(ValueError, match="rows"):
        solver.solve(np.ones((3, 2)))


def test_least_squares_by_solve() -> None:
    A = sp.random_array((50, 20), density=0.4, rng=np.random.default_rng(2)).tocsr()
    b = np.ones(50)
    x = la.solve(A, b)
    assert np.linalg.norm(A.T @ (b - A @ x)) <= 2e-8 * np.linalg.norm(A.T @ b)


def test_a_solver_is_kept() -> None:
    A, b = poisson(30), np.ones(900)
    solver = la.Solver(A, "cg", "amg")
    x = solver.solve(b)
    assert residual(A, x, b) <= 1.01e-8 and solver.method == "cg" and solver.preconditioner == "amg"
    assert solver.shape == (900, 900) and solver.dtype == np.float64 and solver.device.startswith("cpu")
    assert solver.setup.keys() >= {"matrix", "preconditioner"} and solver.choices[0].startswith("method cg")
    out = np.empty(900)
    assert solver.solve(b, out=out) is out and (out == x).all()
    assert solver(b).tobytes() == x.tobytes()
    with pytest.raises(ValueError, match="out"):
        solver.solve(b, out=np.empty(900, np.float32))
    assert np.allclose(solver.matvec(x), A @ x)
    assert np.allclose(solver.precondition(b), solver.aspreconditioner() @ b)
    solver.update_values(2 * A.data)
    assert np.allclose(solver.solve(b), x / 2, rtol=1e-6)
    solver.update(3 * A)
    assert np.allclose(solver.solve(b), x / 3, rtol=1e-6)
    with pytest.raises(ValueError, match="pattern"):
        solver.update(A + sp.eye_array(900, k=5))
    with pytest.raises(ValueError, match="length"):
        solver.update_values(A.data[1:])
    with pytest.raises(ValueError, match="operator"):
        la.Solver(sp.linalg.aslinearoperator(A) * 1.0, "cg").update_values(A.data)


def test_pickles_and_copies_have_the_same_bits() -> None:
    A, b = convection(15), np.ones(225)
    solver = la.Solver(A, "gmres", "ilu0", rtol=1e-9, restart=15)
    for other in (pickle.loads(pickle.dumps(solver)), copy.copy(solver), copy.deepcopy(solver)):
        assert other.solve(b).tobytes() == solver.solve(b).tobytes()
        assert other._core is not solver._core
    solver.update_values(1.5 * A.data)
    assert pickle.loads(pickle.dumps(solver)).solve(b).tobytes() == solver.solve(b).tobytes()
    M = la.Preconditioner(A, "ilu0")
    assert (pickle.loads(pickle.dumps(M)) @ b).tobytes() == (M @ b).tobytes()


def members(report: la.Report) -> dict:
    """What a report shows, as bytes where it is an array: NaN is equal to itself then."""
    shown = {name: getattr(report, name) for name in dir(report) if not name.startswith("_")}
    return {name: np.asarray(value).tobytes() if isinstance(value, (float, np.ndarray)) else value for name, value in shown.items()}


def test_a_report_names_what_finished() -> None:
    A = poisson(20)
    _, report = la.solve(A, np.ones(400), full_output=True)
    assert report.method and report.preconditioner and report.before == []
    _, report = la.solve(A, np.ones(400), method="minres", preconditioner="none", full_output=True)
    assert (report.method, report.preconditioner, report.before) == ("minres", "none", [])


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_report_pickles_with_all_that_it_shows(protocol: int) -> None:
    A = sp.random_array((50, 20), density=0.4, rng=np.random.default_rng(2)).tocsr()
    reports = [
        la.solve(convection(15), np.ones(225), method="gmres", full_output=True)[1],
        la.solve(poisson(20), np.ones(400), method="cg", preconditioner="none", maxiter=3, full_output=True)[1],
        la.solve(A, np.ones(50), method="lsqr", full_output=True)[1],
        la.solve(sp.csr_array(np.ones((20, 20))), np.arange(20.0), full_output=True)[1],
    ]
    assert {"converged", "limit"} < {report.reason for report in reports} and np.isnan(reports[0].misfit)
    for report in reports:
        again = pickle.loads(pickle.dumps(report, protocol))
        assert type(again) is la.Report and members(again) == members(report) and len(members(again)) == 26
        assert (str(again), repr(again), again._repr_html_()) == (str(report), repr(report), report._repr_html_())
        assert members(copy.deepcopy(report)) == members(report)


@pytest.mark.parametrize("columns", [1, 3])
def test_what_solve_raises_pickles(columns: int) -> None:
    b = np.arange(20.0) if columns == 1 else np.arange(60.0).reshape(20, 3)
    with pytest.raises(la.NotConverged) as caught:
        la.solve(sp.csr_array(np.ones((20, 20))), b)
    raised = caught.value
    raised.more = "of the caller's"
    for again in (*(pickle.loads(pickle.dumps(raised, of)) for of in range(pickle.HIGHEST_PROTOCOL + 1)), copy.copy(raised)):
        assert type(again) is la.NotConverged and str(again) == str(raised) and again.more == raised.more
        assert again.x.tobytes() == raised.x.tobytes()
        if columns == 1:
            assert members(again.report) == members(raised.report) and again.report.x is again.x
        else:
            assert [members(one) for one in again.report] == [members(one) for one in raised.report]


def test_strict_tries_the_method_named_and_no_other() -> None:
    A, b = poisson(40), np.ones(1600)
    x, report = la.solve(A, b, preconditioner="jacobi", maxiter=5, strict=True, full_output=True)
    assert report.reason == "limit" and report.iterations == 5 and not report.notes and not report.why and not report.advice
    indefinite = A - 3 * sp.eye_array(1600)
    _, report = la.solve(indefinite, b, method="cg", strict=True, full_output=True)
    assert la.Reason(report.code) is la.Reason.INDEFINITE_OPERATOR and not report.why
    with pytest.raises(la.NotConverged):
        la.solve(indefinite, b, method="cg", strict=True)
    # Where it converges it changes nothing, and it is kept in pickles.
    strict, open_ = (la.Solver(A, "cg", "jacobi", strict=strict) for strict in (True, False))
    assert strict.solve(b).tobytes() == open_.solve(b).tobytes() and strict.report.converged
    solver = la.Solver(A, "auto", "jacobi", maxiter=5, strict=True)
    for one in (solver, pickle.loads(pickle.dumps(solver))):
        one.solve(b)
        assert one.report.iterations == 5 and not one.report.why


def test_one_object_for_one_thread() -> None:
    # Large enough that a monitor is called before the end.
    A = poisson(600)
    solver = la.Solver(A, "cg", "none", rtol=1e-13)
    started, refused = threading.Event(), []

    def monitor(iterations: int, norm: float) -> None:
        if not started.is_set():
            try:
                solver.solve(np.ones(A.shape[0]))
            except RuntimeError as error:
                refused.append(str(error))
            started.set()

    solver.solve(np.ones(A.shape[0]), monitor=monitor)
    assert refused and "in use" in refused[0]


def test_many_objects_in_many_threads() -> None:
    A, b = convection(60), np.ones(3600)
    expected = la.Solver(A, "bicgstab", "ilu0").solve(b).tobytes()
    found: list = [None] * 8

    def run(i: int) -> None:
        solver = la.Solver(A, "bicgstab", "ilu0")
        found[i] = {solver.solve(b).tobytes() for _ in range(5)}

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(bits == {expected} for bits in found)


def test_equal_bits_with_any_number_of_threads() -> None:
    A, b = convection(150), np.ones(22500)
    bits = {la.solve(A, b, method="bicgstab", preconditioner="jacobi", threads=n).tobytes() for n in (1, 2, 3)}
    assert len(bits) == 1


def test_the_gil_is_free_during_a_solve() -> None:
    ticks, done = [], threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    A = poisson(500)
    la.cg(A, np.ones(A.shape[0]), rtol=1e-10, maxiter=300)
    done.set()
    thread.join()
    assert len(ticks) >= 5


def test_preconditioners() -> None:
    A = convection(20)
    b = np.arange(400.0)
    M = la.Preconditioner(A, "ilu0:adjoint=yes")
    assert M.shape == (400, 400) and M.dtype == np.float64
    dense = M @ np.eye(400)
    assert np.allclose(M.rmatvec(b), dense.T @ b)
    assert M.matvec(b[:, None]).shape == (400, 1)
    before = la.bicgstab(A, b, M=M)[0]
    M.update_values(2 * A.data)
    assert np.allclose(M @ b, dense @ b / 2)
    assert np.allclose(la.bicgstab(A, b, M=M, rtol=1e-9)[0], before, rtol=1e-3)
    with pytest.raises(ValueError, match="expected"):
        la.Preconditioner(A, "none")
    with pytest.raises(ValueError, match="adjoint"):
        la.Preconditioner(A, "ilu0").rmatvec(b)
    single = la.Preconditioner(A.astype(np.float32), "ilu0")
    assert la.bicgstab(A, b, M=single)[1] == 0, "a preconditioner in single precision for a system in double"


def test_a_report_prints_and_shows_itself() -> None:
    _, report = la.solve(poisson(20), np.ones(400), method="cg", full_output=True)
    text = str(report)
    assert text.startswith("converged") and "iterations" in text and "method cg" in text
    html = report._repr_html_()
    assert html.startswith("<div><table>") and "<polyline" in html and html.endswith("</div>")
    assert len(report.history) == report.iterations + 1 and report.time > 0 and report.setup_time > 0
    with pytest.raises(AttributeError):
        report.reason = "other"


def test_methods_are_all_that_a_solver_takes() -> None:
    A, b, listed = poisson(10), np.ones(100), la.methods()
    assert {"auto", "tune", "cg", "lsqr", "jacobi", "gauss-seidel", "sor", "direct"} < listed.keys()
    assert "omega" in listed["sor"] and all(listed.values())
    for name in listed:
        assert la.Solver(A, name).solve(b).shape == (100,), name
    with pytest.raises(ValueError, match="expected one of") as refused:
        la.Solver(A, "abacus")
    named = str(refused.value).split("expected one of ")[1].split(", got")[0].split(", ")
    assert sorted(named) == sorted(listed)


def test_tools(tmp_path: Path) -> None:
    A = convection(7)
    found = la.info(A)
    assert found["rows"] == 49 and found["pattern_symmetric"] and not found["symmetric"]
    assert isinstance(la.devices()["cpu"], list) and "amg" in la.preconditioners() and "restart" in la.methods()["gmres"]
    for name in ("a.mtx", "a.mtx.gz", "a.npz", "a.petsc"):
        la.write(tmp_path / name, A)
        again = la.read(tmp_path / name)
        assert (abs(again - A)).max() < 1e-14, name
    assert la.read(tmp_path / "a.mtx", np.complex64).dtype == np.complex64
    trials = la.advise(A, np.ones(49), seconds=0.2)
    assert len(trials) > 2 and trials[0].true_residual <= 1e-8 and trials[0].message.startswith("converged")
