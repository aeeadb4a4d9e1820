// Writes speedscope's evented format, which shows flame graphs over time and aggregated by name.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_FORMATS_SPEEDSCOPE_SINK_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_FORMATS_SPEEDSCOPE_SINK_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/output_file.hpp"
#include "base/formats/json_writer.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/slice_stack.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

/// Writes a profile for each thread, with times in ns relative to the base. The format can only
/// represent work of a single thread, so instants, arrows, counters, the verdict and the critical
/// path are omitted. An asynchronous operation is written only for the times when it ran on a
/// thread. Time off the CPU is also omitted, because it is part of the operations' times.
class speedscope_sink final : public trace_sink {
 public:
  /// The sink does not own its arguments; both must outlive it. The caller commits `out`.
  speedscope_sink(output_file& out, const name_table& names) : out_(out), names_(names) {}

  void begin(std::int64_t base_ns) override;
  void process(std::uint32_t pid, std::string_view name, std::uint32_t order) override;
  void thread(track where, std::string_view name, std::uint32_t order) override;
  void thread_below(track where, track of, std::string_view name, std::uint32_t order) override;
  void process_track(track where, std::string_view name, std::uint32_t order) override;
  void operation(track where, std::uint32_t name, std::int64_t start_ns,
                 std::int64_t duration_ns) override;
  void slice(const slice_event& event) override;
  void async(const async_event& event) override;
  void counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
               std::int64_t value) override;
  void finish() override;

 private:
  void add_slice(track where, std::uint32_t frame, std::int64_t start_ns, std::int64_t duration_ns);
  void event(char type, std::uint32_t frame, std::int64_t at_ns);
  void end_profile();
  void write_text();
  std::uint32_t frame_of(std::string_view name);

  output_file& out_;
  std::string text_;  // text that was not written to `out_` yet
  json_writer to_{text_};
  const name_table& names_;
  std::int64_t base_ns_ = 0;
  std::string title_;  // names of all processes
  // For each profile, the sum of its operations' durations in ns.
  std::vector<std::int64_t> operations_ns_;
  std::map<std::uint32_t, std::string> processes_;
  std::map<std::uint32_t, std::string> threads_;  // names of threads by tid
  std::vector<std::string> frames_;
  std::map<std::string, std::uint32_t, std::less<>> frame_numbers_;
  // Frame number by name; UINT32_MAX: the name has no frame yet.
  std::vector<std::uint32_t> frame_of_name_;
  std::uint32_t tid_ = 0;  // tid of the thread whose profile is being written; 0: none
  std::int64_t last_ns_ = 0;
  slice_stack<std::uint32_t> open_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_FORMATS_SPEEDSCOPE_SINK_HPP
