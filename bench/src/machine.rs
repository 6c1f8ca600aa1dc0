//! A description of the machine that the figures were measured on.

use std::fs::read_to_string;
use std::hint::black_box;
use std::time::Instant;

/// Returns one line: processor, SIMD level, caches, huge pages, load.
pub fn describe() -> String {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()))
        .unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let huge = read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let huge =
        huge.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("unknown", |(on, _)| on);
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown");
    format!(
        "{model}, {cores} cores, {}, L2 {}, L3 {}, transparent huge pages {huge}, load {load}",
        simd(),
        cache(2),
        cache(3)
    )
}

/// Measures how evenly the machine runs: the median and the slowest of many equal pieces of pure
/// arithmetic, relative to the fastest. About 1.0 on a quiet machine.
pub fn unrest() -> (f64, f64) {
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            let mut x = black_box(1u64);
            for _ in 0..250_000 {
                x = (x ^ (x >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            black_box(x);
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[100] / times[0], times[199] / times[0])
}

/// Returns the memory of this process on transparent huge pages, if the system reports it.
pub fn huge_page_bytes() -> Option<u64> {
    let rollup = read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn simd() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            return "AVX-512";
        }
        if is_x86_feature_detected!("avx2") {
            return "AVX2";
        }
    }
    "baseline SIMD"
}

/// Returns the size of the first core's cache of a level, as the system formats it.
fn cache(level: u32) -> String {
    (0..8)
        .map(|index| format!("/sys/devices/system/cpu/cpu0/cache/index{index}"))
        .find(|path| {
            read_to_string(format!("{path}/level")).is_ok_and(|found| found.trim() == level.to_string())
        })
        .and_then(|path| read_to_string(format!("{path}/size")).ok())
        .map_or("unknown".into(), |size| size.trim().to_string())
}
