// Defines which functions run in which operation, as stored in mapping_funcs.json.
#ifndef LOTUS_TOOL_MAPPING_MAPPING_HPP
#define LOTUS_TOOL_MAPPING_MAPPING_HPP

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/files/output_file.hpp"
#include "describe/described.hpp"
#include "mapping/read/function_report.hpp"

namespace lotus::tool {

/// How often a function was seen in the runs of one operation.
struct function_use {
  std::uint64_t hits = 0;  ///< number of runs whose report contains the function
  double samples = 0;      ///< sum of the samples of all runs, in mapping::unit
  double share = 0;        ///< share of all samples of the operation, 0..1
  /// The part of the function's samples that was in code of other functions which the compiler has
  /// inlined into it, by the name of the inlined function.
  std::map<std::string, double> inlined;
};

struct operation_use {
  std::uint64_t runs = 0;
  std::string unit;                               ///< unit of the samples
  std::map<std::string, function_use> functions;  ///< functions by "function|module"
};

struct mapping {
  bool partial = false;  ///< whether reports list only the functions with the highest values
  std::string unit;      ///< unit of the samples; empty if the runs had different units
  std::map<std::string, operation_use> ops;

  /// Returns the functions ("function|module") that at least two operations use, with these
  /// operations.
  std::map<std::string, std::set<std::string>> common() const;
  /// Whether any function has a share; the files of the original Lotus have none.
  bool has_shares() const;
};

/// Combines the reports of several runs to a mapping, which has all functions that any run has.
class mapping_builder {
 public:
  /// Adds the report of a run. If it has another unit than the runs of the operation before, which
  /// cannot be converted, only counts which functions it has, and returns false.
  bool add(const std::string& op, const function_report& run);
  mapping build() const;
  bool empty() const noexcept { return all_.ops.empty(); }

 private:
  mapping all_;
  bool first_ = true;
};

/// Returns the names of an operation's functions; the one with the largest share comes first.
std::vector<std::string> by_share(const operation_use& op);

/// The members of a mapping in JSON.
const description<mapping>& description_of(const mapping*);

/// Writes a mapping with the original Lotus's keys op_to_func and common_funcs_to_op, and the key
/// "functions" with hits, runs, samples and share for each operation and function. Throws
/// input_error if the output cannot be written.
void write_mapping(const mapping& m, output_file& out);

/// Reads a mapping written by this tool or by the original Lotus. Throws input_error.
mapping read_mapping(const std::string& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_MAPPING_HPP
