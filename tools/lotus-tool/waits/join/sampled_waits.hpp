// Finds which operations were open when waiting threads were sampled.
#ifndef LOTUS_TOOL_WAITS_JOIN_SAMPLED_WAITS_HPP
#define LOTUS_TOOL_WAITS_JOIN_SAMPLED_WAITS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "log/operation_names.hpp"
#include "model/run_data.hpp"
#include "waits/data/wait_files.hpp"

namespace lotus::tool {

/// The innermost span that a thread had open.
struct innermost_span {
  std::int64_t since_ns = INT64_MIN;
  std::uint32_t name = 0;
  bool known = false;

  /// Takes another span that was open at the same time, if it began later.
  void add(std::int64_t start_ns, std::uint32_t of) noexcept {
    if (start_ns >= since_ns) *this = {start_ns, of, true};
  }
};

/// A wait sample, with the operations that the waiting thread had open, and with the innermost span
/// of the thread that held the lock, if any.
struct sampled_wait {
  // Values used in place of the number of an operation's name: of_wait for a wait for a batch,
  // of_preprocessing for the preprocessing of a batch, and of_step for a consumer's step. Numbers
  // of names are much smaller.
  static constexpr std::uint32_t of_wait = UINT32_MAX;
  static constexpr std::uint32_t of_preprocessing = UINT32_MAX - 1;
  static constexpr std::uint32_t of_step = UINT32_MAX - 2;

  const wait_sample* sample = nullptr;
  std::size_t process = 0;          ///< index in sampled_waits::processes()
  std::set<std::uint32_t> open{};   ///< names of what the waiting thread had open
  innermost_span in{};              ///< the innermost of them
  std::vector<std::size_t> logs{};  ///< indexes of the logs of the waiting thread
  innermost_span holder{};          ///< the innermost span of the lock's holder
};

using on_operation = std::function<void(const operation&)>;

/// All wait samples of a run.
class sampled_waits {
 public:
  /// The threads whose open operations are found: waiting threads and holders of locks
  /// (all_threads), or only holders of locks (holders).
  enum class operations_of : std::uint8_t { all_threads, holders };

  /// Throws input_error.
  /// @param names  the names of the operations that `each_operation` passes; must outlive this
  ///               object.
  /// @param each_operation  calls a function for each operation of the log with the given index.
  sampled_waits(const run_data& run, operations_of of, const name_table& names,
                const std::function<void(std::size_t file, const on_operation&)>& each_operation,
                diagnostic_log& diagnostics);

  const std::vector<process_waits>& processes() const noexcept { return processes_; }
  const std::vector<sampled_wait>& all() const noexcept { return waits_; }

  /// Returns the name of a span: the name of an operation, without the S that logs put before it;
  /// "preprocessing"; or "waiting for a batch". Returns "" if unknown.
  std::string name_of(const innermost_span& span) const;

 private:
  /// The time of a sample, at which the open operations of a thread must be found.
  struct moment {
    std::int64_t time_ns = 0;
    std::size_t wait = 0;    ///< index in waits_
    bool of_holder = false;  ///< true: the thread holds the lock; false: the thread waits
  };

  void visit(const std::vector<moment>& moments, std::int64_t start_ns, std::int64_t end_ns,
             std::uint32_t name);

  const name_table& names_;
  std::vector<process_waits> processes_;
  std::vector<sampled_wait> waits_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_WAITS_JOIN_SAMPLED_WAITS_HPP
