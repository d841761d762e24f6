// Reads an RNTuple with ROOT's own classes and writes one canonical JSON object per entry.
// Compiled by cling; see root_dump.py for the command and compare.py for the form of the values.
#pragma cling optimize(2)
#include <ROOT/RField.hxx>
#include <ROOT/RNTuple.hxx>
#include <ROOT/RNTupleDescriptor.hxx>
#include <ROOT/RNTupleReader.hxx>
#include <ROOT/RPageStorage.hxx>
#include <ROOT/RPageStorageFile.hxx>
#include <ROOT/RField/RFieldSoA.hxx>
#include <TBufferFile.h>
#include <TClass.h>
#include <TError.h>
#include <TFile.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace judge {

using ROOT::RFieldBase;

// RVariantField keeps its two offsets private and has no SplitValue: name the members legally through explicit
// instantiation, which is exempt from access checks.
std::pair<std::size_t, std::size_t> VariantOffsets(const ROOT::RVariantField &field);
template <std::size_t ROOT::RVariantField::*TagOffset, std::size_t ROOT::RVariantField::*ItemOffset>
struct OpenVariant {
   friend std::pair<std::size_t, std::size_t> VariantOffsets(const ROOT::RVariantField &field)
   {
      return {field.*TagOffset, field.*ItemOffset};
   }
};
template struct OpenVariant<&ROOT::RVariantField::fTagOffset, &ROOT::RVariantField::fVariantOffset>;

enum class Kind {
   kBool, kInt8, kUInt8, kInt16, kUInt16, kInt32, kUInt32, kInt64, kUInt64, kFloat, kDouble, kString,
   kBitset, kRecord, kTuple, kList, kNullable, kVariant, kWrapper, kStreamer, kUnknown
};

/// What to do with the values of one field; built once, walked for every value.
struct Node {
   Kind fKind = Kind::kUnknown;
   RFieldBase *fField = nullptr;
   std::size_t fCount = 0;
   std::vector<std::string> fNames;
   std::vector<Node> fChildren;
};

inline bool StartsWith(std::string_view text, std::string_view head)
{
   return text.substr(0, head.size()) == head;
}

inline Kind LeafKind(const std::string &type)
{
   static const std::vector<std::pair<const char *, Kind>> kLeaves = {
      {"bool", Kind::kBool},           {"char", Kind::kInt8},
      {"std::byte", Kind::kUInt8},     {"std::int8_t", Kind::kInt8},
      {"std::uint8_t", Kind::kUInt8},  {"std::int16_t", Kind::kInt16},
      {"std::uint16_t", Kind::kUInt16}, {"std::int32_t", Kind::kInt32},
      {"std::uint32_t", Kind::kUInt32}, {"std::int64_t", Kind::kInt64},
      {"std::uint64_t", Kind::kUInt64}, {"float", Kind::kFloat},
      {"double", Kind::kDouble},       {"std::string", Kind::kString},
      {"ROOT::RNTupleCardinality<std::uint32_t>", Kind::kUInt32},
      {"ROOT::RNTupleCardinality<std::uint64_t>", Kind::kUInt64}};
   for (const auto &[name, kind] : kLeaves) {
      if (type == name)
         return kind;
   }
   return Kind::kUnknown;
}

inline Node MakeNode(RFieldBase &field, const ROOT::RNTupleDescriptor &desc)
{
   Node node;
   node.fField = &field;
   auto type = field.GetTypeName();
   if (type.empty() && field.GetOnDiskId() != ROOT::kInvalidDescriptorId) // a pair that FromDisk made a plain record
      type = desc.GetFieldDescriptor(field.GetOnDiskId()).GetTypeName();
   for (auto *sub : field.GetMutableSubfields()) {
      node.fNames.emplace_back(sub->GetFieldName());
      node.fChildren.emplace_back(MakeNode(*sub, desc));
   }
   switch (field.GetStructure()) {
   case ROOT::ENTupleStructure::kRecord:
      node.fKind = (StartsWith(type, "std::pair<") || StartsWith(type, "std::tuple<")) ? Kind::kTuple : Kind::kRecord;
      break;
   case ROOT::ENTupleStructure::kCollection:
      if (LeafKind(type) != Kind::kUnknown)
         node.fKind = LeafKind(type); // cardinality
      else if (StartsWith(type, "std::optional<") || StartsWith(type, "std::unique_ptr<"))
         node.fKind = Kind::kNullable;
      else
         node.fKind = Kind::kList;
      break;
   case ROOT::ENTupleStructure::kVariant: node.fKind = Kind::kVariant; break;
   case ROOT::ENTupleStructure::kStreamer: node.fKind = Kind::kStreamer; break;
   default:
      node.fKind = LeafKind(type);
      if (node.fKind == Kind::kUnknown && StartsWith(type, "std::bitset<")) {
         node.fKind = Kind::kBitset;
         node.fCount = field.GetNRepetitions();
      } else if (node.fKind == Kind::kUnknown && field.GetNRepetitions() > 0) {
         node.fKind = Kind::kList;
      } else if (node.fKind == Kind::kUnknown && node.fChildren.size() == 1) {
         node.fKind = Kind::kWrapper; // enum, atomic
      }
   }
   if (node.fKind == Kind::kUnknown)
      throw std::runtime_error("the judge has no form for type '" + type + "'");
   return node;
}

inline void PutString(std::string &out, const std::string &text)
{
   out += '"';
   for (unsigned char c : text) {
      if (c == '"' || c == '\\') {
         out += '\\';
         out += static_cast<char>(c);
      } else if (c < 0x20 || c == 0x7f) {
         char buffer[8];
         std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
         out += buffer;
      } else {
         out += static_cast<char>(c);
      }
   }
   out += '"';
}

template <typename T>
void PutNumber(std::string &out, T value)
{
   if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value)) {
         out += "\"NaN\"";
         return;
      }
      if (std::isinf(value)) {
         out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
         return;
      }
   }
   char buffer[64];
   const std::string_view text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr - buffer);
   out += text;
   if constexpr (std::is_floating_point_v<T>) {
      if (text.find_first_of(".e") == text.npos)
         out += ".0"; // as Tupelo does: lines that are equal need not be parsed
   }
}

inline void PutBase64(std::string &out, const unsigned char *data, std::size_t size)
{
   static const char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
   out += '"';
   for (std::size_t i = 0; i < size; i += 3) {
      const std::size_t left = size - i;
      const unsigned word = data[i] << 16 | (left > 1 ? data[i + 1] << 8 : 0) | (left > 2 ? data[i + 2] : 0);
      out += kAlphabet[word >> 18 & 63];
      out += kAlphabet[word >> 12 & 63];
      out += left > 1 ? kAlphabet[word >> 6 & 63] : '=';
      out += left > 2 ? kAlphabet[word & 63] : '=';
   }
   out += '"';
}

inline void Put(std::string &out, const Node &node, const RFieldBase::RValue &value);

inline void PutItems(std::string &out, const Node &node, const std::vector<RFieldBase::RValue> &items)
{
   out += '[';
   for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0)
         out += ',';
      Put(out, node.fKind == Kind::kTuple ? node.fChildren[i] : node.fChildren[0], items[i]);
   }
   out += ']';
}

inline void PutVariant(std::string &out, const Node &node, const RFieldBase::RValue &value)
{
   const auto [tagOffset, itemOffset] = VariantOffsets(static_cast<const ROOT::RVariantField &>(*node.fField));
   const auto base = value.GetPtr<void>();
   auto *bytes = static_cast<unsigned char *>(base.get());
   const auto index = bytes[tagOffset];
   if (index == 0xff) { // valueless by exception
      out += "null";
      return;
   }
   const auto &child = node.fChildren.at(index);
   Put(out, child, child.fField->BindValue(std::shared_ptr<void>(base, bytes + itemOffset)));
}

inline void PutStreamed(std::string &out, const Node &node, void *object)
{
   TBufferFile buffer(TBuffer::kWrite);
   static_cast<const ROOT::RStreamerField &>(*node.fField).GetClass()->Streamer(object, buffer);
   PutBase64(out, reinterpret_cast<unsigned char *>(buffer.Buffer()), buffer.Length());
}

inline void Put(std::string &out, const Node &node, const RFieldBase::RValue &value)
{
   const auto pointer = value.GetPtr<void>();
   void *p = pointer.get();
   switch (node.fKind) {
   case Kind::kBool: out += *static_cast<bool *>(p) ? "true" : "false"; break;
   case Kind::kInt8: PutNumber(out, int(*static_cast<std::int8_t *>(p))); break;
   case Kind::kUInt8: PutNumber(out, int(*static_cast<std::uint8_t *>(p))); break;
   case Kind::kInt16: PutNumber(out, *static_cast<std::int16_t *>(p)); break;
   case Kind::kUInt16: PutNumber(out, *static_cast<std::uint16_t *>(p)); break;
   case Kind::kInt32: PutNumber(out, *static_cast<std::int32_t *>(p)); break;
   case Kind::kUInt32: PutNumber(out, *static_cast<std::uint32_t *>(p)); break;
   case Kind::kInt64: PutNumber(out, *static_cast<std::int64_t *>(p)); break;
   case Kind::kUInt64: PutNumber(out, *static_cast<std::uint64_t *>(p)); break;
   case Kind::kFloat: PutNumber(out, *static_cast<float *>(p)); break;
   case Kind::kDouble: PutNumber(out, *static_cast<double *>(p)); break;
   case Kind::kString: PutString(out, *static_cast<std::string *>(p)); break;
   case Kind::kBitset:
      out += '[';
      for (std::size_t i = 0; i < node.fCount; ++i) {
         if (i > 0)
            out += ',';
         out += (static_cast<unsigned char *>(p)[i / 8] >> (i % 8) & 1) ? '1' : '0';
      }
      out += ']';
      break;
   case Kind::kRecord: {
      const auto members = node.fField->SplitValue(value);
      out += '{';
      for (std::size_t i = 0; i < members.size(); ++i) {
         if (i > 0)
            out += ',';
         PutString(out, node.fNames[i]);
         out += ':';
         Put(out, node.fChildren[i], members[i]);
      }
      out += '}';
      break;
   }
   case Kind::kTuple:
   case Kind::kList: PutItems(out, node, node.fField->SplitValue(value)); break;
   case Kind::kNullable: {
      const auto items = node.fField->SplitValue(value);
      if (items.empty())
         out += "null";
      else
         Put(out, node.fChildren[0], items[0]);
      break;
   }
   case Kind::kVariant: PutVariant(out, node, value); break;
   case Kind::kWrapper: Put(out, node.fChildren[0], node.fField->SplitValue(value).at(0)); break;
   case Kind::kStreamer: PutStreamed(out, node, p); break;
   case Kind::kUnknown: break;
   }
}

/// The C++ type of a leaf whose type name ROOT cannot resolve (SG::sgkey_t), from its column.
inline std::string LeafTypeOf(const ROOT::RNTupleDescriptor &desc, const ROOT::RFieldDescriptor &record)
{
   using ROOT::ENTupleColumnType;
   switch (desc.GetColumnDescriptor(record.GetLogicalColumnIds().at(0)).GetType()) {
   case ENTupleColumnType::kBit: return "bool";
   case ENTupleColumnType::kInt8: return "std::int8_t";
   case ENTupleColumnType::kUInt8: return "std::uint8_t";
   case ENTupleColumnType::kInt16:
   case ENTupleColumnType::kSplitInt16: return "std::int16_t";
   case ENTupleColumnType::kUInt16:
   case ENTupleColumnType::kSplitUInt16: return "std::uint16_t";
   case ENTupleColumnType::kInt32:
   case ENTupleColumnType::kSplitInt32: return "std::int32_t";
   case ENTupleColumnType::kUInt32:
   case ENTupleColumnType::kSplitUInt32: return "std::uint32_t";
   case ENTupleColumnType::kInt64:
   case ENTupleColumnType::kSplitInt64: return "std::int64_t";
   case ENTupleColumnType::kUInt64:
   case ENTupleColumnType::kSplitUInt64: return "std::uint64_t";
   default: throw std::runtime_error("unknown type: " + record.GetTypeName());
   }
}

/// Builds a field from the schema on disk alone, with ROOT's emulated records and collections. Used where the C++ type
/// would lose the order on disk (unordered sets and maps), needs a dictionary that is absent (maps) or has a name that
/// ROOT 6.40 cannot normalise (ElementLink<DataVector<...> >, root-project/root#18935).
inline std::unique_ptr<RFieldBase> FromDisk(const ROOT::RNTupleDescriptor &desc, const ROOT::RFieldDescriptor &record)
{
   const auto &name = record.GetFieldName();
   const auto &type = record.GetTypeName();
   std::vector<std::unique_ptr<RFieldBase>> items;
   for (auto id : record.GetLinkIds())
      items.emplace_back(FromDisk(desc, desc.GetFieldDescriptor(id)));
   std::unique_ptr<RFieldBase> field;
   switch (record.GetStructure()) {
   case ROOT::ENTupleStructure::kRecord: {
      const bool isTuple = StartsWith(type, "std::pair<") || StartsWith(type, "std::tuple<");
      if (type.empty() || isTuple)
         field = std::make_unique<ROOT::RRecordField>(name, std::move(items));
      else
         field = ROOT::Internal::CreateEmulatedRecordField(name, std::move(items), type);
      break;
   }
   case ROOT::ENTupleStructure::kVariant:
      field = std::make_unique<ROOT::RVariantField>(name, std::move(items));
      break;
   case ROOT::ENTupleStructure::kCollection:
      if (StartsWith(type, "std::optional<"))
         field = std::make_unique<ROOT::ROptionalField>(name, std::move(items.at(0)));
      else if (StartsWith(type, "std::unique_ptr<"))
         field = std::make_unique<ROOT::RUniquePtrField>(name, std::move(items.at(0)));
      else if (items.size() == 1 && type.empty())
         field = ROOT::RVectorField::CreateUntyped(name, std::move(items[0]));
      else if (items.size() == 1)
         field = ROOT::Internal::CreateEmulatedVectorField(name, std::move(items[0]), type);
      break;
   case ROOT::ENTupleStructure::kPlain:
      if (items.size() == 1 && record.GetNRepetitions() > 0) {
         field = std::make_unique<ROOT::RArrayField>(name, std::move(items[0]), record.GetNRepetitions());
      } else if (items.size() == 1) { // an enum or an atomic: its only child holds the value
         auto child = items[0]->Clone(name);
         child->SetOnDiskId(record.GetLinkIds()[0]);
         return child;
      }
      break;
   default: break;
   }
   if (!field) {
      try {
         field = record.CreateField(desc);
      } catch (const std::exception &) {
         field = RFieldBase::Create(name, LeafTypeOf(desc, record)).Unwrap();
      }
   }
   field->SetOnDiskId(record.GetId());
   return field;
}

/// Throws where an attempt to build the field would crash ROOT.
inline void RefuseUnknownStreamers(const ROOT::RNTupleDescriptor &desc, const ROOT::RFieldDescriptor &record)
{
   if (record.GetStructure() == ROOT::ENTupleStructure::kStreamer) {
      auto *known = TClass::GetClass(record.GetTypeName().c_str(), /*load=*/true, /*silent=*/true);
      if (!known || !known->HasDictionary())
         throw std::runtime_error("no dictionary for the streamed class " + record.GetTypeName());
   }
   for (auto id : record.GetLinkIds())
      RefuseUnknownStreamers(desc, desc.GetFieldDescriptor(id));
}

/// Whether ROOT cannot read the field by its C++ type, or not in the order on disk.
inline bool NeedsDisk(const ROOT::RNTupleDescriptor &desc, const ROOT::RFieldDescriptor &record)
{
   for (const char *family : {"std::set<", "std::multiset<", "std::map<", "std::multimap<", "std::unordered_"}) {
      if (record.GetTypeName().find(family) != std::string::npos)
         return true;
   }
   if (record.IsSoACollection()) // "not yet implemented" in 6.40
      return true;
   if (record.GetTypeName() == "TObject") // reading sets a bit that is not on disk
      return true;
   for (auto id : record.GetLinkIds()) {
      if (NeedsDisk(desc, desc.GetFieldDescriptor(id)))
         return true;
   }
   return false;
}

inline std::unique_ptr<RFieldBase> MakeField(const ROOT::RNTupleDescriptor &desc, const ROOT::RFieldDescriptor &record)
{
   RefuseUnknownStreamers(desc, record);
   if (NeedsDisk(desc, record))
      return FromDisk(desc, record);
   try {
      ROOT::RCreateFieldOptions options;
      options.SetEmulateUnknownTypes(true);
      auto field = record.CreateField(desc, options);
      field->SetOnDiskId(record.GetId());
      return field;
   } catch (const std::exception &) {
      return FromDisk(desc, record);
   }
}

/// One top-level field, connected to the pages.
struct TopField {
   std::string fName;
   std::unique_ptr<ROOT::RFieldZero> fRoot;
   Node fNode;
   std::unique_ptr<RFieldBase::RValue> fValue;
};

inline TopField Connect(ROOT::Internal::RPageSource &source, ROOT::DescriptorId_t fieldId)
{
   TopField top;
   top.fRoot = std::make_unique<ROOT::RFieldZero>();
   ROOT::Internal::SetAllowFieldSubstitutions(*top.fRoot, true);
   std::unique_ptr<RFieldBase> field;
   {
      const auto guard = source.GetSharedDescriptorGuard();
      const auto &record = guard->GetFieldDescriptor(fieldId);
      top.fName = record.GetFieldName();
      field = MakeField(guard.GetRef(), record);
   }
   top.fRoot->Attach(std::move(field));
   ROOT::Internal::CallConnectPageSourceOnField(*top.fRoot, source);
   auto *connected = top.fRoot->GetMutableSubfields()[0];
   {
      const auto guard = source.GetSharedDescriptorGuard();
      top.fNode = MakeNode(*connected, guard.GetRef());
   }
   top.fValue = std::make_unique<RFieldBase::RValue>(connected->CreateValue());
   return top;
}

/// Turns ROOT's aborts into exceptions, so that one field cannot end the dump.
inline void ThrowWhenFatal(int level, Bool_t abort, const char *location, const char *message)
{
   if (level >= kFatal)
      throw std::runtime_error(std::string(location) + ": " + message);
   DefaultErrorHandler(level, abort, location, message);
}

inline std::string FirstLine(const std::exception &error)
{
   std::string text = error.what();
   return text.substr(0, text.find('\n'));
}

struct File {
   FILE *fHandle;
   explicit File(const std::string &path) : fHandle(std::fopen(path.c_str(), "wb"))
   {
      if (!fHandle)
         throw std::runtime_error("cannot write " + path);
   }
   ~File() { std::fclose(fHandle); }
   void Line(std::string &line)
   {
      line += '\n';
      std::fwrite(line.data(), 1, line.size(), fHandle);
      line.clear();
   }
};

/// Reads all entries with the model that ROOT makes of the whole ntuple, as programs without dictionaries do. One field
/// that it has no type for is enough to fail, unless classes are emulated.
inline void ReadModel(const std::string &path, const std::string &name, bool isEmulated)
{
   SetErrorHandler(ThrowWhenFatal);
   ROOT::RNTupleDescriptor::RCreateModelOptions options;
   options.SetEmulateUnknownTypes(isEmulated);
   auto reader = ROOT::RNTupleReader::Open(options, name, path);
   reader->GetModel();
   for (auto entry : *reader)
      reader->LoadEntry(entry);
}

/// Writes all entries to `outPath`; returns one line for every field that ROOT cannot show.
inline std::vector<std::string> Dump(const std::string &path, const std::string &name, const std::string &outPath)
{
   SetErrorHandler(ThrowWhenFatal);
   std::vector<std::string> omitted;
   std::unique_ptr<TFile> file(TFile::Open(path.c_str()));
   if (!file || file->IsZombie())
      throw std::runtime_error("cannot open " + path);
   std::unique_ptr<ROOT::RNTuple> anchor(file->Get<ROOT::RNTuple>(name.c_str()));
   if (!anchor)
      throw std::runtime_error("no RNTuple '" + name + "' in " + path);
   auto source = ROOT::Internal::RPageSourceFile::CreateFromAnchor(*anchor);
   source->Attach();
   std::vector<ROOT::DescriptorId_t> ids;
   std::vector<std::string> names;
   ROOT::NTupleSize_t nEntries = 0;
   {
      const auto guard = source->GetSharedDescriptorGuard();
      nEntries = guard->GetNEntries();
      for (const auto &record : guard->GetTopLevelFields()) {
         ids.emplace_back(record.GetId());
         names.emplace_back(record.GetFieldName() + " (" + record.GetTypeName() + ")");
      }
   }
   std::vector<TopField> fields;
   for (std::size_t i = 0; i < ids.size(); ++i) {
      try {
         auto field = Connect(*source, ids[i]);
         if (nEntries > 0)
            field.fValue->Read(0);
         fields.emplace_back(std::move(field));
      } catch (const std::exception &error) {
         omitted.emplace_back(names[i] + ": " + FirstLine(error));
      }
   }
   File out(outPath);
   std::string line;
   for (ROOT::NTupleSize_t entry = 0; entry < nEntries; ++entry) {
      line += '{';
      for (auto &field : fields) {
         if (line.size() > 1)
            line += ',';
         PutString(line, field.fName);
         line += ':';
         field.fValue->Read(entry);
         Put(line, field.fNode, *field.fValue);
      }
      line += '}';
      out.Line(line);
   }
   return omitted;
}

/// Writes the entries of one attribute set as {"_rangeStart", "_rangeLen", "_userData"}.
inline void DumpAttributes(const std::string &path, const std::string &name, const std::string &set,
                           const std::string &outPath)
{
   auto reader = ROOT::RNTupleReader::Open(name, path);
   auto attributes = reader->OpenAttributeSet(set);
   auto entry = attributes->CreateEntry();
   File out(outPath);
   std::string line;
   for (auto index : attributes->GetAttributes()) {
      const auto range = attributes->LoadEntry(index, *entry);
      line += "{\"_rangeStart\":" + std::to_string(range.GetStart());
      line += ",\"_rangeLen\":" + std::to_string(range.GetLength()) + ",\"_userData\":{";
      bool first = true;
      for (const auto &value : *entry) {
         line += first ? "" : ",";
         first = false;
         PutString(line, value.GetField().GetFieldName());
         line += ':';
         Put(line, MakeNode(const_cast<RFieldBase &>(value.GetField()), attributes->GetDescriptor()), value);
      }
      line += "}}";
      out.Line(line);
   }
}

/// Writes for every entry of the ntuple a list of the numbers of the rows that speak of it.
inline void DumpAttributesByEntry(const std::string &path, const std::string &name, const std::string &set,
                                  const std::string &outPath)
{
   auto reader = ROOT::RNTupleReader::Open(name, path);
   auto attributes = reader->OpenAttributeSet(set);
   File out(outPath);
   std::string line;
   for (ROOT::NTupleSize_t entry = 0; entry < reader->GetNEntries(); ++entry) {
      for (auto index : attributes->GetAttributes(entry))
         line += (line.empty() ? "[" : ",") + std::to_string(index);
      line += line.empty() ? "[]" : "]";
      out.Line(line);
   }
}

} // namespace judge
