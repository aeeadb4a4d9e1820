// Tests lotus-tool map attribute, which divides hardware counters of functions among the operations
// that call the functions.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

constexpr const char* mapping =
    R"({"op_to_func":{"Load":["decode|libjpeg.so.9","copy|libc.so.6"],"Crop":["copy|libc.so.6"]},
       "common_funcs_to_op":{"copy|libc.so.6":["Load","Crop"]},
       "functions":{"Load":{"decode|libjpeg.so.9":{"hits":1,"runs":1,"samples":9,"share":0.9},
                            "copy|libc.so.6":{"hits":1,"runs":1,"samples":1,"share":0.1}},
                    "Crop":{"copy|libc.so.6":{"hits":1,"runs":1,"samples":5,"share":1}}}})";

constexpr const char* gui =
    "Source Function / Function / Call Stack\tCPU Time\tClockticks\tInstructions Retired\tCPI "
    "Rate\t"
    "Retiring\tAverage CPU Frequency\tModule\tFunction (Full)\n"
    "decode\t10.0s\t30,000,000,000\t60,000,000,000\t0.5\t50.0%\t3.0 GHz\t[Unknown]\tdecode\n"
    "copy\t4.0s\t8,000,000,000\t4,000,000,000\t2.0\t10.0%\t2.0 GHz\t[Unknown]\tcopy\n"
    "other\t1.0s\t1,000,000,000\t1,000,000,000\t1.0\t\t1.0 GHz\t[Unknown]\tother\n";

struct files {
  temp_dir dir;
  std::string mapping_file = dir.file("mapping.json", mapping);
  std::string counters = dir.file("b8_dataloader8.csv", gui);
  std::string elapsed = dir.file("elapsed.csv", "config,Crop,Load\n8,1.0,3.0\n20,5,5\n");

  result attribute(std::vector<std::string> more) const {
    std::vector<std::string> all{"map",        "attribute",  "--mapping",
                                 mapping_file, "--counters", counters};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
};

}  // namespace

TEST_CASE("a shared function is split by elapsed time, and shares are weighted by clockticks") {
  const files f;
  const result r = f.attribute({"--elapsed", f.elapsed, "--json"});
  INFO(r.err);
  REQUIRE(r.status == 0);
  const auto json = parse_json(r.out);
  const auto& config = json["configs"][0];
  CHECK(config["config"].text() == "b8_dataloader8");
  const auto& load = config["ops"]["Load"];
  const auto& crop = config["ops"]["Crop"];
  // Load has 3 s of the 4 s of elapsed time. So it gets 3/4 of the counters of the function copy,
  // which both operations call, and all counters of decode, which only Load calls.
  CHECK(load["CPU Time"].number() == Approx(10 + 3));
  CHECK(crop["CPU Time"].number() == Approx(1));
  CHECK(load["Retiring"]["clockticks"].number() == Approx(0.5 * 30e9 + 0.75 * 0.1 * 8e9));
  CHECK(load["Retiring"]["percent"].number() == Approx(100 * (15e9 + 0.6e9) / 36e9));
  CHECK(load["CPI Rate"].number() == Approx(36e9 / 63e9));
  CHECK(load["Average CPU Frequency"].number() == Approx(36.0 / 13));
  CHECK(config["outside"]["CPU Time"].number() == Approx(1));
}

TEST_CASE("--weights mix also uses the function's share within each operation") {
  const files f;
  const auto json =
      parse_json(f.attribute({"--elapsed", f.elapsed, "--weights", "mix", "--json"}).out);
  // The weight of an operation is its elapsed time, multiplied by the share that the function copy
  // has in it: 3 s * 0.1 for Load, and 1 s * 1 for Crop.
  CHECK(json["configs"][0]["ops"]["Crop"]["CPU Time"].number() == Approx(4 / 1.3));
  const temp_dir dir;
  const std::string bare = dir.file("m.json", R"({"op_to_func":{"Load":["decode|a"]}})");
  const result r = run({"map", "attribute", "--mapping", bare, "--counters", f.counters,
                        "--elapsed", f.elapsed, "--weights", "mix"});
  CHECK(r.status == 1);
  CHECK(contains(r.err, "has no shares of functions inside operations"));
}

TEST_CASE("elapsed times may come from a trace") {
  const files f;
  f.dir.file("run/lotustrace_log_worker_pid_1", "SLoad,1,3000\nSCrop,3001,500\nSCrop,4000,500\n");
  const auto json = parse_json(f.attribute({"--trace", f.dir.path() + "/run", "--json"}).out);
  CHECK(json["configs"][0]["ops"]["Load"]["CPU Time"].number() == Approx(13));
}

TEST_CASE("perf stat is split by elapsed time only, callgrind and perf report by function") {
  const files f;
  const auto crop = [&](const std::string& counters, const char* metric) {
    const result r =
        run_well({"map", "attribute", "--mapping", f.mapping_file, "--counters", counters,
                  "--elapsed", f.dir.file("e.csv", "config,Crop,Load\n8,1,3\n"), "--json"});
    return parse_json(r.out)["configs"][0]["ops"]["Crop"][metric].number();
  };
  CHECK(crop(f.dir.file("stat.csv", "# started on x\n\n4000,,cycles:u,100,100.00,,\n"),
             "cycles:u") == Approx(1000));
  CHECK(crop(f.dir.file("cg",
                        "# callgrind format\ncreator: callgrind\nevents: Ir Bcm\n"
                        "ob=/lib/libc.so.6\nfn=copy.isra.0\n1 800 40\n"),
             "Bcm") == Approx(10));
  CHECK(crop(f.dir.file("perf.txt",
                        "# Overhead|Samples|Shared Object|Symbol\n"
                        "50%|80|libc-2.31.so|[.] copy\n50%|9|other.so|[.] copy\n"),
             "samples") == Approx(20));
}

TEST_CASE("a probe's functions match another program's, and an unmatched operation is reported") {
  const temp_dir dir;
  const std::string probed = dir.file(
      "m.json",
      R"({"op_to_func":{"Crop":["crop|probe"],"Load":["[no symbols]|libjpeg.so.62"],"Copy":["copy|libc.so.6"]},)"
      R"("common_funcs_to_op":{}})");
  const std::string counters =
      dir.file("perf.txt",
               "# Overhead|Shared Object|Symbol\n50%|train|[.] crop\n"
               "30%|libjpeg.so.62|[.] 0x000000000001b2c4\n20%|libm.so|[.] copy\n");
  const result r =
      run_well({"map", "attribute", "--mapping", probed, "--counters", counters, "--elapsed",
                dir.file("e.csv", "config,Crop,Load,Copy\n8,1,1,1\n"), "--json"});
  const auto json = parse_json(r.out);
  const auto& ops = json["configs"][0]["ops"];
  CHECK(ops["Crop"]["Overhead, %"].number() == Approx(50));
  CHECK(ops["Load"]["Overhead, %"].number() == Approx(30));
  CHECK(ops["Copy"]["Overhead, %"].number() == 0);
  CHECK(r.err == "warning: " + counters + ": no function of Copy is in it\n");
}

TEST_CASE("values of one column may have different units of time") {
  const files f;
  const std::string counters =
      f.dir.file("8.tsv",
                 "Source Function / Function / Call Stack\tCPU Time\tModule\n"
                 "decode\t2.0s\tlibjpeg.so.9\ncopy\t500ms\tlibc.so.6\n");
  const auto cpu_time = [&](const std::string& elapsed) {
    const result r = run_well({"map", "attribute", "--mapping", f.mapping_file, "--counters",
                               counters, "--elapsed", f.dir.file("e.csv", elapsed), "--json"});
    return parse_json(r.out)["configs"][0]["ops"]["Load"]["CPU Time"].number();
  };
  CHECK(cpu_time("config,Crop,Load\n8,0,1\n") == Approx(2.5));
  CHECK(cpu_time("config,Crop,Load\n8,300ms,0.3\n") == Approx(2.25));
  const std::string odd = f.dir.file("odd.csv", "config,Crop,Load\n8,1,3 furlongs\n");
  CHECK(contains(f.attribute({"--elapsed", odd}).err, "odd.csv:2: '3 furlongs'"));
}

TEST_CASE("a column of percentages is recognized in any order of the rows") {
  const files f;
  const std::string head =
      "Source Function / Function / Call Stack\tClockticks\tRetiring\tModule\n";
  const std::string decode = "decode\t3,000\t\tlibjpeg.so.9\n";
  const std::string copy = "copy\t1,000\t20.0%\tlibc.so.6\n";
  std::vector<std::string> answers;
  for (const std::string& rows : {decode + copy, copy + decode}) {
    const result r = run_well({"map", "attribute", "--mapping", f.mapping_file, "--counters",
                               f.dir.file("8.tsv", head + rows), "--elapsed", f.elapsed, "--json"});
    answers.push_back(r.out);
  }
  CHECK(answers[0] == answers[1]);
  CHECK(contains(answers[0], "\"Retiring\":{"));
  const std::string mixed = f.dir.file("mixed.tsv", head + copy + "decode\t3\t4\tlibjpeg.so.9\n");
  const result r = run({"map", "attribute", "--mapping", f.mapping_file, "--counters", mixed,
                        "--elapsed", f.elapsed});
  CHECK(r.status == 1);
  CHECK(contains(r.err, mixed + ":3: "));
}

TEST_CASE("columns that cannot be added up alone, and values without a number, are rejected") {
  const files f;
  const std::string first = "Source Function / Function / Call Stack\t";
  const auto error_of = [&](const std::string& table) {
    const result r = run({"map", "attribute", "--mapping", f.mapping_file, "--counters",
                          f.dir.file("8.tsv", first + table), "--elapsed", f.elapsed});
    CHECK(r.status == 1);
    CHECK(r.out.empty());
    return r.err;
  };
  const std::string start = "lotus-tool: " + f.dir.path() + "/8.tsv:";
  CHECK(error_of("CPU Time\tRetiring\tModule\ndecode\t10s\t90%\tlibjpeg.so.9\n") ==
        start +
            " Retiring cannot be given per operation without the column Clockticks; copy the "
            "table with it\n");
  CHECK(contains(error_of("Clockticks\tCPI Rate\tModule\ndecode\t10\t2\tlibjpeg.so.9\n"),
                 "without the column Instructions Retired"));
  CHECK(error_of("CPU Time\tClockticks\tModule\ndecode\t10s\tnan\tlibjpeg.so.9\n") ==
        start + "2: 'nan' is not a number of a known unit\n");
}

TEST_CASE("symbols match with and without their version") {
  const files f;
  const std::string mapping_file = f.dir.file(
      "m.json", R"({"op_to_func":{"Load":["memcpy@@GLIBC_2.14|libc.so.6","free|libc.so.6",)"
                R"("jpeg_idct@@LIBJPEG_9.0|libjpeg.so.9","read@plt|train"]}})");
  const std::string counters =
      f.dir.file("8.txt",
                 "# Overhead|Samples|Shared Object|Symbol\n40%|40|libc.so.6|[.] memcpy\n"
                 "20%|20|libc.so.6|[.] free@GLIBC_2.2.5\n"
                 "10%|10|libjpeg.so.9|[.] jpeg_idct\n5%|5|train|[.] read\n"
                 "25%|25|libc.so.6|[.] func@0x3fd7b0\n");
  const auto json = parse_json(run_well({"map", "attribute", "--mapping", mapping_file,
                                         "--counters", counters, "--elapsed", f.elapsed, "--json"})
                                   .out);
  CHECK(json["configs"][0]["ops"]["Load"]["samples"].number() == Approx(70));
}

TEST_CASE("an operation that took no time in the run is reported as such") {
  const files f;
  const std::string elapsed = f.dir.file("e.csv", "config,Crop\n8,1\n");
  CHECK(contains(f.attribute({"--elapsed", elapsed}).err, "Load took no time in the run"));
}

TEST_CASE("a missing or invalid input is reported") {
  const files f;
  CHECK(f.attribute({}).status == 2);
  CHECK(f.attribute({"--elapsed", f.elapsed, "--trace", "x"}).status == 2);
  const std::string two = f.dir.file("two.csv", "config,Load\n1,2\n2,3\n");
  const result config = f.attribute({"--elapsed", two});
  CHECK(config.status == 1);
  CHECK(contains(config.err, "no elapsed times for this configuration"));
  const std::string bad = f.dir.file("bad.csv", "config,Load\n8,soon\n");
  CHECK(f.attribute({"--elapsed", bad}).err ==
        "lotus-tool: " + bad + ":2: 'soon' is not a number of seconds\n");
  const std::string folder = f.dir.path();
  CHECK(f.attribute({"--elapsed", folder}).err ==
        "lotus-tool: " + folder + ": cannot be read: Is a directory\n");
  const std::string broken = f.dir.file("broken.json", "{\n\"op_to_func\": [\n");
  const result r = run(
      {"map", "attribute", "--mapping", broken, "--counters", f.counters, "--elapsed", f.elapsed});
  CHECK(r.status == 1);
  CHECK(contains(r.err, broken + ":3: "));
}

TEST_CASE("for the data of Figure 6, no CPU time is lost and each operation gets a share") {
  const std::string dir = std::string(LOTUS_SHARED_HARDWARE) + "/fig6";
  if (!std::filesystem::is_directory(dir)) {
    lotus_test::skip("no real tables here");
    return;
  }
  for (const std::string loaders : {"8", "20", "28"}) {
    std::string table = dir;
    table.append("/uarch/b1024_gpu4_dataloader").append(loaders).append(".csv");
    const auto json = parse_json(
        run_well({"map", "attribute", "--mapping", dir + "/mapping_funcs.json", "--counters", table,
                  "--elapsed", dir + "/elapsed_seconds_per_op.csv", "--json"})
            .out);
    const auto& config = json["configs"][0];
    double sum = config["outside"]["CPU Time"].number();
    for (const auto& op : config["ops"].members()) sum += op.value["CPU Time"].number();
    // Computes the total CPU time independently, as the sum of the second column of the file.
    double expected = 0;
    std::ifstream in(table);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      expected += std::stod(line.substr(line.find('\t') + 1));
    }
    CHECK(sum == Approx(expected));
    CHECK(config["ops"].size() == 6);
  }
}
