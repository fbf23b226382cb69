"""gpumem run --check sync: the reports of hazards, and silence of the mended programs."""
import checked
import harness


def kernel(body):
    return """
.visible .entry k(.param .u64 to) {
.reg .pred %p, %q; .reg .b32 %r<8>; .reg .b64 %rd<8>; .shared .align 16 .b8 s[4096];
ld.param.u64 %rd1, [to]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;
shl.b32 %r2, %r1, 4; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;
""" + body + "\nret;\n}\n"


BODY = """
x = alloc(4096)
put(x, bytes(4096))
launch("k", x, threads=64)
sync()
free(x)
"""

# Thread 0 lets 1 KiB be copied, with an mbarrier for it; all wait; it copies out; it arrives twice.
BULK = ("setp.eq.u32 %p, %r1, 0;\n@%p mbarrier.init.shared.b64 [s], 1;\nbar.sync 0;\n"
        "@%p mbarrier.arrive.expect_tx.shared.b64 %rd2, [s], 1024;\n"
        "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+1024], [%rd1], 1024, [s];\n")
WAIT = "look: mbarrier.try_wait.parity.shared.b64 %%p, [s], %s;\n@!%%p bra look;\n"
STORE = ("setp.eq.u32 %p, %r1, 0;\n@%p cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s+1024], 1024;\n"
         "@%p cp.async.bulk.commit_group;\n")
ARRIVE = ("setp.eq.u32 %p, %r1, 0;\n@%p mbarrier.init.shared.b64 [s], 1;\n"
          "@%p mbarrier.arrive.shared.b64 %rd2, [s];\n@%p mbarrier.arrive.shared.b64 %rd3, [s];\n")

# (kind, severity, what stands in the report, the kernel, the mended kernel)
CASES = [
    ("copy-without-wait", "error", ["cp.async.ca", "copied by kernel k", "ld.shared.u32", "/src/checked.cu:7"],
     "cp.async.ca.shared.global [%r3], [%rd1], 16;\n.loc 1 7 1\nld.shared.u32 %r4, [%r3];",
     "cp.async.ca.shared.global [%r3], [%rd1], 16;\ncp.async.wait_all;\nld.shared.u32 %r4, [%r3];"),
    ("divergent-barrier", "error", ["others are at kernel k", "bar.sync 0; // high"],
     "setp.lt.u32 %p, %r1, 16;\n@%p bra low;\nbar.sync 0; // high\nbra end;\nlow: bar.sync 0;\nend:",
     "setp.lt.u32 %p, %r1, 32;\n@%p bra low;\nbar.sync 0;\nbra end;\nlow: bar.sync 0;\nend:"),
    ("exited-threads", "warning", ["24 threads missing"], "setp.ge.u32 %p, %r1, 40;\n@%p ret;\nbar.sync 0;",
     "setp.ge.u32 %p, %r1, 40;\nbar.sync 0;\n@%p ret;"),
    ("mbarrier-in-use", "error", ["at offset 0 of shared memory"],
     "setp.eq.u32 %p, %r1, 0;\n@%p mbarrier.init.shared.b64 [s], 1;\n@%p mbarrier.init.shared.b64 [s], 2;",
     "setp.eq.u32 %p, %r1, 0;\n@%p mbarrier.init.shared.b64 [s], 1;\n@%p mbarrier.inval.shared.b64 [s];\n"
     "@%p mbarrier.init.shared.b64 [s], 2;"),
    ("member-mask", "error", ["bar.warp.sync 0xfffe"], "setp.lt.u32 %p, %r1, 16;\n@%p bar.warp.sync 0xfffe;",
     "setp.lt.u32 %p, %r1, 16;\n@%p bar.warp.sync 0xffff;"),
    ("copy-without-wait", "error", ["cp.async.bulk.shared::cluster", "copied by kernel k", "ld.shared.u32", "copied asynchronously"],
     BULK + "ld.shared.u32 %r4, [s+1024];\n" + WAIT % "0", BULK + WAIT % "0" + "ld.shared.u32 %r4, [s+1024];"),
    ("copy-without-wait", "error", ["a block ends before a wait", "cp.async.bulk.global", "read of 1024"],
     STORE, STORE + "@%p cp.async.bulk.wait_group.read 0;"),
    ("copy-without-wait", "error", ["is overwritten", "read by kernel k", "st.shared.u32 [s+1040], 7"],
     STORE + "@%p st.shared.u32 [s+1040], 7;\n@%p cp.async.bulk.wait_group 0;",
     STORE + "@%p cp.async.bulk.wait_group 0;\n@%p st.shared.u32 [s+1040], 7;"),
    ("copy-without-wait", "warning", ["a block ends before a wait for what cp.async copies"],
     "cp.async.ca.shared.global [%r3], [%rd1], 16;",
     "cp.async.ca.shared.global [%r3], [%rd1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;"),
    ("mbarrier-overwritten", "error", ["st.shared.u32 [s+4], 0"],
     "setp.eq.u32 %p, %r1, 0;\n@%p mbarrier.init.shared.b64 [s], 1;\n@%p st.shared.u32 [s+4], 0;",
     "setp.eq.u32 %p, %r1, 0;\n@%p mbarrier.init.shared.b64 [s], 1;\n@%p st.shared.u32 [s+8], 0;"),
    ("mbarrier-phase", "error", ["mbarrier.test_wait", "the state of a phase before the last one"],
     ARRIVE + "@%p mbarrier.test_wait.shared.b64 %q, [s], %rd2;",
     ARRIVE + "@%p mbarrier.test_wait.shared.b64 %q, [s], %rd3;"),
    ("barrier-number", "error", ["barrier 20, taken for 4", "barrier.sync %r4"],
     "mov.u32 %r4, 20;\nbarrier.sync %r4;", "mov.u32 %r4, 4;\nbarrier.sync %r4;"),
    ("divergent-cluster-barrier", "warning", ["others came at kernel k", "barrier.cluster.arrive; // high"],
     "setp.lt.u32 %p, %r1, 16;\n@%p bra low;\nbarrier.cluster.arrive; // high\nbra end;\nlow: barrier.cluster.arrive;\n"
     "end: barrier.cluster.wait;",
     "setp.lt.u32 %p, %r1, 32;\n@%p bra low;\nbarrier.cluster.arrive;\nbra end;\nlow: barrier.cluster.arrive;\n"
     "end: barrier.cluster.wait;"),
    ("barrier-count", "error", ["barrier.sync 1, 24+24"], "barrier.sync 1, 24+24;", "barrier.sync 1, 64;"),
]


def test_each_synchronization_hazard_is_reported_and_its_fix_is_not(folder):
    for kind, level, texts, broken, mended in CASES:
        status, _, error = checked.run(folder, "sync", kernel(broken), BODY)
        print("#", "\n# ".join(error.splitlines()))
        for wanted in [f"{level} 1 (sync, {kind})", *texts]:
            harness.expect(wanted in error, f"{kind}: {wanted} is not in\n{error}")
        status, _, error = checked.run(folder, "sync", kernel(mended), BODY)
        harness.expect(status == 0 and error == checked.SILENT, f"{kind}, mended: {status}\n{error}")


def test_a_deadlock_names_the_barrier(folder):
    body = kernel("setp.lt.u32 %p, %r1, 32;\n@%p bar.sync 2, 64;")
    _, _, error = checked.run(folder, "sync", body, 'launch("k", 0, threads=64); print(sync()); os._exit(0)')
    for wanted in ("(sync, unreached-barrier)", "barrier 2, 32 threads missing", "bar.sync 2, 64"):
        harness.expect(wanted in error, f"{wanted} is not in\n{error}")


def test_a_report_of_mbarrier_misuse_names_the_cause(folder):
    body = kernel("setp.eq.u32 %p, %r1, 0;\n@%p mbarrier.init.shared.b64 [s], 1;\n@%p mbarrier.arrive.shared.b64 %rd2, [s], 2;")
    _, _, error = checked.run(folder, "sync", body, 'launch("k", 0, threads=64); print(sync()); os._exit(0)')
    for wanted in ("(sync, mbarrier): kernel k: misuse of an mbarrier", "more arrivals than its phase still awaits"):
        harness.expect(wanted in error, f"{wanted} is not in\n{error}")


def test_a_report_counts_the_missing_lanes(folder):
    body = kernel("setp.lt.u32 %p, %r1, 16;\n@%p bra low;\nbar.warp.sync -1;\nbra end;\nlow: bar.sync 0;\nend:")
    _, _, error = checked.run(folder, "sync", body, 'launch("k", 0, threads=32); print(sync()); os._exit(0)')
    for wanted in ("(sync, member-mask)", "lanes that the member mask names do not come", "16 lanes missing"):
        harness.expect(wanted in error, f"{wanted} is not in\n{error}")


if __name__ == "__main__":
    harness.main_unless_sanitized(globals())
