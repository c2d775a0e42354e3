import { stringify } from 'yaml';
import { type LoadedConfiguration, loadConfigurationFiles } from '../configuration/load.ts';
import { configurationReference, configurationSchema, explainOption } from '../configuration/reference.ts';
import { sections } from '../configuration.ts';
import { effectiveDocument, formatProblem, type Problem } from '../kernel/config/index.ts';
import type { CommandContext } from './command-context.ts';

/**
 * `hearth config check FILE…`: reports all problems of a configuration. `strict` treats warnings as errors.
 * Opens no database and creates no files.
 * @returns the exit code: 1 if there are errors, otherwise 0
 */
export function checkConfiguration(
  { files, strict = false }: { readonly files: readonly string[]; readonly strict?: boolean },
  context: CommandContext,
): number {
  const loaded = loadConfigurationFiles(files, context);
  const errors = strict ? [...loaded.errors, ...loaded.warnings] : loaded.errors;
  const warnings = strict ? [] : loaded.warnings;
  report({ ...loaded, errors, warnings }, context);
  const counts = `${withCount(errors.length, 'error')}, ${withCount(warnings.length, 'warning')}`;
  if (errors.length > 0) context.stderr.write(`The configuration cannot be used: ${counts}.\n`);
  else context.stdout.write(`The configuration is valid: ${counts}.\n`);
  return errors.length > 0 ? 1 : 0;
}

/**
 * `hearth config show FILE…`: prints the effective document, with defaults and with masked secrets, as YAML
 * or as JSON.
 * @returns the exit code: 1 if the configuration has errors, otherwise 0
 */
export function showConfiguration(
  { files, json = false }: { readonly files: readonly string[]; readonly json?: boolean },
  context: CommandContext,
): number {
  const loaded = loadConfigurationFiles(files, context);
  if (loaded.errors.length > 0) {
    report({ ...loaded, notices: [] }, context);
    return 1;
  }
  const document = effectiveDocument(loaded.values, sections);
  context.stdout.write(json ? `${JSON.stringify(document, null, 2)}\n` : stringify(document));
  return 0;
}

/** `hearth config schema`: prints the JSON Schema of the configuration. @returns the exit code 0 */
export function printConfigurationSchema({ stdout }: CommandContext): number {
  stdout.write(`${JSON.stringify(configurationSchema(), null, 2)}\n`);
  return 0;
}

/** `hearth config docs`: prints the reference of all options in Markdown. @returns the exit code 0 */
export function printConfigurationReference({ stdout }: CommandContext): number {
  stdout.write(configurationReference());
  return 0;
}

/**
 * `hearth config explain PATH`: prints the reference of one option and of the options inside it. The path may contain
 * indexes of lists.
 * @returns the exit code: 1 if there is no such option, otherwise 0
 */
export function explainConfiguration(path: string, { stdout, stderr }: CommandContext): number {
  const explanation = explainOption(path);
  if (explanation.found) stdout.write(explanation.text);
  else stderr.write(explanation.text);
  return explanation.found ? 0 : 1;
}

/** Writes the errors, warnings and notices of a loaded configuration to the error stream, one per line. */
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
