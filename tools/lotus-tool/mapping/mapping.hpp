// Defines which functions run in which operation, as stored in mapping_funcs.json.
#ifndef LOTUS_TOOL_MAPPING_MAPPING_HPP
#define LOTUS_TOOL_MAPPING_MAPPING_HPP

#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/files/output_file.hpp"
#include "mapping/read/function_report.hpp"

namespace lotus::tool {

/// How often a function was seen in the runs of one operation.
struct function_use {
  std::uint64_t hits = 0;  ///< number of runs whose report contains it
  double samples = 0;      ///< over all runs, in mapping::unit
  double share = 0;        ///< of all samples of the operation, 0..1
  /// The part of the samples in functions inlined there, by inlined function.
  std::map<std::string, double> inlined;
};

struct operation_use {
  std::uint64_t runs = 0;
  std::map<std::string, function_use> functions;  ///< by "function|module"
};

struct mapping {
  std::string unit;  ///< of the samples; empty if the runs had different units
  std::map<std::string, operation_use> ops;

  /// Maps "function|module" to the operations that use it, for all functions that at least two use.
  std::map<std::string, std::set<std::string>> common() const;
  /// Whether any function has a share; files of the original tool have none.
  bool has_shares() const;
};

/// In how many runs a function must be seen to be part of the mapping.
struct hit_rule {
  std::uint64_t min_hits = 1;
  bool majority = false;  ///< also in more than half of the runs
};

/// Combines the runs of operations. Leaves functions that are seen too rarely out of the mapping,
/// but counts their samples in the total from which shares are computed.
class mapping_builder {
 public:
  void add(const std::string& op, const function_report& run);
  mapping build(const hit_rule& rule) const;
  bool empty() const noexcept { return all_.ops.empty(); }

 private:
  mapping all_;
  bool first_ = true;
};

/// The functions of an operation, the largest share first.
std::vector<std::string> by_share(const operation_use& op);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_MAPPING_HPP
