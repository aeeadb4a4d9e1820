// Aggregates get room in the ring file, and are written when a recording ends.
#ifndef LOTUS_STORE_STORAGE_AGGREGATES_HPP
#define LOTUS_STORE_STORAGE_AGGREGATES_HPP

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lotus/base/clock.hpp"
#include "lotus/base/lock.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/config.hpp"
#include "lotus/folder/loader_folder.hpp"
#include "lotus/format/aggregates/aggregate_chain.hpp"
#include "lotus/format/aggregates/aggregate_copies.hpp"
#include "lotus/format/aggregates/aggregate_text.hpp"
#include "lotus/record/aggregate_memory.hpp"
#include "lotus/record/aggregates.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/producers.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/store/ring_file.hpp"
#include "lotus/store/storage.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

inline bool storage::aggregate(producer& p, const aggregate_call& call) noexcept {
  thread_aggregates& a = aggregates_of(p);
  make_due_ring_file();
  const locked hold{file_lock_};
  if (a.memory != nullptr && a.memory->retired) {
    a.memory->give_back(false);
    a.memory = nullptr;
  }
  if (a.memory == nullptr) a.calls = 0;
  const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
  if (a.memory == nullptr) {
    a.memory = aggregate_memory::make(++chains_);
    if (a.memory == nullptr) return false;
    if (!p.attached) info_.add_thread(tid);
  }
  const auto new_block = [&] {
    int error = 0;
    aggregates_block* const block = file_.add_aggregates(tid, a.memory->chain, error);
    if (error != 0 && file_.exists()) reports_.no_ring_file(location_, error);
    return block;
  };
  return a.memory->take(a, call, new_block);
}

inline void storage::hand_over_aggregates(producer& p) noexcept {
  thread_aggregates& a = aggregates_of(p);
  a.storing.store(0, std::memory_order_relaxed);
  a.inner_ticks = a.untold_ticks = 0;
  a.interrupting = 0;
  if (a.memory == nullptr || a.memory->retired) return;
  const std::uint32_t tid = p.tid.load(std::memory_order_relaxed);
  a.memory->for_each_block([tid](aggregates_block& block) {
    block.threads.fetch_add(1, std::memory_order_relaxed);
    block.tid.store(tid, std::memory_order_relaxed);
  });
}

inline void storage::reopen_aggregates(producer& p) noexcept {
  const aggregate_memory* const memory = aggregates_of(p).memory;
  if (memory != nullptr && !memory->retired) {
    aggregates_of(p).first.store(memory->first, std::memory_order_release);
  }
}

inline void storage::retire_aggregates(producer& p) noexcept {
  aggregates_of(p).first.store(nullptr, std::memory_order_release);
  if (aggregates_of(p).memory != nullptr) aggregates_of(p).memory->retired = true;
}

inline void storage::forget_aggregates(producer& p) noexcept {
  thread_aggregates& a = aggregates_of(p);
  a.first.store(nullptr, std::memory_order_release);
  a.untold_ticks = 0;
  // Where a handler forks that interrupted a call.
  if (a.memory != nullptr) a.memory->give_back(a.storing.load(std::memory_order_relaxed) != 0);
  a.memory = nullptr;
}

inline int storage::append_section(std::uint32_t loader, std::string_view section) noexcept {
  const int error = append_section(directory_.descriptor(), loader, section);
  reports_.disk(location_, error, aggregates_file_start);
  return error;
}

inline int storage::append_section(int folder, std::uint32_t loader,
                                   std::string_view section) noexcept {
  log_folder in = logs_folder();
  in.directory = folder;
  loader_folders folders{in};
  return append_aggregates(in, folders, loader, static_cast<std::uint32_t>(getpid()), section);
}

inline int storage::write_aggregates(const producer_list& all) noexcept {
  const std::uint64_t rate = clock_.with_map([](const clock_map& map) { return mean_rate(map); });
  const locked hold{file_lock_};
  return for_each_section(
      {begun_ns_, 0}, rate, [this](std::uint32_t id) { return names_.entry(id).line_start(); },
      [&](auto&& each) {
        all.for_each([&](producer& p) {
          const aggregate_memory* const memory = aggregates_of(p).memory;
          if (memory == nullptr || memory->retired) return;
          aggregate_chain chain;
          memory->for_each_block([&](const aggregates_block& block) { chain.add(block); });
          each(chain);
        });
      },
      [this](std::uint32_t loader, std::string_view section) {
        return append_section(loader, section);
      });
}

inline int storage::copy_aggregates(const producer_list& all, int folder) noexcept {
  aggregate_copies copies;
  all.for_each([&](producer& p) {
    const locked guard{p.guard};
    thread_aggregates& a = aggregates_of(p);
    if (a.memory == nullptr || a.memory->retired) return;
    // Its next call goes the slow way, where this guard is waited for.
    aggregates_block* const first = a.first.exchange(nullptr, std::memory_order_seq_cst);
    copies.add_whole([&](auto&& each) { a.memory->for_each_block(each); });
    a.first.store(first, std::memory_order_release);
  });
  copies.finish();
  if (copies.failed()) return ENOMEM;
  const std::uint64_t rate = clock_.with_map([](const clock_map& map) { return mean_rate(map); });
  // Nobody waits for the disk.
  std::uint64_t begun_ns = 0;
  {
    const locked hold{file_lock_};
    begun_ns = begun_ns_;
  }
  return for_each_section(
      {begun_ns, 0}, rate, [this](std::uint32_t id) { return names_.entry(id).line_start(); },
      [&](auto&& each) { copies.for_each_chain(aggregate_state::moving, each); },
      [&](std::uint32_t loader, std::string_view section) {
        return append_section(folder, loader, section);
      });
}

inline void storage::write_late(const producer& p, const aggregate_call& call) noexcept {
  auto* const one = static_cast<whole_aggregate*>(map_memory(sizeof(whole_aggregate)));
  if (one == nullptr) return;
  const aggregate_call whole = is_negative(call) ? aggregate_call{call.key, 0, 0} : call;
  one->count = 1;
  one->total_ticks = whole.ticks;
  one->self_ticks = whole.self_ticks;
  one->counts[bucket_of(whole.ticks)] = 1;
  const std::uint64_t rate = clock_.with_map([](const clock_map& map) { return mean_rate(map); });
  const locked hold{file_lock_};
  aggregate_text section{{begun_ns_, ++late_calls_}, rate};
  section.add(names_.entry(static_cast<std::uint32_t>(call.key)).line_start(),
              p.tid.load(std::memory_order_relaxed), *one);
  append_section(static_cast<std::uint32_t>(call.key >> 32), section.finish());
  munmap(one, sizeof(whole_aggregate));
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_STORE_STORAGE_AGGREGATES_HPP
