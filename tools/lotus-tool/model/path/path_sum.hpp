// Sums up the time of each activity on a critical path.
#ifndef LOTUS_TOOL_MODEL_PATH_PATH_SUM_HPP
#define LOTUS_TOOL_MODEL_PATH_PATH_SUM_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/identifiers.hpp"
#include "model/path/critical_path.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/run_data.hpp"

namespace lotus::tool {

/// Adds up the time of each activity, which is identified by its kind and name.
class path_sum {
 public:
  /// @param run         must outlive this object.
  /// @param activities  receives each added interval, in the order of calls; may be nullptr.
  explicit path_sum(const run_data& run, std::vector<path_activity>* activities = nullptr)
      : run_(run), activities_(activities) {}

  /// Adds the interval from start_ns to end_ns to the activity with this kind and name.
  /// @param file  the log of the thread that worked in the interval; nullopt if no thread did.
  void add(path_kind kind, std::optional<std::uint32_t> name, std::int64_t start_ns,
           std::int64_t end_ns, optional_file file);
  /// Adds the sums of another object of the same run. Its activities are not added.
  void add(const path_sum& other);

  /// Returns the shares of all activities, largest first. If at most a twentieth of an activity's
  /// time does not divide into running, waiting for a CPU and being blocked, it is assumed to
  /// divide like the rest.
  std::vector<path_share> shares() const;

 private:
  struct summed {
    path_share share;
    cpu_split cpu{0, 0, 0};
    std::int64_t without_cpu_ns = 0;  ///< part of share.ns for which `cpu` is unknown
  };

  const run_data& run_;
  std::vector<path_activity>* activities_;
  std::map<std::pair<path_kind, std::optional<std::uint32_t>>, summed> sums_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MODEL_PATH_PATH_SUM_HPP
