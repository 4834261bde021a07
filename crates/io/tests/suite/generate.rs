//! The generators: sizes, structure, definiteness, reproducible bits, and errors for wrong names.
use lacuna_engine::{Complex32, Complex64, Scalar};
use lacuna_formats::{Csr, Structure};
use lacuna_io::Spec;

fn build<T: Scalar>(text: &str) -> Csr<T> {
    Spec::parse(text).and_then(|spec| spec.build()).unwrap_or_else(|e| panic!("{e}"))
}

fn shape(text: &str) -> (usize, usize) {
    let a = build::<f64>(text);
    let arrays = (a.row_ptr().to_vec(), a.col_idx().to_vec(), a.values().to_vec());
    assert_eq!(Csr::new(a.rows(), a.cols(), arrays.0, arrays.1, arrays.2).unwrap(), a, "{text}");
    (a.rows(), a.nnz())
}

fn structure(text: &str) -> Structure {
    Structure::of(&build::<f64>(text))
}

/// Whether a dense Cholesky factorisation succeeds.
fn positive_definite(a: &Csr<f64>) -> bool {
    let n = a.rows();
    let mut l = vec![0.0; n * n];
    a.entries().for_each(|(i, j, v)| l[i * n + j] = v);
    for j in 0..n {
        let pivot = l[j * n + j] - (0..j).map(|k| l[j * n + k] * l[j * n + k]).sum::<f64>();
        if pivot <= 0.0 {
            return false;
        }
        let pivot = pivot.sqrt();
        l[j * n + j] = pivot;
        for i in j + 1..n {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            l[i * n + j] = (l[i * n + j] - dot) / pivot;
        }
    }
    true
}

#[test]
fn sizes_and_entries_are_those_of_the_literature() {
    assert_eq!(shape("gen:poisson1d:1000"), (1000, 2998));
    assert_eq!(shape("gen:poisson2d:100x50"), (5000, 24_700));
    assert_eq!(shape("gen:poisson2d:30x30:9"), (900, 88 * 88));
    assert_eq!(shape("gen:poisson3d:10x20x30"), (6000, 7 * 6000 - 2 * (600 + 300 + 200)));
    assert_eq!(shape("gen:poisson3d:20x20x20:27"), (8000, 58 * 58 * 58));
    assert_eq!(shape("gen:poisson-p1:15").0, 225);
    assert_eq!(shape("gen:poisson-p1:31").0, 961);
    assert_eq!([4, 8, 16].map(|m| shape(&format!("gen:elasticity3d:{m}")).0), [300, 1944, 13_872]);
    assert_eq!(shape("gen:convection:40x30"), (1200, 5860));
    assert_eq!(shape("gen:convection:10x10x10:50"), (1000, 6400));
    assert_eq!(shape("gen:markov:41x21"), (861, 5 * 861 - 2 * (41 + 21)));
    assert_eq!(shape("gen:markov:41x21:p"), (861, 4 * 861 - 2 * (41 + 21)));
    assert_eq!(shape("gen:dense:50"), (50, 2500));
    assert_eq!(shape("gen:random:1000:7"), (1000, 7000));
    assert_eq!(build::<Complex64>("gen:helmholtz:20x10").nnz(), 1000 - 2 * 30);
    for one in
        ["poisson1d:1", "poisson3d:1x1x1:27", "poisson-p1:1", "convection:1x1", "markov:1x1", "dense:1"]
    {
        assert_eq!(shape(one), (1, 1), "{one}");
    }
    assert_eq!(shape("gen:random:1:1"), (1, 1));
    assert_eq!(shape("gen:power-law:1"), (1, 1));
    assert_eq!(shape("gen:elasticity3d:1").0, 12);
}

#[test]
fn the_reservoir_is_exactly_as_large_as_the_published_one() {
    let s = structure("gen:spe10-like:1");
    assert_eq!((s.rows, s.nnz, s.row_max, s.diagonals), (1_122_000, 7_780_000, 7, 7));
    assert!(s.symmetric && s.diagonal_positive);
    let a = build::<f64>("gen:spe10-like:1");
    let off = a.entries().filter(|(i, j, _)| j == &(i + 1)).map(|(_, _, v)| -v);
    let (low, high) = off.fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    let decades = (high / low).log10();
    assert!((4.0..=5.1).contains(&decades), "permeability spans {decades} decades");
    assert_ne!(a, build("gen:spe10-like:2"));
}

#[test]
fn elasticity_has_the_peers_entries_and_dense_blocks() {
    let s = structure("gen:elasticity3d:16");
    assert!(s.symmetric && s.diagonal_positive);
    assert_eq!(s.block_fill[1], (3, 1.0));
    assert_eq!((s.block_size(), s.row_max), (Some(3), 45));
    assert!(positive_definite(&build("gen:elasticity3d:2")));
    // A node whose neighbours are all free feels no force under a translation or a rotation.
    let (m, a) = (6usize, build::<f64>("gen:elasticity3d:6"));
    let side = m + 1;
    let at = |node: usize| [node % side, node / side % side, node / side / side + 1].map(|k| k as f64);
    let motions: [fn([f64; 3]) -> [f64; 3]; 4] =
        [|_| [1.0, 0.0, 0.0], |_| [0.0, 0.0, 1.0], |p| [p[1], -p[0], 0.0], |p| [p[2], 0.0, -p[0]]];
    for motion in motions {
        let x: Vec<f64> = (0..a.rows()).map(|i| motion(at(i / 3))[i % 3]).collect();
        let mut y = vec![0.0; a.rows()];
        a.product(&x, &mut y).unwrap();
        let free = y.iter().enumerate().filter(|(i, _)| at(i / 3)[2] > 1.0);
        let worst = free.map(|(_, v)| v.abs()).fold(0.0, f64::max);
        assert!(worst <= 45.0 * 10.0 * m as f64 * f64::EPSILON, "{worst}");
    }
}

/// Rows, entries, and whether the matrix is symmetric, with a positive diagonal, and positive definite.
#[test]
fn systems_of_the_five_papers_have_their_sizes() {
    // Wathen's matrix as in the collection; the entries of the obstacle problem too.
    assert_eq!(shape("gen:wathen:100x100"), (30_401, 471_601));
    assert_eq!(shape("gen:obstacle:200x200"), (40_000, 197_608));
    assert_eq!(shape("gen:least-surface:202x202").0, 40_804);
    assert_eq!(shape("gen:spe10-like:1:60x220x10").0, 132_000);
    assert_eq!(shape("gen:dense:300x12"), (300, 3600));
    assert_eq!(shape("gen:banded:1000:-30,-1,1,30:1.5"), (1000, 5000 - 2 * 31));
    assert_eq!((shape("gen:strided:100:7"), build::<f64>("strided:100:7").cols()), ((100, 100), 700));
    assert_eq!(shape("gen:lscm:9").0, 2 * (100 - 2));
    assert_eq!(shape("gen:smooth:9").0, 300);
    for text in [
        "wathen:5x4",
        "obstacle:9x7",
        "least-surface:8x9",
        "elasticity2d:9",
        "cross-diffusion:6:4",
        "lscm:6",
        "smooth:4",
    ] {
        let s = structure(text);
        assert!(s.symmetric && s.diagonal_positive && positive_definite(&build(text)), "{text}: {s:?}");
    }
    let blocks = |text: &str| structure(text).block_size();
    assert_eq!(
        [blocks("elasticity2d:9"), blocks("cross-diffusion:6:4"), blocks("lscm:8")],
        [Some(2), Some(4), Some(2)]
    );
    let s = structure("banded:500:-30,-1,1,30:1.5");
    assert!(s.diagonally_dominant && s.diagonals == 5 && !s.symmetric);
    assert_eq!(shape("gen:wathen:1x1"), (8, 64));
    assert_eq!(shape("gen:obstacle:1x1"), (1, 1));
    assert_eq!(shape("gen:spe10-like:1:1x1x1"), (1, 1));
}

/// The three matrices of Rupp et al. 2016, Table I, that Bell and Garland do not have. An eighth of each has fewer neighbours at its
/// sides; whole ones are within 1 % of the entries (`lacuna generate`).
#[test]
fn the_other_look_alikes_have_the_papers_entries_a_row() {
    for (name, rows, entries) in [
        ("rm07r", 381_689, 37_464_962),
        ("hamrle3", 1_447_360, 5_514_242),
        ("kkt-power", 2_063_494, 14_612_663),
    ] {
        let a = build::<f32>(&format!("alike:{name}:8"));
        let off = (a.nnz() as f64 / a.rows() as f64) / (f64::from(entries) / f64::from(rows)) - 1.0;
        assert!(a.rows().abs_diff(rows as usize / 8) < 7 && off.abs() <= 0.05, "{name}: {}, {off}", a.rows());
    }
    let s = structure("alike:kkt-power:1000");
    assert!(s.symmetric && s.zero_diagonal == s.rows / 2, "{s:?}");
    assert_eq!(structure("alike:rm07r:100").block_size(), Some(7));
}

#[test]
fn models_have_their_right_hand_sides() {
    let rhs = |text: &str| Spec::parse(text).unwrap().right_hand_side::<f64>().unwrap();
    let wells = rhs("spe10-like:3:12x20x4").unwrap();
    // One well in the middle injects, four in the corners produce, each through every layer.
    assert_eq!(wells.iter().filter(|v| **v > 0.0).count(), 4);
    assert_eq!(wells.iter().filter(|v| **v < 0.0).count(), 16);
    let (a, b) = (build::<f64>("smooth:5"), rhs("smooth:5").unwrap());
    assert_eq!(a.rows(), b.len());
    // A row of the smoothness sums to 0: what is left is the weight of the given points.
    let sums = (0..a.rows()).map(|i| a.row_entries(i).map(|e| e.1).sum::<f64>());
    assert!(sums.into_iter().all(|sum| (sum - 0.1).abs() <= 64.0 * f64::EPSILON));
    assert_eq!(rhs("lscm:5").unwrap().len(), build::<f64>("lscm:5").rows());
    assert!(rhs("poisson1d:5").is_none());
}

#[test]
fn meshes_are_read_from_files() {
    let folder = std::env::temp_dir().join(format!("lacuna-obj-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("square.obj");
    std::fs::write(&path, "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0.5\nf 1 2 3 4\n").unwrap();
    let name = path.display();
    assert_eq!(shape(&format!("gen:lscm:{name}")).0, 4);
    assert_eq!(shape(&format!("gen:smooth:{name}")).0, 12);
    let missing = Spec::parse("gen:lscm:no-such.obj").unwrap().build::<f64>().unwrap_err().to_string();
    assert!(missing.contains("no-such.obj"), "{missing}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn models_have_the_structure_they_promise() {
    for text in ["poisson1d:50", "poisson2d:9x7", "poisson2d:9x7:9", "poisson3d:4x5x6", "poisson3d:4x5x6:27"]
    {
        let s = structure(text);
        assert!(s.symmetric && s.diagonally_dominant && positive_definite(&build(text)), "{text}");
    }
    let s = structure("poisson-p1:20");
    assert!(
        s.symmetric && s.diagonal_positive && s.row_max == 7 && positive_definite(&build("poisson-p1:20"))
    );
    assert!(structure("dense:40").symmetric && positive_definite(&build("dense:40")));
    for text in
        ["convection:20x30:1000", "convection:7x8x9", "markov:20x30", "power-law:5000", "random:500:9:3"]
    {
        let s = structure(text);
        assert!(!s.symmetric && s.diagonal_positive && s.zero_diagonal == 0, "{text}");
        // Sums of a few terms are rounded: dominance holds up to that.
        let dominant = build::<f64>(text).entries().fold(vec![0.0; s.rows], |mut sum, (i, j, v)| {
            sum[i] += if i == j { v } else { -v.abs() };
            sum
        });
        assert!(dominant.iter().all(|&d| d > -1e3 * 16.0 * f64::EPSILON), "{text}");
    }
    let s = Structure::of(&build::<Complex64>("helmholtz:12x9:30"));
    assert!(s.symmetric && !s.hermitian);
    let s = structure("power-law:100000");
    assert!((3.0..4.0).contains(&s.row_mean) && s.row_max > 100, "{} {}", s.row_mean, s.row_max);
    let p = build::<f64>("markov:30x20:p");
    for i in 0..p.rows() {
        assert!((p.row_entries(i).map(|e| e.1).sum::<f64>() - 1.0).abs() <= 4.0 * f64::EPSILON);
    }
}

/// Table 4 of Bell and Garland 2008: rows, columns, entries.
const TABLE: [(&str, [usize; 3]); 14] = [
    ("dense", [2_000, 2_000, 4_000_000]),
    ("protein", [36_417, 36_417, 4_344_765]),
    ("spheres", [83_334, 83_334, 6_010_480]),
    ("cantilever", [62_451, 62_451, 4_007_383]),
    ("wind-tunnel", [217_918, 217_918, 11_634_424]),
    ("harbor", [46_835, 46_835, 2_374_001]),
    ("qcd", [49_152, 49_152, 1_916_928]),
    ("ship", [140_874, 140_874, 7_813_404]),
    ("economics", [206_500, 206_500, 1_273_389]),
    ("epidemiology", [525_825, 525_825, 2_100_225]),
    ("accelerator", [121_192, 121_192, 2_624_331]),
    ("circuit", [170_998, 170_998, 958_936]),
    ("webbase", [1_000_005, 1_000_005, 3_105_536]),
    ("lp", [4_284, 1_092_610, 11_279_748]),
];

#[test]
fn look_alikes_have_the_papers_sizes() {
    for (name, [rows, cols, entries]) in TABLE {
        let a = build::<f32>(&format!("alike:{name}"));
        assert_eq!([a.rows(), a.cols()], [rows, cols], "{name}");
        let exact = ["dense", "qcd", "epidemiology"].contains(&name);
        let most = if exact { 0.0 } else { 0.03 };
        let off = a.nnz() as f64 / entries as f64 - 1.0;
        assert!(off.abs() <= most, "{name}: {} entries, {entries} in the paper", a.nnz());
    }
}

#[test]
fn look_alikes_have_the_structure_of_their_kind() {
    for (name, block) in [
        ("protein", 3),
        ("spheres", 3),
        ("cantilever", 3),
        ("wind-tunnel", 6),
        ("ship", 6),
        ("accelerator", 1),
    ] {
        let s = structure(&format!("alike:{name}:16"));
        assert!(s.symmetric && s.diagonally_dominant && s.diagonal_positive, "{name}");
        assert_eq!(s.block_size(), (block > 1).then_some(block), "{name}");
        assert!(
            s.diagonals * s.rows > 4 * s.nnz || name == "cantilever",
            "{name}: {} diagonals",
            s.diagonals
        );
    }
    let s = structure("alike:wind-tunnel");
    assert!(s.rows % 6 == 4 && s.row_std < 0.1 * s.row_mean, "{} on {}", s.row_std, s.row_mean);
    let s = structure("alike:harbor:16");
    assert!(s.pattern_symmetric && !s.symmetric && s.row_max > 2 * s.row_min);
    let s = structure("alike:qcd:16");
    assert_eq!((s.rows, s.row_min, s.row_max, s.zero_diagonal), (3072, 39, 39, 3072));
    assert_eq!(s.block_fill[1], (3, 1.0));
    let s = structure("alike:economics:16");
    assert!(!s.pattern_symmetric && s.diagonally_dominant && (30..=44).contains(&s.row_max), "{}", s.row_max);
    let s = structure("alike:circuit");
    assert!(s.pattern_symmetric && !s.symmetric && s.diagonally_dominant);
    assert!((250..=400).contains(&s.row_max), "{}", s.row_max);
    // The hybrid format stores 45.4 % of the entries of LP in slices: the width that a third of the rows
    // reach.
    let a = build::<f32>("alike:lp");
    let mut lengths: Vec<_> = a.row_ptr().windows(2).map(|w| (w[1] - w[0]) as usize).collect();
    lengths.sort_unstable();
    let width = lengths[2 * lengths.len() / 3];
    let kept: usize = lengths.iter().map(|&length| length.min(width)).sum();
    assert!((0.42..0.49).contains(&(kept as f64 / a.nnz() as f64)), "{kept} of {}", a.nnz());
}

#[test]
fn an_epidemic_is_a_markov_chain_on_a_triangle() {
    let a = build::<f64>("alike:epidemiology:1000");
    // 31 lines of 31, 30, … states.
    assert_eq!((a.rows(), a.nnz()), (496, 4 * 465 + 31));
    let mut state = 0;
    for y in 0..31 {
        for x in 0..31 - y {
            let up = (y > 0).then(|| state + y - 32);
            let back = (x > 0).then(|| state - 1);
            let room = x + y < 30;
            let forth = if room { [Some(state + 1), Some(state + 31 - y)] } else { [Some(state), None] };
            let want: Vec<usize> = [up, back].into_iter().chain(forth).flatten().collect();
            let got: Vec<(usize, f64)> = a.row_entries(state).collect();
            assert_eq!(got.iter().map(|e| e.0).collect::<Vec<_>>(), want, "state {x}, {y}");
            let sum: f64 = got.iter().map(|e| e.1).sum();
            assert!((sum - 1.0).abs() <= 4.0 * f64::EPSILON && got.iter().all(|e| e.1 > 0.0));
            state += 1;
        }
    }
}

#[test]
fn parts_of_look_alikes_are_as_small_as_can_be() {
    for (name, [rows, ..]) in TABLE {
        for part in [2, 7, 64, 1000, 4_294_967_295] {
            let a = build::<f64>(&format!("alike:{name}:{part}"));
            // Whole nodes, sites and periods: at least 3^4 sites of 12 unknowns, or 413 equations.
            let most = (rows / part).max(1) + if name == "qcd" { 972 } else { 413 };
            assert!((1..=most).contains(&a.rows()) && a.nnz() > 0, "{name}:{part}: {} rows", a.rows());
        }
    }
}

/// A hash of the bits of a matrix (FNV-1a).
fn fingerprint(a: &Csr<f64>) -> u64 {
    let words = a.row_ptr().iter().chain(a.col_idx()).map(|&k| u64::from(k));
    words
        .chain(a.values().iter().map(|v| v.to_bits()))
        .fold(0xCBF2_9CE4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01B3))
}

#[test]
fn the_same_name_gives_the_same_bits() {
    let pinned = [
        ("poisson2d:30x30:9", 0xC6E3_4215_48EE_C56F),
        ("poisson-p1:31", 0x424F_177E_6235_24A0),
        ("elasticity3d:4", 0x6AF0_37B2_2265_F3F1),
        ("convection:30x20:7.5", 0x0B83_9A1F_D068_FEB2),
        ("spe10-like:1", 0x1198_0C2E_4958_BC31),
        ("power-law:20000", 0x77A3_D4BA_D0BF_B349),
        ("markov:41x21", 0x31BB_A8CC_DE60_7F9E),
        ("dense:30", 0x7736_2FCC_906A_E529),
        ("random:5000:6:9", 0xCCC5_86ED_408D_D065),
        ("alike:protein:50", 0x5F20_FEB4_EE58_ADFB),
        ("alike:qcd:50", 0xFA56_5EA9_55E6_E457),
        ("alike:economics:50", 0x48C3_A8DC_E82B_F4F7),
        ("alike:epidemiology:50", 0x0BC5_5654_8B57_4BE5),
        ("alike:circuit:50", 0x63D5_5C94_FFC8_80C9),
        ("alike:lp:50", 0xD067_7BD2_141C_E8BD),
        ("banded:500:-20,-1,1,20:1.5", 0x8338_F724_4710_365A),
        ("wathen:9x7", 0xE8E6_FB3B_6ED1_8BF3),
        ("obstacle:21x17", 0x7D67_1BBA_CC29_98D9),
        ("least-surface:21x17", 0xF7F9_C593_8BC7_A9E8),
        ("elasticity2d:13", 0x22B6_3E02_9116_CDEC),
        ("cross-diffusion:9:4", 0xFD66_581C_788E_DD77),
        ("lscm:12", 0xB822_2411_C8F1_BB0F),
        ("smooth:9", 0x3460_433D_B7BA_27F6),
        ("spe10-like:3:12x22x5", 0xBCC6_8B82_BDCF_6A88),
        ("alike:rm07r:2000", 0x1BD0_CC76_8C89_6CC0),
        ("alike:hamrle3:1000", 0x31E6_9D73_C85B_8708),
        ("alike:kkt-power:1000", 0x0E2E_071A_1DD8_23A1),
    ];
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let three_threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let got = pinned.map(|(text, _)| (text, one_thread.install(|| fingerprint(&build(text)))));
    assert_eq!(got.map(|(text, _)| three_threads.install(|| fingerprint(&build(text)))), got.map(|g| g.1));
    assert_eq!(got, pinned);
}

#[test]
fn wrong_names_are_answered_with_what_there_is() {
    let message = |text: &str| Spec::parse(text).expect_err(text).to_string();
    assert_eq!(
        message("gen:poison2d:3x3"),
        "gen:poison2d:3x3: no generator is called `poison2d` (did you mean `poisson2d`?); there are poisson1d, poisson2d, poisson3d, \
         poisson-p1, elasticity3d, convection, helmholtz, elasticity2d, cross-diffusion, lscm, smooth, spe10-like, banded, \
         strided, wathen, obstacle, least-surface, power-law, markov, dense, random, alike; \
         for example gen:poisson2d:512x512"
    );
    assert_eq!(
        message("gen:poisson2d:3"),
        "gen:poisson2d:3: the size should be NXxNY, got `3`; it is called as gen:poisson2d:NXxNY[:9], \
         for example gen:poisson2d:512x512"
    );
    for (text, part) in [
        ("gen:poisson1d", "N is missing"),
        ("gen:poisson1d:", "N is missing"),
        ("gen:poisson1d:0", "N should be at least 1, got 0"),
        ("gen:poisson1d:-3", "N should be a positive whole number, got `-3`"),
        ("gen:poisson1d:99999999999999999999999", "N should be at most 4294967295"),
        ("gen:poisson1d:5:5", "nothing is expected after `5`, got `5`"),
        ("gen:poisson2d:0x5", "NX should be at least 1, got 0"),
        ("gen:poisson2d:5x", "NY should be a positive whole number, got ``"),
        ("gen:poisson2d:5x5:7", "the stencil has 5 or 9 points, not `7`"),
        ("gen:poisson3d:5x5", "the size should be NXxNYxNZ, got `5x5`"),
        ("gen:poisson3d:4000x4000x4000", "about 447904000000 entries are more than 32-bit indices count"),
        ("gen:poisson2d:4294967295x4294967295", "more than 2⁶⁴ entries are more"),
        ("gen:dense:70000", "about 4900000000 entries"),
        ("gen:dense:70000x70000", "about 4900000000 entries"),
        ("gen:lscm:4294967295", "more than 2⁶⁴ entries"),
        ("gen:wathen:4294967295x4294967295", "more than 2⁶⁴ entries"),
        ("gen:obstacle:99999x99999", "entries are more than 32-bit indices count"),
        ("gen:elasticity3d:4294967295", "more than 2⁶⁴ entries"),
        ("gen:convection:5x5:fast", "PECLET should be a number from 0, got `fast`"),
        ("gen:convection:5x5:inf", "PECLET should be a number from 0, got `inf`"),
        ("gen:helmholtz:5x5x5", "the size should be NXxNY"),
        ("gen:spe10-like", "SEED is missing"),
        ("gen:spe10-like:x", "SEED should be a whole number from 0, got `x`"),
        ("gen:spe10-like:1:5x5", "the size should be NXxNYxNZ, got `5x5`"),
        ("gen:cross-diffusion:5", "SPECIES is missing"),
        ("gen:cross-diffusion:5:17", "SPECIES should be at most 16, got 17"),
        ("gen:banded:5", "OFFSETS is missing"),
        (
            "gen:banded:5:1,0",
            "OFFSETS should be up to 1000 different whole numbers between -5 and 5, not 0, got `0`",
        ),
        ("gen:banded:5:1,1", "got `1`"),
        ("gen:banded:5:-5", "got `-5`"),
        ("gen:banded:5:1:-2", "DOMINANCE should be a number from 0"),
        ("gen:lscm", "M or FILE.obj is missing"),
        ("gen:lscm:a.stl", "M should be a positive whole number or a file .obj, got `a.stl`"),
        ("gen:dense:3x0", "COLUMNS should be at least 1, got 0"),
        ("gen:markov:5x5:2", "a discount is at most 1, got 2"),
        ("gen:random:5:6", "6 entries do not fit a row of 5"),
        (
            "gen:alike:tunnel",
            "NAME should be one of dense, protein, spheres, cantilever, wind-tunnel, harbor, qcd, ship, economics, \
             epidemiology, accelerator, circuit, webbase, lp, rm07r, hamrle3, kkt-power, got `tunnel`; it is called as gen:alike:NAME[:PART], for \
             example gen:alike:protein",
        ),
        ("gen:alike", "NAME is missing"),
        ("gen:alike:lp:0", "PART should be at least 1, got 0"),
        ("gen:alike:lp:half", "PART should be a positive whole number, got `half`"),
        ("gen:alike:lp:2:2", "nothing is expected after `lp:2`, got `2`"),
        ("gen:", "no generator is called ``"),
    ] {
        assert!(message(text).contains(part), "{text}: {}", message(text));
    }
}

#[test]
fn long_names_and_arguments_are_shortened() {
    let long = "x".repeat(100_000);
    for start in [
        "",
        "poisson1d:",
        "poisson1d:5:",
        "poisson2d:",
        "poisson2d:5x5:",
        "convection:5x5:",
        "spe10-like:",
        "alike:",
    ] {
        let text = format!("gen:{start}{long}");
        let message = Spec::parse(&text).expect_err(start).to_string();
        assert!(message.len() < 1000 && message.contains("xxx…`"), "{message}");
    }
    let zeros = Spec::parse(&format!("gen:convection:9x9:{}1e60", "0".repeat(100_000))).unwrap();
    assert!(zeros.build::<f32>().expect_err("f32").to_string().len() < 1000);
}

#[test]
fn as_many_entries_as_32_bits_count_are_accepted() {
    let refused = |text: &str| {
        let message = Spec::parse(text).err()?.to_string();
        message.contains("are more than 32-bit indices count (4294967295)").then_some(message)
    };
    // The largest of each that fits, and the next.
    for (fits, too_large, entries) in [
        ("markov:2147483648x1:p", "markov:2147483649x1:p", 1u64 << 32),
        ("markov:1x2147483648:p", "markov:1x2147483649:p", 1 << 32),
        ("markov:1431655765x1", "markov:1431655766x1", 1 << 32),
        ("markov:715827883x2:p", "markov:715827884x2:p", 4_294_967_300),
        ("poisson1d:1431655765", "poisson1d:1431655766", 1 << 32),
        ("poisson2d:1431655765x1:9", "poisson2d:1431655766x1:9", 1 << 32),
        ("helmholtz:1x1431655765", "helmholtz:1x1431655766", 1 << 32),
    ] {
        assert_eq!(refused(fits), None, "{fits}");
        let message = refused(too_large).unwrap_or_else(|| panic!("{too_large}"));
        assert!(message.contains(&format!("about {entries} entries")), "{message}");
    }
    assert!(Spec::parse("gen:markov:2000000000x1:p").is_ok());
}

#[test]
fn complex_models_ask_for_complex_numbers() {
    let spec = Spec::parse("helmholtz:8x8").unwrap();
    assert!(spec.is_complex());
    assert_eq!(
        spec.build::<f64>().expect_err("real").to_string(),
        "gen:helmholtz:8x8: the matrix is complex, f64 is not; use c64 or c32"
    );
    assert!(spec.build::<Complex32>().is_ok());
    assert!(!Spec::parse("dense:3").unwrap().is_complex());
    let too_large = Spec::parse("convection:9x9:1e60").unwrap().build::<f32>().expect_err("f32").to_string();
    assert!(too_large.contains("is not a finite number of type f32"), "{too_large}");
}

#[test]
fn every_example_in_the_list_is_a_valid_name() {
    for generator in Spec::list() {
        let spec = Spec::parse(generator.example).unwrap();
        assert_eq!(spec.to_string(), generator.example);
        assert!(!generator.description.is_empty());
    }
    let alike = Spec::list().last().unwrap();
    for (name, _) in TABLE {
        assert!(alike.name == "alike" && alike.description.contains(name), "{name}");
    }
}
