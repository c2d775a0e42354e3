import type { LevelWithSilent } from 'pino';
import { moreTalkative, parseLevel } from './log-levels.ts';

/** Where lines go, and from which level on. */
export interface LogOutput {
  readonly to: 'stdout' | 'stderr' | { readonly file: string };
  readonly level: LevelWithSilent;
}

/** What is logged where: the content of the file `log_config`. */
export interface LogConfig {
  /** The level of loggers that have none of their own. */
  readonly level: LevelWithSilent;
  /** Levels of single loggers (`http`, `database`), by name. */
  readonly levels: ReadonlyMap<string, LevelWithSilent>;
  readonly outputs: readonly LogOutput[];
  /** What the file says and Hearth does not do, a sentence each. */
  readonly remarks: readonly string[];
}

/** What holds without a file. */
export const defaultLogConfig: LogConfig = {
  level: 'info',
  levels: new Map(),
  outputs: [{ to: 'stdout', level: 'trace' }],
  remarks: [],
};

type Members = Readonly<Record<string, unknown>>;

/**
 * Understands a file `log_config`, read as YAML, which has the form of the dictionaries of Python's `logging.config`, so that files of
 * other servers load: `root` and `loggers` with their levels, and `handlers`. See docs/configuration/logging.md.
 * @throws Error that says what is wrong with the file
 */
export function logConfigOf(file: unknown): LogConfig {
  const document = members(file ?? {}, 'the file');
  const root = members(document['root'] ?? {}, 'root');
  const remarks: string[] = [];
  let level = levelOf(root, 'root') ?? defaultLogConfig.level;
  const levels = new Map<string, LevelWithSilent>();
  for (const [name, value] of Object.entries(members(document['loggers'] ?? {}, 'loggers'))) {
    const logger = members(value ?? {}, `loggers.${name}`);
    const own = levelOf(logger, `loggers.${name}`);
    if (logger['handlers'] !== undefined)
      remarks.push(`loggers.${name}.handlers: all loggers share the root's`);
    if (own === undefined) continue;
    const ours = loggerNamed(name);
    if (ours === undefined) remarks.push(`loggers.${name}: there is no such logger here`);
    else if (ours === '') level = own;
    else levels.set(ours, moreTalkative(own, levels.get(ours) ?? own));
  }
  return { level, levels, outputs: outputsOf(document, root, remarks), remarks };
}

/** Prefixes under which servers of the ecosystem name all their loggers. */
const families = /^(?:hearth|server|synapse)(?:\.|$)/;

/** Loggers of Hearth by the first parts of what other servers call them. */
const relatives: readonly (readonly [RegExp, string])[] = [
  [/^(?:access|http|federation\.transport|rest)(?:\.|$)/, 'http'],
  [/^(?:database|storage)(?:\.|$)/, 'database'],
  [/^(?:jobs|metrics\.background_process_metrics|util\.task_scheduler)(?:\.|$)/, 'jobs'],
  [/^accounts(?:\.|$)/, 'accounts'],
];

/** The logger that is meant; the empty name stands for all. */
function loggerNamed(name: string): string | undefined {
  const rest = name.replace(families, '');
  if (rest === '') return '';
  return relatives.find(([pattern]) => pattern.test(rest))?.[1];
}

function outputsOf(document: Members, root: Members, remarks: string[]): readonly LogOutput[] {
  const names = root['handlers'];
  if (names === undefined) return defaultLogConfig.outputs;
  if (!Array.isArray(names)) throw new Error('root.handlers: a list of names is needed');
  const handlers = members(document['handlers'] ?? {}, 'handlers');
  return names.flatMap((name) => outputOf(handlers, String(name), remarks) ?? []);
}

function outputOf(handlers: Members, name: string, remarks: string[]): LogOutput | undefined {
  const seen = new Set<string>();
  let level: LevelWithSilent | undefined;
  for (let at = name; ; ) {
    if (handlers[at] === undefined || seen.has(at))
      throw new Error(`handlers.${at}: there is no such handler`);
    seen.add(at);
    const handler = members(handlers[at], `handlers.${at}`);
    level ??= levelOf(handler, `handlers.${at}`);
    const { target } = handler;
    if (typeof target !== 'string') return leaf(handler, at, level ?? 'trace', remarks);
    at = target;
  }
}

function leaf(
  handler: Members,
  name: string,
  level: LevelWithSilent,
  remarks: string[],
): LogOutput | undefined {
  const { filename, stream } = handler;
  const kind = String(handler['class'] ?? '');
  if (typeof filename === 'string' && filename !== '') {
    if (kind.includes('Rotating')) remarks.push(rotation(name));
    return { to: { file: filename }, level };
  }
  if (kind.endsWith('NullHandler')) return undefined;
  if (kind.endsWith('StreamHandler') || kind === '') {
    return { to: stream === 'ext://sys.stdout' ? 'stdout' : 'stderr', level };
  }
  throw new Error(`handlers.${name}.class: ${kind} is not known here; a file, a stream or none is`);
}

const rotation = (name: string) =>
  `handlers.${name}: Hearth does not rotate files; let logrotate do it, and send SIGHUP afterwards`;

function levelOf(holder: Members, path: string): LevelWithSilent | undefined {
  const { level } = holder;
  if (level === undefined || level === null) return undefined;
  const parsed = parseLevel(level);
  if (parsed === undefined) throw new Error(`${path}.level: ${JSON.stringify(level)} is not a level`);
  return parsed;
}

function members(value: unknown, path: string): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${path}: a mapping is needed`);
  }
  return value as Members;
}
