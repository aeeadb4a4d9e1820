#include "base/statistics/student.hpp"

#include <algorithm>
#include <cmath>

namespace lotus::tool {
namespace {

/// The integral of cos^(degrees - 1), from which Student's distribution follows with t =
/// sqrt(degrees) tan(angle).
double integral(double from, double to, double degrees) {
  constexpr int steps = 200;
  const double step = (to - from) / steps;
  double sum = 0;
  for (int i = 0; i < steps; ++i) sum += std::pow(std::cos(from + (i + 0.5) * step), degrees - 1);
  return sum * step;
}

}  // namespace

double student_reach(double degrees, double outside) {
  constexpr double right_angle = 1.57079632679489662;
  // With many degrees nearly everything is close to 0: less than 1e-20 is beyond ten of its widths.
  const double end = std::min(right_angle, 10 / std::sqrt(degrees));
  const double half = integral(0, end, degrees);
  double low = 0;
  double high = end;
  for (int i = 0; i < 40; ++i) {
    const double angle = (low + high) / 2;
    (integral(angle, end, degrees) > outside * half ? low : high) = angle;
  }
  return std::sqrt(degrees) * std::tan(low);
}

}  // namespace lotus::tool
