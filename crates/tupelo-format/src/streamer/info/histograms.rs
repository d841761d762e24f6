//! Layouts of ROOT's histogram classes, for files that get histograms: versions, members and checksums as ROOT 6 has them
//! (`TH1.h`, `TH2.h`, `TH3.h`, `TProfile.h`, `TProfile2D.h`, `TProfile3D.h`, `TAxis.h`, `TAtt*.h`).

use super::{ClassInfo, Counter, Element, ElementKind, OBJECT_BITS, StreamerInfos};

/// The types of bins: letter of the class, class of the array, its checksum, and those of `TH1`, `TH2` and `TH3` with it.
const BINS: [(&str, &str, u32, [u32; 3]); 5] = [
    ("C", "TArrayC", 0xae87_9936, [0x36f6_e4ad, 0xbd00_10fe, 0xa1ff_8d94]),
    ("S", "TArrayS", 0x035c_9314, [0x8c4d_9dcb, 0x1256_ca1c, 0xf756_46b2]),
    ("I", "TArrayI", 0xd9d5_71c7, [0x6275_64f6, 0xe87e_9147, 0xcd7e_0ddd]),
    ("F", "TArrayF", 0x5a0b_f6f1, [0xe293_9644, 0x689c_c295, 0x4d9c_3f2b]),
    ("D", "TArrayD", 0x7139_ef34, [0xf9b1_569f, 0x7fba_82f0, 0x64b9_ff86]),
];

/// The base classes: name, version, checksum, and the version of the classes that derive from it.
const BASES: [(&str, i32, u32, i32); 3] =
    [("TH1", 8, 0x1c37_40c4, 3), ("TH2", 5, 0x0182_347f, 4), ("TH3", 6, 0x42d2_445f, 4)];

impl StreamerInfos {
    /// The layouts of `TH1`, `TH2` and `TH3` with bins of the types C, S, I, F and D, of `TProfile`, `TProfile2D` and
    /// `TProfile3D`, and of the classes that they consist of.
    pub fn histograms() -> Self {
        let mut infos = Self::default();
        for class in parts().into_iter().chain(binned()).chain(profiles()) {
            infos.push(class);
        }
        infos
    }
}

fn parts() -> Vec<ClassInfo> {
    vec![
        class("TAttLine", 2, 0x9407_4549, vec![short("fLineColor"), short("fLineStyle"), short("fLineWidth")]),
        class("TAttFill", 2, 0xffd9_2a92, vec![short("fFillColor"), short("fFillStyle")]),
        class("TAttMarker", 2, 0x291d_8bec, vec![short("fMarkerColor"), short("fMarkerStyle"), float("fMarkerSize")]),
        class(
            "TAttAxis",
            4,
            0x5c6f_ff3e,
            vec![
                int("fNdivisions"),
                short("fAxisColor"),
                short("fLabelColor"),
                short("fLabelFont"),
                float("fLabelOffset"),
                float("fLabelSize"),
                float("fTickLength"),
                float("fTitleOffset"),
                float("fTitleSize"),
                short("fTitleColor"),
                short("fTitleFont"),
            ],
        ),
        class(
            "TAxis",
            10,
            0x5a49_6e70,
            vec![
                base("TNamed", 1, 0xdfb7_4a3c),
                base("TAttAxis", 4, 0x5c6f_ff3e),
                int("fNbins"),
                double("fXmin"),
                double("fXmax"),
                doubles("fXbins"),
                int("fFirst"),
                int("fLast"),
                member("fBits2", "unsigned short", 12, 2, ElementKind::Basic),
                member("fTimeDisplay", "bool", 18, 1, ElementKind::Basic),
                text("fTimeFormat"),
                member("fLabels", "THashList*", 64, 8, ElementKind::ObjectPointer),
                member("fModLabs", "TList*", 64, 8, ElementKind::ObjectPointer),
            ],
        ),
        class("TAtt3D", 1, 0x0000_757a, vec![]),
        class(
            "TH1",
            8,
            0x1c37_40c4,
            vec![
                base("TNamed", 1, 0xdfb7_4a3c),
                base("TAttLine", 2, 0x9407_4549),
                base("TAttFill", 2, 0xffd9_2a92),
                base("TAttMarker", 2, 0x291d_8bec),
                int("fNcells"),
                axis("fXaxis"),
                axis("fYaxis"),
                axis("fZaxis"),
                short("fBarOffset"),
                short("fBarWidth"),
                double("fEntries"),
                double("fTsumw"),
                double("fTsumw2"),
                double("fTsumwx"),
                double("fTsumwx2"),
                double("fMaximum"),
                double("fMinimum"),
                double("fNormFactor"),
                doubles("fContour"),
                doubles("fSumw2"),
                text("fOption"),
                functions(),
                member("fBufferSize", "int", 6, 4, ElementKind::Basic),
                buffer(),
                member("fBinStatErrOpt", "TH1::EBinErrorOpt", 3, 4, ElementKind::Basic),
                member("fStatOverflows", "TH1::EStatOverflows", 3, 4, ElementKind::Basic),
            ],
        ),
        class(
            "TH2",
            5,
            0x0182_347f,
            vec![
                base("TH1", 8, 0x1c37_40c4),
                double("fScalefactor"),
                double("fTsumwy"),
                double("fTsumwy2"),
                double("fTsumwxy"),
            ],
        ),
        class(
            "TH3",
            6,
            0x42d2_445f,
            vec![
                base("TH1", 8, 0x1c37_40c4),
                base("TAtt3D", 1, 0x0000_757a),
                double("fTsumwy"),
                double("fTsumwy2"),
                double("fTsumwxy"),
                double("fTsumwz"),
                double("fTsumwz2"),
                double("fTsumwxz"),
                double("fTsumwyz"),
            ],
        ),
    ]
}

fn binned() -> impl Iterator<Item = ClassInfo> {
    BINS.into_iter().flat_map(|(letter, array, array_checksum, checksums)| {
        BASES.into_iter().zip(checksums).map(move |((name, base_version, base_checksum, version), checksum)| {
            let bases = vec![base(name, base_version, base_checksum), base(array, 1, array_checksum)];
            class(&format!("{name}{letter}"), version, checksum, bases)
        })
    })
}

fn profiles() -> Vec<ClassInfo> {
    vec![
        class(
            "TProfile",
            7,
            0x4bed_ee54,
            vec![
                base("TH1D", 3, 0xf9b1_569f),
                doubles("fBinEntries"),
                member("fErrorMode", "EErrorType", 3, 4, ElementKind::Basic),
                double("fYmin"),
                double("fYmax"),
                double("fTsumwy"),
                double("fTsumwy2"),
                doubles("fBinSumw2"),
            ],
        ),
        class(
            "TProfile2D",
            8,
            0x36a1_42ac,
            vec![
                base("TH2D", 4, 0x7fba_82f0),
                doubles("fBinEntries"),
                member("fErrorMode", "EErrorType", 3, 4, ElementKind::Basic),
                double("fZmin"),
                double("fZmax"),
                double("fTsumwz"),
                double("fTsumwz2"),
                doubles("fBinSumw2"),
            ],
        ),
        class(
            "TProfile3D",
            8,
            0xf60c_6814,
            vec![
                base("TH3D", 4, 0x64b9_ff86),
                doubles("fBinEntries"),
                member("fErrorMode", "EErrorType", 3, 4, ElementKind::Basic),
                double("fTmin"),
                double("fTmax"),
                double("fTsumwt"),
                double("fTsumwt2"),
                doubles("fBinSumw2"),
            ],
        ),
    ]
}

fn class(name: &str, version: i32, checksum: u32, elements: Vec<Element>) -> ClassInfo {
    ClassInfo { name: name.to_owned(), title: Vec::new(), bits: OBJECT_BITS, version, checksum, elements }
}

fn member(name: &str, type_name: &str, code: i32, size: i32, kind: ElementKind) -> Element {
    Element { bits: OBJECT_BITS, size, ..Element::new(name, type_name, code, kind) }
}

fn base(name: &str, version: i32, checksum: u32) -> Element {
    let code = if name == "TNamed" { 67 } else { 0 };
    let max_index = [0, checksum.cast_signed(), 0, 0, 0];
    Element { max_index, ..member(name, "BASE", code, 0, ElementKind::Base { version }) }
}

fn short(name: &str) -> Element {
    member(name, "short", 2, 2, ElementKind::Basic)
}

fn int(name: &str) -> Element {
    member(name, "int", 3, 4, ElementKind::Basic)
}

fn float(name: &str) -> Element {
    member(name, "float", 5, 4, ElementKind::Basic)
}

fn double(name: &str) -> Element {
    member(name, "double", 8, 8, ElementKind::Basic)
}

fn text(name: &str) -> Element {
    member(name, "TString", 65, 24, ElementKind::String)
}

fn doubles(name: &str) -> Element {
    member(name, "TArrayD", 62, 24, ElementKind::ObjectAny)
}

fn axis(name: &str) -> Element {
    member(name, "TAxis", 61, 216, ElementKind::Object)
}

fn buffer() -> Element {
    let counter = Counter { version: 8, name: "fBufferSize".to_owned(), class_name: "TH1".to_owned() };
    let title = b"[fBufferSize]".to_vec();
    Element { title, ..member("fBuffer", "double*", 48, 8, ElementKind::BasicPointer(counter)) }
}

fn functions() -> Element {
    // The arrow says that the pointer is never null.
    Element { title: b"->".to_vec(), ..member("fFunctions", "TList*", 63, 8, ElementKind::ObjectPointer) }
}
