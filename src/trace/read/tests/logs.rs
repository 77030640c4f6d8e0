//! Logs of gateways, servers and tracers, in rows of our own making.

use super::quirks::{blocks, chains};
use super::*;

#[test]
fn spans_in_every_dress() {
    let flat = r#"{"name": "chat m", "trace_id": "t", "start_time": "2026-02-25T10:00:00.5", "status": {"code": 1},
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 70, "gen_ai.usage.output_tokens": 8}}"#;
    let tool = r#"{"name": "tool", "start_time": "2026-02-25T10:00:00", "attributes": {"gen_ai.operation.name": "execute_tool"}}"#;
    let failed = flat.replace("\"code\": 1", "\"code\": 2").replace("00.5", "02");
    let document = format!("{{\"trace_id\": \"t\", \"spans\": [{flat}, {tool}, {failed}]}}");
    let trace = check(&document, "0@0:70/8");
    assert_eq!((trace.format(), chains(&trace)), (Format::Otel, vec!["t/1 m".to_owned()]));
    let facts = trace.facts().unwrap();
    assert_eq!((facts.rows_read, facts.rows_skipped, facts.rows_failed), (3, 1, 1));
    check(&flat.replace('\n', " "), "0@0:70/8");
    check(&format!("[{flat}]"), "0@0:70/8");
    // OTLP, with vLLM's old names: typed values, counts and times as text.
    let otlp = r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "llm_request", "traceId": "t",
        "startTimeUnixNano": "1700000000000000123", "attributes": [
        {"key": "gen_ai.usage.prompt_tokens", "value": {"intValue": "12"}},
        {"key": "gen_ai.usage.completion_tokens", "value": {"intValue": "3"}}]}]}]}]}"#;
    let later = otlp.replace("0123", "1123").replace('\n', " ");
    check(&(otlp.replace('\n', " ") + "\n" + &later), "0@0:12/3 1@1000:12/3");
}

#[test]
fn spend_logs_as_json_and_csv() {
    let row = |kind: &str, time: &str, status: &str| {
        format!(
            "{{\"request_id\": \"r\", \"call_type\": \"{kind}\", \"startTime\": {time}, \"prompt_tokens\": 5, \
             \"completion_tokens\": 7, \"model\": \"m\", \"session_id\": \"s\", \"status\": \"{status}\"}}\n"
        )
    };
    let text = row("acompletion", "\"2025-01-01 10:00:00.25\"", "success")
        + &row("aembedding", "\"2025-01-01 10:00:01\"", "success")
        + &row("acompletion", "\"2025-01-01 10:00:02\"", "failure")
        + &row("anthropic_messages", "\"2025-01-01 10:00:03.5\"", "");
    let trace = check(&text, "0@0:5/7 3@3250000000:5/7");
    assert_eq!(
        (trace.format(), chains(&trace)),
        (Format::LiteLlm, vec!["s/1 m".into(), "s/2 m".into()])
    );
    let facts = trace.facts().unwrap();
    assert_eq!((facts.rows_read, facts.rows_skipped, facts.rows_failed), (4, 1, 1));
    check(&row("completion", "1735725600.25", "success"), "0@0:5/7");
    let csv = "request_id,call_type,startTime,endTime,prompt_tokens,completion_tokens,model,status\n\
        a,acompletion,2025-01-01 10:00:00+00,2025-01-01 10:00:09+00,5,7,m,success\n\
        b,acompletion,2025-01-01 10:00:00.001+00,2025-01-01 10:00:09+00,6,8,m,\n";
    check(csv, "0@0:5/7 1@1000000:6/8");
}

#[test]
fn dynamo_rows_stand_in_the_order_of_their_ends() {
    let row = |received: &str, ids: &str| {
        format!(
            "{{\"schema\": \"dynamo.request.trace.v1\", \"event_type\": \"request_end\", \"event_time_unix_ms\": 9, \
             \"agent_context\": {{\"session_id\": \"s\"}}, \"request\": {{\"request_received_ms\": {received}, \
             \"output_tokens\": 3, \"input_tokens\": 130, \"replay\": {{\"trace_block_size\": 64, \"input_length\": \
             130, \"input_sequence_hashes\": {ids}}}}}}}\n"
        )
    };
    let text = row("1700000001000", "[18446744073709551615, 2]")
        + &row("1700000000000.5", "[18446744073709551615, 2, 3]")
        + "{\"schema\": \"dynamo.request.trace.v1\", \"event_type\": \"tool_end\"}\n";
    let trace = opened(text.as_bytes(), options());
    assert_eq!(sketch(&trace), "1@0:130/3 0@999500000:130/3");
    assert_eq!(blocks(&trace), [vec![u64::MAX, 2, 3], vec![u64::MAX, 2]]);
    let facts = trace.facts().unwrap();
    assert_eq!((trace.format(), facts.rows_read, facts.rows_skipped), (Format::Dynamo, 3, 1));
    assert_eq!(chains(&trace), ["s/1", "s/2"]);
}

#[test]
fn sglangs_events_are_joined_by_their_id() {
    let line = |time: &str, event: &str, id: &str, out: &str| {
        format!(
            "{{\"timestamp\": \"2025-09-10T19:10:{time}\", \"event\": \"request.{event}\", \"rid\": \"{id}\", \
             \"obj\": {{}}{out}}}\n"
        )
    };
    let out = ", \"out\": {\"meta_info\": {\"prompt_tokens\": 11, \"completion_tokens\": 4, \"e2e_latency\": 1.5}}";
    let text = line("00.000001", "received", "a", "")
        + &line("00.5", "received", "b", "")
        + &line("01", "received", "open", "")
        + &line("02", "finished", "b", out)
        + &line("03", "finished", "a", out)
        + &line("04.25", "finished", "before", out);
    let trace = opened(text.as_bytes(), options());
    assert_eq!(sketch(&trace), "4@0:11/4 3@499999000:11/4 5@2749999000:11/4");
    let facts = trace.facts().unwrap();
    assert_eq!((trace.format(), facts.rows_read, facts.rows_skipped), (Format::SgLang, 6, 3));
    let said = trace.notices().join("\n");
    assert!(said.contains("1 requests are not finished"), "{said}");
}
