// Streamer fields of ROOT's classes and of those of classes.hxx; test_objects.py states the values.
#pragma once
#include "cases.hxx"
#include "classes.hxx"

#include <ROOT/RField/RFieldSequenceContainer.hxx>
#include <TF1.h>
#include <TH1.h>
#include <TH2.h>
#include <TList.h>
#include <TObjString.h>
#include <TProfile.h>

namespace objects {

/// An ntuple of streamer fields.
struct Streams {
   std::unique_ptr<ROOT::RNTupleModel> fModel = ROOT::RNTupleModel::Create();

   template <typename T>
   std::shared_ptr<T> Add(std::unique_ptr<ROOT::RFieldBase> field)
   {
      const std::string name = field->GetFieldName();
      fModel->AddField(std::move(field));
      return fModel->GetDefaultEntry().GetPtr<T>(name);
   }
   template <typename T>
   std::shared_ptr<T> Add(const char *name, const char *type)
   {
      return Add<T>(std::make_unique<ROOT::RStreamerField>(name, type));
   }
};

inline void Fill(TH1 &histogram, int entry)
{
   for (int i = 0; i < 10 * entry; ++i)
      histogram.Fill(0.25 * i - 1);
}

/// Three entries; the first one has everything empty.
inline void Write(const char *path, int compression)
{
   TH1::AddDirectory(false);
   Streams n;
   auto text = n.Add<TString>("text", "TString");
   auto object = n.Add<TObjString>("object", "TObjString");
   auto array = n.Add<TObjArray>("array", "TObjArray");
   auto list = n.Add<TList>("list", "TList");
   auto numbers = n.Add<std::list<std::int32_t>>("numbers", "std::list<int>");
   auto words = n.Add<std::list<std::string>>("words", "std::list<std::string>");
   auto map = n.Add<std::map<std::string, std::vector<std::int32_t>>>("map", "std::map<std::string,std::vector<int>>");
   auto h1 = n.Add<TH1D>("h1", "TH1D");
   auto weighted = n.Add<TH1F>("weighted", "TH1F");
   auto variable = n.Add<TH1I>("variable", "TH1I");
   auto labelled = n.Add<TH1S>("labelled", "TH1S");
   auto fitted = n.Add<TH1C>("fitted", "TH1C");
   auto h2 = n.Add<TH2F>("h2", "TH2F");
   auto profile = n.Add<TProfile>("profile", "TProfile");
   auto variety = n.Add<Variety>("variety", "Variety");
   auto secret = n.Add<Secret>("secret", "Secret");
   auto secrets = n.Add<TObjArray>("secrets", "TObjArray");
   auto nested = n.Add<std::vector<std::vector<Streamed>>>(cases::MakeField<std::vector<std::vector<Streamed>>>("nested"));
   auto holder = n.Add<HoldsStreamed>(cases::MakeField<HoldsStreamed>("holder"));
   ROOT::RNTupleWriteOptions options;
   options.SetCompression(compression);
   auto file = std::unique_ptr<TFile>(TFile::Open(path, "RECREATE", "", compression));
   auto writer = ROOT::RNTupleWriter::Append(std::move(n.fModel), "Events", *file, options);

   // Made by the dictionary: what the interpreter makes cannot be streamed.
   auto hidden = static_cast<Secret *>(TClass::GetClass("Secret")->New());
   hidden->fValue = 42;
   TObjString shared("shared");
   Item pointed;
   float counted[3] = {1.5f, 2.5f, 3.5f};
   double ranges[3] = {0, 50, 100};
   for (int entry = 0; entry < 3; ++entry) {
      *text = std::string(entry * 150, 'x').c_str();
      object->SetString(TString("entry ") + std::to_string(entry).c_str());
      array->SetOwner(false), array->Clear(), list->Clear();
      for (int i = 0; i < entry; ++i) {
         array->Add(new TObjString(std::to_string(i).c_str()));
         list->Add(new TNamed(std::to_string(i).c_str(), "a title"), "option");
      }
      if (entry == 2)
         array->Add(array->At(0)), array->Add(nullptr), array->Add(new TH1D("inside", "", 2, 0, 1));
      numbers->assign(entry, -7), words->assign(entry, "word");
      map->clear();
      for (int i = 0; i < entry; ++i)
         (*map)[std::to_string(i)] = std::vector<std::int32_t>(i + 1, i);

      h1->Reset(), h1->SetNameTitle("h1", "A histogram"), h1->SetBins(10, -1, 4), Fill(*h1, entry);
      weighted->Reset(), weighted->SetBins(4, 0, 4), weighted->Sumw2();
      for (int i = 0; i < entry; ++i)
         weighted->Fill(i + 0.5, 2.5), weighted->Fill(i + 0.5, 0.5);
      double edges[4] = {0, 1, 10, 100};
      variable->Reset(), variable->SetBins(3, edges), Fill(*variable, entry);
      labelled->Reset(), labelled->SetBins(3, 0, 3);
      labelled->GetXaxis()->SetBinLabel(1, "one"), labelled->GetXaxis()->SetBinLabel(3, "three");
      Fill(*labelled, entry);
      fitted->Reset(), fitted->SetBins(8, 0, 8), Fill(*fitted, entry);
      if (entry == 2)
         fitted->GetListOfFunctions()->Add(new TF1("line", "[0]+[1]*x", 0, 8));
      h2->Reset(), h2->SetBins(2, 0, 2, 3, 0, 3);
      for (int i = 0; i < entry; ++i)
         h2->Fill(i + 0.5, 2.5, 4), h2->Fill(-1, 7), h2->Fill(1.5, 0.5);
      profile->Reset(), profile->SetBins(3, 0, 3);
      for (int i = 0; i < 2 * entry; ++i)
         profile->Fill(0.5, i), profile->Fill(1.5, 10. + i, 2.);

      if (entry > 0) {
         auto &v = *variety;
         v.SetNameTitle("variety", "title");
         v.fFlag = true, v.fLetters[0] = 'a', v.fLong = -1, v.fUnsigned = ~0ull, v.fHue = kCold;
         v.fReal = 0.1, v.fRange = 50, v.fShort = 1.5, v.fReals[1] = 2.5, v.fHalf = 1.5;
         for (int i = 0; i < 6; ++i)
            v.fMatrix[i / 3][i % 3] = i + 1;
         v.fCount = 3, v.fCounted = counted, v.fRanges = ranges, v.fCharacters = "characters";
         v.fString = "string", v.fStrings[1] = "second", v.fText = "text", v.fTexts[0] = "first";
         v.fShorts = {1, -2}, v.fFlags = {true, false, true}, v.fWords = {"a", "", std::string(300, 'w')};
         v.fRootWords = {"r"}, v.fVectorReals = {0.5, 1.5}, v.fHues = {kCold, kWarm}, v.fNested = {{}, {1.5, 2.5}};
         v.fItem.fNumber = 1, v.fItem.fText = "item", v.fItem.fValues = {1.5f};
         v.fItems.assign(2, v.fItem), v.fItems[1].fNumber = 2, v.fItems[1].fValues.clear();
         Derived derived;
         derived.fNumber = 3, derived.fText = "derived", derived.fMore = 4.5;
         v.fDerived.assign(2, derived), v.fDerived[1].fMore = 5.5;
         v.fItemList.assign(1, v.fItem), v.fEmpties.resize(3);
         v.fMap = {{1, 1.5f}, {2, 2.5f}}, v.fVectorMap = {{"a", {1, 2}}, {"b", {}}}, v.fItemMap = {{"k", v.fItem}};
         v.fSet = {"x", "y"}, v.fPairs = {{1, "p"}, {2, "q"}}, v.fPair = {3, 3.5f}, v.fBitset = std::bitset<10>(5);
         pointed.fNumber = 9;
         v.fPointers = {&shared, nullptr, &shared}, v.fItemArray[1] = v.fItem, v.fItemPointer = &pointed;
         v.fShared = &shared, v.fSelf = &v;
         v.fObjects.Clear(), v.fObjects.Add(&shared), v.fDate.Set(2020, 1, 2, 3, 4, 5);
         v.fArray.Set(2), v.fArray[1] = 8;
      }
      secret->fValue = entry;
      secrets->Clear(), secrets->Add(hidden), secrets->Add(&shared);
      nested->assign(entry, {});
      for (int i = 0; i < entry; ++i) {
         (*nested)[i].resize(i);
         for (auto &streamed : (*nested)[i])
            streamed.fNumber = 10 * entry + i, streamed.fText = "s", streamed.fList.assign(i, 7);
      }
      holder->fBefore = entry, holder->fStreamed.fLefts.assign(entry, Left{entry}), holder->fAfter = -entry;
      writer->Fill();
   }
   writer.reset();
   file->Write();
}

} // namespace objects
