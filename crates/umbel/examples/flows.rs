//! How large are the flows? Ten million packets of a hundred thousand flows, whose sizes fall as 1, 1/2, 1/3, ...,
//! counted by a multi-resolution space-code filter and held against the truth, decade by decade.
//!
//! ```sh
//! cargo run --release --example flows                      # 1e7 packets of 1e5 flows
//! cargo run --release --example flows -- 1000000 10000     # fewer
//! ```

use std::error::Error;
use std::time::Instant;
use umbel::{Count, MultiResolution, Spec, Tuning};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let packets = args.next().transpose()?.unwrap_or(10_000_000);
    let flows = args.next().transpose()?.unwrap_or(100_000).max(1);

    let harmonic: f64 = (1..=flows).map(|rank| 1.0 / rank as f64).sum();
    let sizes: Vec<u64> =
        (1..=flows).map(|rank| ((packets as f64 / harmonic / rank as f64).round() as u64).max(1)).collect();
    let mut arrivals: Vec<u64> =
        (0..).zip(&sizes).flat_map(|(flow, size)| std::iter::repeat_n(flow, *size as usize)).collect();
    shuffle(&mut arrivals);

    let mut tuning = Tuning::default();
    tuning.space_code.keys = Some(flows);
    let spec = Spec::new(arrivals.len() as u64, 0.005)?.with_tuning(tuning);
    let mut filter = MultiResolution::build(&spec)?;
    let start = Instant::now();
    filter.record_batch(&arrivals)?;
    let recording = start.elapsed().as_nanos() as f64 / arrivals.len() as f64;
    let start = Instant::now();
    let keys: Vec<u64> = (0..flows).collect();
    let counts = filter.count_batch(&keys);
    let asking = start.elapsed().as_nanos() as f64 / flows as f64;

    let stats = filter.stats();
    println!(
        "{} packets of {flows} flows in {:.2} MiB, {:.2} bits per packet, noise {:.4}; {recording:.0} ns to record, {asking:.0} ns to ask",
        arrivals.len(),
        stats.bytes as f64 / f64::from(1 << 20),
        stats.bits as f64 / arrivals.len() as f64,
        stats.rate_now
    );
    println!("packets of a flow     flows    bias   spread  within 25 %  within 50 %  in the interval");
    let mut least = 1;
    while least <= sizes[0] {
        let decade = least..10 * least;
        let of: Vec<usize> = (0..sizes.len()).filter(|flow| decade.contains(&sizes[*flow])).collect();
        let errors: Vec<f64> =
            of.iter().map(|flow| counts[*flow].value / sizes[*flow] as f64 - 1.0).collect();
        let share = |holds: &dyn Fn(usize) -> bool| {
            (0..of.len()).filter(|i| holds(*i)).count() as f64 / of.len() as f64
        };
        let bias = errors.iter().sum::<f64>() / of.len() as f64;
        let spread =
            (errors.iter().map(|error| (error - bias).powi(2)).sum::<f64>() / of.len() as f64).sqrt();
        let inside = |i: usize| (counts[of[i]].low..=counts[of[i]].high).contains(&(sizes[of[i]] as f64));
        if !of.is_empty() {
            println!(
                "{:8} to {:8}  {:8}  {bias:+.3}    {spread:.3}        {:.3}        {:.3}            {:.3}",
                least,
                10 * least - 1,
                of.len(),
                share(&|i| errors[i].abs() <= 0.25),
                share(&|i| errors[i].abs() <= 0.5),
                share(&inside)
            );
        }
        least *= 10;
    }
    Ok(())
}

/// Puts packets into a random order, the same in every run (Fisher and Yates; numbers by splitmix64).
fn shuffle(packets: &mut [u64]) {
    let mut state = 1u64;
    for i in (1..packets.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        packets.swap(i, umbel::hash::reduce(z ^ (z >> 31), i as u64 + 1) as usize);
    }
}
