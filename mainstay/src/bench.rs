//! `mainstay bench sim`: how fast the simulator is.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::Result;
use api::timing::profile::Profile;
use serde_json::json;
use sim::report::Summary;
use sim::run::Keep;
use sim::{run, schedule};

use crate::arguments::{BenchSim, Output};
use crate::{machine, series};

/// Runs it. The exit code.
pub(crate) fn run(options: &BenchSim) -> Result<u8> {
    let profile = Profile::named("default")?;
    let mut summary = Summary::default();
    let began = Instant::now();
    let job = |seed: u64| run::carry_out(&schedule::plan(seed, profile.timing, None), seed, Keep::Last);
    series::in_order(1..=options.seeds, job, |report| {
        summary.fold(&report);
        ControlFlow::Continue(())
    });
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let decisions = machine::per_second(summary.counters.decisions, ms);
    let events = machine::per_second(summary.counters.events, ms);
    let virtual_s = machine::per_second(summary.span.secs(), ms);
    let seeds = machine::per_second(summary.seeds, ms);
    match options.output {
        Output::Json => say!(
            "{}",
            json!({
                "seeds": summary.seeds,
                "decisions": summary.counters.decisions,
                "events": summary.counters.events,
                "elapsed_ms": ms,
                "seeds_per_s": seeds,
                "decisions_per_s": decisions,
                "events_per_s": events,
                "virtual_s_per_s": virtual_s,
                "rss_max_kib": machine::rss_max_kib(),
            })
        ),
        Output::Text => {
            say!("{} seeds in {ms} ms: {seeds} seeds/s", summary.seeds);
            say!("{decisions} decisions/s, {events} events/s, {virtual_s} virtual seconds per second");
        }
    }
    Ok(0)
}
