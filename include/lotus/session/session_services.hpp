// What the session does for the shared objects of its process: the table, and how it is made.
#ifndef LOTUS_SESSION_SESSION_SERVICES_HPP
#define LOTUS_SESSION_SESSION_SERVICES_HPP

#include <atomic>
#include <cstdint>
#include <new>
#include <string_view>

#include "lotus/base/fork.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/collectors/annotate.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/session/process_session.hpp"
#include "lotus/store/recorder/recorder_snapshots.hpp"

LOTUS_DETAIL_NAMESPACE_BEGIN
namespace detail {

constexpr services session::table() noexcept {
  services s{};
  s.this_thread = []() noexcept { return instance().records().this_thread(); };
  s.push_slow = [](producer& p, const record& r) noexcept { instance().records().push_slow(p, r); };
  s.push_nested = [](producer& p, const record& r) noexcept {
    instance().records().push_nested(p, r);
  };
  s.aggregate_slow = [](producer& p, const aggregate_call& call) noexcept {
    return instance().records().aggregate_slow(p, call);
  };
  s.aggregated_ticks = [](producer& p, record_tag* tag) noexcept {
    return aggregates_of(p).tell(*tag);
  };
  s.intern = [](std::string_view name) noexcept { return instance().records().intern(name); };
  s.refuse_batch = [](std::uint64_t number) noexcept {
    if (losses* const told = instance().records().losses_if_on()) told->refused_batch(number);
  };
  s.enter_loader = [](std::uint32_t loader) noexcept {
    return instance().records().enter_loader(loader);
  };
  s.get_ring = [](producer& p) noexcept { instance().records().get_ring(p); };
  s.read_cpu = [](producer& p, cpu_watch& watch) noexcept {
    return instance().records().read_cpu(p, watch);
  };
  s.take_async_ids = []() noexcept { return instance().async_ids_.fetch_add(async_ids_at_once); };
  s.ticks_of_span = [](std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    return instance().records().ticks_of_span(begin_ns, end_ns);
  };
  s.crossed_threads = [](record_tag tag) noexcept {
    losses* const told = instance().records().losses_if_on();
    if (told != nullptr) told->crossed_threads(instance().name_in(tag));
  };
  s.start = [](const options& chosen) noexcept { return instance().start(chosen); };
  s.start_steps = [](const options& chosen, const schedule& steps) noexcept {
    return instance().start_steps(chosen, steps);
  };
  s.step = [](step_notice& notice) noexcept { return instance().step(notice); };
  s.stop = [](step_notice& notice) noexcept { return instance().stop(notice); };
  s.flush = []() noexcept { instance().records().flush(); };
  s.snapshot = [](const char* reason, std::size_t bytes) noexcept {
    return instance().records().snapshot({reason, bytes});
  };
  s.dropped = []() noexcept { return instance().records().dropped(); };
  s.join = [](module_state& m, bool environment_counts) noexcept {
    instance().join(m, environment_counts);
  };
  s.leave = [](module_state& m) noexcept { instance().leave(m); };
  s.begin_task = [](record_tag tag) noexcept {
    if (annotation_wanted()) instance().begin_task_of(tag);
    instance().begin_heap_of(tag);
  };
  s.end_task = [](std::uint64_t begin_ticks, record_tag tag) noexcept {
    instance().end_heap_of(begin_ticks, tag, tag);
    if (annotation_wanted()) instance().end_task_of(tag);
  };
  s.begin_heap = [](record_tag tag) noexcept { instance().begin_heap_of(tag); };
  s.end_heap = [](std::uint64_t begin_ticks, record_tag begun_as, record_tag tag) noexcept {
    instance().end_heap_of(begin_ticks, begun_as, tag);
  };
  s.annotate_torch = [](const annotation_calls& calls) noexcept {
    instance().annotate_torch(calls);
  };
  s.deliver = [](const char* line) noexcept {
    return instance().records().messages().deliver(line);
  };
  return s;
}

inline const services session::table_ = table();

inline const services* session::make() noexcept {
  if (instance_ != nullptr) return &table_;  // that other objects do not find
  // Memory of its own, never freed: scopes may end after every static object is gone.
  instance_ = new (map_memory(sizeof(session))) session;
  this_module_at_forks.before = before_fork;
  this_module_at_forks.after_in_parent = after_fork_in_parent;
  this_module_at_forks.after_in_child = after_fork_in_child;
  return &table_;
}

inline const services* make_services() noexcept {
  return session::make();
}
inline bool has_session() noexcept {
  return session::exists();
}

}  // namespace detail
LOTUS_DETAIL_NAMESPACE_END

#endif  // LOTUS_SESSION_SESSION_SERVICES_HPP
