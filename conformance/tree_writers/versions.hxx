// A class in two versions: CLASS_VERSION says which one a library has.
#ifndef TUPELO_VERSIONS_HXX
#define TUPELO_VERSIONS_HXX

#include <string>
#include <vector>

#include <TBuffer.h>
#include <TFile.h>
#include <TObject.h>
#include <TTree.h>
#include <TVirtualStreamerInfo.h>

struct Base {
#if CLASS_VERSION == 1
   short kept = 0;
#else
   int kept = 0;
   float fresh = 7;
#endif
   virtual ~Base() = default;
   ClassDef(Base, CLASS_VERSION)
};

struct Evolving : public Base {
#if CLASS_VERSION == 1
   int a = 0;
   float b = 0;
   std::vector<short> list;
   double dropped = 3;
   bool flag = false;
   int sizes[2] = {};
#else
   double b = 0;
   std::string added = "text";
   std::vector<short> list;
   Long64_t a = 0;
   int flag = 0;
   int sizes[2] = {};
#endif
   ClassDef(Evolving, CLASS_VERSION)
};

// Its custom streamer writes no head.
struct Headless : public TObject {
   int x = 0;
   ClassDef(Headless, 1)
};

// Its custom streamer also writes what is not a member.
struct Custom : public TObject {
   int x = 0;
   ClassDef(Custom, 1)
};

struct Holder {
   Evolving one;
   std::vector<Evolving> many;
   Headless headless;
   Custom custom;
   int after = 0;
   ClassDefNV(Holder, 1)
};

inline void fill(Evolving &object, int i) {
   object.kept = 10 + i;
   object.a = -i;
   object.b = i / 2.0f;
   object.flag = i % 2;
   object.sizes[0] = i;
   object.sizes[1] = 2 * i;
   object.list.assign(i % 3, i);
}

inline void write_versions(const char *path, bool is_member_wise) {
   TVirtualStreamerInfo::SetStreamMemberWise(is_member_wise);
   TFile file(path, "UPDATE");
   TTree tree(CLASS_VERSION == 1 ? "old" : "new", "objects of one version");
   Holder holder;
   Evolving one;
   tree.Branch("one", &one, 32000, 0);
   tree.Branch("many", &holder.many, 32000, 0);
   tree.Branch("split.", &holder, 32000, 1);
   for (int i = 0; i < 6; ++i) {
      fill(one, i);
      fill(holder.one, i + 100);
      holder.many.resize(i % 3);
      for (int k = 0; k < i % 3; ++k)
         fill(holder.many[k], 10 * i + k);
      holder.headless.x = holder.custom.x = 70000 + i;
      holder.after = i;
      tree.Fill();
   }
   tree.Write();
}

#endif
