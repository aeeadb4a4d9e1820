// Tests that the report's page is usable by people with color vision deficiencies, on paper, and
// with a screen reader.
#include <filesystem>
#include <string>

#include "browser.hpp"
#include "catch.hpp"
#include "colour_scripts.hpp"
#include "operating_scripts.hpp"
#include "report_test.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

TEST_CASE("colors differ for all kinds of color vision, and texts are readable, light and dark") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  for (const bool dark : {false, true}) {
    INFO(dark);
    auto found = browse(dir, page, 1280, acting(std::string(how_eyes_see) + look_at_colours), "",
                        dark ? "--blink-settings=preferredColorScheme=0" : "");
    if (found.empty()) return;
    CHECK(found["page"] == (dark ? "#14181f" : "#ffffff"));
    for (const auto* eyes : {"all", "deuteranopia", "protanopia"}) {
      INFO(eyes);
      CHECK(std::stol(found[std::string("apart_") + eyes]) >= 75);  // thousandths of the OKLab unit
    }
    CHECK(std::stol(found["text_contrast"]) >= 450);
    CHECK(std::stol(found["slice_contrast"]) >= 450);
    CHECK(found["same_by_name"] == "true");
    // Waits and steps differ in lightness and not only in hue.
    CHECK(std::stol(found["wait_beside_step"]) >= 200);
  }
}

TEST_CASE("operations after the twelfth have patterns, and 48 can be distinguished") {
  const temp_dir dir;
  std::string log;
  for (int i = 0; i < 48; ++i) {
    log += "SOp" + std::to_string(i) + ',' + std::to_string(1000 + 1000 * i) + ",900\n";
  }
  dir.file("run/lotustrace_log_worker_pid_2", log);
  const std::string page = report(dir, dir.path() + "/run");
  auto found = browse(dir, page, 1280, acting(std::string(how_eyes_see) + look_at_patterns));
  if (found.empty()) return;
  CHECK(found["names"] == "48");
  CHECK(found["plain"] == "12");
  for (const auto* eyes : {"all", "deuteranopia", "protanopia"}) {
    INFO(eyes);
    CHECK(std::stol(found[std::string("differ_") + eyes]) >= 20);  // percent of a slice's pixels
  }
  CHECK(found["legend"] == "48");
}

TEST_CASE("the printed page is light even if the screen is dark") {
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  const std::string dark = "--blink-settings=preferredColorScheme=0";
  auto found = browse(dir, page, 1280, acting(print_and_return), "", dark);
  if (found.empty()) return;
  CHECK(found["screen"] == "20,24,31 #14181f");
  CHECK(found["paper"] == "255,255,255 #ffffff");
  CHECK(found["screen_again"] == found["screen"]);
  const std::string pdf = dir.path() + "/page.pdf";
  browse(dir, page, 1280, acting(""), "", "--print-to-pdf='" + pdf + "'");
  CHECK(read_file(pdf).substr(0, 5) == "%PDF-");
  CHECK(std::filesystem::file_size(pdf) > 50'000);
}

TEST_CASE("axe-core finds no accessibility errors in the page") {
  constexpr const char* axe = LOTUS_AXE_CORE;
  if (*axe == '\0') {
    lotus_test::skip("no axe-core: npm install axe-core, and -DLOTUS_AXE_CORE=.../axe.min.js");
    return;
  }
  const temp_dir dir;
  const std::string page = report(dir, traces() + "/c_ooo_w4");
  const std::string script = "<script>" + read_file(axe) + "</script>";
  for (const auto* flags : {"", "--blink-settings=preferredColorScheme=0"}) {
    auto found = browse(dir, page, 390, script + acting(look_with_axe), "", flags);
    if (found.empty()) return;
    CHECK(found["violations"] == "none");
    CHECK(std::stol(found["passes"]) > 20);
  }
}
