//! The address screen unifies all spellings, and never gives a verdict without the exact list.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use umbel::file::Meta;
use umbel_text::address::{Address, Confirm, Exact, Full, Invalid, Screen, Verdict, sha256};

fn cases(cases: u32) -> ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(1);
    ProptestConfig { rng_seed, failure_persistence: None, cases, ..Default::default() }
}

fn canonical(text: &[u8]) -> String {
    Address::parse(text).map_or_else(|why| format!("{why:?}"), |address| address.to_string())
}

/// The examples in the Safe Browsing documentation for implementers of this function.
#[test]
fn the_published_examples_hold() {
    let long = "http://195.127.0.11/uploads/%20%20%20%20/.verify/.eBaysecure=updateuserdataxplimnbqmn-xplmvalidateinfoswqpcmlx=hgplmcx/";
    for (text, expected) in [
        (&b"http://host/%25%32%35"[..], "http://host/%25"),
        (b"http://host/%25%32%35%25%32%35", "http://host/%25%25"),
        (b"http://host/%2525252525252525", "http://host/%25"),
        (b"http://host/asdf%25%32%35asd", "http://host/asdf%25asd"),
        (b"http://host/%%%25%32%35asd%%", "http://host/%25%25%25asd%25%25"),
        (b"http://www.google.com/", "http://www.google.com/"),
        (
            b"http://%31%36%38%2e%31%38%38%2e%39%39%2e%32%36/%2E%73%65%63%75%72%65/%77%77%77%2E%65%62%61%79%2E%63%6F%6D/",
            "http://168.188.99.26/.secure/www.ebay.com/",
        ),
        (long.as_bytes(), long),
        (
            b"http://host%23.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611%252A22%252833%252944_55%252B",
            "http://host%23.com/~a!b@c%23d$e%25f^00&11*22(33)44_55+",
        ),
        (b"http://3279880203/blah", "http://195.127.0.11/blah"),
        (b"http://www.google.com/blah/..", "http://www.google.com/"),
        (b"www.google.com/", "http://www.google.com/"),
        (b"www.google.com", "http://www.google.com/"),
        (b"http://www.evil.com/blah#frag", "http://www.evil.com/blah"),
        (b"http://www.GOOgle.com/", "http://www.google.com/"),
        (b"http://www.google.com.../", "http://www.google.com/"),
        (b"http://www.google.com/foo\tbar\rbaz\n2", "http://www.google.com/foobarbaz2"),
        (b"http://www.google.com/q?", "http://www.google.com/q?"),
        (b"http://www.google.com/q?r?", "http://www.google.com/q?r?"),
        (b"http://www.google.com/q?r?s", "http://www.google.com/q?r?s"),
        (b"http://evil.com/foo#bar#baz", "http://evil.com/foo"),
        (b"http://evil.com/foo;", "http://evil.com/foo;"),
        (b"http://evil.com/foo?bar;", "http://evil.com/foo?bar;"),
        (b"http://\x01\x80.com/", "http://%01%80.com/"),
        (b"http://notrailingslash.com", "http://notrailingslash.com/"),
        (b"http://www.gotaport.com:1234/", "http://www.gotaport.com/"),
        (b"  http://www.google.com/  ", "http://www.google.com/"),
        (b"http:// leadingspace.com/", "http://%20leadingspace.com/"),
        (b"http://%20leadingspace.com/", "http://%20leadingspace.com/"),
        (b"%20leadingspace.com/", "http://%20leadingspace.com/"),
        (b"https://www.securesite.com/", "https://www.securesite.com/"),
        (b"http://host.com/ab%23cd", "http://host.com/ab%23cd"),
        (b"http://host.com//twoslashes?more//slashes", "http://host.com/twoslashes?more//slashes"),
    ] {
        assert_eq!(canonical(text), expected, "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn all_spellings_of_a_host_have_one_form() {
    for (text, expected) in [
        ("http://www.\u{fc}mlat.com/", "http://www.xn--mlat-zra.com/"),
        ("http://www.%C3%BCmlat.com/", "http://www.xn--mlat-zra.com/"),
        ("http://\u{ff45}vil。example/", "http://evil.example/"),
        ("http://\u{ff11}\u{ff12}7.1/", "http://127.0.0.1/"),
        ("http://google...com/", "http://google.com/"),
        ("http://..google.com:/", "http://google.com/"),
        ("http://0x12.0x43.0x44.0x01", "http://18.67.68.1/"),
        ("http://012.034.01.055/", "http://10.28.1.45/"),
        ("http://12.0x12.01234/", "http://12.18.2.156/"),
        ("http://167838211/", "http://10.1.2.3/"),
        ("http://0/", "http://0.0.0.0/"),
        ("http://4294967295/", "http://255.255.255.255/"),
        ("http://4294967296/blah", "http://4294967296/blah"),
        ("http://256.1.1.1/", "http://256.1.1.1/"),
        ("http://1.2.3.4.5/", "http://1.2.3.4.5/"),
        ("http://1.2.3.08/", "http://1.2.3.08/"),
        ("http://1.2.3.+4/", "http://1.2.3.+4/"),
        ("http://[2001:0db8:0000::1]:8080/", "http://[2001:db8::1]/"),
        ("http://[FEDC:BA98::3210]/", "http://[fedc:ba98::3210]/"),
        ("http://[::ffff:1.2.3.4]/", "http://1.2.3.4/"),
        ("http://[64:ff9b::1.2.3.4]/", "http://1.2.3.4/"),
        ("[2001:470:1:18::114]/a", "http://[2001:470:1:18::114]/a"),
        ("http://user:pass@host.example:80/", "http://host.example/"),
        // Where browsers see the host, not where the author wants readers to see it.
        ("http://good.example%2F@evil.example/", "http://evil.example/"),
        ("http://evil.example\\@good.example/", "http://evil.example/@good.example/"),
        ("http://good.example@evil.example/", "http://evil.example/"),
        ("http%3A%2F%2Fwackyurl.com:80/", "http://wackyurl.com/"),
        ("http://W!eird<>Ho$^.com/", "http://w!eird<>ho$^.com/"),
        ("ftp://ftp.myfiles.com/", "ftp://ftp.myfiles.com/"),
        ("www.google.com:8080/foo.html", "http://www.google.com/foo.html"),
        ("http://a.com/foo/.././bar/./../foo.html", "http://a.com/foo.html"),
        ("http://a.com/../../x/./", "http://a.com/x/"),
        ("http://a.com?q", "http://a.com/?q"),
        ("http://intranet/page", "http://intranet/page"),
        ("localhost:8080/page", "http://localhost/page"),
        ("127.0.0.1", "http://127.0.0.1/"),
        ("\u{ff45}vil。example", "http://evil.example/"),
    ] {
        assert_eq!(canonical(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn texts_without_a_valid_host_are_refused() {
    for (text, why) in [
        ("", Invalid::NoHost),
        ("   ", Invalid::NoHost),
        ("...", Invalid::NoHost),
        ("/blah", Invalid::NoHost),
        ("#ref", Invalid::NoHost),
        ("?query#ref", Invalid::NoHost),
        ("http://#ref", Invalid::NoHost),
        ("http:///blah;param?query", Invalid::NoHost),
        ("http://user@/", Invalid::NoHost),
        ("mailto:bryner@google.com", Invalid::Scheme),
        ("javascript:alert(1)", Invalid::Scheme),
        ("http:www.google.com:8080/foo.html", Invalid::Scheme),
        ("http:/evil.example/", Invalid::Scheme),
        ("www.google.com:xxyy/foo.html:80", Invalid::Scheme),
        ("http://host:port/", Invalid::Port),
        ("http://[::1]x/", Invalid::Port),
        ("http://[::1/", Invalid::Brackets),
        ("http://[1.2.3.4]/", Invalid::Brackets),
        ("http://evil.example%2Fpath/", Invalid::Host),
        ("http://a%40b/", Invalid::Host),
        ("\x7fELF\0\x01.example", Invalid::Host),
        ("garbage", Invalid::Word),
        ("not an address", Invalid::Word),
        ("No. Really not.", Invalid::Word),
        ("12345", Invalid::Word),
        ("word/with/slashes.html", Invalid::Word),
        ("$%&.example", Invalid::Word),
        ("intranet:8080", Invalid::Word),
    ] {
        assert_eq!(Address::parse(text.as_bytes()), Err(why), "{text}");
    }
}

#[test]
fn the_published_combinations_hold() {
    for (text, expected) in [
        (
            "http://a.b.c/1/2.html?param=1",
            "a.b.c/1/2.html?param=1 a.b.c/1/2.html a.b.c/ a.b.c/1/ b.c/1/2.html?param=1 b.c/1/2.html b.c/ b.c/1/",
        ),
        (
            "http://a.b.c.d.e.f.g/1.html",
            "a.b.c.d.e.f.g/1.html a.b.c.d.e.f.g/ c.d.e.f.g/1.html c.d.e.f.g/ d.e.f.g/1.html d.e.f.g/ \
             e.f.g/1.html e.f.g/ f.g/1.html f.g/",
        ),
        ("http://1.2.3.4/1/", "1.2.3.4/1/ 1.2.3.4/"),
        ("http://[2001:470::114]/a/b", "[2001:470::114]/a/b [2001:470::114]/ [2001:470::114]/a/"),
        ("http://a.b/?", "a.b/"),
        ("http://b/", "b/"),
        (
            "http://a.b.c.d.e/1.html",
            "a.b.c.d.e/1.html a.b.c.d.e/ b.c.d.e/1.html b.c.d.e/ c.d.e/1.html c.d.e/ d.e/1.html d.e/",
        ),
        ("http://b.c/1/2/3/4/5/", "b.c/1/2/3/4/5/ b.c/ b.c/1/ b.c/1/2/ b.c/1/2/3/"),
    ] {
        let expressions = Address::parse(text.as_bytes()).unwrap().expressions();
        assert!(expressions.iter().eq(expected.split(' ')), "{text}: {expressions:?}");
    }
    assert_eq!(sha256("abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
}

/// Returns parts of addresses, and of attempts to confuse a parser.
fn confusing() -> impl Strategy<Value = Vec<u8>> {
    let ascii =
        "http https :// : / // \\ ? # @ % %2 %25 %2e %2f %41 .. . a evil.example 0x7f 1 255 [ ] ::1 xn--";
    let others =
        [" ", "\t", "\n", "\0", "ü", "。", "％", "ﬁ", "ẞ", "①", "\u{ad}", "\u{200d}", "／", "：", "ｘn--"];
    let parts: Vec<Vec<u8>> = ascii.split(' ').chain(others).map(|part| part.as_bytes().to_vec()).collect();
    let part = prop_oneof![4 => prop::sample::select(parts), 1 => prop::collection::vec(any::<u8>(), 1..3)];
    prop::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn a_canonical_address_is_printable_and_stable(text in confusing()) {
        if let Ok(address) = Address::parse(&text) {
            let once = address.to_string();
            prop_assert!(once.bytes().all(|byte| (b'!'..=b'~').contains(&byte)), "{}", once);
            prop_assert_eq!(canonical(once.as_bytes()), once);
            let expressions = address.expressions();
            prop_assert!((1..=30).contains(&expressions.len()));
            prop_assert_eq!(&expressions[0], &address.expression());
            prop_assert_eq!(expressions.iter().collect::<BTreeSet<_>>().len(), expressions.len());
        }
    }
}

/// A list in memory, for comparison.
struct Naive(BTreeSet<Full>);

impl Confirm for Naive {
    fn starting_with(&mut self, first: &[u8]) -> umbel_text::Result<Vec<Full>> {
        Ok(self.0.iter().filter(|hash| hash.starts_with(first)).copied().collect())
    }
}

proptest! {
    #![proptest_config(cases(64))]

    /// Hosts and folders have few letters, so that many addresses match the list. The rate is high,
    /// so that the filter is often wrong, which must not show.
    #[test]
    fn the_verdict_matches_the_exact_list(
        listed in prop::collection::vec("[ab](\\.[ab]){1,6}(/[ab]){0,5}/?(\\?[ab])?", 1..60),
        asked in prop::collection::vec("[ab](\\.[ab]){1,6}(/[ab]){0,6}/?(\\?[ab])?", 1..60),
    ) {
        let parse = |text: &String| Address::parse(text.as_bytes()).unwrap();
        let patterns: BTreeSet<String> = listed.iter().map(|text| parse(text).expression()).collect();
        let listed: Vec<Address> = listed.iter().map(parse).collect();
        let (mut screen, hashes) = Screen::build(&listed, 0.3).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exact");
        Exact::save(&path, &hashes, false).unwrap();
        let mut exact = Exact::open(&path).unwrap();
        let mut naive = Naive(hashes.iter().copied().collect());
        let mut in_vain = 0;
        for text in &asked {
            let address = parse(text);
            let expected = address.expressions().into_iter().find(|expression| patterns.contains(expression));
            let verdict = screen.check(&address, Some(&mut exact)).unwrap();
            prop_assert_eq!(&verdict, &screen.check(&address, Some(&mut naive)).unwrap());
            prop_assert_eq!(verdict, expected.clone().map_or(Verdict::Clear, Verdict::Unsafe));
            // Without the list, the filter never reports an address as unsafe and never misses one.
            let alone = screen.check(&address, None::<&mut Exact>).unwrap();
            prop_assert!(matches!(alone, Verdict::Clear | Verdict::Unconfirmed));
            prop_assert!(expected.is_none() || alone == Verdict::Unconfirmed);
            in_vain += u64::from(alone == Verdict::Unconfirmed && expected.is_none());
        }
        prop_assert!(screen.stats().in_vain >= 2 * in_vain);
    }
}

/// Returns hashes. A third of them share a prefix, so that an answer spans several pages.
fn hashes(count: u32) -> Vec<Full> {
    let hash = |number: u32| {
        let mut hash = sha256(&number.to_string());
        if number.is_multiple_of(3) {
            hash[..4].copy_from_slice(&[7, 7, 7, 7]);
        }
        hash
    };
    let mut hashes: Vec<Full> = (0..count).map(hash).collect();
    hashes.sort_unstable();
    hashes
}

#[test]
fn the_exact_list_finds_what_a_full_scan_finds() {
    let folder = tempfile::tempdir().unwrap();
    for count in [0, 1, 126, 127, 128, 254, 2000] {
        let hashes = hashes(count);
        let path = folder.path().join(count.to_string());
        Exact::save(&path, &hashes, false).unwrap();
        assert!(Exact::save(&path, &hashes, false).is_err(), "it is there");
        let mut exact = Exact::open(&path).unwrap();
        assert_eq!((exact.len(), exact.is_empty()), (u64::from(count), count == 0));
        let mut naive = Naive(hashes.iter().copied().collect());
        let some = hashes.iter().step_by(7).map(|hash| hash[..4].to_vec());
        let asked = (0..=255u8).map(|byte| vec![byte]).chain(some);
        for first in asked.chain([vec![7, 7, 7, 7], vec![0; 32], vec![255; 32]]) {
            let expected = naive.starting_with(&first).unwrap();
            assert_eq!(exact.starting_with(&first).unwrap(), expected, "{first:?} of {count}");
        }
    }
}

/// A file written by an earlier version stays readable, and a new one has the same bytes.
#[test]
fn a_new_list_equals_the_golden_file() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/addresses.exact");
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("exact");
    Exact::save(&written, &hashes(200), false).unwrap();
    assert!(std::fs::read(&written).unwrap() == std::fs::read(path).unwrap());
    assert_eq!(Exact::open(path).unwrap().starting_with(&[7, 7, 7, 7]).unwrap().len(), 67);
}

#[test]
fn every_flipped_bit_and_truncation_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exact");
    Exact::save(&path, &hashes(200), false).unwrap();
    let whole = std::fs::read(&path).unwrap();
    // Reads all pages.
    let ask = || {
        let mut exact = Exact::open(&path)?;
        Ok::<_, umbel_text::Error>((exact.starting_with(&[])?, exact.starting_with(&[0xff])?))
    };
    assert_eq!(ask().unwrap().0.len(), 200);
    // The golden file has the same bytes.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for bit in 0..8 * whole.len() {
        let (at, byte) = (bit / 8, whole[bit / 8]);
        file.write_all_at(&[byte ^ 1 << (bit % 8)], at as u64).unwrap();
        assert!(ask().is_err(), "bit {bit}");
        file.write_all_at(&[byte], at as u64).unwrap();
    }
    assert!(ask().is_ok());
    for len in (0..whole.len()).step_by(61) {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert!(ask().is_err(), "{len} bytes");
    }
    std::fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    assert!(ask().is_err());
}

#[test]
fn a_filter_without_valid_metadata_is_not_a_screen() {
    let (screen, _) = Screen::build(&[Address::parse(b"evil.example").unwrap()], 0.01).unwrap();
    let mut meta = Meta::new();
    screen.record(&mut meta);
    let filter = screen.into_filter();
    for prefix in ["3", "33", "x", ""] {
        let mut strange = meta.clone();
        strange.insert("address-prefix".into(), prefix.into());
        assert!(Screen::from_filter(filter.try_clone().unwrap(), &strange).is_none(), "{prefix}");
    }
    assert!(Screen::from_filter(filter.try_clone().unwrap(), &Meta::new()).is_none());
    assert!(Screen::from_filter(filter, &meta).is_some());
}
