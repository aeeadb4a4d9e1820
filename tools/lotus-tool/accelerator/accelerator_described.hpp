// Describes what JSON outputs contain of the analyses of accelerator traces.
#ifndef LOTUS_TOOL_ACCELERATOR_ACCELERATOR_DESCRIBED_HPP
#define LOTUS_TOOL_ACCELERATOR_ACCELERATOR_DESCRIBED_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "accelerator/analysis.hpp"
#include "accelerator/ranks.hpp"
#include "describe/described.hpp"

namespace lotus::tool {

/// Idle time with its cause.
struct shown_cause {
  idle_cause cause = idle_cause::unknown;
  std::int64_t ns = 0;
  std::optional<std::string> op;
  // For tables: of which times shares are shown.
  std::int64_t all_ns = 0;  ///< all idle time
  std::int64_t span_ns = 0;
};
// These descriptions have the columns of tables, too.
const description<shown_cause>& description_of(const shown_cause*);
const description<copy_sum>& description_of(const copy_sum*);
const description<stream_figures>& description_of(const stream_figures*);
const description<device_figures>& description_of(const device_figures*);
const description<idle_part>& description_of(const idle_part*);

/// The analysis of one trace, which must outlive this object.
struct shown_trace {
  const accelerator_analysis* of = nullptr;
  bool parts = false;  ///< whether with the idle times of every step and batch
};
const description<shown_trace>& description_of(const shown_trace*);

/// The analyses of the ranks of one training, which must outlive this object.
struct shown_ranks {
  const std::vector<accelerator_analysis>* ranks = nullptr;
  rank_comparison compared;
  bool parts = false;
};
const description<shown_ranks>& description_of(const shown_ranks*);

/// A rank of a training.
struct shown_rank {
  std::string name;
  std::int64_t own_ns = 0;
  shown_trace trace;
  bool by_step = false;  ///< whether own_ns is per profiler step
};
const description<shown_rank>& description_of(const shown_rank*);
std::vector<shown_rank> each_of(const shown_ranks& ranks);

/// One trace, or several ranks.
using shown_accelerator = std::variant<shown_trace, shown_ranks>;

/// @param ranks  at least one.
shown_accelerator shown(const std::vector<accelerator_analysis>& ranks, bool parts);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_ACCELERATOR_ACCELERATOR_DESCRIBED_HPP
