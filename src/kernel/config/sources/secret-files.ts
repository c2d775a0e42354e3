import { readFileSync } from 'node:fs';
import { SigningKey, writeSigningKeys } from '../../../protocol/index.ts';
import { type Randomness, randomLetters, randomString } from '../../randomness.ts';
import type { OptionSchema } from '../option.ts';
import { childPath } from '../problems.ts';
import type { RuleView } from '../rules.ts';
import { fileProblem, writePrivateFile } from './private-files.ts';

/** A file that an option names, that does not exist, and that the server may create. */
export interface MissingFile {
  /** Path of the option, for example `signing_key_path`. */
  readonly path: string;
  readonly file: string;
  readonly content: 'secret' | 'signing-key';
  /** Sets the option that the file stands for, if there is one, to the content of the created file. */
  readonly apply: (content: string) => void;
}

type Values = Record<string, unknown>;
type Members = Readonly<Record<string, OptionSchema>>;

/**
 * Reads the files named by `…_path` options into the options that they replace. Reports files that are
 * missing, unreadable or empty, and options that are given both directly and by a file.
 * @returns the missing files that the server may create
 */
export function readValueFiles(members: Members, values: Values, view: RuleView, path = ''): MissingFile[] {
  const missing: MissingFile[] = [];
  for (const [name, schema] of Object.entries(members)) {
    view.tryRule(() =>
      missing.push(...readMember(schema, values[name], values, view, childPath(path, name))),
    );
  }
  return missing;
}

function readMember(
  schema: OptionSchema,
  value: unknown,
  values: Values,
  view: RuleView,
  path: string,
): MissingFile[] {
  if (schema['x-file-for'] !== undefined || schema['x-created']) {
    return typeof value === 'string' ? readValueFile(schema, value, path, values, view) : [];
  }
  const parts = partsOf(schema, value, path);
  return parts.flatMap((part) => readValueFiles(part.members, part.values, view, part.path));
}

/** Creates missing files, readable by their owner only, and sets the options that the files stand for. */
export function createMissingFiles(
  missing: readonly MissingFile[],
  randomness: Randomness,
  view: RuleView,
): void {
  for (const { path, file, content, apply } of missing) {
    const text = content === 'secret' ? randomString(randomness, 64) : newSigningKey(randomness);
    try {
      writePrivateFile(file, text);
      apply(text);
    } catch (error) {
      view.error(path, `cannot create the file ${file}: ${fileProblem(error)}`);
    }
  }
}

function readValueFile(
  schema: OptionSchema,
  file: string,
  path: string,
  values: Values,
  view: RuleView,
): MissingFile[] {
  const target = schema['x-file-for'];
  if (target !== undefined && values[target] != null) {
    view.error(path, `cannot be given together with ${target}`);
    return [];
  }
  const apply = (content: string): void => {
    if (target !== undefined) values[target] = content;
  };
  try {
    const content = readFileSync(file, 'utf8').trim();
    if (content === '') view.error(path, `the file ${file} is empty`);
    else apply(content);
  } catch (error) {
    const content = schema['x-created'];
    if (content && isMissing(error)) return [{ path, file, content, apply }];
    view.error(path, `the file ${file} cannot be read: ${fileProblem(error)}`);
  }
  return [];
}

/** Returns the mappings in a value, with the schemas of their members: the value itself, or the entries of a list. */
function partsOf(
  schema: OptionSchema,
  value: unknown,
  path: string,
): { members: Members; values: Values; path: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) {
    return schema.items === undefined
      ? []
      : value.flatMap((item, index) => partsOf(schema.items ?? {}, item, `${path}[${index}]`));
  }
  return schema.properties ? [{ members: schema.properties, values: value as Values, path }] : [];
}

function newSigningKey(randomness: Randomness): string {
  const key = SigningKey.fromSeed(`a_${randomLetters(randomness, 4)}`, randomness.bytes(32));
  if (key === undefined) throw new Error('the source of randomness returned too few bytes');
  return writeSigningKeys([key]);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
