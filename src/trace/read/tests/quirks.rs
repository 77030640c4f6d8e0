//! What sets each format apart, in rows of our own making.

use super::*;

/// `session/turn+think` of every row, with its class.
fn chains(trace: &Trace) -> Vec<String> {
    let word = |name: &Option<std::sync::Arc<str>>| name.as_deref().unwrap_or("").to_owned();
    let chain = |row: &Request| {
        let turn = row.turn.map_or(String::new(), |turn| format!("/{turn}"));
        let think = row.think.map_or(String::new(), |think| format!("+{think}"));
        let class = row.class.as_ref().map_or(String::new(), |name| format!(" {name}"));
        format!("{}{turn}{think}{class}", word(&row.session))
    };
    requests(trace).iter().map(chain).collect()
}

fn blocks(trace: &Trace) -> Vec<Vec<u64>> {
    let of = |row: Request| row.prefix.map_or(Vec::new(), |prefix| prefix.blocks.to_vec());
    requests(trace).into_iter().map(of).collect()
}

/// How many ids at the start two prompts share.
fn shared(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

const BURST_1: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,API log\n";
const BURST_3: &str = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total \
    tokens,Log Type\n19440110.0,a,43,GPT-4,906,446,1352,Conversation log\n19440110.0,,2,ChatGPT,0,0,0,API log\n\
    19440161.0,a,2,ChatGPT,36,0,36,Conversation log\n19440170.0,a,2,GPT-4,50,7,57,Conversation log\n";

#[test]
fn burstgpt_by_name_with_sessions_and_failures() {
    let trace = check(BURST_1, "0@0:472/18");
    assert_eq!((trace.format(), chains(&trace)), (Format::BurstGpt, vec![" ChatGPT".to_owned()]));
    // Inserted columns, a base that is not zero, failed rows dropped.
    let trace = check(BURST_3, "0@0:906/446 3@60000000000:50/7");
    assert_eq!(chains(&trace), ["a/1 GPT-4", "a/2 GPT-4"]);
    let facts = trace.facts().unwrap();
    assert_eq!((facts.rows_read, facts.rows_kept, facts.rows_failed), (4, 2, 2));
    let keep = opened(BURST_3.as_bytes(), ReadOptions { failed: Failed::Keep, ..options() });
    assert_eq!(sketch(&keep), "0@0:906/446 1@0:1/1 2@51000000000:36/1 3@60000000000:50/7");
    assert_eq!(chains(&keep), ["a/1 GPT-4", " ChatGPT", "a/2 ChatGPT", "a/3 GPT-4"]);
}

#[test]
fn length_files_have_times_or_none() {
    let trace = check(
        "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4808,10\n5.8926549999999995,3,4\n",
        "0@0:4808/10 1@5892655000:3/4",
    );
    assert_eq!((trace.format(), trace.clock()), (Format::Lengths, TraceClock::Common));
    let trace = check(
        "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n74,918,992,0.0806\n1,2,3,0.5\n",
        "0@0:74/918 1@0:1/2",
    );
    assert_eq!(trace.clock(), TraceClock::Absent);
    assert!(trace.notices()[0].contains("--rate R"), "{:?}", trace.notices());
}

#[test]
fn aiperf_adds_sessions_pauses_words_and_bodies_to_mooncakes_rows() {
    let text = "\
        {\"timestamp\": 1000, \"session_id\": \"s\", \"input_length\": 600, \"output_length\": 2, \"hash_ids\": [1, 2]}\n\
        {\"session_id\": \"s\", \"delay\": 250.5, \"text_input\": \"four words of text..\", \"output_length\": 3}\n\
        {\"timestamp\": 2000, \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"output_length\": 4, \
         \"tools\": [{\"type\": \"x\"}], \"extra\": {\"top_k\": 3}}\n\
        {\"timestamp\": 3000, \"payload\": {\"max_tokens\": 9, \"prompt\": \"x\"}}\n";
    let trace = check(text, "0@0:600/2 1@0:5/3 2@1000000000:8/4 3@2000000000:8/9");
    assert_eq!(trace.format(), Format::Mooncake);
    assert_eq!(chains(&trace), ["s/1", "s/2+0.250500000", "", ""]);
    let said = trace.notices().join("\n");
    assert!(
        said.contains("3 rows give their prompt in words") && said.contains("4 bytes"),
        "{said}"
    );
    let rows = requests(&trace);
    let content = |row: usize| rows[row].content.clone().unwrap();
    assert_eq!(content(1).prompt.as_deref(), Some("four words of text.."));
    assert_eq!(content(2).body.unwrap().get(), "{\"tools\":[{\"type\": \"x\"}],\"top_k\":3}");
    assert_eq!(content(3).body.unwrap().get(), "{\"max_tokens\":9,\"prompt\":\"x\"}");
    // A later turn keeps its place although the file is not sorted.
    let moved = text.replace("\"timestamp\": 1000", "\"timestamp\": 2500");
    assert_eq!(
        sketch(&opened(moved.as_bytes(), options())),
        "2@0:8/4 0@500000000:600/2 1@500000000:5/3 3@1000000000:8/9"
    );
}

#[test]
fn timed_traces_are_mooncakes_rows_in_seconds_and_blocks_of_16() {
    let told = ReadOptions { format: Some(Format::TimedTrace), ..options() };
    let text = "{\"timestamp\": 0.5, \"input_length\": 33, \"output_length\": 2, \"hash_ids\": [1, 2, 3]}\n\
        {\"timestamp\": 1.5, \"input_length\": 33, \"output_length\": 2, \"hash_ids\": [1, 2]}\n";
    let trace = opened(text.as_bytes(), told);
    assert_eq!(sketch(&trace), "0@0:33/2 1@1000000000:33/2");
    assert_eq!(blocks(&trace), [vec![1, 2, 3], vec![1, 2]]);
}

fn bailian(chat: i64, parent: i64, time: &str, turn: u32) -> String {
    format!(
        "{{\"chat_id\": {chat}, \"parent_chat_id\": {parent}, \"timestamp\": {time}, \"input_length\": 17, \
         \"output_length\": 2, \"type\": \"text\", \"turn\": {turn}, \"hash_ids\": [1, {}]}}\n",
        chat + 10
    )
}

#[test]
fn bailian_follows_parents_to_the_session() {
    let text = bailian(0, -1, "0.5", 1)
        + &bailian(1, 0, "1.25", 2)
        + &bailian(2, 1, "61.000000001", 3)
        + &bailian(7, 5, "62", 4)
        + &bailian(8, 7, "63.5", 5);
    let trace = check(
        &text,
        "0@0:17/2 1@750000000:17/2 2@60500000001:17/2 3@61500000000:17/2 4@63000000000:17/2",
    );
    let all = ["0/1 text", "0/2 text", "0/3 text", "5/4 text", "5/5 text"];
    assert_eq!((trace.format(), chains(&trace)), (Format::Bailian, all.map(String::from).to_vec()));
    assert_eq!(blocks(&trace)[1], [1, 11]);
    // Sorting must not lose the parents: here the root comes last in time.
    let text = bailian(0, -1, "9", 1) + &bailian(1, 0, "3", 2);
    assert_eq!(chains(&opened(text.as_bytes(), options())), ["0/2 text", "0/1 text"]);
}

#[test]
fn ragpulse_is_sorted_and_its_chunks_get_a_length_only_when_told() {
    let row = |time: u32, session: &str, passages: &str| {
        format!(
            "{{\"timestamp\": \"{time}\", \"input_length\": 300, \"output_length\": 9, \"hash_ids\": \
             {{\"sys_prompt\": [1], \"passages_ids\": {passages}, \"history\": [], \"web_search\": [], \
             \"user_input\": [1]}}, \"session_id\": \"{session}\"}}\n"
        )
    };
    // Two sorted runs glued together, and a blank line at the end.
    let text = row(500, "b", "[4, 5]") + &row(604_453, "b", "[4]") + &row(0, "a", "[5]") + "\n";
    let trace = opened(text.as_bytes(), options());
    let expect = "2@0:300/9 0@500000000000:300/9 1@604453000000000:300/9";
    assert_eq!((sketch(&trace), trace.format()), (expect.to_owned(), Format::RagPulse));
    assert_eq!(chains(&trace), ["a/1", "b/1", "b/2"]);
    assert_eq!((blocks(&trace).concat().len(), trace.facts().unwrap().rows_moved), (0, 1));
    assert!(trace.notices().iter().any(|line| line.contains("--block-tok N")));
    let told = ReadOptions { block_tok: Some(100), ..options() };
    let trace = opened(text.as_bytes(), told);
    let ids = blocks(&trace);
    assert_eq!(ids.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3], "cut to the prompt");
    assert_eq!((shared(&ids[1], &ids[2]), shared(&ids[0], &ids[1])), (2, 1));
    assert_ne!(ids[0][0], ids[0][2], "kinds number their chunks apart");
}

const WEKA: &str = r#"{"id": "one", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": [
    {"t": 0.0, "type": "n", "model": "m", "in": 130, "out": 5, "hash_ids": [1, 2], "think_time": 0.0},
    {"t": 4.5, "type": "subagent", "agent_id": "a1", "requests": [
        {"t": 0.0, "type": "s", "model": "h", "in": 64, "out": 3, "hash_ids": [7], "ttft": null},
        {"t": 1.25, "type": "s", "model": "h", "in": 128, "out": 3, "hash_ids": [7, 8], "think_time": 0.5}]},
    {"t": 10.0, "type": "n", "model": "m", "in": 192, "out": 0, "hash_ids": [1, 2, 3], "think_time": 9.0},
    {"t": 20.0, "type": "n", "model": "m", "in": 192, "out": 6, "hash_ids": [1, 2, 3], "think_time": 9.0}],
    "totals": {}}"#;

#[test]
fn claude_code_sessions_have_sub_agents_and_ids_of_their_own() {
    let trace = check(WEKA, "0@0:130/5 1@4500000000:64/3 2@5750000000:128/3 4@20000000000:192/6");
    let chain = ["one/1 m", "one/a1/1 h", "one/a1/2+0.500000000 h", "one/2+9.000000000 m"];
    assert_eq!((trace.format(), chains(&trace)), (Format::Weka, chain.map(String::from).to_vec()));
    let ids = blocks(&trace);
    assert_eq!((shared(&ids[0], &ids[3]), shared(&ids[1], &ids[2])), (2, 1));
    assert_eq!(trace.facts().unwrap().rows_failed, 1);
    // Two sessions in lines: the same local ids are other blocks, and both begin at 0.
    let lines =
        WEKA.replace('\n', " ") + "\n" + &WEKA.replace('\n', " ").replace("\"one\"", "\"two\"");
    let trace = opened(lines.as_bytes(), options());
    let ids = blocks(&trace);
    assert_eq!((requests(&trace).len(), shared(&ids[0], &ids[1])), (8, 0));
    assert_eq!(trace.clock(), TraceClock::PerSession);
    assert!(trace.notices().iter().any(|line| line.contains("all begin together")));
}

#[test]
fn a_folder_of_sessions_is_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("a.json", WEKA);
    file("b.jsonl", &WEKA.replace('\n', " ").replace("\"one\"", "\"two\""));
    file("notes.txt", "not a trace");
    let folder = |options| open(Input::File(folder.path().into()), options);
    assert_eq!(requests(&folder(options()).unwrap()).len(), 8);
    let twice = tempfile::tempdir().unwrap();
    std::fs::write(twice.path().join("a.json"), WEKA).unwrap();
    std::fs::write(twice.path().join("b.json"), WEKA).unwrap();
    let message = open(Input::File(twice.path().into()), options()).err().unwrap().to_string();
    assert!(message.contains("b.json") && message.contains("`one` was read before"), "{message}");
}

#[test]
fn tracelab_makes_ids_of_what_was_cached() {
    let round = |round: u32, input: u32, cached: u32, time: &str| {
        format!(
            "{{\"session_id\": \"s\", \"round_index\": {round}, \"model\": \"m\", \"input_tokens_total\": {input}, \
             \"prefix_tokens\": {cached}, \"output_tokens\": 9, \"timing_events\": [{{\"event_type\": \"text\", \
             \"timestamp\": \"2026-06-01T05:40:{time}Z\"}}, {{\"event_type\": \"tool_call\", \"timestamp\": \
             \"2026-06-01T05:40:59.5Z\"}}]}}\n"
        )
    };
    let text = round(0, 640, 128, "20.151") + &round(1, 1280, 640, "59.75");
    let trace = check(&text, "0@0:640/9 1@39349000000:1280/9");
    assert_eq!(chains(&trace), ["s/1 m", "s/2+0.000000000 m"]);
    let ids = blocks(&trace);
    assert_eq!((ids[0].len(), ids[1].len(), shared(&ids[0], &ids[1])), (10, 20, 10));
    let replay = "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n\
        0,100,0,0,640,64,250\n1,0,0,0,640,64,10\n0,100,1,640,128,64,0\n";
    let trace = opened(replay.as_bytes(), options());
    assert_eq!(sketch(&trace), "1@0:640/64 0@100000000:640/64 2@100000000:768/64");
    assert_eq!(chains(&trace), ["1/1", "0/1", "0/2+0.250000000"]);
    assert_eq!(trace.clock(), TraceClock::Common);
    let untimed =
        "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n0,0,0,64,5,1\n";
    assert_eq!(opened(untimed.as_bytes(), options()).clock(), TraceClock::PerSession);
}

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
