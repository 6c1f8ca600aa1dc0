//! The works that the experiments cite.
//!
//! Each constant repeats an entry of `docs/references.md`, so that the report can name its sources
//! without loading another file. The key of a reference is the anchor of its entry there.

/// A work that experiments cite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Anchor of the entry in `docs/references.md`, such as `bloom70`.
    pub key: &'static str,
    /// Author and year, as a sentence cites the work: "Bloom 1970".
    pub cite: &'static str,
    /// Authors, title, place and year.
    pub entry: &'static str,
}

const fn reference(key: &'static str, cite: &'static str, entry: &'static str) -> Reference {
    Reference { key, cite, entry }
}

/// The five introductions to Bloom filters that this project began with.
pub const SOURCE_DOCUMENTS: [Reference; 5] = [JAMBURA, WERREN, SCHIERZ, UNTITLED, HONOROFF];

pub const BLOOM: Reference = reference(
    "bloom70",
    "Bloom 1970",
    "Burton H. Bloom. Space/time trade-offs in hash coding with allowable errors. \
     Communications of the ACM 13(7), 422–426, 1970.",
);
pub const CARTER: Reference = reference(
    "cfgmw78",
    "Carter et al. 1978",
    "Larry Carter, Robert Floyd, John Gill, George Markowsky and Mark Wegman. Exact \
     and approximate membership testers. STOC 1978, 59–65.",
);
pub const DILLINGER: Reference = reference(
    "dm04",
    "Dillinger and Manolios 2004",
    "Peter C. Dillinger and Panagiotis Manolios. Bloom filters in probabilistic \
     verification. FMCAD 2004, LNCS 3312, 367–381.",
);
pub const KIRSCH: Reference = reference(
    "km06",
    "Kirsch and Mitzenmacher 2006",
    "Adam Kirsch and Michael Mitzenmacher. Less hashing, same performance: building \
     a better Bloom filter. ESA 2006, LNCS 4168, 456–467; Random Structures & \
     Algorithms 33(2), 187–218, 2008.",
);
pub const SWAMIDASS: Reference = reference(
    "sb07",
    "Swamidass and Baldi 2007",
    "S. Joshua Swamidass and Pierre Baldi. Mathematical correction for fingerprint \
     similarity measures to improve chemical retrieval. Journal of Chemical \
     Information and Modeling 47(3), 952–964, 2007.",
);
pub const MITZENMACHER: Reference = reference(
    "mitzenmacher02",
    "Mitzenmacher 2002",
    "Michael Mitzenmacher. Compressed Bloom filters. IEEE/ACM Transactions on \
     Networking 10(5), 604–612, 2002.",
);
pub const BOSE: Reference = reference(
    "bose08",
    "Bose et al. 2008",
    "Prosenjit Bose, Hua Guo, Evangelos Kranakis, Anil Maheshwari, Pat Morin, Jason \
     Morrison, Michiel Smid and Yihui Tang. On the false-positive rate of Bloom \
     filters. Information Processing Letters 108(4), 210–213, 2008.",
);
pub const CHRISTENSEN: Reference = reference(
    "crj10",
    "Christensen et al. 2010",
    "Ken Christensen, Allen Roginsky and Miguel Jimeno. A new analysis of the false \
     positive rate of a Bloom filter. Information Processing Letters 110(21), \
     944–949, 2010.",
);
pub const GRANDI: Reference = reference(
    "grandi18",
    "Grandi 2018",
    "Fabio Grandi. On the analysis of Bloom filters. Information Processing Letters \
     129, 35–39, 2018.",
);
pub const PUTZE: Reference = reference(
    "pss09",
    "Putze et al. 2009",
    "Felix Putze, Peter Sanders and Johannes Singler. Cache-, hash- and \
     space-efficient Bloom filters. ACM Journal of Experimental Algorithmics 14, \
     2009; first at WEA 2007.",
);
pub const FAN_CAO: Reference = reference(
    "fcab00",
    "Fan et al. 2000",
    "Li Fan, Pei Cao, Jussara Almeida and Andrei Broder. Summary cache: a scalable \
     wide-area web cache sharing protocol. IEEE/ACM Transactions on Networking \
     8(3), 281–293, 2000; first at SIGCOMM 1998.",
);
pub const ROTHENBERG: Reference = reference(
    "rmvm10",
    "Rothenberg et al. 2010",
    "Christian Esteve Rothenberg, Carlos A. B. Macapuna, Fábio L. Verdi and \
     Maurício F. Magalhães. The deletable Bloom filter: a new member of the Bloom \
     family. IEEE Communications Letters 14(6), 557–559, 2010.",
);
pub const ROTTENSTREICH: Reference = reference(
    "rkk14",
    "Rottenstreich et al. 2014",
    "Ori Rottenstreich, Yossi Kanizo and Isaac Keslassy. The variable-increment \
     counting Bloom filter. IEEE/ACM Transactions on Networking 22(4), 1092–1105, \
     2014.",
);
pub const PAGH: Reference = reference(
    "ppr05",
    "Pagh et al. 2005",
    "Anna Pagh, Rasmus Pagh and S. Srinivasa Rao. An optimal Bloom filter \
     replacement. SODA 2005, 823–829.",
);
pub const BENDER: Reference = reference(
    "bender12",
    "Bender et al. 2012",
    "Michael A. Bender, Martin Farach-Colton, Rob Johnson, Russell Kraner, Bradley \
     C. Kuszmaul, Dzejla Medjedovic, Pablo Montes, Pradeep Shetty, Richard P. \
     Spillane and Erez Zadok. Don't thrash: how to cache your hash on flash. \
     Proceedings of the VLDB Endowment 5(11), 1627–1637, 2012.",
);
pub const FAN_ANDERSEN: Reference = reference(
    "fakm14",
    "Fan et al. 2014",
    "Bin Fan, David G. Andersen, Michael Kaminsky and Michael D. Mitzenmacher. \
     Cuckoo filter: practically better than Bloom. CoNEXT 2014, 75–88.",
);
pub const CHAZELLE: Reference = reference(
    "ckrt04",
    "Chazelle et al. 2004",
    "Bernard Chazelle, Joe Kilian, Ronitt Rubinfeld and Ayellet Tal. The Bloomier \
     filter: an efficient data structure for static support lookup tables. SODA \
     2004, 30–39.",
);
pub const MOLLOY: Reference = reference(
    "molloy04",
    "Molloy 2004",
    "Michael Molloy. The pure literal rule threshold and cores in random \
     hypergraphs. SODA 2004, 672–681.",
);
pub const GRAF: Reference = reference(
    "gl22",
    "Graf and Lemire 2022",
    "Thomas Mueller Graf and Daniel Lemire. Binary fuse filters: fast and smaller \
     than xor filters. ACM Journal of Experimental Algorithmics 27, 2022.",
);
pub const ALMEIDA: Reference = reference(
    "abph07",
    "Almeida et al. 2007",
    "Paulo Sérgio Almeida, Carlos Baquero, Nuno Preguiça and David Hutchison. \
     Scalable Bloom filters. Information Processing Letters 101(6), 255–261, 2007.",
);
pub const KUMAR: Reference = reference(
    "kumar04",
    "Kumar et al. 2004",
    "Abhishek Kumar, Jun Xu, Jia Wang, Oliver Spatschek and Li Li. Space-code Bloom \
     filter for efficient per-flow traffic measurement. INFOCOM 2004, 1762–1773.",
);
pub const SNOEREN: Reference = reference(
    "snoeren01",
    "Snoeren et al. 2001",
    "Alex C. Snoeren, Craig Partridge, Luis A. Sanchez, Christine E. Jones, Fabrice \
     Tchakountio, Stephen T. Kent and W. Timothy Strayer. Hash-based IP traceback. \
     SIGCOMM 2001, 3–14.",
);
pub const RHEA: Reference = reference(
    "rk02",
    "Rhea and Kubiatowicz 2002",
    "Sean C. Rhea and John Kubiatowicz. Probabilistic location and routing. INFOCOM \
     2002, 1248–1257.",
);
pub const WHITAKER: Reference = reference(
    "ww02",
    "Whitaker and Wetherall 2002",
    "Andrew Whitaker and David Wetherall. Forwarding without loops in Icarus. \
     OPENARCH 2002, 63–75.",
);
pub const SHANMUGASUNDARAM: Reference = reference(
    "sbm04",
    "Shanmugasundaram et al. 2004",
    "Kulesh Shanmugasundaram, Hervé Brönnimann and Nasir Memon. Payload attribution \
     via hierarchical Bloom filters. CCS 2004, 31–41.",
);
pub const LAUFER_2005: Reference = reference(
    "lvd05",
    "Laufer et al. 2005",
    "Rafael P. Laufer, Pedro B. Velloso and Otto Carlos M. B. Duarte. Generalized \
     Bloom filters. Technical report, COPPE/UFRJ, 2005.",
);
pub const LAUFER_2007: Reference = reference(
    "laufer07",
    "Laufer et al. 2007",
    "Rafael P. Laufer, Pedro B. Velloso, Daniel de O. Cunha, Igor M. Moraes, Marco \
     D. D. Bicudo, Marcelo D. D. Moreira and Otto Carlos M. B. Duarte. Towards \
     stateless single-packet IP traceback. LCN 2007, 548–555.",
);
pub const PONEC: Reference = reference(
    "pgbw07",
    "Ponec et al. 2007",
    "Miroslav Ponec, Paul Giura, Hervé Brönnimann and Joel Wein. Highly efficient \
     techniques for network forensics. CCS 2007, 150–160.",
);
pub const CHANG: Reference = reference(
    "chang06",
    "Chang et al. 2006",
    "Fay Chang, Jeffrey Dean, Sanjay Ghemawat, Wilson C. Hsieh, Deborah A. Wallach, \
     Mike Burrows, Tushar Chandra, Andrew Fikes and Robert E. Gruber. Bigtable: a \
     distributed storage system for structured data. OSDI 2006, 205–218.",
);
pub const DAYAN: Reference = reference(
    "dai17",
    "Dayan et al. 2017",
    "Niv Dayan, Manos Athanassoulis and Stratos Idreos. Monkey: optimal navigable \
     key-value store. SIGMOD 2017, 79–94.",
);
pub const ZIPF: Reference = reference(
    "zipf49",
    "Zipf 1949",
    "George Kingsley Zipf. Human behavior and the principle of least effort. \
     Addison-Wesley, 1949.",
);
pub const RAAB: Reference = reference(
    "rs98",
    "Raab and Steger 1998",
    "Martin Raab and Angelika Steger. \"Balls into bins\": a simple and tight analysis. \
     RANDOM 1998, LNCS 1518, 159–170.",
);
pub const FAN_LIM: Reference = reference(
    "flak11",
    "Fan et al. 2011",
    "Bin Fan, Hyeontaek Lim, David G. Andersen and Michael Kaminsky. Small cache, big \
     effect: provable load balancing for randomly partitioned cluster services. SoCC \
     2011.",
);
pub const DEAN: Reference = reference(
    "db13",
    "Dean and Barroso 2013",
    "Jeffrey Dean and Luiz André Barroso. The tail at scale. Communications of the \
     ACM 56(2), 74–80, 2013.",
);
pub const GOH: Reference = reference(
    "goh03",
    "Goh 2003",
    "Eu-Jin Goh. Secure indexes. Cryptology ePrint Archive, report 2003/216, 2003.",
);
pub const GERBET: Reference = reference(
    "gkl15",
    "Gerbet et al. 2015",
    "Thomas Gerbet, Amrit Kumar and Cédric Lauradoux. The power of evil choices in \
     Bloom filters. DSN 2015, 101–112.",
);
pub const NAOR: Reference = reference(
    "ny15",
    "Naor and Yogev 2015",
    "Moni Naor and Eylon Yogev. Bloom filters in adversarial environments. CRYPTO 2015, \
     LNCS 9216, 565–584.",
);
pub const JAIN: Reference = reference(
    "jdt05",
    "Jain et al. 2005",
    "Navendu Jain, Michael Dahlin and Renu Tewari. Using Bloom filters to refine \
     web search results. WebDB 2005.",
);
pub const SPAFFORD: Reference = reference(
    "spafford92",
    "Spafford 1992",
    "Eugene H. Spafford. OPUS: preventing weak password choices. Computers & \
     Security 11(3), 273–278, 1992.",
);
pub const JAMBURA: Reference = reference(
    "jambura26",
    "Jambura et al. 2026",
    "Anna Jambura, Kathrin Pürstinger, Franziska Schnappauf and Coco Thiele. Bloom \
     Filter. Paper, in German, dated 24 February 2026.",
);
pub const WERREN: Reference = reference(
    "ws24",
    "Werren and Suter 2024",
    "Jan Werren and Xeno Suter. Bloom Filter. Paper, in German, December 2024.",
);
pub const SCHIERZ: Reference = reference(
    "schierz22",
    "Schierz 2022",
    "Florian Eberhard Schierz. Bloomfilter: Wie zuverlässig ist Probabilismus. \
     Seminar on Data Structures in C and Ubiquitous Computing (UbiSys Seminar '22), \
     TU Bergakademie Freiberg, in German, 2022.",
);
pub const UNTITLED: Reference = reference(
    "untitled",
    "the untitled article",
    "A short article about the Bloom filter, in German. The text has no title, \
     author or date.",
);
pub const HONOROFF: Reference = reference(
    "honoroff06",
    "Honoroff 2006",
    "Jacob Honoroff. An Examination of Bloom Filters and their Applications. \
     Lecture slides, in English, 16 March 2006.",
);
