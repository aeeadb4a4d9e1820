// Takes snapshots of the running recording, on request or when a trigger fires.
#ifndef LOTUS_STORE_RECORDING_SNAPSHOTS_HPP
#define LOTUS_STORE_RECORDING_SNAPSHOTS_HPP

#include <cstdint>
#include <string_view>

#include "lotus/aggregates/store/aggregate_store.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/recovery/snapshot_folder.hpp"
#include "lotus/store/producers.hpp"
#include "lotus/store/run/run_files.hpp"
#include "lotus/store/snapshot.hpp"
#include "lotus/store/storage.hpp"
#include "lotus/waits/store/moment_requests.hpp"
#include "lotus/waits/store/wait_sampler.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Takes the snapshots of a recording, and contains the triggers that request them. Not
/// thread-safe: the recorder calls one function at a time. The recorder also begins and ends the
/// triggers together with the recording.
class LOTUS_DETAIL_PER_MODULE recording_snapshots {
 public:
  recording_snapshots(run_files& files, storage& rings, aggregate_store& aggregates,
                      const producer_list& producers, wait_sampler& waits) noexcept
      : files_{files},
        rings_{rings},
        aggregates_{aggregates},
        producers_{producers},
        waits_{waits} {}

  void begin(const options& chosen) noexcept {
    triggers_.begin(chosen);
    requests_.begin(chosen.drain_interval_ms);
  }

  snapshot_triggers& triggers() noexcept { return triggers_; }

  /// Takes a snapshot. Returns false, after reporting the reason, if no snapshot was taken.
  /// @param flush  drains all threads.
  bool take(std::string_view reason, function_ref<void()> flush) noexcept {
    // Records first what each thread of each process does now, because a snapshot of a hanging
    // program must show where its threads hang.
    requests_.ask(files_.logs_folder());
    waits_.record_moment();
    log_retention& retention = rings_.retention();
    retention.hold(true);
    retention.roll_all();
    flush();
    requests_.await_answers(files_.logs_folder());
    const own_aggregates counted{this, [](void* self, int folder) noexcept {
                                   auto& of = *static_cast<recording_snapshots*>(self);
                                   return of.aggregates_.copy(of.producers_, folder);
                                 }};
    const bool made = make_snapshot(files_.logs_folder(), files_.location(), reason,
                                    triggers_.max_bytes(), counted);
    retention.hold(false);
    return made;
  }

  /// Takes a snapshot if a trigger has fired.
  void take_if_triggered(function_ref<void()> flush) noexcept {
    char reason[snapshot_place::max_reason_bytes + 1];
    if (triggers_.take(files_.logs_folder(), reason)) take(reason, flush);
  }

  /// Records what this process's threads are doing, if another process that takes a snapshot has
  /// requested this.
  void answer_request() noexcept {
    requests_.answer(files_.logs_folder(), [this] { waits_.record_moment(); });
  }

 private:
  run_files& files_;
  storage& rings_;
  aggregate_store& aggregates_;
  const producer_list& producers_;
  wait_sampler& waits_;
  snapshot_triggers triggers_;
  moment_requests requests_;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_STORE_RECORDING_SNAPSHOTS_HPP
