// Stores the aggregates (sums of counted calls) of threads in the ring file, and writes them to
// files when a recording ends.
#ifndef LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP
#define LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "lotus/aggregates/aggregate_chain.hpp"
#include "lotus/aggregates/aggregate_copies.hpp"
#include "lotus/aggregates/aggregate_memory.hpp"
#include "lotus/aggregates/aggregate_text.hpp"
#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/hidden_files.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/producers.hpp"
#include "lotus/store/run/run_files.hpp"
#include "lotus/store/session_clock.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Stores the aggregates of all threads of the process. Thread safety: any thread may call these
/// functions while it holds the `guard` of the producer (the state of a thread) that it passes;
/// functions with the parameter `all` need no guard.
class LOTUS_DETAIL_PER_MODULE aggregate_store {
 public:
  aggregate_store(run_files& files, session_clock& clock, const name_table& names) noexcept
      : files_{files}, clock_{clock}, names_{names} {}

  // --- Functions for one thread.

  /// Adds a call to the thread's aggregates, and allocates memory if the thread has none for this
  /// call yet. Returns false if there is no memory.
  bool add(producer& p, const aggregate_call& call) noexcept {
    thread_aggregates& a = aggregates_of(p);
    files_.make_due_ring_file();
    const locked hold{lock_};
    if (a.memory != nullptr && a.memory->retired) {
      a.memory->give_back(false);
      a.memory = nullptr;
    }
    if (a.memory == nullptr) a.calls = 0;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    if (a.memory == nullptr) {
      a.memory = aggregate_memory::make(++chains_);
      if (a.memory == nullptr) return false;
      if (!p.attached) files_.add_thread(tid);
    }
    const bool taken = a.memory->take(
        a, call, [this, tid, &a] { return files_.add_aggregates(tid, a.memory->chain); });
    if (taken) gate_of(p).aggregates.store(a.memory->first, std::memory_order_release);
    return taken;
  }

  /// Writes a call that ended after the recording directly to the process's aggregates file.
  LOTUS_DETAIL_COLD void write_late(const producer& p, const aggregate_call& call) noexcept {
    auto* const one = static_cast<whole_aggregate*>(map_memory(sizeof(whole_aggregate)));
    if (one == nullptr) return;
    const aggregate_call whole = is_negative(call) ? aggregate_call{call.key, 0, 0} : call;
    one->count = 1;
    one->total_ticks = whole.ticks;
    one->self_ticks = whole.self_ticks;
    one->counts[bucket_of(whole.ticks)] = 1;
    const std::uint64_t began_ns = files_.began_ns();
    const locked hold{lock_};
    aggregate_text section{{began_ns, ++late_calls_}, rate()};
    section.add(names_.entry(static_cast<std::uint32_t>(call.key)).line_start(),
                p.tid.load(std::memory_order_relaxed), *one);
    append(static_cast<std::uint32_t>(call.key >> 32), section.finish());
    munmap(one, sizeof(whole_aggregate));
  }

  /// Called when a new thread takes over the producer of a thread that has ended. The new thread
  /// adds its calls to the same aggregates, which are marked here as those of several threads.
  LOTUS_DETAIL_COLD static void prepare_for_next_thread(producer& p) noexcept {
    thread_aggregates& a = aggregates_of(p);
    a.storing.store(0, std::memory_order_relaxed);
    a.inner_ticks = a.unreported_ticks = 0;
    a.interrupting = 0;
    if (a.memory == nullptr || a.memory->retired) return;
    const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
    a.memory->for_each_block([tid](aggregates_block& block) {
      block.threads.fetch_add(1, std::memory_order_relaxed);
      block.tid.store(tid, std::memory_order_relaxed);
    });
  }

  static bool has_any(const producer& p) noexcept { return aggregates_of(p).memory != nullptr; }

  /// Makes the next call of p's thread take the slow path, where that thread waits for
  /// producer::guard. So its aggregates do not change while the caller holds that guard.
  static void close(producer& p) noexcept {
    gate_of(p).aggregates.store(nullptr, std::memory_order_seq_cst);
  }
  /// Reverses close(): from now on the thread again adds its calls without the slow path.
  static void reopen(producer& p) noexcept {
    const aggregate_memory* const memory = aggregates_of(p).memory;
    if (memory != nullptr && !memory->retired) {
      gate_of(p).aggregates.store(memory->first, std::memory_order_release);
    }
  }
  /// Waits until the thread has added the call that it is adding now. Call close() first. Gives up
  /// after 100 attempts, because the thread may not be running.
  static void await_call(const producer& p) noexcept {
    const thread_aggregates& a = aggregates_of(p);
    for (int i = 0; i < 100 && a.storing.load(std::memory_order_seq_cst) != 0; ++i) sched_yield();
  }

  /// Declares the thread's aggregates finished: no call is added to them any more. The thread's
  /// next call begins new aggregates.
  static void retire(producer& p) noexcept {
    gate_of(p).aggregates.store(nullptr, std::memory_order_release);
    if (aggregates_of(p).memory != nullptr) aggregates_of(p).memory->retired = true;
  }

  /// Called in a forked child. Discards the aggregates that the child copied from its parent,
  /// because the parent itself writes them to files.
  static void after_fork_in_child(producer& p) noexcept {
    thread_aggregates& a = aggregates_of(p);
    gate_of(p).aggregates.store(nullptr, std::memory_order_release);
    a.unreported_ticks = 0;
    // `storing` is not 0 if a signal handler that interrupted the adding of a call has called fork.
    if (a.memory != nullptr) a.memory->give_back(a.storing.load(std::memory_order_relaxed) != 0);
    a.memory = nullptr;
  }

  // --- Functions for all threads.

  /// Writes the aggregates of all threads to files, and makes the next call of each thread take the
  /// slow path. Returns false if the aggregates could not be written and remain only in the ring
  /// file.
  LOTUS_DETAIL_COLD bool write(const producer_list& all) noexcept {
    bool any = false;
    all.for_each([&any](producer& p) {
      const locked guard{p.guard};
      any = any || has_any(p);
      close(p);
      await_call(p);
    });
    if (!any) return true;
    const std::uint64_t began_ns = files_.began_ns();
    const locked hold{lock_};
    const auto each_thread = [&all](each_chain each) {
      all.for_each([each](producer& p) {
        const aggregate_memory* const memory = aggregates_of(p).memory;
        if (memory == nullptr || memory->retired) return;
        aggregate_chain chain;
        memory->for_each_block([&chain](const aggregates_block& block) { chain.add(block); });
        each(chain);
      });
    };
    return for_each_section({began_ns, 0}, rate(), names_.line_starts(), each_thread,
                            [this](std::uint32_t loader, std::string_view section) {
                              return append(loader, section);
                            }) == 0;
  }

  /// Writes the aggregates of each thread, as they are at one moment, to the snapshot in `folder`.
  /// The threads keep running; a thread waits only if a call ends while its aggregates are copied.
  /// Returns 0 or an error that file_error_text() can describe.
  LOTUS_DETAIL_COLD int copy(const producer_list& all, int folder) noexcept {
    aggregate_copies copies;
    all.for_each([&copies](producer& p) {
      const locked guard{p.guard};
      thread_aggregates& a = aggregates_of(p);
      if (a.memory == nullptr || a.memory->retired) return;
      // Makes the thread's next call take the slow path, where it waits for the guard held here.
      std::atomic<aggregates_block*>& open = gate_of(p).aggregates;
      aggregates_block* const first = open.exchange(nullptr, std::memory_order_seq_cst);
      copies.add_whole([&a](each_block each) { a.memory->for_each_block(each); });
      open.store(first, std::memory_order_release);
    });
    copies.finish();
    if (copies.failed()) return ENOMEM;
    // No lock is held while the files are written, so no thread waits for the disk.
    return for_each_section(
        {files_.began_ns(), 0}, rate(), names_.line_starts(),
        [&copies](each_chain each) { copies.for_each_chain(aggregate_state::moving, each); },
        [this, folder](std::uint32_t loader, std::string_view section) {
          return append(folder, loader, section);
        });
  }

  mutex& fork_lock() noexcept { return lock_; }

 private:
  std::uint64_t rate() noexcept {
    return clock_.with_map([](const clock_map& map) { return mean_rate(map); });
  }

  int append(std::uint32_t loader, std::string_view section) noexcept {
    const int error = append(files_.directory(), loader, section);
    files_.reports().disk(files_.location(), error, aggregates_file_start);
    return error;
  }
  int append(int folder, std::uint32_t loader, std::string_view section) noexcept {
    log_folder in = files_.logs_folder();
    in.directory = folder;
    loader_folders folders{in};
    return append_aggregates(in, folders, loader, static_cast<std::uint32_t>(getpid()), section);
  }

  run_files& files_;
  session_clock& clock_;
  const name_table& names_;
  mutex lock_;  ///< protects the blocks of all threads while they grow or are written
  std::uint32_t chains_ = 0;
  std::uint64_t late_calls_ = 0;
};

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_AGGREGATES_STORE_AGGREGATE_STORE_HPP
