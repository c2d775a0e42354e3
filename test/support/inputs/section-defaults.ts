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
 * milliseconds), are checked like the values of a configuration file, and must include the options without a
 * default. Rules between options are not applied.
 * @throws Error that lists the mistakes in the overrides
 */
export function sectionDefaults<Values>(
  section: Section<Values>,
  overrides: Overrides<Values> = {} as Overrides<Values>,
): Values {
  if (Object.keys(overrides as object).length > 0) return valuesOf(section, overrides);
  if (!defaults.has(section)) defaults.set(section, valuesOf(section, overrides));
  return defaults.get(section) as Values;
}

/** The defaults of sections without overrides: every test server needs the defaults of most sections. */
const defaults = new WeakMap<object, unknown>();

function valuesOf<Values>(section: Section<Values>, overrides: Overrides<Values>): Values {
  const findings = new Findings();
  const values = readValue(schemaOf(section.schema), nodeFromValue(overrides), { findings, path: '' });
  const problems = [...findings.errors, ...findings.warnings];
  if (problems.length > 0) throw new Error(problems.map(formatProblem).join('\n'));
  return values as Values;
}
