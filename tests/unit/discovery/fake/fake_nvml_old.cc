// The fake driver as it would have been long ago.
#define BERTH_FAKE_NVML_OLD
#include "tests/unit/discovery/fake/fake_nvml.cc"
