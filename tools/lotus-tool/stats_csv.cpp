#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "distribution.hpp"
#include "names.hpp"
#include "stats.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

/// A field by RFC 4180, section 2: quoted where it must be, quotes doubled. Control characters
/// are escaped as in the log, so that a record is a line.
std::string csv_field(std::string_view text) {
  std::string plain = printable_line(text);
  if (plain.find_first_of(R"(,")") == std::string::npos) return plain;
  std::string quoted = R"(")";
  for (const char c : plain) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

void print_row(std::ostream& out, const std::string& run, std::string_view kind,
               std::string_view name, const distribution& d, const std::string& self_ns) {
  out << run << ',' << kind << ',' << csv_field(name) << ',' << d.count;
  if (d.count == 0) {
    out << ",,,,,,,,,,0,\n";
    return;
  }
  out << ',' << json_number(d.mean_ns) << ',' << json_number(d.std_ns) << ',' << d.min_ns << ','
      << json_number(d.p25_ns) << ',' << json_number(d.p50_ns) << ',' << json_number(d.p75_ns)
      << ',' << json_number(d.p90_ns) << ',' << json_number(d.p99_ns) << ',' << d.max_ns << ','
      << d.total_ns << ',' << self_ns << '\n';
}

}  // namespace

void print_stats_csv(const std::vector<run_stats_result>& runs, std::ostream& out) {
  out << "run,kind,name,count,mean_ns,std_ns,min_ns,p25_ns,p50_ns,p75_ns,p90_ns,p99_ns,max_ns,"
         "total_ns,self_ns\n";
  for (const run_stats_result& run : runs) {
    const std::string dir = csv_field(run.dir);
    for (const op_stats& op : run.ops) {
      print_row(out, dir, "op", op.name, op.time, std::to_string(op.self_ns));
    }
    print_row(out, dir, "batch", "preprocess", run.preprocess, "");
    print_row(out, dir, "batch", "wait", run.wait, "");
    print_row(out, dir, "batch", "delay", run.delay, "");
    print_row(out, dir, "batch", "step", run.step, "");
  }
}

}  // namespace lotus::tool
