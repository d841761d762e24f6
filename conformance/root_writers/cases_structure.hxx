// Projections, structure and compression: the cases about the format rather than about types; see cases.hxx.
#pragma once
#include "cases.hxx"

#include <ROOT/RMiniFile.hxx>
#include <ROOT/RNTupleAttrWriting.hxx>
#include <ROOT/RNTupleDescriptor.hxx>
#include <ROOT/RNTupleSerialize.hxx>
#include <TFile.h>
#include <TH1F.h>
#include <TTree.h>

namespace cases {

// ---- projections -------------------------------------------------------------------------------------------------

inline void projections_cardinality(Text path, int compression)
{
   Ntuple n(compression);
   std::vector<std::shared_ptr<Ints>> values;
   for (const auto &[name, type] : kIndexTypes)
      values.push_back(n.Add<Ints>(name, {{type}}));
   for (const auto &[name, type] : kIndexTypes) {
      const auto projected = std::string(name) + "Cardinality";
      const bool small = projected.find("32") != std::string::npos;
      const std::string size = small ? "std::uint32_t" : "std::uint64_t";
      n.Project(RFieldBase::Create(projected, "ROOT::RNTupleCardinality<" + size + ">").Unwrap(), {{projected, name}});
   }
   n.Open(path);
   const std::vector<std::array<Ints, 4>> entries = {
      {Ints{1}, Ints{2}, Ints{3}, Ints{4}}, {}, {Ints{1}, Ints{2, 3}, Ints{4, 5, 6}, Ints{7, 8, 9, 10}}};
   for (const auto &entry : entries) {
      for (int i = 0; i < 4; ++i)
         *values[i] = entry[i];
      n.Fill();
   }
}

inline void projections_collection(Text path, int compression)
{
   Ntuple n(compression);
   auto vector = n.Add<Ints>("Vector");
   n.Project(MakeField<RInts>("Projected"), {{"Projected", "Vector"}, {"Projected._0", "Vector._0"}});
   n.Open(path);
   *vector = {1, 2, 3};
   n.Fill();
   vector->clear();
   n.Fill();
}

inline void projections_leaf(Text path, int compression)
{
   Ntuple n(compression);
   auto pair = n.Add<std::pair<std::int32_t, float>>("Pair");
   n.Project(MakeField<std::int32_t>("Int32"), {{"Int32", "Pair._0"}});
   n.Project(MakeField<float>("Float"), {{"Float", "Pair._1"}});
   n.Open(path);
   *pair = {1, 2.f};
   n.Fill();
}

inline void projections_nested(Text path, int compression)
{
   Ntuple n(compression);
   auto pairs = n.Add<std::vector<std::pair<std::int32_t, float>>>("VectorPair");
   n.Project(MakeField<Ints>("VectorInt"), {{"VectorInt", "VectorPair"}, {"VectorInt._0", "VectorPair._0._0"}});
   n.Project(MakeField<std::vector<float>>("VectorFloat"),
             {{"VectorFloat", "VectorPair"}, {"VectorFloat._0", "VectorPair._0._1"}});
   n.Open(path);
   *pairs = {{1, 2.f}, {3, 4.f}};
   n.Fill();
   pairs->clear();
   n.Fill();
}

// ---- structure ---------------------------------------------------------------------------------------------------

inline void structure_empty(Text path, int compression)
{
   Ntuple n(compression);
   n.Add<std::int32_t>("Int32");
   n.Open(path);
}

/// No field at all, but three entries.
inline void structure_no_fields(Text path, int compression)
{
   Ntuple n(compression);
   n.Open(path);
   for (int i = 0; i < 3; ++i)
      n.Fill();
}

inline void structure_clusters(Text path, int compression)
{
   Ntuple n(compression);
   auto value = n.Add<std::int32_t>("Int32");
   n.Open(path);
   for (int i = 1; i <= 2; ++i) {
      *value = i;
      n.Fill();
      n.fWriter->CommitCluster();
   }
}

inline void structure_cluster_groups(Text path, int compression)
{
   Ntuple n(compression);
   auto value = n.Add<std::int32_t>("Int32");
   n.Open(path);
   for (int i = 1; i <= 4; ++i) {
      *value = i;
      n.Fill();
      n.fWriter->CommitCluster(/*commitClusterGroup=*/i % 2 == 0);
   }
}

/// Many small pages, clusters and cluster groups of uneven size; a cluster in which a collection has no element.
inline void structure_many_pages(Text path, int compression)
{
   Ntuple n(compression);
   n.fOptions.SetInitialUnzippedPageSize(16);
   n.fOptions.SetMaxUnzippedPageSize(64);
   auto number = n.Add<std::int32_t>("n");
   auto flag = n.Add<bool>("b");
   auto text = n.Add<std::string>("s");
   auto vectors = n.Add<Nested2>("vv");
   auto choice = n.Add<Choice>("c");
   n.Open(path);
   for (int i = 0; i < 1000; ++i) {
      *number = i * i - 5000;
      *flag = i % 3 == 0;
      *text = std::string(i % 7, static_cast<char>('a' + i % 26));
      vectors->clear();
      for (int j = 0; i / 100 != 4 && j < i % 4; ++j)
         vectors->push_back(Ints(j, i));
      if (i % 5 == 0)
         *choice = *text;
      else
         *choice = i;
      n.Fill();
      if (i % 100 == 99 || i == 555)
         n.fWriter->CommitCluster(/*commitClusterGroup=*/i % 300 == 299);
   }
}

/// All columns equal, so that ROOT stores each page once and points to it many times.
inline void structure_same_page_merging(Text path, int compression)
{
   Ntuple n(compression);
   n.fOptions.SetMaxUnzippedPageSize(256);
   std::vector<std::shared_ptr<std::int32_t>> same;
   for (int i = 0; i < 4; ++i)
      same.push_back(n.Add<std::int32_t>("same" + std::to_string(i)));
   auto other = n.Add<std::int32_t>("other");
   n.Open(path);
   for (int i = 0; i < 600; ++i) {
      PutAll<std::int32_t>(same, i % 64);
      *other = i;
      n.Fill();
   }
}

inline void structure_no_checksums(Text path, int compression)
{
   Ntuple n(compression);
   n.fOptions.SetEnablePageChecksums(false);
   auto value = n.Add<std::int32_t>("i");
   auto text = n.Add<std::string>("s");
   n.Open(path);
   for (int i = 0; i < 100; ++i) {
      *value = i;
      *text = "entry " + std::to_string(i);
      n.Fill();
   }
}

/// A maximum key size below the size of header, footer, page list and pages: all of them in chunks.
inline void structure_small_key(Text path, int compression)
{
   Ntuple n(compression);
   ROOT::Internal::RNTupleWriteOptionsManip::SetMaxKeySize(n.fOptions, 1024);
   n.fOptions.SetEnablePageChecksums(false);
   n.fOptions.SetEnableSamePageMerging(false);
   n.fOptions.SetUseBufferedWrite(false);
   n.fOptions.SetMaxUnzippedPageSize(4096);
   std::vector<std::shared_ptr<std::uint32_t>> values;
   for (int i = 0; i < 40; ++i)
      values.push_back(n.Add<std::uint32_t>("a_rather_long_field_name_" + std::to_string(i)));
   n.Open(path);
   for (std::uint32_t i = 0; i < 3000; ++i) {
      for (std::uint32_t j = 0; j < 40; ++j)
         *values[j] = i * 2654435761u + j;
      n.Fill();
   }
}

/// Fields that come after the first cluster, one kind each: their columns are deferred.
inline void structure_deferred(Text path, int compression)
{
   Ntuple n(compression);
   auto first = n.Add<std::int32_t>("first");
   n.Open(path);
   auto fill = [&](int count) {
      for (int i = 0; i < count; ++i, ++*first)
         n.Fill();
   };
   fill(3);
   n.fWriter->CommitCluster();
   fill(2);
   auto updater = n.fWriter->CreateModelUpdater();
   updater->BeginUpdate();
   auto number = updater->MakeField<float>("number");
   auto flag = updater->MakeField<bool>("flag");
   auto text = updater->MakeField<std::string>("text");
   auto vector = updater->MakeField<Nested2>("vector");
   auto array = updater->MakeField<std::array<std::int16_t, 3>>("array");
   auto pair = updater->MakeField<std::pair<std::int32_t, Ints>>("pair");
   auto option = updater->MakeField<std::optional<double>>("option");
   auto choice = updater->MakeField<Choice>("choice");
   auto bits = updater->MakeField<std::bitset<5>>("bits");
   updater->AddProjectedField(RFieldBase::Create("size", "ROOT::RNTupleCardinality<std::uint32_t>").Unwrap(),
                              [](const std::string &) { return "vector"; });
   updater->CommitUpdate();
   *number = 1.5f, *flag = true, *text = "x", *vector = {{1}, {}, {2, 3}}, *array = {4, 5, 6}, *pair = {7, {8, 9}};
   *option = 2.5, *choice = "y", bits->set(3);
   fill(2);
   n.fWriter->CommitCluster(true);
   updater = n.fWriter->CreateModelUpdater();
   updater->BeginUpdate();
   auto late = updater->MakeField<std::uint64_t>("late");
   updater->CommitUpdate();
   *late = 12345678901234567890ull, vector->clear(), option->reset(), *choice = 11;
   fill(2);
}

/// Late sub-fields of untyped records, nested records included.
inline void structure_deferred_subfields(Text path, int compression)
{
   Ntuple n(compression);
   n.fModel = RNTupleModel::CreateBare();
   std::vector<std::unique_ptr<RFieldBase>> inner;
   inner.push_back(MakeField<std::int32_t>("a"));
   std::vector<std::unique_ptr<RFieldBase>> items;
   items.push_back(std::make_unique<ROOT::RRecordField>("inner", std::move(inner)));
   items.push_back(MakeField<std::int32_t>("b"));
   n.fModel->AddField(std::make_unique<ROOT::RRecordField>("rec", std::move(items)));
   n.Open(path);
   struct Before {
      std::int32_t fA, fB;
   } before{1, 2};
   {
      auto entry = n.fWriter->CreateEntry();
      entry->BindRawPtr<void>("rec", &before);
      n.fWriter->Fill(*entry);
      before = {3, 4};
      n.fWriter->Fill(*entry);
   }
   auto updater = n.fWriter->CreateModelUpdater();
   updater->BeginUpdate();
   updater->AddField(MakeField<float>("c"), "rec");
   updater->AddField(MakeField<Ints>("d"), "rec");
   updater->CommitUpdate();
   struct After {
      std::int32_t fA, fB;
      float fC;
      Ints fD;
   } after{5, 6, 7.5f, {8, 9}};
   auto entry = n.fWriter->CreateEntry();
   entry->BindRawPtr<void>("rec", &after);
   n.fWriter->Fill(*entry);
   after.fD.clear();
   n.fWriter->Fill(*entry);
}

/// Two representations of the columns of a field; the primary one changes from cluster to cluster.
inline void structure_representations(Text path, int compression)
{
   Ntuple n(compression);
   auto real = n.Add<float>("real", {{Type::kReal32}, {Type::kReal16}});
   auto number = n.Add<std::int64_t>("number", {{Type::kInt64}, {Type::kSplitInt64}});
   auto text = n.Add<std::string>("text", {{Type::kIndex32, Type::kChar}, {Type::kSplitIndex64, Type::kChar}});
   auto field = MakeField<std::vector<double>>("vector", {{Type::kIndex64}, {Type::kSplitIndex32}});
   Item(*field)->SetColumnRepresentatives({{Type::kReal64}, {Type::kReal32}});
   auto vector = n.Add<std::vector<double>>(std::move(field));
   n.Open(path);
   for (int cluster = 0; cluster < 3; ++cluster) {
      for (const char *name : {"real", "number", "text", "vector", "vector._0"}) {
         auto &changed = const_cast<RFieldBase &>(n.fWriter->GetModel().GetConstField(name));
         ROOT::Internal::RFieldRepresentationModifier::SetPrimaryColumnRepresentation(changed, cluster % 2);
      }
      for (int i = 0; i < 3; ++i) {
         *real = cluster + 0.25f * i;
         *number = -1000ll * cluster + i;
         *text = std::string(cluster + i, 'r');
         vector->assign(i, cluster + 0.5);
         n.Fill();
      }
      n.fWriter->CommitCluster();
   }
}

/// Several ntuples beside a tree and a histogram, in the top directory and below, and two cycles of one name.
inline void structure_several(Text path, int compression)
{
   std::unique_ptr<TFile> file(TFile::Open(path.c_str(), "RECREATE"));
   auto write = [&](TDirectory &directory, Text name, int start) {
      Ntuple n(compression);
      auto value = n.Add<std::int32_t>("i");
      n.Append(directory, name);
      for (int i = 0; i < 3; ++i) {
         *value = start + i;
         n.Fill();
      }
   };
   write(*file, "first", 10);
   TH1F histogram("histogram", "a histogram", 10, 0, 1);
   histogram.Fill(0.5);
   histogram.Write();
   auto *directory = file->mkdir("dir");
   write(*directory, "first", 20);
   write(*directory->mkdir("sub"), "deep", 30);
   file->cd();
   auto *tree = new TTree("tree", "a tree");
   int leaf = 0;
   tree->Branch("leaf", &leaf);
   for (leaf = 0; leaf < 5; ++leaf)
      tree->Fill();
   tree->Write();
   write(*file, "second", 40);
   write(*file, "first", 50); // cycle 2
   file->Write();
}

/// Names and descriptions beyond ASCII, the legal colon, and a description of the ntuple.
inline void structure_names(Text path, int compression)
{
   Ntuple n(compression);
   n.fModel->SetDescription("Gr\xC3\xBC\xC3\x9F\x65, \"quoted\"");
   auto colon = n.Add<std::int32_t>("METAux:");
   auto dyn = n.Add<std::int32_t>("AnalysisJetsAuxDyn:pt");
   auto umlaut = MakeField<std::int32_t>("gr\xC3\xB6\xC3\x9F\x65_\xE4\xB8\xAD");
   umlaut->SetDescription("two\nlines");
   auto other = n.Add<std::int32_t>(std::move(umlaut));
   auto odd = n.Add<std::int32_t>("a[0]{b}*?-+,;'\"");
   n.Open(path);
   *colon = 1, *dyn = 2, *other = 3, *odd = 4;
   n.Fill();
}

inline void structure_attributes(Text path, int compression)
{
   std::unique_ptr<TFile> file(TFile::Open(path.c_str(), "RECREATE"));
   Ntuple n(compression);
   auto value = n.Add<std::int32_t>("Int32");
   auto attributes = RNTupleModel::Create();
   auto attribute = attributes->MakeField<std::int32_t>("attrInt32");
   n.Append(*file);
   auto set = n.fWriter->CreateAttributeSet(std::move(attributes), "Attributes");
   auto range = set->BeginRange();
   *value = 1, *attribute = 3;
   n.Fill();
   set->CommitRange(std::move(range));
}

/// Two sets; ranges that follow one another, overlap, nest and are empty; strings and vectors as attributes.
inline void structure_attribute_sets(Text path, int compression)
{
   std::unique_ptr<TFile> file(TFile::Open(path.c_str(), "RECREATE"));
   Ntuple n(compression);
   auto value = n.Add<std::int32_t>("i");
   auto runs = RNTupleModel::Create();
   auto run = runs->MakeField<std::uint32_t>("run");
   auto label = runs->MakeField<std::string>("label");
   auto weights = RNTupleModel::Create();
   auto weight = weights->MakeField<std::vector<float>>("weights");
   n.Append(*file);
   auto runSet = n.fWriter->CreateAttributeSet(std::move(runs), "Runs");
   auto weightSet = n.fWriter->CreateAttributeSet(std::move(weights), "Weights");
   auto whole = weightSet->BeginRange();
   for (int i = 0; i < 3; ++i) {
      auto range = runSet->BeginRange();
      for (int j = 0; j < 2 * i; ++j) {
         *value = 10 * i + j;
         n.Fill();
      }
      n.fWriter->CommitCluster();
      *run = 100 + i, *label = "run " + std::to_string(i);
      runSet->CommitRange(std::move(range));
   }
   *weight = {0.5f, 1.5f};
   weightSet->CommitRange(std::move(whole));
}

/// An unknown feature flag, 137: no reader may open it. ROOT has no public way to write one.
inline void structure_feature_flag(Text path, int compression)
{
   ROOT::Internal::RNTupleDescriptorBuilder builder;
   builder.SetVersionForWriting();
   builder.SetNTuple("ntpl", "");
   builder.SetFeature(ROOT::RNTupleDescriptor::kFeatureFlagTest);
   builder.AddField(
      ROOT::Internal::RFieldDescriptorBuilder::FromField(ROOT::RFieldZero()).FieldId(0).MakeDescriptor().Unwrap());
   ROOT::RNTupleWriteOptions options;
   options.SetCompression(compression);
   using Writer = ROOT::Internal::RNTupleFileWriter;
   using ROOT::Internal::RNTupleSerializer;
   auto writer = Writer::Recreate("ntpl", path, Writer::EContainerFormat::kTFile, options);
   const auto &desc = builder.GetDescriptor();
   auto context = RNTupleSerializer::SerializeHeader(nullptr, desc).Unwrap();
   std::vector<unsigned char> header(context.GetHeaderSize());
   context = RNTupleSerializer::SerializeHeader(header.data(), desc).Unwrap();
   writer->WriteNTupleHeader(header.data(), header.size(), header.size());
   std::vector<unsigned char> footer(RNTupleSerializer::SerializeFooter(nullptr, desc, context).Unwrap());
   RNTupleSerializer::SerializeFooter(footer.data(), desc, context).Unwrap();
   writer->WriteNTupleFooter(footer.data(), footer.size(), footer.size());
   writer->Commit();
}

// ---- compression -------------------------------------------------------------------------------------------------

/// Columns that compress well and badly, over several pages.
inline void compression_algorithms(Text path, int compression)
{
   Ntuple n(compression);
   n.fOptions.SetMaxUnzippedPageSize(4096);
   auto number = n.Add<std::int64_t>("Int64");
   auto noise = n.Add<std::uint32_t>("noise");
   auto text = n.Add<std::string>("text");
   n.Open(path);
   for (std::uint32_t i = 0; i < 2000; ++i) {
      *number = i;
      *noise = i * 2654435761u;
      *text = "The quick brown fox number " + std::to_string(i % 10);
      n.Fill();
   }
}

inline void compression_block_short(Text path, int compression)
{
   Ntuple n(compression);
   auto number = n.Add<std::int64_t>("Int64", {{Type::kSplitInt64}});
   n.Open(path);
   for (int i = 0; i < 2; ++i) {
      *number = i;
      n.Fill();
   }
}

/// 40 MiB in one page: three compression blocks of at most 16 MiB.
inline void compression_block_big(Text path, int compression)
{
   Ntuple n(compression);
   n.fOptions.SetMaxUnzippedPageSize(128 * 1024 * 1024);
   auto number = n.Add<std::int64_t>("Int64", {{Type::kSplitInt64}});
   n.Open(path);
   for (std::int64_t i = 0; i < 40 * 1024 * 1024 / 8; ++i) {
      *number = i;
      n.Fill();
   }
}

} // namespace cases
