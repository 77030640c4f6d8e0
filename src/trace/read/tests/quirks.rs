//! What sets each format apart, in rows of our own making.

use super::*;

/// `session/turn+think` of every row, with its class.
pub(super) fn chains(trace: &Trace) -> Vec<String> {
    let word = |name: &Option<std::sync::Arc<str>>| name.as_deref().unwrap_or("").to_owned();
    let chain = |row: &Request| {
        let turn = row.turn.map_or(String::new(), |turn| format!("/{turn}"));
        let think = row.think.map_or(String::new(), |think| format!("+{think}"));
        let class = row.class.as_ref().map_or(String::new(), |name| format!(" {name}"));
        format!("{}{turn}{think}{class}", word(&row.session))
    };
    requests(trace).iter().map(chain).collect()
}

pub(super) fn blocks(trace: &Trace) -> Vec<Vec<u64>> {
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
fn long_prompts_keep_all_their_ids_and_global_ids_stay_as_they_are() {
    let ids: Vec<String> = (0..13_974).map(|id| id.to_string()).collect();
    let session = |id: &str, scope: &str| {
        format!(
            "{{\"id\": \"{id}\", \"block_size\": 64, \"hash_id_scope\": \"{scope}\", \"requests\": [{{\"t\": 0.0, \
             \"in\": 894371, \"out\": 9, \"hash_ids\": [{}]}}]}}\n",
            ids.join(", ")
        )
    };
    let trace = opened((session("a", "global") + &session("b", "global")).as_bytes(), options());
    let found = blocks(&trace);
    assert_eq!((found[0].len(), shared(&found[0], &found[1])), (13_974, 13_974));
    assert_eq!((found[0][0], found[0][13_973]), (0, 13_973));
    let trace = opened((session("a", "local") + &session("b", "local")).as_bytes(), options());
    let found = blocks(&trace);
    assert_eq!((found[1].len(), shared(&found[0], &found[1])), (13_974, 0));
    // As one line of Mooncake's rows.
    let row = format!(
        "{{\"timestamp\": 0, \"input_length\": 7154688, \"output_length\": 1, \"hash_ids\": [{}]}}\n",
        ids.join(", ")
    );
    assert_eq!(blocks(&opened(row.as_bytes(), options()))[0].len(), 13_974);
}
