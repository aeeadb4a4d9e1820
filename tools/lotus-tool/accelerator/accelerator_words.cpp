#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "accelerator/accelerator_text.hpp"
#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"

namespace lotus::tool {
namespace {

/// The copies in one direction to or from all devices.
copy_figures copies_of(const accelerator_analysis& of, copy_kind kind) {
  copy_figures sum;
  for (const device_figures& d : of.devices) {
    const auto at = d.copies.find(kind);
    if (at == d.copies.end()) continue;
    sum.all.add(at->second.all);
    for (std::size_t i = 0; i < sum.by_memory.size(); ++i) {
      sum.by_memory[i].add(at->second.by_memory[i]);
    }
  }
  return sum;
}

/// The reason in a sentence "the device is idle because …".
std::string_view reason_of(const accelerator_analysis& of) noexcept {
  return of.is == device_verdict::batch_wait && !of.has_waits
             ? "because the thread that launches its work preprocesses the input"
             : row_of(of.is).reason;
}

std::string busy_headline(const accelerator_analysis& of) {
  const judged_time& judged = of.judged;
  const double busy = time_share(judged.busy_ns(), judged.span_ns);
  const double working = busy - time_share(judged.only_communication_ns, judged.span_ns);
  const std::string text =
      std::string(of.devices.size() > 1 ? "the devices are" : "the device is") + " busy " +
      whole_percent(busy) + " of the time";
  if (busy >= 0.9 && working < 0.9) {
    return text + ", and " + whole_percent(busy - working) +
           " of the time only with communication. This includes waiting for slower ranks: compare "
           "the traces of all ranks";
  }
  if (working >= 0.9) return text + ". The input pipeline is not the problem";
  return text + ", and no single cause of idle time takes 5 % of it";
}

std::string start_up_text(const accelerator_analysis& of) {
  const std::int64_t ns = of.start_up.causes.sum();
  return ". Left out as start-up: " + counted(of.start_up.gaps, "gap", "gaps") + " of " +
         human_time(ns) + ", " + share_text(ns, of.shown_causes().sum()) +
         " of the idle time, in the first step or while kernels are loaded";
}

/// Whether a single gap decides, and no second step shows whether it recurs.
bool is_one_gap(const accelerator_analysis& of) noexcept {
  constexpr std::int64_t most = 5;  // the longest gap has at least four fifths of the time
  return of.step_count <= 1 && of.is != device_verdict::batch_wait &&
         of.is != device_verdict::copy &&
         most * of.places.longest_ns >= (most - 1) * of.places.all_ns;
}

std::string copy_advice(const accelerator_analysis& of) {
  const copy_figures in = copies_of(of, copy_kind::to_device);
  const copy_figures out = copies_of(of, copy_kind::to_host);
  if (out.all.ns > in.all.ns) {
    return "Most of the copying is to the host. Copy results less often, or asynchronously to "
           "pinned memory (non_blocking=True, cudaMemcpyAsync).";
  }
  const copy_sum& pageable = in.of(host_memory::pageable);
  if (2 * pageable.ns >= in.all.ns && pageable.ns > 0) {
    const std::string rate = pageable.gb_per_s() ? " at " + bandwidth_text(pageable) : "";
    return "Copies to the device read pageable memory" + rate +
           ". Pin the batches in memory (pin_memory=True, cudaHostAlloc). Copy them "
           "asynchronously (non_blocking=True, cudaMemcpyAsync).";
  }
  if (in.of(host_memory::pinned).ns > 0) {
    return "Copies to the device read pinned memory already, at " +
           bandwidth_text(in.of(host_memory::pinned)) +
           ". Copy the next batch on a stream of its own while this one is computed. Or copy "
           "fewer bytes, with smaller types or decoding on the device.";
  }
  return "Copy the next batch on a stream of its own while this one is computed. Whether the "
         "host's "
         "memory is pinned is not in the trace.";
}

std::string input_advice(const accelerator_analysis& of) {
  if (!of.logs.empty()) {
    return "'lotus-tool diagnose' shows what to change in the input pipeline.";
  }
  if (!of.has_waits) {
    return "Preprocess the next input in other threads or processes while the device computes, for "
           "example with a DataLoader that has workers (num_workers).";
  }
  if (of.loads_alone) {
    return "The loader has no worker processes (num_workers=0), so that each batch is built while "
           "the device waits: set num_workers.";
  }
  return "Give the loader more workers (num_workers) or less to do. Its logs show which operation "
         "is late: record them with Lotus and give their folder, too.";
}

}  // namespace

std::string accelerator_headline(const accelerator_analysis& of) {
  std::string text;
  if (of.is == device_verdict::busy) {
    text = busy_headline(of);
  } else {
    const bool several = of.devices.size() > 1;
    const std::int64_t ns = of.judged.of(of.is);
    text = std::string(device_verdict_name(of.is)) + ": " + share_text(ns, of.judged.span_ns) +
           " of the time (" + human_time(ns) + "), ";
    if (of.is == device_verdict::copy) {
      text += several ? "the devices only copy data or wait for copies"
                      : "the device only copies data or waits for copies";
    } else {
      text.append(several ? "the devices are idle " : "the device is idle ").append(reason_of(of));
    }
    if (is_one_gap(of)) {
      text += ". Nearly all of it is one gap of " + human_time(of.places.longest_ns) +
              ", which may be start-up";
    } else if (const std::optional<double> times = of.at_most_times_as_fast()) {
      text += ". Without this it would be at most " + fixed_point(*times, *times < 10 ? 2 : 0) +
              " times as fast";
    }
    const late_activity* const late = of.latest();
    if (of.is == device_verdict::batch_wait && late != nullptr) {
      text += late->is_unmarked()
                  ? ". No operation is marked in the loader, so only preprocessing as a whole is "
                    "known to be late"
                  : ". The operation that was late is mostly " + std::string(late->key());
    }
  }
  return of.start_up.gaps > 0 ? text + start_up_text(of) : text;
}

std::string places_text(const accelerator_analysis& of) {
  const idle_places& places = of.places;
  if (places.gaps == 0) return {};
  std::vector<std::string> parts;
  const auto add = [&](std::string_view before, const named_time& most) {
    // What covers less than this is not what to look at first.
    if (most.name.empty() || 4 * most.ns < places.all_ns) return;
    parts.push_back(std::string(before) + printable_line(most.name) + " (" +
                    share_text(most.ns, places.all_ns) + ")");
  };
  add("line ", places.line);
  add("operator ", places.framework);
  add("range ", places.annotation);
  // Name a step only if it has more than twice the mean time of a step.
  const auto steps = static_cast<std::int64_t>(of.step_count);
  if (places.step && steps > 1 && places.step_ns * steps > 2 * places.all_ns) {
    parts.push_back("most of it in step " + std::to_string(*places.step) + " (" +
                    human_time(places.step_ns) + ")");
  }
  constexpr std::size_t many = 20;
  std::string gaps = counted(places.gaps, "time", "times");
  gaps += places.gaps > 1 ? ", at most " + human_time(places.longest_ns) : "";
  if (places.gaps > many && 2 * places.ten_longest_ns >= places.all_ns) {
    gaps += "; the 10 longest are " + share_text(places.ten_longest_ns, places.all_ns) + " of it";
  }
  parts.push_back(std::move(gaps));
  return "Where: " + joined(parts, "; ") + '.';
}

std::string accelerator_advice(const accelerator_analysis& of) {
  switch (of.is) {
    case device_verdict::busy:
      return {};
    case device_verdict::batch_wait:
      return input_advice(of);
    case device_verdict::copy:
      return copy_advice(of);
    case device_verdict::synchronization:
      return "In the training step, avoid .item(), .cpu(), printing tensors, and synchronize(). If "
             "work was launched early but starts late, look at what its stream waits for. A stream "
             "may "
             "wait for events of other streams, or for other devices.";
    case device_verdict::launch:
    case device_verdict::device:
      return "Launch fewer, but larger pieces of work: use larger batches, fused kernels "
             "(torch.compile), or CUDA graphs.";
    case device_verdict::unknown:
      return "Record the calls too: with ProfilerActivity.CPU, or with --trace=cuda,nvtx of nsys.";
    case device_verdict::host:
      break;
  }
  for (const named_time* const place : {&of.places.line, &of.places.annotation}) {
    if (place->ns == 0 || 4 * place->ns < of.places.all_ns) continue;
    return "Look at what " + printable_line(place->name) +
           " does between launches: the device has nothing to do meanwhile.";
  }
  return "Look at what the consumer's thread does between launches. It may write logs, metrics or "
         "checkpoints, or run other Python code.";
}

std::vector<std::string> fault_notes(const trace_faults& faults) {
  // The words for one and for several repairs of each kind; some are made only once.
  constexpr std::array<std::pair<std::string_view, std::string_view>, all_json_repairs.size()>
      kinds{{{"a byte order mark", ""},
             {"text that is not UTF-8", "texts that are not UTF-8"},
             {"control byte in a text", "control bytes in texts"},
             {"single backslash", "single backslashes"},
             {"value such as nan", "values such as nan"},
             {"comma too many or too few", "commas too many or too few"},
             {"no end of the list of events, as if it were cut off there", ""}}};
  std::vector<std::string> notes, repairs;
  for (const json_repair repair : all_json_repairs) {
    const auto& [one, many] = kinds[static_cast<std::size_t>(repair)];
    const std::uint64_t n = faults.json.of(repair);
    if (n > 0) repairs.push_back(many.empty() ? std::string(one) : counted(n, one, many));
  }
  if (!repairs.empty()) notes.push_back("is not quite JSON, read with: " + joined(repairs, ", "));
  const auto add = [&](std::uint64_t n, std::string_view what) {
    if (n > 0) notes.push_back(counted(n, "event", "events") + " " + std::string(what));
  };
  add(faults.numbers_as_text, "with times that are texts; they are read as numbers");
  add(faults.impossible_times, "left out: no time, or an impossible or negative duration");
  add(faults.outside,
      "left out: far outside of the recording, and no call of the recording launched that work");
  add(faults.overlapping,
      "cut off where the next one begins: two of one stream or thread cannot overlap");
  add(faults.past_synchronization,
      "cut off where the host had synchronized with the device: the work had ended by then");
  return notes;
}

std::vector<std::string> limit_notes(const accelerator_analysis& of) {
  std::vector<std::string> notes;
  const auto add = [&notes](bool holds, std::string note) {
    if (holds) notes.push_back(std::move(note));
  };
  add(of.judged.edges_ns > 0,
      "The rest is the time of recorded steps, or of waits for batches, before the first and after "
      "the last work.");
  add(of.step_count == 1,
      "Only one step is analyzed, which may not be like the others: record several "
      "(schedule(..., active=5)).");
  add(of.skipped_steps > 0,
      "Left out by --skip-steps: " + counted(of.skipped_steps, "step.", "steps."));
  add(of.start_up.gaps > 0,
      "The verdict is without start-up, the tables are with it. --skip-steps 0 includes it.");
  add(of.without_last_step,
      "The last profiler step is left out, because its recording may be incomplete. --last-step "
      "includes the last profiler step.");
  add(of.rounded,
      "Times are rounded to whole microseconds, as HolisticTraceAnalysis does. Rounding lengthens "
      "each idle time by up to 2 us. Option --exact does not round.");
  return notes;
}

std::string bandwidth_text(const copy_sum& copies) {
  const std::optional<double> rate = copies.gb_per_s();
  if (!rate) return "-";
  const bool slow = *rate < 0.1;
  const auto tenths = std::llround(*rate * (slow ? 10'000 : 10));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
         (slow ? " MB/s" : " GB/s");
}

std::string share_text(std::int64_t ns, std::int64_t of_ns) {
  return whole_percent(time_share(ns, of_ns));
}

}  // namespace lotus::tool
