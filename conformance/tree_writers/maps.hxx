// Classes with maps and other containers of objects, for trees that are written again.

#pragma once

#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "TBranchElement.h"
#include "TBufferJSON.h"
#include "TFile.h"
#include "TLorentzVector.h"
#include "TString.h"
#include "TTree.h"

struct MapInner {
    int a = 1;
    float b = 2;
    bool operator<(const MapInner& other) const { return a < other.a; }
};
struct MapTexts {
    std::string s;
    TString t;
    std::vector<int> v;
    double d = 0;
    MapInner inner;
};
struct MapDerived : public MapInner {
    double own = 3;
};
struct MapVersioned {
    int x = 1;
    std::string name;
    virtual ~MapVersioned() {}
    ClassDef(MapVersioned, 3);
};
struct MapRootObject : public TObject {
    int y = 1;
    MapRootObject(int value = 0) : y(value) {}
    ClassDef(MapRootObject, 2);
};

struct MapHolder {
    std::map<int, MapInner> inner;
    std::map<int, MapTexts> texts;
    std::map<int, MapDerived> derived;
    std::map<int, MapVersioned> versioned;
    std::map<int, MapRootObject> objects;
    std::map<std::string, TLorentzVector> vectors;
    std::map<int, std::vector<MapInner>> lists;
    std::map<int, std::map<int, MapTexts>> maps;
    std::map<int, std::pair<int, MapTexts>> pairs;
    std::map<int, std::list<MapDerived>> chains;
    std::map<MapInner, int> keys;
    std::map<int, TString> names;
    std::multimap<int, MapTexts> multi;
    std::unordered_map<int, MapTexts> hashed;
    std::set<MapInner> set;
    std::list<MapTexts> list;
    std::vector<TString> strings;
    std::vector<std::map<int, MapTexts>> in_vectors;
    std::pair<int, MapTexts> pair;
    std::vector<MapTexts> vector;
    std::vector<std::vector<MapTexts>> nested;
    TString own;
};

inline MapTexts map_texts(int k) {
    MapTexts texts;
    texts.s = std::string(k % 3, 'x');
    texts.t = TString('t', k % 4);
    for (int i = 0; i < k % 4; ++i) texts.v.push_back(i * k);
    texts.d = k / 2.;
    texts.inner.a = k;
    texts.inner.b = -k;
    return texts;
}

inline void fill(MapHolder& h, int entry) {
    h = MapHolder();
    h.pair = {entry, map_texts(entry)};
    h.own = TString('o', entry);
    for (int k = 0; k < entry % 4; ++k) {
        int q = 10 * entry + k;
        MapInner inner;
        inner.a = q;
        inner.b = q / 4.;
        MapDerived derived;
        derived.a = q;
        derived.own = -q;
        MapVersioned versioned;
        versioned.x = q;
        versioned.name = std::string(k, 'n');
        h.inner[q] = inner;
        h.texts[q] = map_texts(q);
        h.derived[q] = derived;
        h.versioned[q] = versioned;
        h.objects.insert({q, MapRootObject(q)});
        h.vectors[std::string(k + 1, 'k')] = TLorentzVector(q, 1, 2, 3 * q);
        for (int j = 0; j < k; ++j) {
            h.lists[q].push_back(inner);
            h.maps[q][j] = map_texts(q + j);
            h.chains[q].push_back(derived);
        }
        h.pairs[q] = {k, map_texts(q)};
        h.keys[inner] = q;
        h.names[q] = TString('n', k);
        h.multi.insert({q / 2, map_texts(q)});
        h.hashed[q] = map_texts(q);
        h.set.insert(inner);
        h.list.push_back(map_texts(q));
        h.strings.push_back(TString('s', k));
        h.in_vectors.push_back({{q, map_texts(q)}, {q + 1, map_texts(q + 1)}});
        h.vector.push_back(map_texts(q));
        h.nested.push_back({map_texts(q), map_texts(k)});
    }
}

#define BRANCH(member) tree.Branch("own_" #member, &h.member, 32000, level)

inline void write_maps(const char* name, int level) {
    TFile file(name, "recreate");
    TTree tree("t", "");
    MapHolder h;
    tree.Branch("h.", &h, 32000, level);
    BRANCH(inner);
    BRANCH(texts);
    BRANCH(derived);
    BRANCH(versioned);
    BRANCH(objects);
    BRANCH(vectors);
    BRANCH(lists);
    BRANCH(maps);
    BRANCH(pairs);
    BRANCH(chains);
    BRANCH(keys);
    BRANCH(names);
    BRANCH(multi);
    BRANCH(hashed);
    BRANCH(set);
    BRANCH(list);
    BRANCH(strings);
    BRANCH(in_vectors);
    BRANCH(pair);
    BRANCH(vector);
    BRANCH(nested);
    for (int entry = 0; entry < 6; ++entry) {
        fill(h, entry);
        tree.Fill();
    }
    tree.Write();
}

// An object of an entry, as text.
inline std::string text_of(TBranch* branch, Long64_t entry) {
    branch->GetEntry(entry);
    auto element = static_cast<TBranchElement*>(branch);
    return TBufferJSON::ConvertToJSON(element->GetObject(), TClass::GetClass(branch->GetClassName()), 23).Data();
}
