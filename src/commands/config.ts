import { stringify } from 'yaml';
import { type LoadedConfiguration, loadConfigurationFiles } from '../configuration/load.ts';
import { configurationReference, configurationSchema, explainOption } from '../configuration/reference.ts';
import { sections } from '../configuration.ts';
import { effectiveDocument, formatProblem, type Problem } from '../kernel/config/index.ts';

/** Where a command writes, and the environment it runs in. */
export interface CommandContext {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * `hearth config check FILE…`: reports all that is wrong with a configuration. `strict` takes warnings
 * for errors. Nothing is opened or made. Returns the exit code: 0, or 1 when there are errors.
 */
export function checkConfiguration(
  { files, strict = false }: { readonly files: readonly string[]; readonly strict?: boolean },
  surroundings: CommandContext,
): number {
  const loaded = loadConfigurationFiles(files, surroundings);
  const errors = strict ? [...loaded.errors, ...loaded.warnings] : loaded.errors;
  const warnings = strict ? [] : loaded.warnings;
  report({ ...loaded, errors, warnings }, surroundings);
  const counts = `${withCount(errors.length, 'error')}, ${withCount(warnings.length, 'warning')}`;
  if (errors.length > 0) surroundings.stderr.write(`The configuration cannot be used: ${counts}.\n`);
  else surroundings.stdout.write(`The configuration is good: ${counts}.\n`);
  return errors.length > 0 ? 1 : 0;
}

/**
 * `hearth config show FILE…`: prints the effective document, defaults included and secrets masked, as
 * YAML or as JSON. Returns the exit code: 0, or 1 when the configuration cannot be used.
 */
export function showConfiguration(
  { files, json = false }: { readonly files: readonly string[]; readonly json?: boolean },
  surroundings: CommandContext,
): number {
  const loaded = loadConfigurationFiles(files, surroundings);
  if (loaded.errors.length > 0) {
    report({ ...loaded, notices: [] }, surroundings);
    return 1;
  }
  const document = effectiveDocument(loaded.values, sections);
  surroundings.stdout.write(json ? `${JSON.stringify(document, null, 2)}\n` : stringify(document));
  return 0;
}

/** `hearth config schema`: prints the JSON Schema of the configuration. Returns 0. */
export function printConfigurationSchema({ stdout }: CommandContext): number {
  stdout.write(`${JSON.stringify(configurationSchema(), null, 2)}\n`);
  return 0;
}

/** `hearth config docs`: prints the reference of all options in Markdown. Returns 0. */
export function printConfigurationReference({ stdout }: CommandContext): number {
  stdout.write(configurationReference());
  return 0;
}

/**
 * `hearth config explain PATH`: prints what is known of one option and of those below it. Indexes may
 * stand in the path. Returns 0, or 1 when there is no such option.
 */
export function explainConfiguration(path: string, { stdout, stderr }: CommandContext): number {
  const explanation = explainOption(path);
  if (explanation.found) stdout.write(explanation.text);
  else stderr.write(explanation.text);
  return explanation.found ? 0 : 1;
}

/** Writes errors, warnings and notices of a loaded configuration to the error stream, a line each. */
function report(
  { errors, warnings, notices }: Omit<LoadedConfiguration, 'values'>,
  { stderr }: CommandContext,
): void {
  const write = (kind: string, problems: readonly Problem[]) => {
    for (const problem of problems) stderr.write(`${kind}: ${formatProblem(problem)}\n`);
  };
  write('error', errors);
  write('warning', warnings);
  write('note', notices);
}

function withCount(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}
