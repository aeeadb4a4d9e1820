#!/usr/bin/env python3
"""Tests `lotus-tool accelerator` on odd traces: odd_traces_test.py TOOL."""

import sys
import unittest

import odd_traces as odd
from odd_traces import ORIGIN, Recording, training
from trace_case import Case


class Names(Case):
    def test_annotations_are_known_by_their_names(self):
        for category in ("user_annotation", "Operator", "cpu_op", "user_annotation,cpu", "other"):
            found = self.reference(training(category=category))
            self.assertEqual((len(found["steps"]), len(found["batches"])), (10, 10), category)
        self.check(training(category="Operator", numbered=False), "input-bound", us=54_000)
        # What the device's tracks show of an annotation is not what the host did.
        r = training()
        for n in range(10):
            r.add("gpu_user_annotation", f"ProfilerStep#{n}", ORIGIN + 1000 * n, 500, (0, 3))
        self.assertEqual(len(self.reference(r)["steps"]), 10)

    def test_old_categories_of_work(self):
        r = training()
        for event in r.events:
            event["cat"] = {"kernel": "Kernel", "cuda_runtime": "Runtime"}.get(event["cat"],
                                                                             event["cat"])
            event["tid"] = f"stream {event['tid']}"
        self.reference(r)

    def test_operators_that_take_long_until_they_launch(self):
        def work(r):
            begin = r.at
            r.at += 6000
            r.kernel(4000)
            r.add("Operator", "aten::conv2d", begin, r.at - begin)
        found = self.check(training(10, wait=10, numbered=False, work=work), "launch-bound",
                           us=54_180)
        self.assertEqual(found["places"]["operator"], "aten::conv2d")

    def test_copies_of_rocm(self):
        for name, call in (("__amd_rocclr_copyBuffer", "hipMemcpyWithStream"),
                           ("__amd_rocclr_copyBufferRectAligned", "hipMemcpy2DAsync"),
                           ("MEMORY_COPY_HOST_TO_DEVICE", "hipMemcpyAsync"),
                           ("blit_kernel", "hipMemcpyHtoDAsync"),
                           ("CopyHostToDevice", "hipMemcpyAsync")):
            found = self.check(odd.copying(name, call=call), "copy-bound", us=200_090)
            self.assertEqual(found["devices"][0]["compute_us"], 50_000)
        self.check(odd.copying("Memcpy HtoD (Host -> Device)", "gpu_memcpy", bytes=1 << 20),
                   "copy-bound", us=200_090)
        found = self.check(odd.copying("__amd_rocclr_fillBufferAligned", call="hipMemsetAsync"),
                           "device-busy")
        self.assertEqual(found["devices"][0]["compute_us"], 50_000)
        # A copy within the device is work of the device, whatever the vendor calls it.
        self.check(odd.copying("Memcpy DtoD (Device -> Device)", "gpu_memcpy"), "device-busy")
        self.check(odd.copying("Memcpy PtoP (Device -> Device)", "gpu_memcpy"), "device-busy")

    def test_kernels_communicate_only_if_that_is_known(self):
        for name, communicates in (("hipblaslt_gemm", False), ("hip_reduce_rows", False),
                                   ("copyBuffer_of_rows", False), ("CopyRows", False),
                                   ("ncclDevKernel_AllReduce_Sum_f32", True),
                                   ("ncclKernel_AllGather_RING", True),
                                   ("void vllm::cross_device_reduce_1stage<float>()", True)):
            r = training(10, wait=40, numbered=False, work=lambda r: r.kernel(5000, name=name))
            found = self.check(r, "device-busy")
            device = found["devices"][0]
            expected = (0, 50_000) if communicates else (50_000, 0)
            self.assertEqual((device["compute_us"], device["communication_us"]), expected, name)
            self.assertEqual("compare the traces" in found["headline"], communicates)

    def test_waits_of_the_device_are_no_work(self):
        def run(host):
            r = Recording()
            for _ in range(10):
                r.number += 1
                r.add("mtia_ccp_events", "event_wait", r.at, 9000, (0, 3), device=0, stream=3,
                      correlation=r.number)
                if host:
                    r.add("user_annotation", odd.LOADER, r.at, 9000)
                r.at += 9000
                r.calls("runFunction", 20, "mtia_runtime")
                r.runs("layer", 1000, category="mtia_ccp_events")
            return r
        found = self.check(run(False), "synchronization-bound", us=90_000, span=100_200)
        self.assertEqual(found["devices"][0]["busy_us"], 10_000)
        # If the host shows why the event came late, that is the reason.
        self.check(run(True), "input-bound", us=90_000)

    def test_sizes_of_copies(self):
        for size, expected in (({"size": "1048576"}, 10 << 20), ({"bytes": 4096}, 40_960), ({}, None)):
            r = Recording()
            for _ in range(10):
                r.calls("hipMemcpyAsync", 10, **size)
                r.runs("Memcpy HtoD (Host -> Device)", 9500, category="gpu_memcpy")
                r.kernel(500)
            found = self.check(r, "copy-bound", us=95_090)
            self.assertEqual(found["devices"][0]["copies"]["HtoD"]["bytes"], expected)
            self.assertEqual("unknown" in self.run_tool(r).stdout, expected is None)
            self.assertNotIn("Pin the batches", found["advice"])


class Causes(Case):
    def test_code_between_a_synchronization_and_a_launch(self):
        for pause in (0, 1, 8, 30, 49):
            gaps = 39 * (10 + pause + 15)
            self.check(odd.item_loop(pause=pause, copies=False), "synchronization-bound", us=gaps,
                       synchronization=gaps)
            self.check(odd.item_loop(pause=pause), "synchronization-bound", us=gaps + 40 * 4)
        for copies in (False, True):
            self.check(odd.item_loop(pause=70, copies=copies), "host-bound", us=39 * 70)

    def test_queued_work(self):
        found = self.check(odd.queued(gap=1), "device-busy", device=49)
        self.assertEqual(found["devices"][0]["streams"][0]["idle"]["host_wait_us"], 0)
        self.check(odd.queued(gap=10), "scheduling-bound", us=490)
        # Work that waits longer waits for another stream or device.
        self.check(odd.queued(gap=400), "synchronization-bound", us=49 * 400)

    def test_launches_that_come_late(self):
        r = Recording()
        for _ in range(60):
            r.kernel(10, call=12)
        self.check(r, "launch-bound", us=59 * 12)

    def test_without_launches(self):
        r = training()
        r.events = [e for e in r.events if e["cat"] != "cuda_runtime"]
        self.check(r, "input-bound", "--last-step", us=54_000, unknown=180)
        r.events = [e for e in r.events if e["cat"] == "kernel"]
        found = self.check(r, "unknown", us=54_180)
        self.assertIn("does not show why", found["headline"])

    def test_one_step_that_builds_its_batch_itself(self):
        def run(function, steps=1):
            r = Recording()
            for n in range(steps):
                start = r.at
                r.does("python_function", f"pipelines/base.py(12): {function}", 6000)
                for _ in range(10):
                    r.kernel(300)
                r.add("user_annotation", f"ProfilerStep#{n}", start, r.at - start)
            return r
        for function in ("preprocess", "collate_fn"):
            found = self.check(run(function), "input-bound", us=6000, span=9200)
            self.assertIn("preprocesses the input", found["headline"])
            self.assertEqual((found["outside_us"], found["steps"][0]["batch-wait_us"]), (6020, 6000))
            # The tables show the time that the headline is about.
            out = self.run_tool(run(function)).stdout
            self.assertRegex(out, r"the rest +6\.020 ms +0 %")
            self.assertRegex(out, r"batch-wait +6\.000 ms +97 % +65 %")
        self.check(run("preprocess", 10), "input-bound", "--last-step", us=54_000)
        # Whether something else, which only one step shows, happens again is unknown.
        found = self.check(run("forward"), "host-bound", us=6000, span=9200)
        self.assertIn("one gap of 6.000 ms, which may be start-up", found["headline"])
        found = self.check(run("forward", 10), "host-bound", "--last-step", us=54_000)
        self.assertIn("at most 2.69 times as fast", found["headline"])

    def test_threads(self):
        r = training()
        for event in r.events:
            if event["cat"] == "cuda_runtime":
                event["tid"] += 1
        self.reference(r)
        # A thread that prefetches waits, too, but what launches does not wait with it.
        for length in (10_000, 5_000):
            r = Recording()
            for _ in range(40):
                r.add("user_annotation", odd.LOADER, r.at + 3000, length, (50, 51))
                r.at += 6000
                r.kernel(4000)
            self.check(r, "host-bound", us=39 * 6000)
        # Another process does not keep this one waiting.
        r = training(category="cpu_op")
        for event in r.events:
            if event["name"] == odd.LOADER:
                event["pid"] = 51
        self.check(r, "host-bound", "--last-step")

    def test_start_up(self):
        def begun(first, **how):
            r = Recording()
            r.kernel(100)
            r.at += 100
            r.kernel(100, call=first)
            r.at += 100
            return training(11, begin=r, **how)
        found = self.check(begun(400_000), "input-bound", us=60_000, span=100_500)
        self.assertEqual((found["start_up_gaps"], found["start_up_us"]), (1, 400_100))
        self.assertIn("1 gap of 400.1 ms", found["headline"])
        self.check(begun(400_000), "launch-bound", "--skip-steps", "0", us=400_200)
        self.check(begun(20), "input-bound", us=60_000, span=100_620)
        self.check(begun(400_000, numbered=False), "input-bound", us=66_000)
        # A module that is loaded later, for a kernel that was not launched before.
        r = training(20, numbered=False)
        r.kernel(4000, call=300_000, name="new")
        training(5, numbered=False, begin=r)
        self.assertEqual(self.check(r, "input-bound")["start_up_us"], 300_000)
        # If all launches are slow, or if the host pauses at the end, that is no start-up.
        self.check(training(10, wait=10, call=6000), "launch-bound", "--last-step", us=54_000)
        r = training(10)
        r.at += 1_899_000
        r.kernel(40)
        self.check(r, "host-bound", "--last-step", us=1_899_000)

    def test_skipped_steps(self):
        def work(r):
            r.at += 30_000 if r.at == ORIGIN + 6000 else 0
            r.kernel(4000)
        found = self.check(training(work=work), "input-bound", "--skip-steps", "3", "--last-step")
        self.assertEqual(found["skipped_steps"], 3)
        self.assertEqual(found["devices"][0]["kernel_time_us"], 7 * 4000 + 6 * 6020)

    def test_few_steps(self):
        for steps, options, us, span in ((1, [], 6000, 10_020), (2, [], 6000, 10_020),
                                         (2, ["--last-step"], 12_000, 20_040)):
            found = self.check(training(steps), "input-bound", *options, us=us, span=span)
            self.assertIn("60 % of the time", found["headline"])
        found = self.check(training(1, wait=100), "device-busy")
        self.assertIn("not the problem", found["headline"])
        self.check(training(1, numbered=False), "input-bound", us=6000)

    def test_a_busy_device_comes_first(self):
        self.assertIn("busy 92 %", self.check(training(20, wait=330), "device-busy")["headline"])

    def test_where(self):
        r = Recording()
        for n in range(10):
            begin = r.at
            r.does("python_function", "train.py(7): log_metrics", 6000)
            r.add("python_function", "torch/nn/modules/module.py(9): _call", begin, 5000)
            r.add("user_annotation", "MPI_Recv", begin, 5900)
            r.kernel(4000)
            r.add("user_annotation", f"ProfilerStep#{n}", begin, r.at - begin)
        found = self.check(r, "host-bound", "--last-step")
        self.assertEqual(found["places"]["line"], "train.py(7): log_metrics")
        self.assertEqual(found["places"]["range"], "MPI_Recv")
        self.assertIn("train.py(7): log_metrics", found["advice"])
        self.assertAlmostEqual(found["at_most_times_as_fast"], 94_180 / (94_180 - 54_000))

    def test_what_a_loader_without_workers_does(self):
        r = training(loader="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
        for event in list(r.events):
            if "Single" in event["name"]:
                r.add("cpu_op", "aten::stack", event["ts"] + 1000, 4000)
        found = self.reference(r)
        self.assertIn("num_workers=0", found["advice"])
        self.assertEqual(found["places"]["operator"], "aten::stack")

    def test_many_streams_and_lines(self):
        r = Recording()
        for n in range(40):
            r.kernel(4, stream=20 + n)
        training(begin=r)
        text = self.run_tool(r).stdout
        self.assertLess(text.count("\n"), 50)
        self.assertIn("36 more streams with --all", text)
        self.assertIn("stream 59", self.run_tool(r, "--all").stdout)


class Impossible(Case):
    def test_two_works_of_a_stream_at_once(self):
        def run(us):
            def work(r):
                r.calls("cudaMemcpyAsync", 10)
                begin = r.at
                r.add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", begin,
                      us if r.number % 3 else 20, (0, 3), device=0, stream=3, correlation=r.number,
                      bytes=4096)
                r.at = begin + 50
                r.kernel(800)
            return training(10, wait=9000, numbered=False, work=work)
        right = self.check(run(20), "input-bound", us=81_000)
        self.check(run(9000), "input-bound", us=81_000, note="cut off where the next one begins")
        self.assertIn("cudaMemcpyAsync", run(20).text())
        self.assertEqual(right["devices"][0]["kernel_time_us"], 9 * 9880 + 870)

    def test_kernels_of_a_graph_may_overlap(self):
        r = Recording()
        for _ in range(10):
            r.calls("cudaGraphLaunch", 20)
            begin = r.at
            r.runs("long", 5000, begin)
            r.runs("short", 1000, begin + 100)
            r.at += 100
        self.assertEqual(self.check(r, "device-busy")["devices"][0]["busy_us"], 50_000)

    def test_past_a_synchronization(self):
        r = training()
        r.calls("cudaDeviceSynchronize", 10)
        last = [e for e in r.events if e["cat"] == "kernel"][-1]
        last["dur"] = 4_000_000
        self.check(r, "input-bound", "--last-step", us=54_000, note="had synchronized")

    def test_strays(self):
        for begin in (ORIGIN - 1_000_000, ORIGIN + 2_000_000, 0):
            r = training()
            r.number = 0
            r.add("kernel", "stray", begin, 40, (0, 3), device=0, stream=3, correlation=0)
            self.reference(r, "1 event left out: far outside")
        # Something of the host at the beginning of time, with its own work.
        r = training(40)
        r.add("cuda_runtime", "cudaLaunchKernel", 0, 10, correlation=9999)
        r.add("kernel", "old", 20, 40, (0, 3), device=0, stream=3, correlation=9999)
        self.check(r, "input-bound", us=38 * 6000, note="2 events left out: far outside")
        # Work that was launched before the recording began is close to it.
        r = training()
        r.add("kernel", "before", ORIGIN - 3000, 2900, (0, 3), device=0, stream=3, correlation=0)
        self.check(r, "input-bound", "--last-step", batch_wait=60_000)

    def test_impossible_durations(self):
        for begin, us in ((95_000, -ORIGIN), (45_000, -1_000_000), (45_000, 2**64 - 1000)):
            r = training()
            r.add("kernel", "broken", ORIGIN + begin, us, (0, 3), device=0, stream=3)
            self.reference(r, "1 event left out: no time")
        r = training()
        r.add("user_annotation", odd.LOADER, ORIGIN + 50_000, -40_000)
        self.reference(r, "1 event left out: no time")
        r = training()
        r.add("kernel", "empty", ORIGIN + 8_000, 0, (0, 3), device=0, stream=3, correlation=0)
        self.reference(r)

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
