//! Comparison of the decoding loops for tests and fuzzing: all must reach the same state on any
//! input.

use super::{Fault, Properties, RangeDecoder, State, Stop, Window, fast};

type Loop = fn(&mut State, &mut RangeDecoder<'_>, &mut Window<'_>) -> Result<Stop, Fault>;

/// Describes the state of a decoder at each of `limits`, and its output; faults end it.
fn known_after(
    run: Loop,
    packed: &[u8],
    properties: Properties,
    limits: &[usize],
    dict_len: usize,
) -> String {
    let mut state = State::new();
    state.reset(properties);
    let Ok(mut rc) = RangeDecoder::new(packed) else { return "no stream".into() };
    let room = limits.last().copied().unwrap_or(0);
    let mut dst = vec![0x5A; room + 64];
    let (mut len, mut results) = (0, Vec::new());
    for &limit in limits {
        let mut window = Window { dst: &mut dst, len, limit, dict_len, cut: true };
        results.push(run(&mut state, &mut rc, &mut window));
        len = window.len;
        if !matches!(results.last(), Some(Ok(Stop::Limit))) {
            break;
        }
    }
    assert!(dst[room..].iter().all(|&byte| byte == 0x5A), "wrote beyond the limit");
    // A fault leaves the model within a symbol, where decoding stops.
    let model =
        results.iter().all(Result::is_ok).then_some((state.state, state.reps, &state.model.probs[..]));
    format!("{results:?} {} {} {} {len} {:?} {model:?}", rc.at, rc.range, rc.code, &dst[..len])
}

/// Decodes a stream with every loop, up to each of `limits`; returns the common outcome, or `None`
/// if they disagree.
///
/// # Panics
///
/// If a loop writes beyond the last limit.
pub(crate) fn loops(
    packed: &[u8],
    properties: Properties,
    limits: &[usize],
    dict_len: usize,
) -> Option<String> {
    let [native, portable, careful] =
        [State::decode as Loop, State::decode_by::<fast::Portable>, State::decode_carefully]
            .map(|run| known_after(run, packed, properties, limits, dict_len));
    (native == careful && portable == careful).then_some(native)
}
