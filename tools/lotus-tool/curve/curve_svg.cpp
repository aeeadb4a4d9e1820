#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>

#include "base/printable.hpp"
#include "base/terminal/table.hpp"
#include "base/text.hpp"
#include "curve/curve.hpp"
#include "curve/curve_print.hpp"

namespace lotus::tool {
namespace {

// The picture in pixels: its size, and the area in which the curve is drawn.
constexpr double width_px = 720;
constexpr double height_px = 360;
constexpr double left_px = 56;
constexpr double right_px = width_px - 24;
constexpr double top_px = 48;
constexpr double bottom_px = height_px - 76;

constexpr std::string_view svg_style =
    R"(<style>
svg { color-scheme: light dark; font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
.page { fill: #fff; } text { fill: #1d2430; } .quiet { fill: #545d6c; } .title { font-size: 16px; font-weight: 600; }
.grid { stroke: #d7dce3; } .band { fill: #2a63c9; fill-opacity: .16; } .line { stroke: #2a63c9; stroke-width: 2.5; fill: none; }
.limit { stroke: #0b5d3b; stroke-dasharray: 6 4; } .limit-name { fill: #0b5d3b; } .dot { fill: #a8480a; stroke: #fff; } .here { fill: #1d2430; stroke: #fff; }
@media (prefers-color-scheme: dark) {
.page { fill: #14181f; } text { fill: #e3e8ef; } .quiet { fill: #a3adbc; } .grid { stroke: #333c49; } .band { fill: #7caaff; } .line { stroke: #7caaff; }
.limit { stroke: #5cc797; } .limit-name { fill: #5cc797; } .dot { fill: #f08a4b; stroke: #14181f; } .here { fill: #e3e8ef; stroke: #14181f; }
}
</style>
)";

/// Returns a text that XML does not mistake for markup.
std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : printable_line(text)) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

/// Writes the elements of one picture.
class svg_picture {
 public:
  svg_picture(const speed_curve& curve, std::ostream& out)
      : curve_(curve), out_(out), top_(curve.top_per_s()) {}

  void write(const std::string& title) {
    const std::string name =
        "How fast would it be? Batches/s over " + xml_text(title_of(curve_.axis));
    out_ << R"(<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 )" << width_px << ' '
         << height_px << "\" width=\"" << width_px << "\">\n<title>" << name << "</title>\n<desc>"
         << description() << "</desc>\n"
         << svg_style << R"(<rect class="page" width="100%" height="100%"/>)" << '\n';
    text(left_px - 40, 26, "title", "start", name);
    text(right_px, 26, "quiet", "end", xml_text(title));
    write_grid();
    write_band();
    write_limits();
    write_line();
    write_dots();
    write_legend();
    out_ << "</svg>\n";
  }

 private:
  double x(double at) const {
    const double from = curve_.points.front().at;
    return left_px + (right_px - left_px) * (at - from) / (curve_.points.back().at - from);
  }
  double y(double per_s) const {
    return bottom_px - (bottom_px - top_px) * std::clamp(per_s / top_, 0.0, 1.0);
  }
  /// Returns coordinates with one decimal.
  static std::string place(double of_x, double of_y) {
    const auto number = [](double value) {
      const std::string text = std::to_string(value);
      return text.substr(0, text.find('.') + 2);
    };
    return number(of_x) + ',' + number(of_y);
  }
  void text(double of_x, double of_y, std::string_view as, std::string_view anchor,
            std::string_view what) {
    out_ << "<text x=\"" << of_x << "\" y=\"" << of_y << "\" class=\"" << as << "\" text-anchor=\""
         << anchor << "\">" << what << "</text>\n";
  }
  void line(std::string_view as, double x1, double y1, double x2, double y2) {
    out_ << "<line class=\"" << as << "\" x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2
         << "\" y2=\"" << y2 << "\"/>\n";
  }

  std::string description() const {
    return xml_text(joined(curve_.dots, "; ", [this](const curve_dot& dot) {
      return (dot.is_recorded ? "recorded: " : "measured: ") + dot_text(curve_, dot);
    }));
  }

  void write_grid() {
    for (const double value : round_values(top_)) {
      line("grid", left_px, y(value), right_px, y(value));
      text(left_px - 8, y(value) + 4, "quiet", "end", three_digits(value));
    }
    double free_from = 0;
    constexpr double label_px = 30;
    for (const curve_point& point : curve_.points) {
      if (x(point.at) < free_from) continue;
      text(x(point.at), bottom_px + 20, "quiet", "middle", three_digits(point.at));
      free_from = x(point.at) + label_px;
    }
  }
  void write_band() {
    out_ << R"(<polygon class="band" points=")";
    for (const curve_point& point : curve_.points) {
      out_ << place(x(point.at), y(point.would_be.high)) << ' ';
    }
    for (auto point = curve_.points.rbegin(); point != curve_.points.rend(); ++point) {
      out_ << place(x(point->at), y(point->would_be.low)) << ' ';
    }
    out_ << "\"/>\n";
  }
  void write_line() {
    out_ << R"(<polyline class="line" points=")";
    for (const curve_point& point : curve_.points) {
      out_ << place(x(point.at), y(point.would_be.per_s)) << ' ';
    }
    out_ << "\"/>\n";
  }
  void write_limits() {
    double free_above = bottom_px;
    constexpr double label_px = 16;
    for (const curve_limit& limit : curve_.shown_limits()) {
      const double at = y(limit.per_s);
      line("limit", left_px, at, right_px, at);
      const double label = std::min(at - 5, free_above - label_px);
      text(left_px + 6, label, "limit-name", "start",
           "limit: " + xml_text(text_of(limit.name)) + ", " + three_digits(limit.per_s) + "/s");
      free_above = label;
    }
  }
  void circle(std::string_view as, double of_x, double of_y, std::string_view told) {
    out_ << R"(<circle r="6" class=")" << as << R"(" cx=")" << of_x << R"(" cy=")" << of_y
         << R"("><title>)" << told << "</title></circle>\n";
  }
  void write_dots() {
    for (auto dot = curve_.dots.rbegin(); dot != curve_.dots.rend(); ++dot) {
      if (dot->at < curve_.points.front().at || dot->at > curve_.points.back().at) continue;
      circle(dot->is_recorded ? "here" : "dot", x(dot->at), y(dot->run.per_s),
             xml_text(dot_text(curve_, *dot)));
    }
  }
  void write_legend() {
    const double at = height_px - 14;
    text(right_px, bottom_px + 38, "quiet", "end", xml_text(title_of(curve_.axis)));
    out_ << R"(<rect class="band" width="26" height="14" x=")" << left_px << R"(" y=")" << at - 12
         << "\"/>\n";
    line("line", left_px, at - 5, left_px + 26, at - 5);
    text(left_px + 34, at, "quiet", "start", "predicted from one run, with 90 % interval");
    circle("here", left_px + 330, at - 5, "this run");
    text(left_px + 342, at, "quiet", "start", "this run");
    if (curve_.dots.size() < 2) return;
    circle("dot", left_px + 420, at - 5, "other runs");
    text(left_px + 432, at, "quiet", "start", "measured: other runs");
  }

  const speed_curve& curve_;
  std::ostream& out_;
  double top_;
};

}  // namespace

void write_curve_svg(const speed_curve& curve, const std::string& title, std::ostream& out) {
  svg_picture(curve, out).write(title);
}

}  // namespace lotus::tool
