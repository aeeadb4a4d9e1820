// Writes Perfetto's native format: protobuf packets with track events. Its files are smaller and
// load faster than JSON.
#ifndef LOTUS_TOOL_COMMANDS_VIZ_FORMATS_PERFETTO_SINK_HPP
#define LOTUS_TOOL_COMMANDS_VIZ_FORMATS_PERFETTO_SINK_HPP

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files/output_file.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/slice_stack.hpp"
#include "log/operation_names.hpp"

namespace lotus::tool {

/// Writes one packet sequence. Names of operations are interned (written once and then referred to
/// by number); other names are not, because they are few and short in comparison. Times are
/// absolute ns. Field numbers are from Perfetto's protos/perfetto/trace/*.proto.
class perfetto_sink final : public trace_sink {
 public:
  /// The sink does not own its arguments; both must outlive it. The caller commits `out`.
  perfetto_sink(output_file& out, const name_table& names) : out_(out), names_(names) {}

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
  void packet(const std::string& content);
  void change_track(track where);
  void end_slice(std::int64_t at_ns);
  static std::string event_packet(std::int64_t at_ns, const std::string& track_event,
                                  const std::string& interned_data = {});

  output_file& out_;
  const name_table& names_;
  std::uint64_t track_uuid_ = 0;  // uuid of the track of the current slices
  slice_stack<char> open_;
  std::vector<bool> interned_;  // whether each name was already interned
  void named_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name);
  void async_begin(std::uint64_t track_uuid, std::string_view name, std::int64_t at_ns);
  void async_end(std::uint64_t track_uuid, std::int64_t at_ns);

  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> counters_;
  // Uuids of tracks by process, name and lane.
  std::map<std::tuple<std::uint32_t, std::string, std::uint32_t>, std::uint64_t> async_tracks_;
};

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_VIZ_FORMATS_PERFETTO_SINK_HPP
