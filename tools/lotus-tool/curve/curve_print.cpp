#include "curve/curve_print.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/printable.hpp"
#include "base/terminal/colors.hpp"
#include "base/terminal/line_width.hpp"
#include "base/terminal/table.hpp"
#include "replay/prediction.hpp"

namespace lotus::tool {
namespace {

/// Returns a value between two points of the curve; nullopt beyond its ends.
std::optional<double> value_at(const speed_curve& curve, double at, double prediction::*part) {
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const curve_point& right = curve.points[i];
    if (right.at == at) return right.would_be.*part;
    if (right.at < at || i == 0) continue;
    const curve_point& left = curve.points[i - 1];
    if (left.at > at) continue;
    const double share = (at - left.at) / (right.at - left.at);
    return left.would_be.*part + share * (right.would_be.*part - left.would_be.*part);
  }
  return std::nullopt;
}

std::string folder_name(const std::string& dir) {
  const std::filesystem::path path = std::filesystem::path(dir).lexically_normal();
  const std::filesystem::path folder = path.has_filename() ? path : path.parent_path();
  const std::string name = folder.filename().string();
  // A number alone, as of the runs of tune, says little.
  const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? (folder.parent_path().filename() / name).string() : name;
}

/// A drawing of characters with one style each.
class canvas {
 public:
  canvas(std::size_t columns, std::size_t rows) : columns_(columns), cells_(columns * rows) {}

  void set(std::size_t column, std::size_t row, std::string_view text,
           std::optional<style> as = std::nullopt) {
    if (column >= columns_ || row * columns_ >= cells_.size()) return;
    cells_[row * columns_ + column] = {std::string(text), as};
  }
  void write(std::size_t column, std::size_t row, std::string_view text) {
    std::size_t at = column;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t bytes = 1;
      while (i + bytes < text.size() && (static_cast<unsigned char>(text[i + bytes]) >> 6) == 2) {
        ++bytes;
      }
      set(at++, row, text.substr(i, bytes));
      i += bytes;
    }
  }
  void print_row(std::size_t row, std::ostream& out) const {
    std::string line;
    std::size_t end = columns_;
    const cell* const first = &cells_[row * columns_];
    while (end > 0 && first[end - 1].text == " ") --end;
    for (std::size_t c = 0; c < end; ++c) {
      line += first[c].as ? styled(out, *first[c].as, first[c].text) : first[c].text;
    }
    out << line << '\n';
  }

 private:
  struct cell {
    std::string text{" "};
    std::optional<style> as{};
  };
  std::size_t columns_;
  std::vector<cell> cells_;
};

/// The columns and rows of a drawing, in which the values lie.
struct drawn_area {
  double from;
  double to;
  double top;
  std::size_t columns;
  std::size_t rows;

  std::size_t column(double at) const {
    return to > from ? static_cast<std::size_t>(std::lround((at - from) / (to - from) *
                                                            static_cast<double>(columns - 1)))
                     : 0;
  }
  double at(std::size_t column_number) const {
    return from + (to - from) * static_cast<double>(column_number) /
                      static_cast<double>(std::max<std::size_t>(columns, 2) - 1);
  }
  /// Returns the position below the upper edge in half rows.
  std::size_t half_row(double per_s) const {
    const double all = 2 * static_cast<double>(rows);
    const double below = std::clamp(1 - per_s / top, 0.0, 1.0) * all;
    return std::min(static_cast<std::size_t>(below), 2 * rows - 1);
  }
};

/// Fills the area of the 90 % intervals.
void draw_band(const speed_curve& curve, const drawn_area& area, std::size_t left, canvas& to) {
  for (std::size_t c = 0; c < area.columns; ++c) {
    const std::optional<double> low = value_at(curve, area.at(c), &prediction::low);
    const std::optional<double> high = value_at(curve, area.at(c), &prediction::high);
    if (!low || !high) continue;
    const std::size_t end = area.half_row(*low) / 2;
    for (std::size_t r = area.half_row(*high) / 2; r <= end; ++r) to.set(left + c, r, "░");
  }
}

void draw_limits(const speed_curve& curve, const drawn_area& area, std::size_t left, canvas& to) {
  for (const curve_limit& limit : curve.shown_limits()) {
    const std::size_t row = area.half_row(limit.per_s) / 2;
    for (std::size_t c = 0; c < area.columns; c += 2) to.set(left + c, row, "╌");
  }
}

void draw_line(const speed_curve& curve, const drawn_area& area, std::size_t left, canvas& to) {
  for (std::size_t c = 0; c < area.columns; ++c) {
    const std::optional<double> line = value_at(curve, area.at(c), &prediction::per_s);
    if (!line) continue;
    const std::size_t half = area.half_row(*line);
    to.set(left + c, half / 2, half % 2 == 0 ? "▀" : "▄", style::bold);
  }
}

/// Adds the labels of the horizontal axis, as many as fit.
void label_axis(const speed_curve& curve, const drawn_area& area, std::size_t left, canvas& to) {
  std::size_t free_from = 0;
  for (const curve_point& point : curve.points) {
    const std::string label = three_digits(point.at);
    const std::size_t at = left + area.column(point.at);
    const std::size_t begin = at - std::min(at, (label.size() - 1) / 2);
    if (begin < free_from) continue;
    to.set(at, area.rows, "┬");
    to.write(begin, area.rows + 1, label);
    free_from = begin + label.size() + 1;
  }
}

}  // namespace

std::vector<double> round_values(double top) {
  const double power = std::pow(10, std::floor(std::log10(top / 4)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (5 * factor * power >= top) step = factor * power;
  }
  std::vector<double> values{0};
  while (step > 0 && static_cast<double>(values.size()) * step < top) {
    values.push_back(static_cast<double>(values.size()) * step);
  }
  return values;
}

std::string dot_text(const speed_curve& curve, const curve_dot& dot) {
  std::string text = printable_line(folder_name(dot.run.dir)) + ": ";
  if (curve.axis.is == curve_axis::kind::speed) {
    text += curve.axis.name + ' ' + three_digits(dot.at) + "x as fast";
  } else {
    text += three_digits(dot.at) + ' ' + title_of(curve.axis, dot.at == 1);
  }
  text += ", " + three_digits(dot.run.per_s) + " batches/s";
  const std::optional<double> predicted = value_at(curve, dot.at, &prediction::per_s);
  if (!dot.is_recorded && predicted) text += " (predicted " + three_digits(*predicted) + ')';
  return text;
}

void print_curve(const speed_curve& curve, const std::string& title, std::ostream& out) {
  out << styled(out, style::bold,
                fitted(out, printable_line(title) + ": batches/s over " + title_of(curve.axis)))
      << '\n';
  if (!curve.why_not.empty() || curve.points.size() < 2) {
    const phrase& why = curve.why_not.empty() ? curve.note : curve.why_not;
    print_fitted(out, "no predictions: " + text_of(why));
  } else {
    constexpr std::size_t usual_columns = 80;
    constexpr std::size_t rows = 11;
    const std::size_t width = line_width(out) == 0 ? usual_columns : line_width(out);
    const double top = curve.top_per_s();
    const std::vector<double> values = round_values(top);
    const std::size_t left = three_digits(values.back()).size() + 3;
    drawn_area area{curve.points.front().at, curve.points.back().at, top, 0, rows};
    area.columns = std::max<std::size_t>(20, std::min<std::size_t>(width, 100) - left - 3);
    canvas picture(left + area.columns + 2, rows + 2);
    for (std::size_t r = 0; r < rows; ++r) picture.set(left - 2, r, "│");
    for (auto value = values.begin() + 1; value != values.end(); ++value) {
      const std::string label = three_digits(*value);
      const std::size_t row = area.half_row(*value) / 2;
      picture.write(left - 2 - std::min(left - 2, label.size() + 1), row, label);
      picture.set(left - 2, row, "┤");
    }
    draw_band(curve, area, left, picture);
    draw_limits(curve, area, left, picture);
    draw_line(curve, area, left, picture);
    for (std::size_t c = left - 2; c < left + area.columns; ++c) picture.set(c, rows, "─");
    picture.set(left - 4, rows, "0");
    picture.set(left - 2, rows, "└");
    label_axis(curve, area, left, picture);
    for (auto dot = curve.dots.rbegin(); dot != curve.dots.rend(); ++dot) {
      if (dot->at < area.from || dot->at > area.to) continue;
      picture.set(left + area.column(dot->at), area.half_row(dot->run.per_s) / 2,
                  dot->is_recorded ? "◆" : "●", dot->is_recorded ? style::yellow : style::green);
    }
    for (std::size_t r = 0; r < rows + 2; ++r) picture.print_row(r, out);
    std::string legend = "▀ predicted   ░ 90 % interval   ◆ this run   ● measured";
    const char* before = "   ╌ ";
    for (const curve_limit& limit : curve.shown_limits()) {
      legend += before + text_of(limit.name) + ' ' + three_digits(limit.per_s);
      before = ", ";
    }
    print_fitted(out, legend, "  ", "    ");
  }
  for (const curve_dot& dot : curve.dots) {
    print_fitted(out, std::string(dot.is_recorded ? "◆ " : "● ") + dot_text(curve, dot), "  ",
                 "    ");
  }
  if (!curve.note.empty() && curve.points.size() >= 2) {
    print_sentences(out, text_of(curve.note), "  ");
  }
}

}  // namespace lotus::tool
