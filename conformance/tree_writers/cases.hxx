// One function for each file.
#include "fill.hxx"

namespace fill {
inline void containers(const std::string &path, bool memberWise) {
   TVirtualStreamerInfo::SetStreamMemberWise(memberWise);
   Book book(path);
   branch<std::string>(book, "string", 99);
   branch<std::vector<float>>(book, "vector_float", 99);
   branch<std::vector<bool>>(book, "vector_bool", 99);
   branch<std::vector<std::string>>(book, "vector_string", 99);
   branch<std::vector<std::vector<float>>>(book, "vector_vector_float", 99);
   branch<std::vector<std::vector<std::vector<float>>>>(book, "vector_vector_vector_float", 99);
   branch<std::vector<std::vector<std::string>>>(book, "vector_vector_string", 99);
   branch<std::list<std::int32_t>>(book, "list_int", 99);
   branch<std::deque<double>>(book, "deque_double", 99);
   branch<std::set<std::int32_t>>(book, "set_int", 99);
   branch<std::set<std::string>>(book, "set_string", 99);
   branch<std::multiset<float>>(book, "multiset_float", 99);
   branch<std::unordered_set<std::int32_t>>(book, "unordered_set_int", 99);
   branch<std::bitset<11>>(book, "bitset", 99);
   splits<std::map<std::int32_t, float>>(book, "map_int_float");
   splits<std::map<std::string, std::int32_t>>(book, "map_string_int");
   splits<std::map<std::string, std::vector<float>>>(book, "map_string_vector");
   splits<std::map<std::int32_t, Point>>(book, "map_int_point");
   splits<std::map<std::string, std::vector<Point>>>(book, "map_string_vector_point");
   splits<std::multimap<std::int32_t, std::string>>(book, "multimap");
   splits<std::unordered_map<std::int32_t, double>>(book, "unordered_map");
   splits<std::pair<std::int32_t, std::string>>(book, "pair");
   splits<std::vector<std::pair<std::int32_t, float>>>(book, "vector_pair");
   splits<std::vector<Point>>(book, "vector_point");
   splits<std::vector<Plain>>(book, "vector_plain");
   splits<std::vector<Line>>(book, "vector_line");
   splits<std::vector<Derived>>(book, "vector_derived");
   splits<std::vector<Hit>>(book, "vector_hit");
   splits<std::vector<Members>>(book, "vector_members");
   splits<std::vector<std::vector<Point>>>(book, "vector_vector_point");
   splits<std::list<Point>>(book, "list_point");
   splits<std::deque<Point>>(book, "deque_point");
   splits<Point>(book, "point");
   splits<Plain>(book, "plain");
   splits<Line>(book, "line");
   splits<Derived>(book, "derived");
   splits<Hit>(book, "hit");
   splits<Members>(book, "members");
   splits<Arrays>(book, "arrays");
   branch<TString>(book, "tstring", 99);
   branch<std::unordered_multiset<std::int32_t>>(book, "unordered_multiset", 99);
   branch<std::list<std::string>>(book, "list_string", 99);
   branch<std::vector<std::vector<bool>>>(book, "vector_vector_bool", 99);
   branch<std::vector<std::uint64_t>>(book, "vector_uint64", 99);
   branch<std::vector<TString>>(book, "vector_tstring", 99);
   branch<std::vector<std::list<std::string>>>(book, "vector_list_string", 99);
   branch<std::vector<std::vector<std::vector<Point>>>>(book, "vector_vector_vector_point", 99);
   branch<std::vector<Colour>>(book, "vector_enum", 99);
   splits<std::unordered_multimap<std::int32_t, float>>(book, "unordered_multimap");
   splits<std::vector<std::map<std::int32_t, float>>>(book, "vector_map");
   splits<std::map<std::string, std::map<std::string, std::int32_t>>>(book, "map_map");
   splits<std::pair<std::int32_t, std::vector<float>>>(book, "pair_vector");
   splits<std::vector<std::pair<std::string, double>>>(book, "vector_pair_string");
   splits<Scalars>(book, "scalars");
   splits<std::vector<Scalars>>(book, "vector_scalars");
   splits<Holder>(book, "holder");
   splits<std::vector<Holder>>(book, "vector_holder");
   splits<TVector3>(book, "vector3");
   splits<TLorentzVector>(book, "lorentz");
   splits<std::vector<TLorentzVector>>(book, "vector_lorentz");
   splits<Loops>(book, "loops");
   book.close();
   TVirtualStreamerInfo::SetStreamMemberWise(true);
}

inline void leaves(const std::string &path, int compression, bool generated, Long64_t autoFlush, bool embedded = false) {
   Book book(path, compression);
   TTree tree("t", "leaves");
   ROOT::TIOFeatures features;
   if (generated) { features.Set(ROOT::Experimental::EIOFeatures::kGenerateOffsetMap); tree.SetIOFeatures(features); }
   tree.SetAutoFlush(autoFlush);
   struct { Long64_t l; Double_t d; Int_t i; UInt_t u; Float_t f; Short_t s; UShort_t us; Char_t b; UChar_t ub; Bool_t o; } many{};
   tree.Branch("many", &many, "l/L:d/D:i/I:u/i:f/F:s/S:us/s:b/B:ub/b:o/O");
   Int_t n = 0, fixed[2][3] = {}, counted[10] = {};
   Float_t rows[10][2] = {};
   Double_t second[10] = {};
   Bool_t bits[5] = {};
   char text[400] = {};
   Double32_t range = 0, half = 0;
   Float16_t f16 = 0;
   ULong64_t big = 0;
   Long_t lg = 0;
   tree.Branch("n", &n, "n/I");
   tree.Branch("fixed", fixed, "fixed[2][3]/I");
   tree.Branch("counted", counted, "counted[n]/I", 200);
   tree.Branch("rows", rows, "rows[n][2]/F");
   tree.Branch("second", second, "second[n]/D");
   tree.Branch("bits", bits, "bits[5]/O");
   tree.Branch("text", text, "text/C");
   tree.Branch("range", &range, "range/d[0,1,10]");
   tree.Branch("half", &half, "half/d[0,0,10]");
   tree.Branch("f16", &f16, "f16/f");
   tree.Branch("big", &big, "big/l");
   tree.Branch("lg", &lg, "lg/G");
   struct { Int_t n; Float_t a[10]; } both{};
   struct { Int_t a[4]; Double_t d; } array{};
   struct { Int_t n; char c[20]; } words{};
   tree.Branch("both", &both, "n/I:a[n]/F");
   tree.Branch("array", &array, "a[2][2]/I:d/D");
   tree.Branch("words", &words, "n/I:c/C");
   std::map<std::string, std::vector<std::string>> all;
   const int entries = 200;
   for (int i = 0; i < entries; ++i) {
      many = {-i * 10000000000ll, i / 3.0, -i, 4000000000u + i, i / 4.f, Short_t(-i), UShort_t(65000 + i), Char_t(-(i % 100)), UChar_t(i), i % 2 == 1};
      n = i % 11;
      for (int k = 0; k < 6; ++k) fixed[k / 3][k % 3] = i + k;
      for (int k = 0; k < n; ++k) { counted[k] = i * k; rows[k][0] = k; rows[k][1] = i; second[k] = k / 7.0; }
      if (n > 10) n = 10;
      for (int k = 0; k < 5; ++k) bits[k] = (i >> k) & 1;
      std::string word;
      set(i, word);
      snprintf(text, 400, "%s", word.c_str());
      range = (i % 5) / 1.0 * 0.25; half = i; f16 = i; big = 18000000000000000000ull + i; lg = -i;
      both.n = n;
      for (int k = 0; k < n; ++k) both.a[k] = i + k / 2.f;
      for (int k = 0; k < 4; ++k) array.a[k] = i - k;
      array.d = i / 5.0;
      words.n = i;
      snprintf(words.c, 20, "%s", std::string(i % 3, 'w').c_str());
      tree.Fill();
      all["both"].push_back("{\"n\":" + json(n) + ",\"a\":" + list(both.a, both.a + n) + "}");
      all["array"].push_back("{\"a\":[" + list(array.a, array.a + 2) + "," + list(array.a + 2, array.a + 4) + "],\"d\":" + json(array.d) + "}");
      all["words"].push_back(record("n", i, "c", words.c));
      all["many"].push_back(joined(joined(record("l", many.l, "d", many.d, "i", many.i, "u", many.u, "f", many.f), record("s", many.s, "us", many.us)), record("b", int(many.b), "ub", int(many.ub), "o", many.o)));
      all["n"].push_back(json(n));
      all["fixed"].push_back("[" + list(fixed[0], fixed[0] + 3) + "," + list(fixed[1], fixed[1] + 3) + "]");
      all["counted"].push_back(list(counted, counted + n));
      std::vector<std::vector<float>> r;
      for (int k = 0; k < n; ++k) r.push_back({rows[k][0], rows[k][1]});
      all["rows"].push_back(json(r));
      all["second"].push_back(list(second, second + n));
      all["bits"].push_back(list(bits, bits + 5));
      all["text"].push_back(json(text));
      all["f16"].push_back(json(f16));
      all["big"].push_back(json(big));
      all["lg"].push_back(json(lg));
   }
   // ROOT itself says what the packed numbers are.
   if (embedded) book.fFile->WriteTObject(&tree); else tree.Write();
   for (int i = 0; i < entries; ++i) { tree.GetEntry(i); all["range"].push_back(json(range)); all["half"].push_back(json(half)); }
   for (auto &item : all) book.expect("t", item.first, item.second);
   book.close();
}

// A class with packed numbers, as ROOT reads them.
inline void packed(const std::string &path) {
   Book book(path);
   for (int split : {0, 99}) {
      std::string name = "packed_" + std::to_string(split);
      TTree tree(name.c_str(), "");
      Packed value;
      Packed *pointer = &value;
      tree.Branch("x", &pointer, 32000, split);
      for (int i = 0; i < kEntries; ++i) {
         value.fPlain = i / 3.0; value.fRange = i / 10.0; value.fBits = i / 3.0; value.fHalf = i / 3.f; value.fHalfRange = i / 9.f;
         for (int k = 0; k < 3; ++k) value.fMany[k] = i + k / 3.0;
         set(i, value.fVector);
         tree.Fill();
      }
      tree.Write();
      std::vector<std::string> values;
      for (int i = 0; i < kEntries; ++i) {
         tree.GetEntry(i);
         values.push_back(joined(record("fPlain", value.fPlain, "fRange", value.fRange, "fBits", value.fBits, "fHalf", value.fHalf, "fHalfRange", value.fHalfRange),
                                 "{\"fMany\":" + list(value.fMany, value.fMany + 3) + "," + record("fVector", value.fVector).substr(1)));
      }
      book.expect(name, "x", values);
   }
   book.close();
}

// Collections of ROOT, references and pointers.
inline void objects(Book &book, int split) {
   book.fFile->cd();
   TTree clones("clones", ""), old("old", ""), pointers("pointers", ""), owner("owner", "");
   TClonesArray hits("Hit"), *hitsPointer = &hits;
   clones.Branch("x", &hitsPointer, 32000, split);
   OldObject object, *objectPointer = &object;
   old.BranchOld("x", "OldObject", &objectPointer, 32000, split ? 1 : 0);
   Pointers value, *valuePointer = &value;
   pointers.Branch("x", &valuePointer, 32000, split);
   Owner own, *ownPointer = &own;
   owner.Branch("x", &ownPointer, 32000, split);
   std::vector<std::string> all, olds, afters;
   Point point;
   Hit hit;
   TObjString word("word");
   for (int i = 0; i < kEntries; ++i) {
      hits.Clear("C");
      own.fHits.Clear("C"); own.fObjects.Clear(); own.fList.Clear(); own.fRefs.Clear();
      std::string items;
      for (int n = 0; n < i % 4; ++n) {
         for (TClonesArray *array : {&hits, &own.fHits}) set(i + n, *static_cast<Hit *>(array->ConstructedAt(n)));
         items += (n ? "," : "") + json(*static_cast<Hit *>(hits.At(n)));
         own.fObjects.Add(&word);
         own.fList.Add(own.fHits.At(n));
      }
      all.push_back("[" + items + "]");
      clones.Fill();
      object.fA = i; object.fB[0] = i; object.fB[1] = 2 * i; object.fT = std::to_string(i).c_str();
      old.Fill();
      // The old form has no branches for texts.
      olds.push_back(joined(split ? record("fA", i) : record("fA", i, "fT", std::to_string(i)), "{\"fB\":" + list(object.fB, object.fB + 2) + "}"));
      set(i, point); set(i, hit);
      value.fPoint = i % 2 ? &point : nullptr; value.fHit = &hit; value.fAny = i % 3 ? static_cast<TObject *>(&word) : &hit;
      value.fUnique.reset(i % 2 ? new Point(point) : nullptr);
      value.fVector.assign(i % 3, &point);
      value.fAfter = own.fAfter = i;
      pointers.Fill();
      own.fRef = i % 2 ? &hit : nullptr;
      owner.Fill();
      afters.push_back(json(i));
   }
   value.fPoint = nullptr; value.fHit = nullptr; value.fAny = nullptr; value.fVector.clear();
   book.fFile->Write();
   book.expect("clones", "x", all);
   book.expect("old", "x", olds);
   if (split) { book.expect("pointers", "x.fAfter", afters); book.expect("owner", "x.fAfter", afters); }
   for (TTree *tree : {&clones, &old, &pointers, &owner}) { tree->SetDirectory(nullptr); tree->ResetBranchAddresses(); }
}

// Items of a collection of which every second one is referred to.
inline void linked(const std::string &path) {
   Book book(path);
   for (int split : {0, 1, 99}) {
      const std::string name = "linked_" + std::to_string(split), one = "one_" + std::to_string(split);
      TTree tree(name.c_str(), ""), single(one.c_str(), "");
      TClonesArray items("Linked"), *itemsPointer = &items;
      tree.Branch("x", &itemsPointer, 32000, split);
      Linked item, *itemPointer = &item;
      single.Branch("x", &itemPointer, 32000, split);
      std::vector<std::string> all, ones;
      for (int i = 0; i < kEntries; ++i) {
         items.Clear("C");
         for (int n = 0; n < i % 4; ++n) {
            auto &linked = *static_cast<Linked *>(items.ConstructedAt(n));
            linked.SetUniqueID(0); linked.ResetBit(kIsReferenced);
            set(i + n, linked, n % 2 ? items.At(n - 1) : nullptr);
         }
         std::string list;
         for (int n = 0; n < i % 4; ++n) list += (n ? "," : "") + json(*static_cast<Linked *>(items.At(n)));
         all.push_back("[" + list + "]");
         set(i, item, i > 3 ? &item : nullptr);
         ones.push_back(json(item));
         if (i == 4) { tree.FlushBaskets(); single.FlushBaskets(); }
         tree.Fill(); single.Fill();
      }
      tree.Write(); single.Write();
      book.expect(name, "x", all);
      book.expect(one, "x", ones);
      tree.SetDirectory(nullptr); single.SetDirectory(nullptr); tree.ResetBranchAddresses(); single.ResetBranchAddresses();
   }
   for (int split : {0, 1, 99}) {
      branch<Boxes>(book, "boxes_" + std::to_string(split), split);
      branch<std::vector<Boxes>>(book, "vector_boxes_" + std::to_string(split), split);
   }
   book.close();
}

inline void objects(const std::string &path, int split) {
   Book book(path);
   objects(book, split);
   book.close();
}

// What bad_trees/objects.root is: uncompressed, so that damages reach the records.
inline void sample(const std::string &path) {
   Book book(path, 0);
   objects(book, 99);
   branch<TVector3>(book, "vector3", 99);
   book.close();
}

// What trees may be besides their branches.
inline void structure(const std::string &path) {
   Book book(path);
   auto numbers = [&](TTree &tree, const std::string &at, int from, int to, bool first = true) {
      static Int_t v;
      if (first) tree.Branch("v", &v, "v/I"); else tree.SetBranchAddress("v", &v);
      for (v = from; v < to; ++v) tree.Fill();
      std::vector<std::string> values;
      for (int i = 0; i < to; ++i) values.push_back(json(i));
      if (!at.empty()) book.expect(at, "v", values);
   };
   auto done = [](TTree &tree) { tree.Write("", TObject::kOverwrite); };
   { TTree tree("empty", ""); numbers(tree, "empty", 0, 0); done(tree); }
   { TTree tree("no_branches", ""); done(tree); }
   { TTree tree("only_entries", ""); tree.SetEntries(5); done(tree); }
   { TTree tree("embedded", ""); numbers(tree, "embedded", 0, 100); book.fFile->WriteTObject(&tree); }
   { TTree tree("flush_none", ""); tree.SetAutoFlush(0); numbers(tree, "flush_none", 0, 20000); done(tree); }
   { TTree tree("flush_bytes", ""); tree.SetAutoFlush(-5000); numbers(tree, "flush_bytes", 0, 20000); done(tree); }
   { TTree tree("flush_entries", ""); tree.SetAutoFlush(333); numbers(tree, "flush_entries", 0, 2000); done(tree); }
   { TTree tree("ranges", ""); tree.SetAutoFlush(100); numbers(tree, "", 0, 450); tree.SetAutoFlush(70); numbers(tree, "ranges", 450, 1000, false); done(tree); }
   { TTree tree("small_baskets", ""); numbers(tree, "", 0, 10); tree.SetBasketSize("*", 128); numbers(tree, "", 10, 5000, false); tree.OptimizeBaskets(100000); numbers(tree, "small_baskets", 5000, 9000, false); done(tree); }
   {
      TTree tree("late", "");
      numbers(tree, "late", 0, 30);
      Float_t w = 1.5;
      auto *branch = tree.Branch("w", &w, "w/F");
      std::vector<std::string> values;
      for (int i = 0; i < 30; ++i) { w = i / 2.f; branch->Fill(); values.push_back(json(w)); }
      book.expect("late", "w", values);
      done(tree);
   }
   {
      TTree tree("backfilled", "");
      Int_t v = 0; Float_t w = 1.5;
      tree.Branch("v", &v, "v/I");
      for (; v < 30; ++v) tree.Fill();
      auto *branch = tree.Branch("w", &w, "w/F");
      for (int i = 0; i < 30; ++i) branch->BackFill();
      std::vector<std::string> values(30, json(w)), counts;
      for (; v < 40; ++v) { w = v; tree.Fill(); values.push_back(json(w)); }
      for (int i = 0; i < 40; ++i) counts.push_back(json(i));
      book.expect("backfilled", "v", counts); book.expect("backfilled", "w", values);
      done(tree);
   }
   {
      TTree tree("unfilled", "");
      Int_t never = 0;
      numbers(tree, "unfilled", 0, 20);
      tree.Branch("never", &never, "never/I");
      done(tree);
   }
   {
      TTree tree("extras", "");
      numbers(tree, "extras", 0, 10);
      tree.SetAlias("double", "v*2");
      tree.BuildIndex("v");
      tree.GetUserInfo()->Add(new TNamed("key", "value"));
      tree.AddFriend("embedded");
      done(tree);
   }
   { TNtuple tree("ntuple", "", "a:b"); std::vector<std::string> a; for (int i = 0; i < 9; ++i) { tree.Fill(i, -i / 2.f); a.push_back(json(-i / 2.f)); } book.expect("ntuple", "b", a); done(tree); }
   { TNtupleD tree("ntupled", "", "a:b"); std::vector<std::string> a; for (int i = 0; i < 9; ++i) { tree.Fill(i, -i / 3.); a.push_back(json(-i / 3.)); } book.expect("ntupled", "b", a); done(tree); }
   {
      TTree tree("dotted", "");
      Line line, *pointer = &line;
      tree.Branch("x.", "Line", &pointer, 32000, 99);
      std::vector<std::string> values;
      for (int i = 0; i < kEntries; ++i) { set(i, line); tree.Fill(); values.push_back(json(line)); }
      done(tree);
      book.expect("dotted", "x", values);
   }
   { book.fFile->mkdir("one/two")->cd(); TTree tree("deep", ""); numbers(tree, "one/two/deep", 0, 10); done(tree); book.fFile->cd(); }
   { TTree tree("cycles", ""); numbers(tree, "", 0, 10); tree.Write(); numbers(tree, "cycles", 10, 20, false); tree.Write(); }
   book.close();
}

// A file that nobody closed.
inline void recovered(const std::string &path) {
   Book book(path);
   TTree tree("t", "");
   Int_t v = 0;
   tree.Branch("v", &v, "v/I");
   std::vector<std::string> values;
   for (; v < 5000; ++v) { tree.Fill(); if (v == 3999) tree.AutoSave("FlushBaskets;SaveSelf"); if (v < 4000) values.push_back(json(v)); }
   book.expect("t", "v", values);
   std::ofstream(path + ".json") << book.fExpected;
   _exit(0);
}
} // namespace fill
