//! What each engine calls its figures, and how they move: one table.
//!
//! Sources: pages of running servers (vLLM 0.32, llama.cpp, Dynamo 1.6, `LiteLLM` 1.108) and, for the
//! others, the metrics of their public sources. Old names stand behind new ones. A counter is looked up
//! with and without `_total`. Deliberately absent: what to do where an engine has no such figure; an
//! empty entry is an empty figure.

use crate::server::Engine;

/// Something that a server counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Prompt tokens.
    Prompt,
    /// Prompt tokens that came from the prefix cache.
    Cached,
    /// Tokens looked up in the prefix cache.
    CacheQueries,
    /// Of these, found.
    CacheHits,
    /// Completion tokens.
    Generation,
    /// Completion tokens by another counter, that moves while requests run.
    RunningGeneration,
    /// Requests that were answered whole.
    Finished,
    /// Completion tokens of those requests.
    FinishedTokens,
    /// Requests that lost their place and were computed again.
    Preempted,
    /// Tokens drafted by speculative decoding.
    Drafted,
    /// Of these, accepted.
    Accepted,
    /// Drafts.
    Drafts,
    /// Model steps.
    Steps,
}

/// Something that a server has so much of right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gauge {
    /// Requests in the batch.
    Running,
    /// Requests that wait for a place.
    Waiting,
    /// Share of the KV cache in use, 0 to 1.
    KvUse,
    /// Share of prompt tokens found in the prefix cache, as the server averages it.
    CacheHitRate,
    /// Share of drafted tokens that were accepted, as the server averages it.
    AcceptanceRate,
    /// Requests in the batch, averaged over all steps since the server's start.
    MeanBatch,
}

/// Something whose distribution a server keeps, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Latency {
    /// Time to first token, from the request's arrival at the server.
    Ttft,
    /// Between successive tokens.
    Itl,
    /// Of whole requests.
    E2e,
    /// From arrival to the first step.
    Queue,
}

/// When a count of completion tokens moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// With every step of the model, or every piece of an answer.
    PerStep,
    /// Once in many steps.
    PerInterval,
    /// When a request ends; what is under way is not in it.
    PerFinished,
}

/// What grows with the tokens of running requests where no count of tokens does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepping {
    /// [`Counter::Steps`] times [`Gauge::MeanBatch`]: each place of the batch makes about a token a step.
    BusyPlaces,
    /// The counts of [`Latency::Ttft`] and [`Latency::Itl`]: the first token, and each later one.
    TokenGaps,
}

/// Where a figure stands on the page.
#[derive(Clone, Copy, Debug)]
pub struct Selector {
    /// Names, the first that is there counts.
    pub names: &'static [&'static str],
    /// Only samples with one of these values of this label.
    pub only: Option<(&'static str, &'static [&'static str])>,
    /// No samples with one of these values of this label.
    pub except: Option<(&'static str, &'static [&'static str])>,
}

const fn by(names: &'static [&'static str]) -> Selector {
    Selector { names, only: None, except: None }
}

const fn only(
    names: &'static [&'static str],
    label: &'static str,
    values: &'static [&'static str],
) -> Selector {
    Selector { names, only: Some((label, values)), except: None }
}

const fn except(
    names: &'static [&'static str],
    label: &'static str,
    values: &'static [&'static str],
) -> Selector {
    Selector { names, only: None, except: Some((label, values)) }
}

/// What is known of an engine's page.
#[derive(Debug)]
pub struct Rules {
    /// Whose.
    pub engine: Engine,
    /// As people write it.
    pub name: &'static str,
    /// Every figure's name begins with one of these; a page with none of them is another engine's.
    pub prefixes: &'static [&'static str],
    /// When [`Counter::Generation`] moves.
    pub moves: Moves,
    /// What stands in for a count that does not move per step.
    pub stepping: Option<Stepping>,
    /// It passes requests on to engines that count the same tokens.
    pub is_front: bool,
    /// Labels whose values repeat one figure, such as the ranks of one model; other labels divide it.
    pub repeats: &'static [&'static str],
    /// [`Counter::Prompt`] leaves out those of [`Counter::Cached`].
    pub prompt_is_computed: bool,
    /// The label that names the model of a series, where a page may have several.
    pub model_label: Option<&'static str>,
    /// Counters.
    pub counters: &'static [(Counter, Selector)],
    /// Gauges.
    pub gauges: &'static [(Gauge, Selector)],
    /// Histograms.
    pub latencies: &'static [(Latency, Selector)],
    /// What a person should know of its counts.
    pub note: &'static str,
}

/// Requests that ended without a whole answer.
const NOT_ANSWERED: &[&str] = &["abort", "error"];

/// An engine of which nothing is known; what is usual stands in it alone.
const PLAIN: Rules = Rules {
    engine: Engine::OpenAi,
    name: "",
    prefixes: &[],
    moves: Moves::PerStep,
    stepping: None,
    is_front: false,
    repeats: &[],
    prompt_is_computed: false,
    model_label: None,
    counters: &[],
    gauges: &[],
    latencies: &[],
    note: "",
};

/// All engines; where a page fits two, the first counts.
pub static TABLE: [Rules; 8] = [
    // Before the engines, whose names its page may bear too.
    Rules {
        engine: Engine::Dynamo,
        name: "Dynamo frontend",
        prefixes: &["dynamo_frontend_"],
        is_front: true,
        model_label: Some("model"),
        counters: &[
            (Counter::Prompt, by(&["dynamo_frontend_input_sequence_tokens_sum"])),
            (Counter::Cached, by(&["dynamo_frontend_cached_tokens_sum"])),
            (Counter::Generation, by(&["dynamo_frontend_output_tokens"])),
            (Counter::Finished, only(&["dynamo_frontend_requests"], "status", &["success"])),
            (Counter::FinishedTokens, by(&["dynamo_frontend_output_sequence_tokens_sum"])),
        ],
        gauges: &[
            (
                Gauge::Running,
                by(&["dynamo_frontend_inflight_requests", "dynamo_frontend_active_requests"]),
            ),
            (Gauge::Waiting, by(&["dynamo_frontend_queued_requests"])),
        ],
        latencies: &[
            (Latency::Ttft, by(&["dynamo_frontend_time_to_first_token_seconds"])),
            (Latency::Itl, by(&["dynamo_frontend_inter_token_latency_seconds"])),
            (Latency::E2e, by(&["dynamo_frontend_request_duration_seconds"])),
        ],
        ..PLAIN
    },
    Rules {
        engine: Engine::Vllm,
        name: "vLLM",
        // `engine` tells data-parallel replicas apart, which add up: nothing is repeated.
        prefixes: &["vllm:"],
        model_label: Some("model_name"),
        counters: &[
            (Counter::Prompt, by(&["vllm:prompt_tokens"])),
            (Counter::Cached, by(&["vllm:prompt_tokens_cached"])),
            (
                Counter::CacheQueries,
                by(&["vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"]),
            ),
            (Counter::CacheHits, by(&["vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"])),
            (Counter::Generation, by(&["vllm:generation_tokens"])),
            (Counter::Finished, except(&["vllm:request_success"], "finished_reason", NOT_ANSWERED)),
            (Counter::FinishedTokens, by(&["vllm:request_generation_tokens_sum"])),
            (Counter::Preempted, by(&["vllm:num_preemptions"])),
            (Counter::Drafted, by(&["vllm:spec_decode_num_draft_tokens"])),
            (Counter::Accepted, by(&["vllm:spec_decode_num_accepted_tokens"])),
            (Counter::Drafts, by(&["vllm:spec_decode_num_drafts"])),
        ],
        gauges: &[
            (Gauge::Running, by(&["vllm:num_requests_running"])),
            (Gauge::Waiting, by(&["vllm:num_requests_waiting"])),
            (Gauge::KvUse, by(&["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"])),
        ],
        latencies: &[
            (Latency::Ttft, by(&["vllm:time_to_first_token_seconds"])),
            (
                Latency::Itl,
                by(&["vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"]),
            ),
            (Latency::E2e, by(&["vllm:e2e_request_latency_seconds"])),
            (Latency::Queue, by(&["vllm:request_queue_time_seconds"])),
        ],
        note: "requests whose client left are in the token counts, not among the finished",
        ..PLAIN
    },
    Rules {
        engine: Engine::Sglang,
        name: "SGLang",
        prefixes: &["sglang:"],
        moves: Moves::PerFinished,
        stepping: Some(Stepping::TokenGaps),
        // Ranks of one model tell the same figures again; `dp_rank` tells replicas apart.
        repeats: &["tp_rank", "pp_rank", "moe_ep_rank"],
        model_label: Some("model_name"),
        counters: &[
            (Counter::Prompt, by(&["sglang:prompt_tokens"])),
            (Counter::Cached, by(&["sglang:cached_tokens"])),
            (Counter::Generation, by(&["sglang:generation_tokens"])),
            (Counter::RunningGeneration, only(&["sglang:realtime_tokens"], "mode", &["decode"])),
            (Counter::Finished, by(&["sglang:num_requests"])),
            (Counter::FinishedTokens, by(&["sglang:generation_tokens"])),
            (Counter::Preempted, by(&["sglang:num_retracted_requests"])),
        ],
        gauges: &[
            (Gauge::Running, by(&["sglang:num_running_reqs"])),
            (Gauge::Waiting, by(&["sglang:num_queue_reqs"])),
            (Gauge::KvUse, by(&["sglang:token_usage"])),
            (Gauge::CacheHitRate, by(&["sglang:cache_hit_rate"])),
            (Gauge::AcceptanceRate, by(&["sglang:spec_accept_rate"])),
        ],
        latencies: &[
            (Latency::Ttft, by(&["sglang:time_to_first_token_seconds"])),
            (
                Latency::Itl,
                by(&["sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"]),
            ),
            (Latency::E2e, by(&["sglang:e2e_request_latency_seconds"])),
            (Latency::Queue, by(&["sglang:queue_time_seconds"])),
        ],
        note: "prompt tokens and finished requests are counted when a request ends; requests cut off \
               are not among them",
        ..PLAIN
    },
    Rules {
        engine: Engine::LlamaCpp,
        name: "llama.cpp",
        prefixes: &["llamacpp:"],
        moves: Moves::PerFinished,
        stepping: Some(Stepping::BusyPlaces),
        prompt_is_computed: true,
        counters: &[
            (Counter::Prompt, by(&["llamacpp:prompt_tokens"])),
            (Counter::Cached, by(&["llamacpp:prompt_tokens_cached"])),
            (Counter::Generation, by(&["llamacpp:tokens_predicted"])),
            (Counter::Steps, by(&["llamacpp:n_decode"])),
            (Counter::Drafted, by(&["llamacpp:spec_decode_num_draft_tokens"])),
            (Counter::Accepted, by(&["llamacpp:spec_decode_num_accepted_tokens"])),
            (Counter::Drafts, by(&["llamacpp:spec_decode_num_drafts"])),
        ],
        gauges: &[
            (Gauge::Running, by(&["llamacpp:requests_processing"])),
            (Gauge::Waiting, by(&["llamacpp:requests_deferred"])),
            (Gauge::KvUse, by(&["llamacpp:kv_cache_usage_ratio"])),
            (Gauge::MeanBatch, by(&["llamacpp:n_busy_slots_per_decode"])),
        ],
        note: "no count of requests is kept, and tokens of requests cut off are never counted; prompt \
               tokens are those computed, without cached ones",
        ..PLAIN
    },
    Rules {
        engine: Engine::Tgi,
        name: "TGI",
        prefixes: &["tgi_"],
        moves: Moves::PerFinished,
        counters: &[
            (Counter::Prompt, by(&["tgi_request_input_length_sum"])),
            (Counter::Generation, by(&["tgi_request_generated_tokens_sum"])),
            (Counter::Finished, by(&["tgi_request_success"])),
            (Counter::FinishedTokens, by(&["tgi_request_generated_tokens_sum"])),
        ],
        gauges: &[
            (Gauge::Running, by(&["tgi_batch_current_size"])),
            (Gauge::Waiting, by(&["tgi_queue_size"])),
        ],
        latencies: &[
            // The mean of each request, once per request: the nearest that there is.
            (Latency::Itl, by(&["tgi_request_mean_time_per_token_duration"])),
            (Latency::E2e, by(&["tgi_request_duration"])),
            (Latency::Queue, by(&["tgi_request_queue_duration"])),
        ],
        note: "ITL is the mean of each request, counted once when it ends",
        ..PLAIN
    },
    Rules {
        engine: Engine::TrtLlm,
        name: "TensorRT-LLM",
        prefixes: &["trtllm_", "trtllm:"],
        moves: Moves::PerFinished,
        model_label: Some("model_name"),
        counters: &[
            (Counter::Prompt, by(&["trtllm_prompt_tokens", "trtllm:prompt_tokens"])),
            (Counter::Cached, by(&["trtllm_prompt_cached_tokens", "trtllm:prompt_cached_tokens"])),
            (Counter::Generation, by(&["trtllm_generation_tokens", "trtllm:generation_tokens"])),
            (
                Counter::Finished,
                except(
                    &["trtllm_request_success", "trtllm:request_success"],
                    "finished_reason",
                    NOT_ANSWERED,
                ),
            ),
            (
                Counter::FinishedTokens,
                by(&["trtllm_generation_tokens", "trtllm:generation_tokens"]),
            ),
            (Counter::Drafted, by(&["trtllm_spec_decode_num_draft_tokens"])),
            (Counter::Accepted, by(&["trtllm_spec_decode_num_accepted_tokens"])),
        ],
        gauges: &[
            (Gauge::Running, by(&["trtllm_num_requests_running", "trtllm:num_requests_running"])),
            (Gauge::Waiting, by(&["trtllm_num_requests_waiting", "trtllm:num_requests_waiting"])),
            (Gauge::KvUse, by(&["trtllm_kv_cache_utilization", "trtllm:kv_cache_utilization"])),
            (Gauge::CacheHitRate, by(&["trtllm_kv_cache_hit_rate", "trtllm:kv_cache_hit_rate"])),
        ],
        latencies: &[
            (
                Latency::Ttft,
                by(&["trtllm_time_to_first_token_seconds", "trtllm:time_to_first_token_seconds"]),
            ),
            (
                Latency::Itl,
                by(&[
                    "trtllm_time_per_output_token_seconds",
                    "trtllm:time_per_output_token_seconds",
                ]),
            ),
            (
                Latency::E2e,
                by(&["trtllm_e2e_request_latency_seconds", "trtllm:e2e_request_latency_seconds"]),
            ),
            (
                Latency::Queue,
                by(&["trtllm_request_queue_time_seconds", "trtllm:request_queue_time_seconds"]),
            ),
        ],
        note: "ITL is the mean of each request, counted once when it ends",
        ..PLAIN
    },
    Rules {
        engine: Engine::LmDeploy,
        name: "LMDeploy",
        prefixes: &["lmdeploy:"],
        model_label: Some("model_name"),
        counters: &[
            (Counter::Prompt, by(&["lmdeploy:prompt_tokens"])),
            (Counter::Generation, by(&["lmdeploy:generation_tokens"])),
            (
                Counter::Finished,
                except(&["lmdeploy:request_success"], "finished_reason", NOT_ANSWERED),
            ),
            (Counter::Drafted, by(&["lmdeploy:spec_decode_num_draft_tokens"])),
            (Counter::Accepted, by(&["lmdeploy:spec_decode_num_accepted_tokens"])),
            (Counter::Drafts, by(&["lmdeploy:spec_decode_num_drafts"])),
        ],
        gauges: &[
            (Gauge::Running, by(&["lmdeploy:num_requests_running"])),
            (Gauge::Waiting, by(&["lmdeploy:num_requests_waiting"])),
            (Gauge::KvUse, by(&["lmdeploy:gpu_cache_usage_perc"])),
            (Gauge::CacheHitRate, by(&["lmdeploy:prefix_cache_hit_rate"])),
        ],
        latencies: &[
            (Latency::Ttft, by(&["lmdeploy:time_to_first_token_seconds"])),
            (Latency::Itl, by(&["lmdeploy:time_per_output_token_seconds"])),
            (Latency::E2e, by(&["lmdeploy:e2e_request_latency_seconds"])),
            (Latency::Queue, by(&["lmdeploy:request_queue_time_seconds"])),
        ],
        ..PLAIN
    },
    Rules {
        engine: Engine::LiteLlm,
        name: "LiteLLM",
        prefixes: &["litellm_"],
        moves: Moves::PerFinished,
        is_front: true,
        counters: &[
            (Counter::Prompt, by(&["litellm_input_tokens_metric"])),
            (Counter::Cached, by(&["litellm_input_cached_tokens_metric"])),
            (Counter::Generation, by(&["litellm_output_tokens_metric"])),
            (
                Counter::Finished,
                only(&["litellm_proxy_total_requests_metric"], "status_code", &["200"]),
            ),
            (Counter::FinishedTokens, by(&["litellm_output_tokens_metric"])),
        ],
        latencies: &[
            (Latency::Ttft, by(&["litellm_llm_api_time_to_first_token_metric"])),
            (Latency::E2e, by(&["litellm_request_total_latency_metric"])),
            (Latency::Queue, by(&["litellm_request_queue_time_seconds"])),
        ],
        note: "a proxy: it counts what passed through it, as the servers behind it told",
        ..PLAIN
    },
];
