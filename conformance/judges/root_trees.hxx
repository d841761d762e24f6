// Values of the branches of trees, as TTreeFormula reads them; compiled by cling for root_trees.py.
#include <TFile.h>
#include <TTree.h>
#include <TTreeFormula.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace judge {

inline void PutText(std::string &line, const char *text)
{
   line += '"';
   for (const char *c = text; *c; ++c) {
      char escaped[8];
      if (*c == '"' || *c == '\\' || static_cast<unsigned char>(*c) < 0x20)
         std::snprintf(escaped, sizeof escaped, "\\u%04x", *c);
      else
         std::snprintf(escaped, sizeof escaped, "%c", *c);
      line += escaped;
   }
   line += '"';
}

inline void PutNumber(std::string &line, long double number)
{
   char text[64];
   if (std::isnan(number))
      line += "\"NaN\"";
   else if (std::isinf(number))
      line += number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
   else if (std::snprintf(text, sizeof text, "%.21Lg", number) > 0)
      line += text;
}

/// Writes the values of expressions in the first entries, flattened: a line [[value, …], …] for each expression, or a
/// text with what is wrong with it.
inline void DumpTree(const std::string &path, const std::string &name, const std::vector<std::string> &expressions,
                     Long64_t most, const std::string &out)
{
   std::unique_ptr<TFile> file(TFile::Open(path.c_str()));
   auto *tree = file ? file->Get<TTree>(name.c_str()) : nullptr;
   if (!tree)
      throw std::runtime_error("there is no tree " + name);
   std::ofstream lines(out);
   for (const auto &expression : expressions) {
      TTreeFormula formula("formula", expression.c_str(), tree);
      std::string line = "[";
      if (!formula.GetNdim()) {
         lines << "\"ROOT does not find " << expression << "\"\n";
         continue;
      }
      for (Long64_t entry = 0; entry < std::min(most, tree->GetEntries()); ++entry) {
         tree->LoadTree(entry);
         line += entry ? ", [" : "[";
         const Int_t count = formula.GetNdata();
         for (Int_t item = 0; item < count; ++item) {
            line += item ? ", " : "";
            if (formula.IsString())
               PutText(line, formula.EvalStringInstance(item));
            else
               PutNumber(line, formula.EvalInstance<long double>(item));
         }
         line += "]";
      }
      lines << line << "]\n";
   }
}

} // namespace judge
