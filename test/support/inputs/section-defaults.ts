import { nodeFromValue, type Section } from '../../../src/kernel/config/index.ts';
import { schemaOf } from '../../../src/kernel/config/option.ts';
import { Findings, formatProblem } from '../../../src/kernel/config/problems.ts';
import { readValue } from '../../../src/kernel/config/reading/read.ts';

/** Some of the values, at any depth; lists are given whole. */
export type Overrides<T> = T extends readonly (infer Item)[]
  ? readonly Overrides<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]?: Overrides<T[Name]> }
    : T;

/**
 * Returns a section's defaults with some values replaced. Overrides are typed values (durations in
 * milliseconds), are checked as a file's are, and must include the options without a default. Rules between
 * options are not applied.
 * @throws Error that lists the mistakes in the overrides
 */
export function sectionDefaults<Values>(
  section: Section<Values>,
  overrides: Overrides<Values> = {} as Overrides<Values>,
): Values {
  const findings = new Findings();
  const values = readValue(schemaOf(section.schema), nodeFromValue(overrides), { findings, path: '' });
  const problems = [...findings.errors, ...findings.warnings];
  if (problems.length > 0) throw new Error(problems.map(formatProblem).join('\n'));
  return values as Values;
}
