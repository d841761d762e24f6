// Reads fields with ROOT as other types than those on disk; compiled by cling after root_dump.hxx, see views_dump.py.
#include <ROOT/RNTupleModel.hxx>
#include <ROOT/RNTupleWriter.hxx>
#include <TObject.h>

// The enums and classes of crates/tupelo-schema/src/evolution/resolve/root_6_40.txt.
enum EnumA : int { kA };
enum EnumB : short { kB };
enum class EnumS : unsigned char { kS };
struct Cls {
   int a = 1;
   float b = 2;
};
struct Cls2 {
   int a = 1;
   float b = 2;
};
struct Derived : Cls {
   int c = 1;
};

namespace judge {

inline std::unique_ptr<RFieldBase> UntypedRecord(const std::string &name, bool isWhole)
{
   std::vector<std::unique_ptr<RFieldBase>> members;
   members.emplace_back(RFieldBase::Create("a", "int").Unwrap());
   if (isWhole)
      members.emplace_back(RFieldBase::Create("b", "float").Unwrap());
   return std::make_unique<ROOT::RRecordField>(name, std::move(members));
}

/// A field called x of a type name, or of an untyped record or collection in words.
inline std::unique_ptr<RFieldBase> MakeNamed(const std::string &type)
{
   if (type == "untyped record" || type == "untyped record of a")
      return UntypedRecord("x", type == "untyped record");
   if (type == "untyped collection")
      return ROOT::RVectorField::CreateUntyped("x", UntypedRecord("_0", true));
   if (type == "untyped collection of int")
      return ROOT::RVectorField::CreateUntyped("x", RFieldBase::Create("_0", "int").Unwrap());
   return RFieldBase::Create("x", type).Unwrap();
}

/// Writes the ntuple "n" of one entry with a field x that nobody has set.
inline void WriteType(const std::string &path, const std::string &type)
{
   auto model = ROOT::RNTupleModel::Create();
   model->AddField(MakeNamed(type));
   ROOT::RNTupleWriter::Recreate(std::move(model), "n", path)->Fill();
}

/// The field x, read as a type, as RNTupleReader::GetView does it.
struct View {
   std::unique_ptr<ROOT::Internal::RPageSource> fSource;
   ROOT::RFieldZero fRoot;
   RFieldBase *fField = nullptr;

   View(const std::string &path, const std::string &type) : fSource(ROOT::Internal::RPageSource::Create("n", path))
   {
      SetErrorHandler(ThrowWhenFatal);
      fSource->Attach();
      ROOT::Internal::SetAllowFieldSubstitutions(fRoot, true);
      auto field = MakeNamed(type);
      field->SetOnDiskId(fSource->GetSharedDescriptorGuard()->FindFieldId("x"));
      fRoot.Attach(std::move(field));
      ROOT::Internal::CallConnectPageSourceOnField(fRoot, *fSource);
      fField = fRoot.GetMutableSubfields()[0];
   }
};

/// Which of the types the field x of a file can be read as: x where it can, a dot where ROOT throws.
inline std::string ReadableAs(const std::string &path, const std::vector<std::string> &types)
{
   std::string answers;
   for (const auto &type : types) {
      try {
         View view(path, type);
         view.fField->CreateValue().Read(0);
         answers += 'x';
      } catch (const std::exception &) {
         answers += '.';
      }
   }
   return answers;
}

/// Writes the values of the field x, read as a type, as one line {"x": value} for each entry.
inline void DumpView(const std::string &path, const std::string &type, const std::string &outPath)
{
   View view(path, type);
   const auto guard = view.fSource->GetSharedDescriptorGuard();
   const auto node = MakeNode(*view.fField, guard.GetRef());
   auto value = view.fField->CreateValue();
   File out(outPath);
   std::string line;
   for (ROOT::NTupleSize_t entry = 0; entry < guard->GetNEntries(); ++entry) {
      value.Read(entry);
      line += "{\"x\":";
      Put(line, node, value);
      line += '}';
      out.Line(line);
   }
}

} // namespace judge
