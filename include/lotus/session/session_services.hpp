// Provides the functions through which the shared objects of a process call its session.
#ifndef LOTUS_SESSION_SESSION_SERVICES_HPP
#define LOTUS_SESSION_SESSION_SERVICES_HPP

#include <atomic>
#include <cstdint>
#include <new>
#include <string_view>

#include "lotus/aggregates/aggregates.hpp"
#include "lotus/base/fork.hpp"
#include "lotus/base/memory.hpp"
#include "lotus/collectors/annotate.hpp"
#include "lotus/config.hpp"
#include "lotus/options.hpp"
#include "lotus/record/hub.hpp"
#include "lotus/record/names.hpp"
#include "lotus/record/record.hpp"
#include "lotus/record/thread.hpp"
#include "lotus/session/process_session.hpp"
#include "lotus/store/losses.hpp"

LOTUS_DETAIL_COLD_NAMESPACE_BEGIN
namespace detail {

/// Returns the table of the functions with which shared objects call the session. In a child
/// process created without fork handlers (_Fork, clone), most of them do nothing.
constexpr services make_service_table() noexcept {
  services s{};
  s.this_thread = [](bool begins) noexcept -> producer* {
    session* const own = session::to_record();
    producer* const p = own == nullptr ? nullptr : own->records().this_thread(begins);
    if (p != nullptr || begins) return p;
    // The caller cannot store its record, and has no producer that counts it.
    if (losses* const of = session::instance().records().losses_if_on()) of->count(1);
    return nullptr;
  };
  s.push_slow = [](producer& p, const record& r) noexcept {
    if (session* const own = session::to_record()) return own->records().slow().push(p, r);
    p.dropped.fetch_add(1, std::memory_order_relaxed);
  };
  s.push_nested = [](producer& p, const record& r) noexcept {
    if (session* const own = session::to_record()) return own->records().slow().push_nested(p, r);
    p.dropped.fetch_add(1, std::memory_order_relaxed);
  };
  s.aggregate_slow = [](producer& p, const aggregate_call& call) noexcept {
    if (session* const own = session::to_record()) return own->records().slow().aggregate(p, call);
    p.dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  };
  s.aggregated_ticks = [](producer& p, record_tag* tag) noexcept {
    return aggregates_of(p).tell(*tag);
  };
  s.intern = [](std::string_view name) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? unnamed_id : own->records().intern(name);
  };
  s.refuse_batch = [](std::uint64_t number) noexcept {
    session* const own = session::to_record();
    losses* const own_losses = own == nullptr ? nullptr : own->records().losses_if_on();
    if (own_losses != nullptr) own_losses->refused_batch(number);
  };
  s.enter_loader = [](std::uint32_t loader) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? 0 : own->records().enter_loader(loader);
  };
  s.get_ring = [](producer& p) noexcept {
    if (session* const own = session::of_this_process()) own->records().slow().get_ring(p);
  };
  s.read_cpu = [](producer& p, cpu_watch& watch, const off_cpu_window& in) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? off_cpu_time{} : own->records().slow().read_cpu(p, watch, in);
  };
  s.take_async_ids = []() noexcept { return session::instance().take_async_ids(); };
  s.ticks_of_span = [](std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    session* const own = session::of_this_process();
    return own == nullptr ? given_ticks{} : own->records().ticks_of_span(begin_ns, end_ns);
  };
  s.crossed_threads = [](record_tag tag) noexcept {
    session* const own = session::of_this_process();
    losses* const own_losses = own == nullptr ? nullptr : own->records().losses_if_on();
    if (own_losses != nullptr) own_losses->crossed_threads(own->name_in(tag));
  };
  s.start = [](const options& chosen) noexcept {
    session* const own = session::to_record();
    return own != nullptr && own->start(chosen);
  };
  s.start_steps = [](const options& chosen, const schedule& steps) noexcept {
    session* const own = session::to_record();
    return own != nullptr && own->start_steps(chosen, steps);
  };
  s.step = [](step_notice& notice) noexcept {
    session* const own = session::of_this_process();
    return own != nullptr && own->step(notice);
  };
  s.stop = [](step_notice& notice) noexcept {
    session* const own = session::of_this_process();
    return own != nullptr && own->stop(notice);
  };
  s.flush = []() noexcept {
    if (session* const own = session::of_this_process()) own->records().flush();
  };
  s.snapshot = [](const char* reason, std::size_t bytes) noexcept {
    session* const own = session::to_record();
    return own != nullptr && own->records().snapshot({reason, bytes});
  };
  s.dropped = []() noexcept { return session::instance().records().dropped(); };
  s.join = [](module_state& m, bool environment_counts) noexcept {
    if (session* const own = session::of_this_process()) own->join(m, environment_counts);
  };
  s.leave = [](module_state& m) noexcept {
    if (session* const own = session::of_this_process()) own->leave(m);
  };
  s.begin_task = [](record_tag tag) noexcept {
    session* const own = session::of_this_process();
    if (own == nullptr) return;
    if (annotation_wanted()) own->begin_task_of(tag);
    own->begin_heap_of(tag);
  };
  s.end_task = [](std::uint64_t begin_ticks, record_tag tag) noexcept {
    session* const own = session::of_this_process();
    if (own == nullptr) return;
    own->end_heap_of(begin_ticks, tag, tag);
    if (annotation_wanted()) session::end_task_of(tag);
  };
  s.begin_heap = [](record_tag tag) noexcept {
    if (session* const own = session::of_this_process()) own->begin_heap_of(tag);
  };
  s.end_heap = [](std::uint64_t begin_ticks, record_tag begun_as, record_tag tag) noexcept {
    session* const own = session::of_this_process();
    if (own != nullptr) own->end_heap_of(begin_ticks, begun_as, tag);
  };
  s.annotate_torch = [](const annotation_calls& calls) noexcept {
    if (session* const own = session::of_this_process()) own->annotate_torch(calls);
  };
  s.deliver = [](const char* line) noexcept {
    // In a child without fork handlers, the program's handler could wait forever for a lock.
    session* const own = session::of_this_process();
    return own != nullptr && own->records().messages().deliver(line);
  };
  return s;
}

LOTUS_DETAIL_PER_MODULE inline constexpr services service_table = make_service_table();

inline const services* make_services() noexcept {
  session::make(service_table);
  return &service_table;
}
inline bool has_session() noexcept {
  return session::exists();
}

}  // namespace detail
LOTUS_DETAIL_COLD_NAMESPACE_END

#endif  // LOTUS_SESSION_SESSION_SERVICES_HPP
