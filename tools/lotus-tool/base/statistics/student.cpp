#include "base/statistics/student.hpp"

#include <algorithm>
#include <cmath>

namespace lotus::tool {
namespace {

/// Returns the integral of cos(x)^(degrees - 1) from x = `from` to x = `to` in radians. With the
/// substitution t = sqrt(degrees) tan(x), this is the integral of Student's density, except for a
/// constant factor.
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
  // With many degrees of freedom, the integrand is almost 0 except near x = 0. The integral beyond
  // ten standard deviations is below 1e-20, so it is left out.
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
