// Values of the branches of trees, as TTreeFormula and TBranch::GetEntry read them; compiled by cling for root_trees.py.
#include <TBranchElement.h>
#include <TBufferJSON.h>
#include <TFile.h>
#include <TLeafC.h>
#include <TLeafD.h>
#include <TLeafF.h>
#include <TStreamerElement.h>
#include <TTree.h>
#include <TTreeFormula.h>
#include <TVirtualStreamerInfo.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
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

/// The values of an expression in the first entries, flattened: [[value, …], …], or a text with what is wrong.
inline std::string Values(TTree &tree, const std::string &expression, Long64_t entries)
{
   TTreeFormula formula("formula", expression.c_str(), &tree);
   if (!formula.GetNdim())
      return "\"ROOT does not find " + expression + "\"";
   std::string line = "[";
   for (Long64_t entry = 0; entry < entries; ++entry) {
      tree.LoadTree(entry);
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
   return line + "]";
}

/// Whether a class is a container for those who have its dictionary.
inline bool IsUnknownContainer(TClass &type)
{
   if (type.IsLoaded())
      return false;
   auto *info = type.GetStreamerInfo();
   auto *elements = info ? info->GetElements() : nullptr;
   return elements && elements->GetEntriesFast() == 1 && std::string(elements->At(0)->GetName()) == "This";
}

/// The objects of a branch in the first entries, as a list in JSON; null where ROOT needs a dictionary.
inline std::string Objects(TBranchElement &branch, Long64_t entries)
{
   auto *type = TClass::GetClass(branch.GetClassName());
   if (!type)
      throw std::runtime_error(std::string("there is no class ") + branch.GetClassName());
   if (IsUnknownContainer(*type))
      return "null";
   std::string line = "[";
   for (Long64_t entry = 0; entry < entries; ++entry) {
      if (branch.GetEntry(entry) < 0)
         throw std::runtime_error(std::string("entry cannot be read of branch ") + branch.GetName());
      line += entry ? ", " : "";
      line += TBufferJSON::ConvertToJSON(branch.GetObject(), type, TBufferJSON::kNoSpaces).Data();
   }
   return line + "]";
}

/// The numbers or the text of a leaf in the first entries, flattened.
inline std::string Leaves(TLeaf &leaf, Long64_t entries)
{
   std::string line = "[";
   for (Long64_t entry = 0; entry < entries; ++entry) {
      if (leaf.GetBranch()->GetEntry(entry) < 0)
         throw std::runtime_error(std::string("entry cannot be read of leaf ") + leaf.GetName());
      line += entry ? ", [" : "[";
      const bool isText = leaf.IsA() == TLeafC::Class(), isFloat = leaf.IsA() == TLeafF::Class() || leaf.IsA() == TLeafD::Class();
      for (Int_t item = 0; item < (isText ? 1 : leaf.GetLen()); ++item) {
         line += item ? ", " : "";
         if (isText)
            PutText(line, static_cast<const char *>(leaf.GetValuePointer()));
         else if (isFloat)
            PutNumber(line, leaf.GetValue(item));
         else if (leaf.IsUnsigned())
            PutNumber(line, static_cast<ULong64_t>(leaf.GetValueLong64(item)));
         else
            PutNumber(line, leaf.GetValueLong64(item));
      }
      line += "]";
   }
   return line + "]";
}

/// Writes a line of JSON for each expression, then for each branch its name and its objects or values.
inline void DumpTree(const std::string &path, const std::string &name, const std::vector<std::string> &expressions,
                     Long64_t most, const std::string &out)
{
   std::unique_ptr<TFile> file(TFile::Open(path.c_str()));
   auto *tree = file ? file->Get<TTree>(name.c_str()) : nullptr;
   if (!tree)
      throw std::runtime_error("there is no tree " + name);
   const Long64_t entries = std::min(most, tree->GetEntries());
   std::ofstream lines(out);
   for (const auto &expression : expressions)
      lines << Values(*tree, expression, entries) << std::endl;
   tree->ResetBranchAddresses();
   for (auto *branch : TRangeDynCast<TBranch>(*tree->GetListOfBranches())) {
      auto *element = dynamic_cast<TBranchElement *>(branch);
      auto *leaf = static_cast<TLeaf *>(branch->GetListOfLeaves()->At(0));
      lines << "[\"" << branch->GetName() << "\", "
            << (element ? Objects(*element, entries) : Leaves(*leaf, entries)) << "]" << std::endl;
   }
}

} // namespace judge
