import type { OptionSchema } from './option.ts';
import { childPath } from './problems.ts';
import { type AnySection, sectionOptions } from './section.ts';
import { countedMembers } from './sources/given.ts';

/**
 * An option or sub-option at its dotted path. `[]` stands for each entry of a list and `*` for each name
 * of a mapping whose names the operator chooses: `listeners[].port`, `databases.*.name`.
 */
export interface OptionAt {
  readonly path: string;
  readonly schema: OptionSchema;
  /** Whether the ledger counts it: it is not merely a holder of others. */
  readonly counted: boolean;
}

/** Every option and sub-option of a section, holders before what they hold. */
export function sectionPaths(section: AnySection): OptionAt[] {
  return Object.entries(sectionOptions(section)).flatMap(([name, schema]) => pathsOf(name, schema, true));
}

/** Every option and sub-option of all sections. */
export function allPaths(sections: Readonly<Record<string, AnySection>>): OptionAt[] {
  return Object.values(sections).flatMap(sectionPaths);
}

/** The schema of an item of a list or of a value of a mapping, with how its path goes on. */
function innerSchema(
  schema: OptionSchema,
): { readonly inner: OptionSchema; readonly step: string } | undefined {
  if (schema.items) return { inner: schema.items, step: '[]' };
  const values = schema.additionalProperties;
  return typeof values === 'object' ? { inner: values, step: '.*' } : undefined;
}

function pathsOf(path: string, schema: OptionSchema, counting: boolean): OptionAt[] {
  const own = innerSchema(schema);
  const holder = own && Object.keys(own.inner.properties ?? {}).length > 0 ? own.inner : schema;
  const holderPath = own && holder === own.inner ? path + own.step : path;
  const members = Object.entries(holder.properties ?? {});
  const holds = countedMembers(holder) !== undefined;
  return [
    { path, schema, counted: counting && !holds },
    ...members.flatMap(([name, member]) => pathsOf(childPath(holderPath, name), member, counting && holds)),
  ];
}
