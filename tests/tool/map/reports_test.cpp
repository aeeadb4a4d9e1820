// Tests the parsers of reports in each format, and their messages about malformed reports.
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "base/errors.hpp"
#include "catch.hpp"
#include "mapping/read/callgrind_reports.hpp"
#include "mapping/read/counters.hpp"
#include "mapping/read/function_report.hpp"
#include "mapping/read/table_text.hpp"
#include "mapping/read_reports.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::contains;
using lotus::tool_test::temp_dir;

namespace {

function_report only_report(const std::string& path) {
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  const reports_by_op reports = read_reports(path, diagnostics);
  REQUIRE(reports.size() == 1);
  return reports.begin()->second;
}

std::string error_of(const std::string& path) {
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  try {
    read_reports(path, diagnostics);
  } catch (const input_error& error) {
    return error.what();
  }
  return err.str();
}

}  // namespace

TEST_CASE("a VTune report is read by its column names, even with quoted commas") {
  const temp_dir dir;
  const auto report = only_report(dir.file(
      "1.csv",
      "Function,CPU Time,CPU Time:Spin Time,Module,Function (Full),Source File,Start Address\n"
      "decode_mcu,1.5,0.0,libjpeg.so.9,decode_mcu,[Unknown],0x1\n"
      "\"f<int, char>\",0.25,0.0,a.so,\"f<int, char>(int, char)\",[Unknown],0x2\r\n"));
  CHECK(report.unit == "s");
  CHECK(report.functions == std::map<std::string, double>{{"decode_mcu|libjpeg.so.9", 1.5},
                                                          {"f<int, char>|a.so", 0.25}});
}

TEST_CASE("only the table of functions in a uProf report is read") {
  const temp_dir dir;
  const std::string head = "\n\"AMD uProf (Version:4.0.341.0)\"\nREPORT\n\n";
  const auto old = only_report(dir.file(
      "1.csv",
      head + "\"100 HOTTEST FUNCTIONS (Sort Event - CPU_TIME)\"\nFUNCTION,\"CPU_TIME\",Module\n"
             "\"jpeg_idct\",2454.0000,\"/a b/lib/libjpeg.so.9.5.0\"\n"
             "\"libgomp.so.1!0x00018b10\",24.0000,\"/x/libgomp.so.1\"\n\n"
             "\"100 HOTTEST MODULES\"\nMODULE,\"CPU_TIME\"\n\"/x/no\",5.0\n"));
  CHECK(old.functions ==
        std::map<std::string, double>{{"jpeg_idct|libjpeg.so.9.5.0", 2454},
                                      {"libgomp.so.1!0x00018b10|libgomp.so.1", 24}});
  const auto fresh =
      only_report(dir.file("2.csv", head + "100 HOTTEST FUNCTIONS (Sort Event - CPU_TIME)\n"
                                           "FUNCTION,CPU_TIME,PERCENT,Module\n"
                                           "f(int, char),12.5,3.0,/x/a.so\n"));
  CHECK(fresh.functions == std::map<std::string, double>{{"f(int, char)|a.so", 12.5}});
}

TEST_CASE("a perf report is read by its column names, without the library's own functions") {
  const temp_dir dir;
  const auto report = only_report(dir.file(
      "1.csv",
      "# To display the perf.data header info, please use --header/--header-only options.\n#\n"
      "# Overhead|     Samples|Shared Object|Symbol        |IPC   [IPC Coverage]\n"
      " 80.00% | 40 |a   |[.] img::D::g<int, double>|- - \n"
      " 10.00% | 5  |a   |[.] operator||  |- - \n"
      " 10.00% | 5  |a   |[.] lotus::v0_1::detail::lotus_map_wait|- - \n"));
  CHECK(report.unit == "samples");
  CHECK(report.functions ==
        std::map<std::string, double>{{"img::D::g<int, double>|a", 40}, {"operator|||a", 5}});
  const auto none =
      only_report(dir.file("2.csv",
                           "Error:\nThe perf.data data has no samples!\n# To display the perf.data "
                           "header info, please use --header/--header-only options.\n#\n"));
  CHECK(none.functions.empty());
}

TEST_CASE("each event of a perf report is a metric, and CPU time determines the mapping") {
  const temp_dir dir;
  const std::string path =
      dir.file("1.csv",
               "# Samples: 2K of event 'page-faults:u'\n# Event count (approx.): 300000\n#\n"
               "# Overhead|Samples|Shared Object|Symbol\n 99.00%|2876|pf|[.] faults\n"
               " 1.00%|3|ld.so|[.] _dl_start\n\n\n"
               "# Samples: 1K of event 'cpu-clock:u'\n#\n"
               "# Overhead|Samples|Shared Object|Symbol\n 90.00%|1393|pf|[.] cpu_only\n"
               " 9.00%|147|pf|[.] faults\n\n#\n# (Tip: none)\n#\n");
  CHECK(only_report(path).functions ==
        std::map<std::string, double>{{"cpu_only|pf", 1393}, {"faults|pf", 147}});
  CHECK(contains(error_of(path), "contains several events; cpu-clock:u is used"));
  const counter_table table = read_counters(path);
  REQUIRE(table.metrics.size() == 2);
  CHECK(table.metrics[0].name == "page-faults:u, samples");
  CHECK(table.metrics[1].name == "cpu-clock:u, samples");
  REQUIRE(table.functions.size() == 3);
  CHECK(table.functions[2].function == "faults");
  CHECK(table.functions[2].values == std::vector<double>{2876, 147});
}

TEST_CASE("a callgrind profile has self costs, compressed names and one operation per dump") {
  const temp_dir dir;
  const std::string text =
      "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npart: 1\n"
      "desc: Trigger: Client Request: Load image\npositions: line\nevents: Ir Dr\n"
      "ob=(1) /x/a.so\nfl=(1) a.cpp\nfn=(1) f(int)\n4 100 20\n+1 10\n"
      "cob=(2) /x/b.so\ncfn=(2) g\ncalls=3 7\n* 5000 900\nfn=(2)\n7 1 2\n"
      "ob=(2)\nfn=(2)\n7 5000 900\ntotals: 5111 922\n";
  const auto profiles = read_callgrind("x", text);
  REQUIRE(profiles.size() == 1);
  CHECK(profiles[0].operation == "Load image");
  CHECK(profiles[0].events == std::vector<std::string>{"Ir", "Dr"});
  using counts = std::vector<std::uint64_t>;
  CHECK(profiles[0].functions.at({"f(int)", "/x/a.so"}) == counts{110, 20});
  CHECK(profiles[0].functions.at({"g", "/x/a.so"}) == counts{1, 2});
  CHECK(profiles[0].functions.at({"g", "/x/b.so"}) == counts{5000, 900});
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  CHECK(read_reports(dir.file("callgrind.out.1", text), diagnostics).begin()->first ==
        "Load image");
}

TEST_CASE("a broken report is an error with file and line, and other files are ignored") {
  const temp_dir dir;
  const std::string vtune = "Function,CPU Time,Module\n";
  const std::string short_row = dir.file("short.csv", vtune + "f,1.0\n");
  CHECK(error_of(short_row) ==
        short_row + ":2: the number of fields differs from the number of columns in the header");
  const std::string text = dir.file("text.csv", vtune + "f,often,a.so\n");
  CHECK(error_of(text) == text + ":2: 'often' is not a number");
  const std::string other = dir.file("notes.txt", "milk, eggs\n");
  CHECK(contains(error_of(other), "warning: " + other + ": ignored"));
  const std::string torn = dir.file(".lotus_samples_1_2", "LOTUSSMP");
  CHECK(error_of(torn) == torn + ": not a file of samples");
}

TEST_CASE("names are compared without the parts that tools spell differently") {
  CHECK(bare_function("double img::g<int, (kind)1>(int, double)") == "img::g<int, (kind)1>");
  CHECK(bare_function("(anonymous namespace)::f(int) [clone .isra.0]") ==
        "(anonymous namespace)::f");
  CHECK(bare_function("std::vector<int>::operator[](unsigned long)") ==
        "std::vector<int>::operator[]");
  CHECK(bare_function("foo::operator()(int) const") == "foo::operator()");
  CHECK(bare_function("foo::operator<<(int)") == "foo::operator<<");
  CHECK(bare_function("foo::operator bool() const") == "foo::operator bool");
  CHECK(bare_function("main") == "main");
  CHECK(bare_function("work(int) const::{lambda(int)#1}::operator()(int) const") ==
        "work(int) const::{lambda(int)#1}::operator()");
  CHECK(bare_function("work(int)::Local::run(int)") == "work(int)::Local::run");
  CHECK(bare_function("(anonymous namespace)::Op::operator<(int) const") ==
        "(anonymous namespace)::Op::operator<");
  CHECK(bare_function("V<double> operator< <double>(V<double> const&)") == "operator< <double>");
  CHECK(bare_function("V<double> operator<< <double>(V<double> const&)") == "operator<< <double>");
  CHECK(bare_function("img::V::operator<=>(img::V const&) const") == "img::V::operator<=>");
  CHECK(bare_function("decltype(auto) ns::f<int>(int)") == "ns::f<int>");
  CHECK(bare_function("decltype ({parm#1}+{parm#2}) add<int>(int, int)") == "add<int>");
  CHECK(bare_function("foo::operator std::vector<int> const*() const") ==
        "foo::operator std::vector<int> const*");
  CHECK(bare_function("int f<((2)<(1)), &foo::operator> >(int)") ==
        "f<((2)<(1)), &foo::operator> >");
  CHECK(bare_function("void (*f<int>(int))(char)") == "f<int>");
  CHECK(bare_function("long double operator\"\" _km(long double)") == "operator\"\" _km");
  CHECK(bare_function("int rng::operator()<rng::engine<(kind)1> >(int)") ==
        "rng::operator()<rng::engine<(kind)1> >");
  CHECK(bare_function("(below main)") == "(below main)");
  CHECK(comparable_function("hot.isra.0") == "hot");
  CHECK(comparable_function("_hot.constprop.1.cold") == "_hot");
  CHECK(comparable_module("/usr/lib/libjpeg.so.9.5.0") == "libjpeg.so");
  CHECK(comparable_module("libc-2.31.so") == "libc.so");
  CHECK(comparable_module("[Unknown]").empty());
  CHECK(comparable_module("probe") == "probe");
}

TEST_CASE("numbers may have thousands separators and units") {
  CHECK(number_in("1,234,567") == 1234567.0);
  CHECK(number_in("2648.443s") == 2648.443);
  CHECK(number_in(" 40.7%") == 40.7);
  CHECK(number_in("3.4 GHz") == 3.4);
  CHECK_FALSE(number_in("abc"));
  CHECK_FALSE(number_in("nan"));
  CHECK_FALSE(number_in("inf"));
  CHECK_FALSE(number_in("-infinity"));
  CHECK(split_fields("a,\"b,\"\"c\"\"\",", ',') == std::vector<std::string>{"a", "b,\"c\"", ""});
}
