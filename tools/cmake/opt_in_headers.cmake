# Headers that lotus.hpp does not include, because they depend on other libraries. A user who needs
# them includes them directly.
set(lotus_opt_in_headers "^lotus/torch[./]")
