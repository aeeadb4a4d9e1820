#include "accelerator/accelerator_described.hpp"

#include <cstddef>
#include <utility>

#include "accelerator/accelerator_text.hpp"
#include "accelerator/device_figures.hpp"
#include "accelerator/host_timeline.hpp"
#include "base/terminal/table.hpp"
#include "describe/description.hpp"

namespace lotus::tool {

/// The idle time in a step, or in a batch.
struct shown_step : idle_part {};
struct shown_batch : idle_part {};

namespace {

// The fields without a key are columns of tables; the meaning of one that JSON contains in us
// is there.
constexpr unit in_time = unit::time_ns;

/// A time in microseconds, as in traces; without decimals if it is a whole number.
using microseconds = std::variant<std::int64_t, double>;
microseconds in_us(std::int64_t ns) {
  if (ns % 1000 == 0) return ns / 1000;
  return static_cast<double>(ns) / 1000;
}

template <class T>
auto us(std::int64_t T::*ns) {
  return [ns](const T& of) { return in_us(of.*ns); };
}

words verdict_names() {
  words names;
  for (const device_verdict_row& row : all_device_verdicts) names.all.push_back(row.key);
  return names;
}

words cause_names() {
  words names;
  for (const idle_cause cause : all_idle_causes) names.all.push_back(idle_cause_name(cause));
  return names;
}

auto idle_us(idle_cause cause) {
  return [cause](const idle_part& part) { return in_us(part.causes.of(cause)); };
}

auto idle_ns(idle_cause cause) {
  return [cause](const idle_part& part) { return part.causes.of(cause); };
}

auto time_and_share(std::int64_t device_figures::*ns) {
  return [ns](const device_figures& of) {
    return human_time(of.*ns) + " " + share_text(of.*ns, of.span_ns);
  };
}

/// Returns a time as a share of the whole time of a rank's devices.
template <class Time>
auto rank_share(Time ns_of) {
  return [ns_of](const shown_rank& rank) {
    return share_text(ns_of(*rank.trace.of), rank.trace.of->span_ns());
  };
}

auto rank_sum(std::int64_t device_figures::*ns) {
  return rank_share([ns](const accelerator_analysis& of) { return of.sum(ns); });
}

auto rank_idle(idle_cause cause) {
  return rank_share([cause](const accelerator_analysis& of) { return of.all_causes().of(cause); });
}

std::optional<std::uint64_t> known_bytes(const copy_sum& of) {
  return of.bytes > 0 ? std::optional(of.bytes) : std::nullopt;
}

/// Returns the sum of the copies of one kind of memory; nullopt if there are none.
auto copies_of(host_memory memory) {
  return [memory](const copy_figures& of) {
    const copy_sum& sum = of.of(memory);
    return sum.count == 0 ? std::nullopt : std::optional(sum);
  };
}

auto name_in(named_time idle_places::*place) {
  return [place](const idle_places& of) {
    const std::string& name = (of.*place).name;
    return name.empty() ? std::nullopt : std::optional(name);
  };
}

/// Returns how long the devices were idle for each cause. If it is known which operations delayed
/// the batches, the time of waiting for batches is divided among these operations.
std::vector<shown_cause> causes_of(const accelerator_analysis& of) {
  std::vector<shown_cause> shown;
  const cause_times causes = of.all_causes();
  for (const idle_cause cause : all_idle_causes) {
    std::int64_t rest_ns = causes.of(cause);
    if (cause == idle_cause::batch_wait) {
      for (const auto& [activity, ns] : of.late_ns) {
        shown.push_back({cause, ns, std::string(activity.key())});
        rest_ns -= ns;
      }
      if (rest_ns == 0 && !of.late_ns.empty()) continue;
    }
    shown.push_back({cause, rest_ns, std::nullopt});
  }
  return shown;
}

template <class Shown>
auto parts_of(std::vector<idle_part> accelerator_analysis::*parts) {
  return [parts](const shown_trace& trace) {
    std::vector<Shown> shown;
    for (const idle_part& part : trace.of->*parts) shown.push_back({part});
    return shown;
  };
}

template <class Value>
auto of_trace(Value accelerator_analysis::*part) {
  return [part](const shown_trace& trace) { return trace.of->*part; };
}

auto rank_named(std::optional<std::size_t> rank_comparison::*index) {
  return [index](const shown_ranks& of) {
    const std::optional<std::size_t> rank = of.compared.*index;
    return rank ? std::optional(of.compared.names[*rank].text()) : std::nullopt;
  };
}

}  // namespace

const description<copy_sum>& description_of(const copy_sum*) {
  static const description<copy_sum> all(
      "copies", "copies of one direction and kind of memory",
      {
          {"us", us(&copy_sum::ns), "their time, in us"},
          {"bytes", known_bytes, "bytes copied; null if unknown"},
          {"count", &copy_sum::count, "number of copies", column{"count"}},
          {"gb_per_s", &copy_sum::gb_per_s, "bytes divided by their time; null if unknown"},
          {"", &copy_sum::ns, "their time", column{"time", in_time}},
          {"", known_bytes, "bytes copied", column{"bytes", unit::bytes, 0, "unknown"}},
          {"", bandwidth_text, "bytes divided by their time", column{"bandwidth"}},
      });
  return all;
}

const description<copy_figures>& description_of(const copy_figures*) {
  static const description<copy_figures> all =
      description<copy_figures>("direction", "copies of one direction")
          .with_part(description_of(static_cast<const copy_sum*>(nullptr)), &copy_figures::all)
          .with({{"pageable", copies_of(host_memory::pageable), "those of pageable memory", if_any},
                 {"pinned", copies_of(host_memory::pinned), "those of pinned memory", if_any}});
  return all;
}

const description<stream_idle>& description_of(const stream_idle*) {
  static const description<stream_idle> all(
      "stream_idle", "the idle time of a stream by reason",
      {
          {"host_wait_us", us(&stream_idle::host_wait_ns), "waiting for the host, in us"},
          {"kernel_wait_us", us(&stream_idle::kernel_wait_ns), "between kernels, in us"},
          {"other_us", us(&stream_idle::other_ns), "other, in us"},
      });
  return all;
}

const description<stream_figures>& description_of(const stream_figures*) {
  using s = const stream_figures&;
  static const description<stream_figures> all(
      "stream", "a stream (queue) of a device",
      {
          {"stream", &stream_figures::number, "its number"},
          {"busy_us", us(&stream_figures::busy_ns), "time with work, in us"},
          {"idle", &stream_figures::idle, "its idle time"},
          {"", &stream_figures::busy_ns, "with work", column{"in use", in_time}},
          {"", [](s of) { return of.idle.host_wait_ns; }, "", column{"waits for host", in_time}},
          {"", [](s of) { return of.idle.kernel_wait_ns; }, "", column{"gaps < 30 us", in_time}},
          {"", [](s of) { return of.idle.other_ns; }, "", column{"longer gaps", in_time}},
      });
  return all;
}

const description<device_figures>& description_of(const device_figures*) {
  using f = device_figures;
  using d = const device_figures&;
  static const description<device_figures> all(
      "device", "a device, such as a GPU",
      {
          {"device", &device_figures::device, "its number"},
          {"kernel_time_us", us(&device_figures::span_ns),
           "from its first to its last work, in us"},
          {"busy_us", [](d of) { return in_us(of.busy_ns()); }, "time with work, in us"},
          {"compute_us", us(&device_figures::compute_ns), "time with compute kernels, in us"},
          {"communication_us", us(&device_figures::communication_ns),
           "time with communication, in us"},
          {"only_communication_us", us(&device_figures::only_communication_ns),
           "time with communication and without compute, in us"},
          {"non_compute_us", [](d of) { return in_us(of.busy_ns() - of.compute_ns); },
           "busy time without compute, in us"},
          {"only_copies_us", us(&device_figures::only_copies_ns), "time with copies only, in us"},
          {"idle_us", us(&device_figures::idle_ns), "time without work, in us"},
          {"streams", &device_figures::streams, "its streams"},
          {"copies",
           [](d of) {
             std::vector<std::pair<std::string, copy_figures>> copies;
             copies.reserve(of.copies.size());
             for (const auto& [kind, figures] : of.copies) {
               copies.emplace_back(copy_kind_name(kind), figures);
             }
             return copies;
           },
           "by direction, such as HtoD"},
          {"", &f::span_ns, "from its first to its last work", column{"whole time", in_time}},
          {"", [](d of) { return share_text(of.busy_ns(), of.span_ns); }, "busy", column{"in use"}},
          {"", time_and_share(&f::compute_ns), "with compute kernels", column{"compute"}},
          {"", time_and_share(&f::communication_ns), "", column{"communication", {}, 1}},
          {"", time_and_share(&f::only_copies_ns), "", column{"copies alone", {}, 2}},
          {"", time_and_share(&f::idle_ns), "without work", column{"idle"}},
      });
  return all;
}

const description<shown_cause>& description_of(const shown_cause*) {
  using c = const shown_cause&;
  static const description<shown_cause> all(
      "idle_cause", "idle time of all devices with one cause",
      {
          {"cause", [](c of) { return idle_cause_name(of.cause); }, "what the host did",
           cause_names()},
          {"us", us(&shown_cause::ns), "idle time, in us"},
          {"op", &shown_cause::op, "for batch-wait with logs: what was late"},
          {"", &shown_cause::ns, "idle time", column{"time", in_time}},
          {"", [](c of) { return share_text(of.ns, of.all_ns); }, "", column{"% of idle time"}},
          {"", [](c of) { return share_text(of.ns, of.span_ns); }, "", column{"% of whole time"}},
      });
  return all;
}

/// Times in us of a step or batch by cause.
const description<idle_part>& description_of(const idle_part*) {
  using p = const idle_part&;
  static const description<idle_part> all(
      "idle_part", "the idle time of all devices in a step or batch, with that of outside_us",
      {
          {"idle_us", [](p of) { return in_us(of.causes.sum()); }, "idle, in us"},
          {"batch-wait_us", idle_us(idle_cause::batch_wait),
           "idle while the consumer waited for a batch, in us"},
          {"copy_us", idle_us(idle_cause::copy), "idle while the host copied to it, in us"},
          {"synchronization_us", idle_us(idle_cause::synchronization),
           "idle while the host or a stream waited, in us"},
          {"launch_us", idle_us(idle_cause::launch), "idle while the host launched work, in us"},
          {"host_us", idle_us(idle_cause::host), "idle while the host did something else, in us"},
          {"device_us", idle_us(idle_cause::device),
           "idle between works that were launched before, in us"},
          {"unknown_us", idle_us(idle_cause::unknown), "idle for an unknown reason, in us"},
          {"", [](p of) { return of.causes.sum(); }, "idle", column{"idle", in_time}},
          {"", idle_ns(idle_cause::batch_wait), "", column{"batch-wait", in_time}},
          {"", idle_ns(idle_cause::copy), "", column{"copy", in_time}},
          {"", idle_ns(idle_cause::synchronization), "", column{"synchronization", in_time}},
          {"", idle_ns(idle_cause::launch), "", column{"launch", in_time}},
          {"", [](p of) { return of.causes.other(); }, "others", column{"other", in_time}},
      });
  return all;
}

const description<shown_step>& description_of(const shown_step*) {
  static const description<shown_step> all =
      description<shown_step>("idle_step", "a profiler step",
                              {{"step", &shown_step::number, "number of the step"}})
          .with_base(description_of(static_cast<const idle_part*>(nullptr)));
  return all;
}

const description<shown_batch>& description_of(const shown_batch*) {
  static const description<shown_batch> all =
      description<shown_batch>("idle_batch", "a batch: from its wait to the next wait",
                               {{"epoch", &shown_batch::epoch, "epoch, from 0"},
                                {"batch", &shown_batch::number, "number of the batch"}})
          .with_base(description_of(static_cast<const idle_part*>(nullptr)));
  return all;
}

const description<idle_places>& description_of(const idle_places*) {
  static const description<idle_places> all(
      "places", "where the time of the verdict lies",
      {
          {"gaps", &idle_places::gaps, "number of times in which devices were idle"},
          {"longest_us", us(&idle_places::longest_ns), "the longest of them, in us"},
          {"step", &idle_places::step, "the profiler step with most of it"},
          {"line", name_in(&idle_places::line), "the line of the program in which most of it lies"},
          {"operator", name_in(&idle_places::framework), "the operator in which most of it lies"},
          {"range", name_in(&idle_places::annotation),
           "the range that the program or a library named in which most of it lies"},
      });
  return all;
}

const description<shown_trace>& description_of(const shown_trace*) {
  using t = const shown_trace&;
  const auto with_parts = [](t trace) { return trace.parts; };
  static const description<shown_trace> all(
      "trace", "why the devices of one trace were idle; times are in microseconds",
      {
          {"trace", of_trace(&accelerator_analysis::path), "the file of the trace"},
          {"rank", of_trace(&accelerator_analysis::rank), "the rank, if the trace has one"},
          {"logs",
           [](t trace) {
             return trace.of->logs.empty() ? std::nullopt : std::optional(trace.of->logs);
           },
           "folder of the logs that were used; null for none"},
          {"verdict", [](t trace) { return device_verdict_name(trace.of->is); },
           "why the device is idle", verdict_names()},
          {"headline", [](t trace) { return accelerator_headline(*trace.of); },
           "the verdict in words; may change between versions"},
          {"advice", [](t trace) { return accelerator_advice(*trace.of); },
           "what to do; may change between versions"},
          {"judged_us", [](t trace) { return in_us(trace.of->judged.span_ns); },
           "the time of which the verdict takes its share, in us: that of all devices without "
           "start-up"},
          {"cause_us", [](t trace) { return in_us(trace.of->judged.of(trace.of->is)); },
           "how much of judged_us the verdict is about, in us"},
          {"at_most_times_as_fast", [](t trace) { return trace.of->at_most_times_as_fast(); },
           "how many times as fast the devices would be at most without it; null if they are "
           "busy"},
          {"outside_us", [](t trace) { return in_us(trace.of->judged.edges_ns); },
           "how much of judged_us is before the first and after the last work, in us"},
          {"start_up_us", [](t trace) { return in_us(trace.of->start_up.causes.sum()); },
           "idle time that is left out as start-up, in us"},
          {"start_up_gaps", [](t trace) { return trace.of->start_up.gaps; },
           "number of gaps that are left out as start-up"},
          {"skipped_steps", of_trace(&accelerator_analysis::skipped_steps),
           "number of first steps that are left out"},
          {"places", of_trace(&accelerator_analysis::places), "where the time of the verdict lies"},
          {"notes", [](t trace) { return fault_notes(trace.of->faults); },
           "what was wrong in the trace; may change between versions"},
          {"without_last_step", of_trace(&accelerator_analysis::without_last_step),
           "whether the last profiler step is left out"},
          {"rounded_to_us", of_trace(&accelerator_analysis::rounded),
           "whether times were rounded to whole microseconds"},
          {"devices", of_trace(&accelerator_analysis::devices), "the devices"},
          {"idle_causes", [](t trace) { return causes_of(*trace.of); },
           "the idle time of all devices by cause; the sum is that of idle_us"},
          {"steps", parts_of<shown_step>(&accelerator_analysis::steps),
           "the profiler steps; only of the command accelerator", with_parts},
          {"batches", parts_of<shown_batch>(&accelerator_analysis::batches),
           "the batches; only of the command accelerator", with_parts},
      });
  return all;
}

const description<shown_rank>& description_of(const shown_rank*) {
  using r = const shown_rank&;
  using a = const accelerator_analysis&;
  static const description<shown_rank> all(
      "rank", "a rank of a training",
      {
          {"name", &shown_rank::name, "such as rank 3"},
          {"own_us", us(&shown_rank::own_ns), "time outside communication, in us"},
          {"accelerator", &shown_rank::trace, "its trace"},
          {"", [](r of) { return device_verdict_name(of.trace.of->is); }, "", column{"verdict"}},
          {"", &shown_rank::own_ns, "per step", column{"own time/step", in_time},
           &shown_rank::by_step},
          {"", &shown_rank::own_ns, "in total", column{"own time", in_time},
           [](r of) { return !of.by_step; }},
          {"", rank_sum(&device_figures::compute_ns), "", column{"compute", {}, 1}},
          {"", rank_share([](a of) { return of.judged.only_communication_ns; }), "",
           column{"communication alone", {}, 2}},
          {"", rank_share([](a of) { return of.judged.only_copies_ns; }), "",
           column{"copies alone"}},
          {"", rank_sum(&device_figures::idle_ns), "without work", column{"idle"}},
          {"", rank_idle(idle_cause::batch_wait), "", column{"batch-wait"}},
          {"", rank_idle(idle_cause::copy), "", column{"copy"}},
          {"", rank_idle(idle_cause::synchronization), "", column{"sync."}},
          {"", rank_idle(idle_cause::launch), "", column{"launch"}},
          {"", rank_share([](a of) { return of.all_causes().other(); }), "", column{"other"}},
      });
  return all;
}

std::vector<shown_rank> each_of(const shown_ranks& ranks) {
  std::vector<shown_rank> all;
  const rank_comparison& c = ranks.compared;
  all.reserve(ranks.ranks->size());
  for (std::size_t i = 0; i < ranks.ranks->size(); ++i) {
    all.push_back({c.names[i].text(), c.own_ns[i], {&(*ranks.ranks)[i], ranks.parts}, c.by_step});
  }
  return all;
}

const description<shown_ranks>& description_of(const shown_ranks*) {
  using r = const shown_ranks&;
  const auto decisive = [](r of) -> const accelerator_analysis& {
    return (*of.ranks)[of.compared.decisive];
  };
  static const description<shown_ranks> all(
      "ranks", "the ranks of one training",
      {
          {"verdict", [decisive](r of) { return device_verdict_name(decisive(of).is); },
           "that of the slowest rank, or of the one whose device is idle longest", verdict_names()},
          {"headline", [](r of) { return accelerator_headline(*of.ranks); },
           "the verdict in words; may change between versions"},
          {"advice", [decisive](r of) { return accelerator_advice(decisive(of)); },
           "what to do; may change between versions"},
          {"slowest", rank_named(&rank_comparison::slowest),
           "name of the rank with the longest time outside communication, if it is 5 % above the "
           "others"},
          {"waits_for_data", rank_named(&rank_comparison::waits_for_data),
           "name of the rank whose device is idle longest because of batches, if that is 5 % of "
           "its time"},
          {"own_by_step", [](r of) { return of.compared.by_step; },
           "whether own_us is per profiler step"},
          {"ranks", each_of, "by rank"},
      });
  return all;
}

shown_accelerator shown(const std::vector<accelerator_analysis>& ranks, bool parts) {
  if (ranks.size() == 1) return shown_trace{&ranks.front(), parts};
  return shown_ranks{&ranks, compare_ranks(ranks), parts};
}

}  // namespace lotus::tool
