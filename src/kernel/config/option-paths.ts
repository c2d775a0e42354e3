import type { OptionSchema } from './option.ts';
import { childPath } from './problems.ts';
import { type AnySection, sectionOptions } from './section.ts';
import { countedMembers } from './sources/given.ts';

/**
 * An option or sub-option with its dotted path. `[]` means each entry of a list, and `*` each name of a
 * mapping with free names: `listeners[].port`, `databases.*.name`.
 */
export interface OptionWithPath {
  readonly path: string;
  readonly schema: OptionSchema;
  /**
   * Whether the ledger of options, the list of options whose effect a test proves, counts this option. Options that
   * only group others are not counted.
   */
  readonly isCounted: boolean;
}

/** Returns all options and sub-options of a section, groups before their members. */
export function sectionPaths(section: AnySection): OptionWithPath[] {
  return Object.entries(sectionOptions(section)).flatMap(([name, schema]) => pathsOf(name, schema, true));
}

/** Returns all options and sub-options of all sections. */
export function allPaths(sections: Readonly<Record<string, AnySection>>): OptionWithPath[] {
  return Object.values(sections).flatMap(sectionPaths);
}

/**
 * Returns the schema of the entries of a list or a mapping, and the step (`[]` or `.*`) that stands for an entry in a
 * path.
 */
function innerSchema(
  schema: OptionSchema,
): { readonly inner: OptionSchema; readonly step: string } | undefined {
  if (schema.items) return { inner: schema.items, step: '[]' };
  const values = schema.additionalProperties;
  return typeof values === 'object' ? { inner: values, step: '.*' } : undefined;
}

/**
 * Returns an option, and the options below it.
 * @param isCounted false below an option that the ledger of options counts as one
 */
function pathsOf(path: string, schema: OptionSchema, isCounted: boolean): OptionWithPath[] {
  const entries = innerSchema(schema);
  // The schema whose members are the sub-options: that of the entries if they have members, else that of the option.
  const holder = entries && Object.keys(entries.inner.properties ?? {}).length > 0 ? entries.inner : schema;
  const holderPath = entries && holder === entries.inner ? path + entries.step : path;
  const members = Object.entries(holder.properties ?? {});
  const countsMembers = countedMembers(holder) !== undefined;
  return [
    { path, schema, isCounted: isCounted && !countsMembers },
    ...members.flatMap(([name, member]) =>
      pathsOf(childPath(holderPath, name), member, isCounted && countsMembers),
    ),
  ];
}
