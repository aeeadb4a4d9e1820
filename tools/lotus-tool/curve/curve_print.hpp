// Draws a curve of throughput: on a terminal, and as a picture.
#ifndef LOTUS_TOOL_CURVE_CURVE_PRINT_HPP
#define LOTUS_TOOL_CURVE_CURVE_PRINT_HPP

#include <ostream>
#include <string>
#include <vector>

#include "curve/curve.hpp"

namespace lotus::tool {

/// Draws the curve in 15 lines of block characters, and lists the measured runs below it.
/// @param title  what is above it, such as the run's folder.
void print_curve(const speed_curve& curve, const std::string& title, std::ostream& out);

/// Writes the curve as an SVG picture with light and dark colors.
void write_curve_svg(const speed_curve& curve, const std::string& title, std::ostream& out);

/// Returns the round numbers from 0 up to a throughput above 0 that mark a scale: at most five
/// other than 0.
std::vector<double> round_values(double top);

/// Returns a sentence about a measured run: what it reached, and what was predicted for it.
std::string dot_text(const speed_curve& curve, const curve_dot& dot);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CURVE_CURVE_PRINT_HPP
