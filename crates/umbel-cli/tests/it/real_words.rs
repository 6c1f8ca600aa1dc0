//! Real data: words of one language in a filter of another pass at the promised rate, and no word
//! is lost.

use crate::shell::{Shell, split};
use crate::words;
use std::collections::HashSet;

/// The rate of a filter at capacity differs from 1 % by 0.3 % of it, and that of 660 000 queries by
/// 1.2 % of it, so 0.05 % of all words, 5 % of the rate, are four standard deviations.
#[test]
fn english_words_pass_a_filter_of_polish_ones_at_the_promised_rate() {
    let [polish, english] = [("wpolish", "polish"), ("wamerican-insane", "american-english-insane")]
        .map(|(package, name)| std::fs::read(words::list(package, name)).expect("a word list"));
    let shell = Shell::new();
    shell.write("polish", &polish);
    shell.write("english", &english);
    shell.run("build -p 1% -o filter polish").ok();
    let answered = shell.run("check filter english").ok().stdout;
    let [polish, asked, answered] =
        [&polish, &english, &answered].map(|words| split(words).into_iter().collect::<HashSet<&[u8]>>());
    let absent: HashSet<&[u8]> = asked.difference(&polish).copied().collect();
    assert!(absent.len() > 600_000, "there are {} English words that are not Polish", absent.len());
    let rate = answered.intersection(&absent).count() as f64 / absent.len() as f64;
    assert!((rate - 0.01).abs() <= 0.0005, "the rate is {rate}");
    assert!(asked.intersection(&polish).all(|word| answered.contains(word)), "a common word was lost");
}
