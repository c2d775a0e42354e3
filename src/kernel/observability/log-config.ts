import type { LevelWithSilent } from 'pino';
import { moreVerbose, parseLevel } from './log-levels.ts';

/** A destination for log lines, and the lowest level that it receives. */
export interface LogOutput {
  readonly to: 'stdout' | 'stderr' | { readonly file: string };
  readonly level: LevelWithSilent;
}

/** The content of the file `log_config`. */
export interface LogConfig {
  /** The level of loggers without a level of their own. */
  readonly level: LevelWithSilent;
  /** Levels of single loggers (`http`, `database`), by name. */
  readonly levels: ReadonlyMap<string, LevelWithSilent>;
  readonly outputs: readonly LogOutput[];
  /** Settings of the file that Hearth ignores or follows in part, one sentence each. */
  readonly remarks: readonly string[];
}

/** Used when there is no `log_config` file. */
export const defaultLogConfig: LogConfig = {
  level: 'info',
  levels: new Map(),
  outputs: [{ to: 'stdout', level: 'trace' }],
  remarks: [],
};

type Mapping = Readonly<Record<string, unknown>>;

/**
 * Reads the parsed YAML of a `log_config` file. It has the format of the dictionaries of Python's
 * `logging.config` (`root`, `loggers`, `handlers`), so that files of other servers load. See
 * docs/configuration/logging.md.
 * @throws Error that names the place and the mistake
 */
export function logConfigOf(content: unknown): LogConfig {
  const document = mappingOf(content ?? {}, 'the file');
  const root = mappingOf(document['root'] ?? {}, 'root');
  const remarks: string[] = [];
  let level = levelOf(root, 'root') ?? defaultLogConfig.level;
  const levels = new Map<string, LevelWithSilent>();
  for (const [name, value] of Object.entries(mappingOf(document['loggers'] ?? {}, 'loggers'))) {
    const logger = mappingOf(value ?? {}, `loggers.${name}`);
    const ownLevel = levelOf(logger, `loggers.${name}`);
    if (logger['handlers'] !== undefined)
      remarks.push(`loggers.${name}.handlers: ignored; all loggers use the handlers of root`);
    if (ownLevel === undefined) continue;
    const hearthLogger = hearthLoggerOf(name);
    if (hearthLogger === undefined) remarks.push(`loggers.${name}: ignored; there is no such logger`);
    else if (hearthLogger === '') level = ownLevel;
    else levels.set(hearthLogger, moreVerbose(ownLevel, levels.get(hearthLogger) ?? ownLevel));
  }
  return { level, levels, outputs: outputsOf(document, root, remarks), remarks };
}

/** Prefixes of the names of loggers, in this server and in others. */
const loggerPrefix = /^(?:hearth|server|synapse)(?:\.|$)/;

/**
 * Patterns of logger names (without their prefix), of this server and of others, and the corresponding logger of Hearth.
 */
const loggerPatterns: readonly (readonly [RegExp, string])[] = [
  [/^(?:access|http|federation\.transport|rest)(?:\.|$)/, 'http'],
  [/^(?:database|storage)(?:\.|$)/, 'database'],
  [/^(?:jobs|metrics\.background_process_metrics|util\.task_scheduler)(?:\.|$)/, 'jobs'],
  [/^accounts(?:\.|$)/, 'accounts'],
];

/**
 * Returns the logger of Hearth that corresponds to a name in the file; the empty name for all loggers, `undefined` for
 * an unknown logger.
 */
function hearthLoggerOf(name: string): string | undefined {
  const nameWithoutPrefix = name.replace(loggerPrefix, '');
  if (nameWithoutPrefix === '') return '';
  return loggerPatterns.find(([pattern]) => pattern.test(nameWithoutPrefix))?.[1];
}

function outputsOf(document: Mapping, root: Mapping, remarks: string[]): readonly LogOutput[] {
  const names = root['handlers'];
  if (names === undefined) return defaultLogConfig.outputs;
  if (!Array.isArray(names)) throw new Error('root.handlers: a list of names is needed');
  const handlers = mappingOf(document['handlers'] ?? {}, 'handlers');
  return names.flatMap((name) => outputOf(handlers, String(name), remarks) ?? []);
}

/**
 * Returns the output of a handler. A handler with a `target` passes its lines on to another handler. The first handler
 * in such a chain that has a level decides the level of the output.
 */
function outputOf(handlers: Mapping, name: string, remarks: string[]): LogOutput | undefined {
  const seen = new Set<string>();
  let level: LevelWithSilent | undefined;
  for (let current = name; ; ) {
    if (handlers[current] === undefined) throw new Error(`handlers.${current}: there is no such handler`);
    if (seen.has(current)) throw new Error(`handlers.${current}: its targets lead back to it`);
    seen.add(current);
    const handler = mappingOf(handlers[current], `handlers.${current}`);
    level ??= levelOf(handler, `handlers.${current}`);
    const { target } = handler;
    if (typeof target !== 'string') return outputOfHandler(handler, current, level ?? 'trace', remarks);
    current = target;
  }
}

function outputOfHandler(
  handler: Mapping,
  name: string,
  level: LevelWithSilent,
  remarks: string[],
): LogOutput | undefined {
  const { filename, stream } = handler;
  const kind = String(handler['class'] ?? '');
  if (typeof filename === 'string' && filename !== '') {
    if (kind.includes('Rotating')) remarks.push(rotationRemark(name));
    return { to: { file: filename }, level };
  }
  if (kind.endsWith('NullHandler')) return undefined;
  if (kind.endsWith('StreamHandler') || kind === '') {
    return { to: stream === 'ext://sys.stdout' ? 'stdout' : 'stderr', level };
  }
  throw new Error(
    `handlers.${name}.class: ${kind} is not supported; use a file handler, StreamHandler or NullHandler`,
  );
}

const rotationRemark = (name: string) =>
  `handlers.${name}: Hearth does not rotate files; use logrotate and send SIGHUP afterwards`;

function levelOf(holder: Mapping, path: string): LevelWithSilent | undefined {
  const { level } = holder;
  if (level === undefined || level === null) return undefined;
  const parsed = parseLevel(level);
  if (parsed === undefined) throw new Error(`${path}.level: ${JSON.stringify(level)} is not a level`);
  return parsed;
}

function mappingOf(value: unknown, path: string): Mapping {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${path}: a mapping is needed`);
  }
  return value as Mapping;
}
