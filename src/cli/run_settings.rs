//! What was typed, as settings of a run.

use super::args::{ReadArgs, RunArgs, ShapeArgs};
use super::console::this_program;
use crate::run::{
    ContentSettings, FolderSettings, JudgementSettings, LimitSettings, OutputSettings, Salt,
    ScheduleSettings, Settings, Target,
};
use crate::schedule::Shape;
use crate::server::{SOCKET_URL, ServerSettings};
use crate::trace::read::ReadOptions;

impl RunArgs {
    /// The same as settings, keys read.
    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            source: self.source.clone(),
            reading: self.reading.options(),
            schedule: self.shape.settings(),
            target: self.run_target()?,
            server: self.server()?,
            content: self.content(),
            limits: self.limits()?,
            judgement: JudgementSettings {
                abort_on: self.judgement.abort_on.clone(),
                max_refused: self.judgement.max_refused,
            },
            output: self.output()?,
        })
    }

    /// The servers that were named, in order; the simulated one where there is none.
    fn run_target(&self) -> anyhow::Result<Target> {
        let link = &self.reach.link;
        if !self.target.url.is_empty() {
            return Ok(Target::Servers(self.target.url.clone()));
        }
        if link.unix_socket.is_some() {
            return Ok(Target::Servers(vec![SOCKET_URL.to_owned()]));
        }
        link.check_has_server()?;
        Ok(Target::Simulated { program: this_program()? })
    }

    fn server(&self) -> anyhow::Result<ServerSettings> {
        let (target, reach) = (&self.target, &self.reach);
        Ok(ServerSettings {
            model: target.model.clone(),
            api: target.api,
            usage: !target.no_usage,
            running_usage: reach.running_usage,
            ignore_eos: target.ignore_eos,
            max_tokens_key: reach.max_tokens_key,
            engine: reach.engine.0,
            preflight: !reach.no_preflight,
            wait_ready: reach.wait_ready,
            connection: reach.link.connection()?,
        })
    }

    fn content(&self) -> ContentSettings {
        let content = &self.content;
        ContentSettings {
            prompts: content.prompts.clone(),
            shuffle_prompts: content.shuffle_prompts,
            prompt: content.prompt.clone(),
            extra: content.extra.clone(),
            save_text: content.save_text.clone(),
            tokenizer: content.tokenizer.clone(),
            prime: content.prime,
            salt: match self.shape.salt.as_str() {
                "none" => Salt::None,
                "run" => Salt::Run,
                text => Salt::Text(text.to_owned()),
            },
            clip_to_server: self.reach.clip_to_server,
        }
    }

    fn limits(&self) -> anyhow::Result<LimitSettings> {
        let limits = &self.limits;
        Ok(LimitSettings {
            warmup: limits.warmup,
            drain: limits.drain.unwrap_or_default(),
            connect_timeout: limits.connect_timeout,
            first_token_timeout: limits.first_token_timeout,
            idle_timeout: limits.idle_timeout,
            timeout: limits.timeout,
            retries: limits.retries,
            reader_pace: limits.reader_pace,
            workers: limits.workers,
            predial: limits.predial,
            rx_time: !limits.no_rx_time,
            calibrate_with: limits.calibrate.then(this_program).transpose()?,
        })
    }

    fn output(&self) -> anyhow::Result<OutputSettings> {
        let output = &self.output;
        Ok(OutputSettings {
            folder: match &output.out {
                Some(path) => FolderSettings::At(path.clone()),
                None => FolderSettings::Named(output.name.clone()),
            },
            plan: output.plan.clone(),
            chunks: output.chunks,
            metrics: self.reach.metrics_pages()?,
            labels: output.label.iter().cloned().collect(),
            command: std::env::args().skip(1).collect(),
        })
    }
}

impl ReadArgs {
    /// The same as settings.
    pub(super) fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            time_unit: self.time_unit,
            block_tok: self.block_tok,
            failed: self.failed,
            assume_sorted: self.assume_sorted,
        }
    }
}

impl ShapeArgs {
    /// The same as settings.
    pub(super) fn settings(&self) -> ScheduleSettings {
        ScheduleSettings {
            shape: Shape {
                speed: self.speed,
                from: self.from,
                to: self.to,
                max_gap: self.max_gap,
                limit: self.limit,
                duration: self.duration,
                max_input_tok: self.max_input_tok,
                max_output_tok: self.max_output_tok,
                ..Shape::default()
            },
            rate: self.rate,
            scale: self.scale,
            dequantise: self.dequantise,
            repeat: self.repeat,
            concurrency: self.concurrency,
            max_in_flight: self.max_in_flight,
            seed: self.seed,
        }
    }
}
