// The analysis with RDataFrame. Apart from root_rival.hpp, because cling takes long over it.
#pragma once
#include <ROOT/RDataFrame.hxx>

namespace bench {
std::vector<Index> analysis_dataframe(const std::string &ntuple, const std::string &file) {
   auto are_kaons = [](int m1, double k1, double p1, int m2, double k2, double p2, int m3, double k3, double p3) {
      return m1 == 0 && k1 > 0.5 && p1 < 0.5 && m2 == 0 && k2 > 0.5 && p2 < 0.5 && m3 == 0 && k3 > 0.5 && p3 < 0.5;
   };
   ROOT::RDataFrame frame(ntuple, file);
   auto histogram = frame
                       .Filter(are_kaons, {"H1_isMuon", "H1_ProbK", "H1_ProbPi", "H2_isMuon", "H2_ProbK", "H2_ProbPi",
                                           "H3_isMuon", "H3_ProbK", "H3_ProbPi"})
                       .Define("mass", mass, {"H1_PX", "H1_PY", "H1_PZ", "H2_PX", "H2_PY", "H2_PZ", "H3_PX", "H3_PY",
                                              "H3_PZ"})
                       .Histo1D<double>({"mass", "", bins, lowest, highest}, "mass");
   std::vector<Index> counts;
   for (int bin = 1; bin <= bins; ++bin) counts.push_back(histogram->GetBinContent(bin));
   return counts;
}
} // namespace bench
