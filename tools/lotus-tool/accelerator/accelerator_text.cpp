#include "accelerator/accelerator_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accelerator/analysis.hpp"
#include "base/formats/json_writer.hpp"
#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"

namespace lotus::tool {
namespace {

double share(std::int64_t ns, std::int64_t of_ns) {
  return of_ns > 0 ? static_cast<double>(ns) / static_cast<double>(of_ns) : 0;
}

std::string percent(double part) {
  return std::to_string(std::lround(100 * part)) + " %";
}

std::string time_text(std::int64_t ns) {
  return human_time(static_cast<double>(ns));
}

/// Returns bytes per nanosecond, which is the same as GB/s.
std::optional<double> bandwidth(const copy_sum& copies) {
  if (copies.ns <= 0 || copies.bytes == 0) return std::nullopt;
  return static_cast<double>(copies.bytes) / static_cast<double>(copies.ns);
}

std::string bandwidth_text(const copy_sum& copies) {
  const std::optional<double> rate = bandwidth(copies);
  if (!rate) return "-";
  const bool slow = *rate < 0.1;
  const auto tenths = std::llround(*rate * (slow ? 10'000 : 10));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
         (slow ? " MB/s" : " GB/s");
}

/// Sums up the copies to all devices.
copy_figures copies_to_device(const accelerator_analysis& of) {
  copy_figures sum;
  const auto add = [](copy_sum& to, const copy_sum& more) {
    to.count += more.count;
    to.ns += more.ns;
    to.bytes += more.bytes;
  };
  for (const device_figures& d : of.devices) {
    const auto at = d.copies.find(copy_kind::to_device);
    if (at == d.copies.end()) continue;
    add(sum.all, at->second.all);
    for (std::size_t i = 0; i < sum.by_memory.size(); ++i) {
      add(sum.by_memory[i], at->second.by_memory[i]);
    }
  }
  return sum;
}

std::string_view memory_name(host_memory memory) noexcept {
  switch (memory) {
    case host_memory::pageable:
      return "pageable";
    case host_memory::pinned:
      return "pinned";
    case host_memory::unknown:
      break;
  }
  return {};
}

std::string_view reason_of(device_verdict verdict) noexcept {
  switch (verdict) {
    case device_verdict::batch_wait:
      return "the consumer waits for batches";
    case device_verdict::synchronization:
      return "the host, streams or devices wait for each other";
    case device_verdict::launch:
      return "the host (the CPU) launches kernels too slowly";
    case device_verdict::host:
      return "the host does something else";
    case device_verdict::copy:
    case device_verdict::busy:
      break;
  }
  return {};
}

std::int64_t time_of(const accelerator_analysis& of, device_verdict verdict) {
  const cause_times causes = of.all_causes();
  switch (verdict) {
    case device_verdict::batch_wait:
      return causes.of(idle_cause::batch_wait);
    case device_verdict::copy:
      return causes.of(idle_cause::copy) + of.only_copies_ns();
    case device_verdict::synchronization:
      return causes.of(idle_cause::synchronization);
    case device_verdict::launch:
      return causes.of(idle_cause::launch);
    case device_verdict::host:
      return causes.of(idle_cause::host);
    case device_verdict::busy:
      break;
  }
  return 0;
}

void write_copies(json_writer& to, const copy_sum& copies) {
  write_us(to, "us", copies.ns);
  to.member("bytes", copies.bytes).member("count", copies.count);
  to.member("gb_per_s", bandwidth(copies));
}

void write_device(json_writer& to, const device_figures& d) {
  to.newline().begin_object().member("device", d.device);
  write_us(to, "kernel_time_us", d.span_ns);
  write_us(to, "busy_us", d.busy_ns());
  write_us(to, "compute_us", d.compute_ns);
  write_us(to, "communication_us", d.communication_ns);
  write_us(to, "only_communication_us", d.only_communication_ns);
  write_us(to, "non_compute_us", d.busy_ns() - d.compute_ns);
  write_us(to, "only_copies_us", d.only_copies_ns);
  write_us(to, "idle_us", d.idle_ns);
  to.key("streams").begin_array();
  for (const stream_figures& s : d.streams) {
    to.newline().begin_object().member("stream", s.number);
    write_us(to, "busy_us", s.busy_ns);
    to.key("idle").begin_object();
    write_us(to, "host_wait_us", s.idle.host_wait_ns);
    write_us(to, "kernel_wait_us", s.idle.kernel_wait_ns);
    write_us(to, "other_us", s.idle.other_ns);
    to.end_object().end_object();
  }
  to.end_array().key("copies").begin_object();
  for (const auto& [kind, copies] : d.copies) {
    to.newline().key(copy_kind_name(kind)).begin_object();
    write_copies(to, copies.all);
    for (const host_memory memory : {host_memory::pageable, host_memory::pinned}) {
      if (copies.of(memory).count == 0) continue;
      to.key(memory_name(memory)).begin_object();
      write_copies(to, copies.of(memory));
      to.end_object();
    }
    to.end_object();
  }
  to.end_object().end_object();
}

/// Writes how long the devices were idle for each cause. If it is known which operations delayed
/// the batches, the time of waiting for batches is divided among these operations.
void write_causes(json_writer& to, const accelerator_analysis& of) {
  const cause_times causes = of.all_causes();
  to.newline().key("idle_causes").begin_array();
  for (const idle_cause cause : all_idle_causes) {
    std::int64_t rest_ns = causes.of(cause);
    if (cause == idle_cause::batch_wait) {
      for (const auto& [name, ns] : of.late_ns) {
        to.newline().begin_object().member("cause", idle_cause_name(cause));
        write_us(to, "us", ns);
        to.member("op", name).end_object();
        rest_ns -= ns;
      }
      if (rest_ns == 0 && !of.late_ns.empty()) continue;
    }
    to.newline().begin_object().member("cause", idle_cause_name(cause));
    write_us(to, "us", rest_ns);
    to.member("op", nullptr).end_object();
  }
  to.end_array();
}

void write_parts(json_writer& to, std::string_view name, const std::vector<idle_part>& parts,
                 bool of_batches) {
  to.newline().key(name).begin_array();
  for (const idle_part& p : parts) {
    to.newline().begin_object();
    if (of_batches) to.member("epoch", p.epoch);
    to.member(of_batches ? "batch" : "step", p.number);
    write_us(to, "idle_us", p.causes.sum());
    for (const idle_cause cause : all_idle_causes) {
      write_us(to, std::string(idle_cause_name(cause)) + "_us", p.causes.of(cause));
    }
    to.end_object();
  }
  to.end_array();
}

void print_devices(const accelerator_analysis& of, std::ostream& out) {
  table devices;
  devices.row(
      {"device", "whole time", "in use", "compute", "communication", "copies alone", "idle"});
  for (const device_figures& d : of.devices) {
    const auto cell = [&d](std::int64_t ns) {
      return time_text(ns) + " " + percent(share(ns, d.span_ns));
    };
    devices.row({"device " + std::to_string(d.device), time_text(d.span_ns),
                 percent(share(d.busy_ns(), d.span_ns)), cell(d.compute_ns),
                 cell(d.communication_ns), cell(d.only_copies_ns), cell(d.idle_ns)});
  }
  devices.spare({"communication", "copies alone"});
  devices.print(out);
}

void print_causes(const accelerator_analysis& of, std::ostream& out) {
  const cause_times causes = of.all_causes();
  table rows;
  rows.row({"idle because of", "time", "% of idle time", "% of whole time"});
  const auto row = [&](std::string name, std::int64_t ns) {
    rows.row({std::move(name), time_text(ns), percent(share(ns, of.idle_ns())),
              percent(share(ns, of.span_ns()))});
  };
  for (const idle_cause cause : all_idle_causes) {
    if (causes.of(cause) == 0) continue;
    row(cause == idle_cause::host ? "other" : std::string(idle_cause_name(cause)),
        causes.of(cause));
    if (cause != idle_cause::batch_wait) continue;
    std::vector<std::pair<std::string, std::int64_t>> late(of.late_ns.begin(), of.late_ns.end());
    std::stable_sort(late.begin(), late.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [name, ns] : late) row("  late: " + printable_line(name), ns);
  }
  row("all", of.idle_ns());
  out << '\n';
  rows.print(out);
}

void print_streams(const accelerator_analysis& of, std::ostream& out) {
  table rows;
  rows.row({"device, stream", "in use", "waits for host", "gaps < 30 us", "longer gaps"});
  for (const device_figures& d : of.devices) {
    for (const stream_figures& s : d.streams) {
      rows.row({"device " + std::to_string(d.device) + ", stream " + std::to_string(s.number),
                time_text(s.busy_ns), time_text(s.idle.host_wait_ns),
                time_text(s.idle.kernel_wait_ns), time_text(s.idle.other_ns)});
    }
  }
  out << '\n';
  rows.print(out);
}

void print_copies(const accelerator_analysis& of, std::ostream& out) {
  table rows;
  rows.row({"device, kind of copy", "count", "time", "bytes", "bandwidth"});
  bool any = false;
  for (const device_figures& d : of.devices) {
    for (const auto& [kind, copies] : d.copies) {
      for (const host_memory memory :
           {host_memory::pageable, host_memory::pinned, host_memory::unknown}) {
        const copy_sum& sum = copies.of(memory);
        if (sum.count == 0) continue;
        any = true;
        std::string name =
            "device " + std::to_string(d.device) + ", " + std::string(copy_kind_name(kind));
        if (memory != host_memory::unknown) name.append(" ").append(memory_name(memory));
        rows.row({name, std::to_string(sum.count), time_text(sum.ns),
                  human_bytes(static_cast<double>(sum.bytes)), bandwidth_text(sum)});
      }
    }
  }
  if (!any) return;
  out << '\n';
  rows.print(out);
}

/// Prints the steps or batches with the longest idle times.
/// @param what  the heading of the first column.
/// @param unit  a step or a batch, as a word before its number.
void print_parts(std::string_view what, std::string_view unit, const std::vector<idle_part>& parts,
                 std::ostream& out) {
  constexpr std::size_t shown = 5;
  std::vector<const idle_part*> most;
  for (const idle_part& p : parts) {
    if (p.causes.sum() > 0) most.push_back(&p);
  }
  if (most.empty()) return;
  std::stable_sort(most.begin(), most.end(), [](const idle_part* a, const idle_part* b) {
    return a->causes.sum() > b->causes.sum();
  });
  table rows;
  rows.row({std::string(what), "idle", "batch-wait", "copy", "synchronization", "launch", "other"});
  for (std::size_t i = 0; i < std::min(shown, most.size()); ++i) {
    const idle_part& p = *most[i];
    const std::string before = p.epoch > 0 ? "epoch " + std::to_string(p.epoch) + ", " : "";
    std::vector<std::string> cells{before + std::string(unit) + ' ' + std::to_string(p.number),
                                   time_text(p.causes.sum())};
    for (const idle_cause cause : all_idle_causes) cells.push_back(time_text(p.causes.of(cause)));
    rows.row(cells);
  }
  out << '\n';
  rows.print(out);
  if (most.size() > shown) {
    out << "  " << most.size() - shown << " more rows with --json\n";
  }
}

}  // namespace

void write_us(json_writer& to, std::string_view key, std::int64_t ns) {
  if (ns % 1000 == 0) {
    to.member(key, ns / 1000);
  } else {
    to.member(key, static_cast<double>(ns) / 1000);
  }
}

std::string accelerator_headline(const accelerator_analysis& of) {
  const bool several = of.devices.size() > 1;
  const std::string devices = several ? "the devices are " : "the device is ";
  if (of.is == device_verdict::busy) {
    const double busy = share(of.span_ns() - of.idle_ns(), of.span_ns());
    std::int64_t working_ns = 0;
    for (const device_figures& d : of.devices) working_ns += d.working_ns();
    const double working = share(working_ns, of.span_ns());
    if (working >= 0.9) {
      return devices + "busy " + percent(busy) +
             " of the time. The input pipeline is not the problem";
    }
    if (busy >= 0.9) {
      return devices + "busy " + percent(busy) + " of the time, and " + percent(busy - working) +
             " of the time only with communication. This includes waiting for slower ranks: "
             "compare the traces "
             "of all ranks";
    }
    return devices + "busy " + percent(busy) +
           " of the time, and no single cause of idle time takes 5 % of it";
  }
  const std::int64_t ns = time_of(of, of.is);
  std::string text = std::string(device_verdict_name(of.is)) + ": ";
  text += percent(share(ns, of.span_ns())) + " of the time (" + time_text(ns) + "), ";
  if (of.is == device_verdict::copy) {
    text += several ? "the devices only copy data or wait for copies"
                    : "the device only copies data or waits for copies";
  } else {
    text.append(devices).append("idle because ").append(reason_of(of.is));
  }
  const std::string late = of.latest();
  if (of.is == device_verdict::batch_wait && !late.empty())
    text += ". The operation that was late is mostly " + late;
  return text;
}

std::string accelerator_advice(const accelerator_analysis& of) {
  switch (of.is) {
    case device_verdict::busy:
      return {};
    case device_verdict::batch_wait:
      return "'lotus-tool diagnose' shows what to change in the input pipeline.";
    case device_verdict::copy: {
      const copy_figures in = copies_to_device(of);
      const copy_sum& pageable = in.of(host_memory::pageable);
      if (2 * pageable.ns >= in.all.ns && pageable.ns > 0) {
        return "Copies to the device read pageable memory at " + bandwidth_text(pageable) +
               ". Pin the batches in memory (pin_memory=True, cudaHostAlloc). Copy them "
               "asynchronously (non_blocking=True, cudaMemcpyAsync).";
      }
      if (in.of(host_memory::pinned).ns > 0) {
        return "Copies to the device read pinned memory already, at " +
               bandwidth_text(in.of(host_memory::pinned)) +
               ". Copy the next batch on a stream of its own while this one is computed. Or copy "
               "fewer bytes, with smaller types or decoding on the device.";
      }
      return "Copy the next batch on a stream of its own while this one is computed. Copy from "
             "pinned memory.";
    }
    case device_verdict::synchronization:
      return "In the training step, avoid .item(), .cpu(), printing tensors, and synchronize(). If "
             "work was launched early but starts late, look at what its stream waits for. A stream "
             "may "
             "wait for events of other streams, or for other devices.";
    case device_verdict::launch:
      return "Launch fewer, but larger pieces of work: use larger batches, fused kernels "
             "(torch.compile), or CUDA graphs.";
    case device_verdict::host:
      break;
  }
  return "Look at what the consumer's thread does between launches. It may write logs, metrics or "
         "checkpoints, or run other Python code.";
}

void print_accelerator(const accelerator_analysis& of, std::ostream& out) {
  out << printable_line(of.path);
  if (of.rank) out << ", rank " << *of.rank;
  out << "\n\n"
      << styled(out, style::bold, fitted_sentences(out, accelerator_headline(of) + '.')) << '\n';
  const std::string advice = accelerator_advice(of);
  if (!advice.empty()) out << fitted_sentences(out, advice) << '\n';
  out << '\n';
  print_devices(of, out);
  print_causes(of, out);
  print_streams(of, out);
  print_copies(of, out);
  print_parts("profiler step", "step", of.steps, out);
  print_parts("batch", "batch", of.batches, out);
  if (of.without_last_step || of.rounded) out << '\n';
  if (of.without_last_step) {
    out << fitted_sentences(out,
                            "The last profiler step is left out, because its recording may be "
                            "incomplete. --last-step includes the last profiler step.")
        << '\n';
  }
  if (of.rounded) {
    out << fitted_sentences(
               out,
               "Times are rounded to whole microseconds, as HolisticTraceAnalysis does. Rounding "
               "lengthens each idle time by up to 2 us. Option --exact does not round.")
        << '\n';
  }
}

void write_accelerator(json_writer& to, const accelerator_analysis& of, bool parts) {
  to.begin_object().member("trace", of.path).member("rank", of.rank);
  to.member("logs", of.logs.empty() ? std::nullopt : std::optional(of.logs));
  to.member("verdict", device_verdict_name(of.is)).member("headline", accelerator_headline(of));
  to.member("advice", accelerator_advice(of));
  to.member("without_last_step", of.without_last_step).member("rounded_to_us", of.rounded);
  to.newline().key("devices").begin_array();
  for (const device_figures& d : of.devices) write_device(to, d);
  to.end_array();
  write_causes(to, of);
  if (parts) {
    write_parts(to, "steps", of.steps, false);
    write_parts(to, "batches", of.batches, true);
  }
  to.end_object();
}

std::string share_text(std::int64_t ns, std::int64_t of_ns) {
  return percent(share(ns, of_ns));
}

}  // namespace lotus::tool
