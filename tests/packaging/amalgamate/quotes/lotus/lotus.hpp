#include <lotus/a.hpp>
