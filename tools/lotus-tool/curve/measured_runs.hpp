// Measured throughputs of several runs of a program, for comparison with predictions.
#ifndef LOTUS_TOOL_CURVE_MEASURED_RUNS_HPP
#define LOTUS_TOOL_CURVE_MEASURED_RUNS_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "log/folder/log_files.hpp"
#include "model/run_data.hpp"
#include "replay/recorded/recorded_pipeline.hpp"

namespace lotus::tool {

/// A quantity on which the throughput depends.
struct curve_axis {
  enum class kind : std::uint8_t { workers, prefetch, cpus, threads, speed };
  kind is = kind::workers;
  std::string name;  ///< of the stage (threads), or of the operation or stage (speed)
};

/// What one run used and reached.
struct measured_run {
  std::string dir;
  std::string command;
  bool named = false;       ///< whether the user named it
  double per_s = 0;         ///< batches per second over the whole run
  std::size_t workers = 0;  ///< 0: the consumer builds its batches itself
  std::size_t prefetch = 0;
  std::optional<double> cpus;
  std::map<std::string, std::size_t> threads;  ///< by stage
  std::map<std::string, double> batch_ns;      ///< time for a batch, by operation and stage
  std::map<std::string, double> cpu_ns;        ///< CPU time for a batch, by operation

  /// Returns the value of a quantity; nullopt if it is unknown, or if the run differs from another
  /// run by more than this quantity: by other settings, or by the CPU time of operations.
  /// @param recorded  the other run, whose operations are 1 time as fast.
  std::optional<double> at(const curve_axis& axis, const measured_run& recorded) const;

 private:
  bool has_same_settings(const curve_axis& but, const measured_run& other) const;
  bool does_same_work(const curve_axis& but, const measured_run& other) const;
};

measured_run measured_from(const run_data& run, const recorded_pipeline& pipeline);

/// Finds other runs of the same program next to a run and in named folders. Keeps what it has read.
class measured_runs {
 public:
  /// @param named  folders of other runs that the user named, which may be anywhere.
  explicit measured_runs(std::string prefix, std::vector<std::string> named = {})
      : prefix_(std::move(prefix)), named_(std::move(named)) {}

  /// Returns other runs of the same program and loader: those that the user named, and the newest
  /// ones in folders next to the run's. Reads at most 12 runs, and together at most 16 MiB and
  /// three times the bytes of the run.
  std::vector<measured_run> others_than(const run_files& files);

 private:
  /// Reads the loader's run in a folder; nullopt if it cannot be simulated or is too large.
  std::optional<measured_run> read(const std::string& dir, const std::string& loader,
                                   std::uint64_t& bytes_left);

  std::string prefix_;
  std::vector<std::string> named_;
  std::map<std::pair<std::string, std::string>, std::optional<measured_run>> found_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CURVE_MEASURED_RUNS_HPP
