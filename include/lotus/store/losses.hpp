// Counts and reports lost records, and reports records that get a wrong name or time. Each cause is
// reported once.
#ifndef LOTUS_STORE_LOSSES_HPP
#define LOTUS_STORE_LOSSES_HPP

#include <atomic>
#include <cstdint>
#include <string_view>

#include "lotus/config.hpp"
#include "lotus/record/message.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/record.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Counts lost records, except those that threads count in producer::dropped. All functions are
/// thread-safe, but call begin() and report() while the session's control lock is held.
class losses {
 public:
  /// Begins to count the losses of a new recording.
  /// @param dropped  number of records that this process has dropped so far.
  void begin(std::uint64_t dropped) noexcept {
    dropped_at_start_ = dropped;
    said_unnamed_.store(false, std::memory_order_relaxed);
    said_batch_.store(false, std::memory_order_relaxed);
    said_crossed_.store(false, std::memory_order_relaxed);
  }
  /// Resets the counts in a forked child, which has lost nothing yet.
  void forget() noexcept {
    dropped_.store(0, std::memory_order_relaxed);
    dropped_at_start_ = 0;
  }

  void count(std::uint64_t records) noexcept {
    dropped_.fetch_add(records, std::memory_order_relaxed);
  }
  std::uint64_t counted() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  /// Returns the number of records that this recording has lost.
  /// @param dropped  number of records that the process has dropped in all its recordings.
  std::uint64_t of_recording(std::uint64_t dropped) const noexcept {
    return dropped - dropped_at_start_;
  }
  /// Reports how many records a recording has lost.
  /// @param recoverable  number of records that are in the ring file and not in the logs.
  void report(std::uint64_t dropped, std::uint64_t recoverable) const noexcept {
    const auto lost = static_cast<unsigned long long>(of_recording(dropped));
    if (lost > 0) say("%llu records were dropped", lost);
    if (recoverable > 0) {
      say("%llu records are not in the logs yet; run `lotus-tool recover` to recover them",
          static_cast<unsigned long long>(recoverable));
    }
  }

  /// Reports that the table of names has no room for another name.
  /// @param names  number of existing names.
  void unnamed(std::uint32_t names) noexcept {
    if (said_unnamed_.exchange(true)) return;
    say("no %s for a name after the first %u: such operations are recorded as %s",
        names >= name_table::limit ? "room" : "memory", names, unnamed_name.data());
  }

  /// Counts and reports a record that was refused because its batch number is too large.
  void refused_batch(std::uint64_t number) noexcept {
    count(1);
    if (said_batch_.exchange(true)) return;
    say("batch number %llu (%lld) is not below 2^%u: records of such batches are dropped",
        static_cast<unsigned long long>(number), static_cast<long long>(number),
        record_tag::value_bits);
  }

  /// Reports that a scope ended on another thread than the one on which it began.
  void crossed_threads(std::string_view name) noexcept {
    if (said_crossed_.exchange(true)) return;
    say("the scope %.*s ended on another thread than it began on, so its line is wrong: use "
        "lotus::async_scope for operations that change threads",
        static_cast<int>(name.size()), name.data());
  }

 private:
  std::atomic<std::uint64_t> dropped_{0};
  std::uint64_t dropped_at_start_ = 0;
  std::atomic<bool> said_unnamed_{false};
  std::atomic<bool> said_batch_{false};
  std::atomic<bool> said_crossed_{false};
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_LOSSES_HPP
