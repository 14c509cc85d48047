/** `--log FILE` and its bounds, for every long-running command. */

import { type Command, InvalidArgumentError } from "commander";
import { errorText } from "../../core/base/error-text.ts";
import type { LineWriter } from "../../host/control/line-writer.ts";
import {
  LOG_FILE_DEFAULTS,
  type LogFileOptions,
  openLogFile,
} from "../../host/control/rotating-file.ts";
import { EXIT_USAGE } from "../../host/exit-codes.ts";
import { RunError } from "../../runner/errors.ts";
import { someTime, wholeNumberFrom } from "../option-values.ts";

/** A line or two must fit, or every one would begin a file. */
const BYTES_MIN = 65_536;
const FILES_MAX = 10_000;

export interface LogFlags {
  readonly log?: string;
  readonly logMaxBytes?: number;
  readonly logMaxAge?: number;
  readonly logKeep?: number;
  readonly logKeepAge?: number;
}

export function withLogFile(command: Command): Command {
  return command
    .option("--log <file>", "write the log to this file, one JSON object per line")
    .option(
      "--log-max-bytes <n>",
      "rotate the log at this size (default: 64 MiB)",
      wholeNumberFrom(BYTES_MIN),
    )
    .option("--log-max-age <time>", "rotate the log at this age (default: 24h)", someTime)
    .option("--log-keep <n>", "how many files set aside are kept (default: 7)", count)
    .option("--log-keep-age <time>", "remove files set aside longer ago (default: 30d)", someTime);
}

/** Undefined without --log. */
export function logFileOf(flags: LogFlags): LogFileOptions | undefined {
  if (flags.log === undefined) return undefined;
  return {
    path: flags.log,
    bytesMax: flags.logMaxBytes ?? LOG_FILE_DEFAULTS.bytesMax,
    ageMsMax: flags.logMaxAge ?? LOG_FILE_DEFAULTS.ageMsMax,
    filesMax: flags.logKeep ?? LOG_FILE_DEFAULTS.filesMax,
    keepMsMax: flags.logKeepAge ?? LOG_FILE_DEFAULTS.keepMsMax,
  };
}

/** Opens the file before anything else; fails with the flag's name. */
export async function openLogLines(
  options: LogFileOptions | undefined,
): Promise<LineWriter | undefined> {
  if (options === undefined) return undefined;
  try {
    return await openLogFile(options);
  } catch (error) {
    throw new RunError(`--log ${options.path}: cannot be opened: ${errorText(error)}`, EXIT_USAGE);
  }
}

function count(text: string): number {
  const value = Number(text);
  if (text !== "" && Number.isInteger(value) && value >= 0 && value <= FILES_MAX) return value;
  throw new InvalidArgumentError(`write a whole number from 0 to ${FILES_MAX}`);
}
