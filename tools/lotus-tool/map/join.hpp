// lotus-tool map join: every sample of a real run goes to the operation that was open then.
#ifndef LOTUS_TOOL_MAP_JOIN_HPP
#define LOTUS_TOOL_MAP_JOIN_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "diagnostics.hpp"
#include "log_files.hpp"
#include "map/build.hpp"
#include "map/located_samples.hpp"

namespace lotus::tool {

struct map_join_options {
  std::string dir;
  std::vector<std::string> samples;  ///< files; empty: those beside the logs
  std::string prefix = std::string(default_prefix);
  print_as print = print_as::table;
  bool quiet = false;
};

/// Samples of joined_run::event. Shares go by their values: samples of different rates differ.
struct joined_samples {
  std::uint64_t samples = 0;
  std::uint64_t value = 0;  ///< the sum of theirs: ns of CPU time, cycles, …

  joined_samples& operator+=(const joined_samples& more) noexcept;
  /// 0..1
  double share_of(const joined_samples& whole) const noexcept;
};

struct joined_function {
  joined_samples total;
  std::map<std::string, joined_samples> inlined;  ///< of these, by the function inlined there
};

/// What the samples say of one operation, or of what lies outside of any.
struct joined_op {
  joined_samples total;
  std::map<std::string, joined_function> functions;  ///< by function_key()
  std::map<std::string, std::uint64_t> counters;     ///< by event, the sum of its values
};

struct joined_run {
  /// Whose samples are counted: of several, the one that tells time. Empty before the first join().
  std::string event;
  std::map<std::string, joined_op> ops;
  joined_op outside;

  joined_samples total() const noexcept;
};

/// The samples that `map record` left in a run's folder; none: empty. Throws input_error.
located_samples samples_beside(const std::string& dir, diagnostics& said);

/// Adds a run: a sample belongs to the innermost operation of its thread that holds its time. Batch
/// records are no operations. Throws input_error.
void join(const run_files& run, const located_samples& samples, joined_run& to, diagnostics& said);

/// CPU time; none where only events were sampled that do not measure time.
std::optional<std::uint64_t> cpu_ns(const joined_op& op, const joined_run& run);

void print_joined(const joined_run& run, print_as print, std::ostream& out);

int run_map_join(const map_join_options& options, std::ostream& out, std::ostream& err);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAP_JOIN_HPP
