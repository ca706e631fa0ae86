//! A profile of this very process, by a thread that is busy on purpose.

use std::hint::black_box;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt;

use super::*;

/// A value of a field: a number, or bytes.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// A protocol buffer, read by somebody who does not know how it was written.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value.to_vec())
            }
            other => panic!("no field of ours is of type {other}"),
        };
        all.push((key >> 3, value));
    }
    all
}

/// All fields of a number, as messages or texts.
fn inner(fields: &[(u64, Field)], number: u64) -> Vec<Vec<u8>> {
    let bytes = fields.iter().filter(|(field, _)| *field == number).map(|(_, value)| match value {
        Field::Bytes(bytes) => bytes.clone(),
        Field::Number(_) => panic!("{number} is a number"),
    });
    bytes.collect()
}

fn number(message: &[u8], number: u64) -> u64 {
    let found = fields(message).into_iter().find(|(field, _)| *field == number);
    match found {
        Some((_, Field::Number(value))) => value,
        None => 0,
        Some(other) => panic!("{other:?} is no number"),
    }
}

fn packed(message: &[u8], number: u64) -> Vec<u64> {
    let all = inner(&fields(message), number);
    let mut bytes = all[0].as_slice();
    std::iter::from_fn(|| (!bytes.is_empty()).then(|| varint(&mut bytes))).collect()
}

/// What a profile says.
struct Decoded {
    strings: Vec<String>,
    /// Addresses of stacks, and what was counted.
    samples: Vec<(Vec<u64>, Vec<u64>)>,
    mappings: Vec<Vec<u8>>,
    whole: Vec<u8>,
}

fn read(packed_up: &[u8]) -> Decoded {
    let mut whole = Vec::new();
    GzDecoder::new(packed_up).read_to_end(&mut whole).unwrap();
    let all = fields(&whole);
    let strings = inner(&all, 6).into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
    let locations: BTreeMap<u64, u64> =
        inner(&all, 4).iter().map(|location| (number(location, 1), number(location, 3))).collect();
    let samples = inner(&all, 2)
        .iter()
        .map(|sample| {
            let stack = packed(sample, 1).iter().map(|id| locations[id]).collect();
            (stack, packed(sample, 2))
        })
        .collect();
    Decoded { strings, samples, mappings: inner(&all, 3), whole }
}

#[test]
fn what_is_written_can_be_read() {
    let programs = programs::Programs::read().unwrap();
    let start = programs.0[0].mapping.start;
    let counts = [(vec![start + 300, start + 5].into(), 7), (vec![start + 5].into(), 1), (vec![1].into(), 2)];
    let counts = pprof::Counts::from(counts);
    let profile = pprof::Profile {
        counts: &counts,
        programs: &programs,
        began: std::time::Duration::from_secs(1_800_000_000),
        lasted: std::time::Duration::from_secs(3),
        period: std::time::Duration::from_millis(10),
        comment: Some("4 samples are missing".to_owned()),
    };
    let found = read(&profile.pack().unwrap());
    let mut samples = found.samples.clone();
    samples.sort();
    assert_eq!(
        samples,
        [
            (vec![1], vec![2, 20_000_000]),
            (vec![start + 5], vec![1, 10_000_000]),
            (vec![start + 300, start + 5], vec![7, 70_000_000]),
        ]
    );
    let text = |message: &[u8], field| found.strings[number(message, field) as usize].as_str();
    let types: Vec<_> = inner(&fields(&found.whole), 1)
        .iter()
        .map(|it| (text(it, 1).to_owned(), text(it, 2).to_owned()))
        .collect();
    let expected = [("samples", "count"), ("cpu", "nanoseconds")];
    assert_eq!(types, expected.map(|(what, unit)| (what.to_owned(), unit.to_owned())));
    let own = &found.mappings[0];
    assert_eq!((number(own, 1), number(own, 2), number(own, 4)), (1, start, programs.0[0].mapping.offset));
    assert_eq!(text(own, 5), programs.0[0].mapping.file);
    assert_eq!(text(own, 6), programs.0[0].build_id);
    assert_eq!((found.strings[0].as_str(), text(&found.whole, 13)), ("", "4 samples are missing"));
    assert_eq!(
        [9, 10, 12].map(|field| number(&found.whole, field)),
        [1_800_000_000_000_000_000, 3_000_000_000, 10_000_000]
    );
    let locations = inner(&fields(&found.whole), 4);
    let mapping_of =
        |address| number(locations.iter().find(|location| number(location, 3) == address).unwrap(), 2);
    assert_eq!((mapping_of(1), mapping_of(start + 5)), (0, 1));
}

fn config(allowed: bool) -> Arc<ClusterConfig> {
    let developer = json!({ "developerConfiguration": { "clusterProfiler": allowed } });
    let kubevirt = json!({ "spec": { "configuration": developer } });
    Arc::new(ClusterConfig::of(&serde_json::from_value(kubevirt).unwrap()))
}

async fn ask(router: &Router, path: &str) -> (u16, String) {
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

/// The profile that is given out; none if there is none.
async fn dumped(router: &Router) -> Option<Decoded> {
    let (code, body) = ask(router, "/dump-profiler").await;
    assert_eq!(code, 200, "{body}");
    let results: Value = serde_json::from_str(&body).unwrap();
    results["pprofData"][CPU].as_str().map(|text| read(&STANDARD.decode(text).unwrap()))
}

#[inline(never)]
fn busy(end: &AtomicBool) -> u64 {
    let mut sum = 0_u64;
    while !end.load(Ordering::Relaxed) {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(7));
    }
    sum
}

#[inline(never)]
fn caller_of_busy(end: &AtomicBool) -> u64 {
    busy(end).wrapping_add(black_box(1))
}

/// How often stacks were counted in which these functions, innermost first, call each other.
fn seen(profile: &Decoded, chain: &[usize]) -> u64 {
    let within =
        |address: &u64, function: &usize| (*function as u64..*function as u64 + 512).contains(address);
    let holds = |stack: &Vec<u64>| {
        let starts = stack.windows(chain.len());
        starts
            .into_iter()
            .any(|window| window.iter().zip(chain).all(|(address, function)| within(address, function)))
    };
    profile.samples.iter().filter(|(stack, _)| holds(stack)).map(|(_, values)| values[0]).sum()
}

/// One test, since a process has one profiler.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_thread_is_seen_with_its_callers() {
    let (setting, followed) = watch::channel(config(false));
    let router = routes(Configuration::told(followed));
    for (path, what) in [
        ("/start-profiler", "start profiler"),
        ("/stop-profiler", "stop profiler"),
        ("/dump-profiler", "retrieve profiler data"),
    ] {
        let words = format!("Unable to {what}. \"ClusterProfiler\" feature gate must be enabled");
        assert_eq!(ask(&router, path).await, (403, words));
    }
    setting.send_replace(config(true));
    assert!(dumped(&router).await.is_none(), "nothing was started");
    assert_eq!(ask(&router, "/stop-profiler").await.0, 200, "nothing to stop");

    let end = Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let end = end.clone();
        move || caller_of_busy(&end)
    });
    let chain = [busy as fn(&AtomicBool) -> u64 as usize, caller_of_busy as fn(&AtomicBool) -> u64 as usize];
    for round in 0..2 {
        assert_eq!(ask(&router, "/start-profiler").await, (200, String::new()), "{round}");
        // As long as it takes: also a running profiler tells what it has seen.
        while seen(&dumped(&router).await.unwrap(), &chain) < 5 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(ask(&router, "/stop-profiler").await.0, 200);
        let (kept, again) = (dumped(&router).await.unwrap(), dumped(&router).await.unwrap());
        assert!(seen(&kept, &chain) >= 5);
        assert_eq!(kept.samples.len(), again.samples.len(), "nothing is added after the end");
        let own = &kept.mappings[0];
        let file = std::fs::read_link("/proc/self/exe").unwrap();
        assert_eq!(kept.strings[number(own, 5) as usize], file.to_str().unwrap());
    }

    // Who turns the setting off ends what runs.
    assert_eq!(ask(&router, "/start-profiler").await.0, 200);
    setting.send_replace(config(false));
    while signal::is_armed() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    end.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
