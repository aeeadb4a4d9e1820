// Describes what limits a run as it was recorded, and why the simulation of a run may be wrong.
#ifndef LOTUS_TOOL_FINDINGS_RUN_LIMITS_HPP
#define LOTUS_TOOL_FINDINGS_RUN_LIMITS_HPP

#include <optional>

#include "findings/words.hpp"
#include "model/run_data.hpp"
#include "replay/change.hpp"
#include "replay/prediction.hpp"
#include "replay/recorded/recorded_pipeline.hpp"
#include "waits/join/blocked_on.hpp"

namespace lotus::tool {

struct diagnosis;

/// Returns that a pipeline seems to be a service, without final period.
phrase service_words(double could_per_s, double per_s);

/// Returns why the simulation of a run cannot be trusted; empty if it reproduces the recorded run.
phrase why_unlike(const fitted_model& run, const phrase& unmarked_in = {});

/// Returns the share (0..1) of the run's CPU time that was used outside of recorded work, for
/// example by threads without markers; 0 if it is unknown.
double unrecorded_cpu_share(const recorded_pipeline& p);

/// Returns whether doubling the number of CPUs in addition to `change` would gain at least 5 %
/// more.
bool is_limited_by_cpus(const what_if& run, const pipeline_change& change);

/// Returns a text such as "Fetch runs only once at a time (a lock or a device): ..." about the
/// operation that limits the number of useful workers; empty if the simulation assumes no such
/// limit, or the recording does not show it.
/// @param data    the recorded run.
/// @param joined  its wait samples.
phrase limit_words(const what_if& run, const run_data& data, const run_blocked_on& joined);

/// Returns whether recorded work nearly always sleeps or is blocked, and hardly waits for a CPU.
/// Then it does not matter what else runs.
bool hardly_needs_cpus(const recorded_pipeline& p);

/// Returns whether other programs really used CPUs, if the simulation assumes that they did.
bool others_used_cpus(const what_if& run);

/// Returns a text such as "Decode holds the lock codec_mutex for 40 % of the time in which it does
/// not wait for it (estimated from wait samples)". If several operations wait for the lock, returns
/// a text that says what the simulation leaves out. Empty if samples show no lock.
phrase held_lock_words(const what_if& run);

/// Returns what a prediction assumes about something that is not simulated and might make the run
/// longer, such as "DownloadShard keeps up"; empty if the recording shows nothing of this kind.
phrase bound_words(const prediction& of);

/// Returns what predictions assume about how much busy CPUs slow each other down.
phrase slowing_words(const what_if& run);

/// Returns what predictions assume about other programs if these did not slow down the run. This is
/// "no other program uses the CPUs" or, if the recording shows that others used a tenth of the
/// CPUs, "other programs no longer use CPUs (they used 0.95)".
/// @param others_cpus  mean number of CPUs that other programs used; nullopt: unknown.
/// @param cpus         number of CPUs that the run could use; nullopt: unknown.
phrase free_cpus_words(std::optional<double> others_cpus, std::optional<double> cpus);

/// Returns why workers wait for a CPU longer than they run: their number, or other programs; and
/// what the largest part of the critical path waits for besides. With final period.
/// @param d  has its path and blocked_on.
phrase without_cpu_words(const diagnosis& d);

/// Returns a text such as "other programs used 26 % of the CPU time". Call it only if
/// others_used_cpus().
/// @param is_predicted  whether predictions are shown, which are rough then.
phrase others_words(const what_if& run, bool is_predicted);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_FINDINGS_RUN_LIMITS_HPP
