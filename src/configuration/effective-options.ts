import type { EffectiveOption } from '../admin/index.ts';
import { type HearthConfiguration, sections } from '../configuration.ts';
import { effectiveDocument, type OptionPlaces } from '../kernel/config/index.ts';
import type { OptionSchema } from '../kernel/config/option.ts';
import { sectionOptions } from '../kernel/config/section.ts';
import { isJsonObject, type JsonObject } from '../protocol/index.ts';

/**
 * Returns all options, each with its value in the form that files have, and with the source of that value. A mapping
 * with fixed names yields an option for each name; other mappings and lists are one option. Secrets are masked.
 */
export function effectiveOptions(values: HearthConfiguration, origins: OptionPlaces): EffectiveOption[] {
  const document = effectiveDocument(values, sections) as JsonObject;
  return Object.values(sections).flatMap((section) =>
    optionsOf(sectionOptions(section), document, origins, (name) => name),
  );
}

/** @param pathOf returns the path of a member */
function optionsOf(
  members: Readonly<Record<string, OptionSchema>>,
  values: JsonObject,
  origins: OptionPlaces,
  pathOf: (member: string) => string,
): EffectiveOption[] {
  const fromFiles = membersFromFiles(members, values);
  return Object.entries(members).flatMap(([name, schema]) => {
    const value = values[name] ?? null;
    const path = pathOf(name);
    const inner = schema.properties ?? {};
    if (Object.keys(inner).length > 0 && isJsonObject(value))
      return optionsOf(inner, value, origins, (member) => `${path}.${member}`);
    return [{ name: path, value, ...(fromFiles.has(name) ? derived : sourceOf(path, origins)) }];
  });
}

/** Returns the members whose values are the contents of files that other members name. */
function membersFromFiles(
  members: Readonly<Record<string, OptionSchema>>,
  values: JsonObject,
): ReadonlySet<string> {
  const named = Object.entries(members).filter(([name]) => (values[name] ?? null) !== null);
  return new Set(named.flatMap(([, schema]) => schema['x-file-for'] ?? []));
}

const derived = { source: 'derived' } as const;

function sourceOf(name: string, origins: OptionPlaces): Pick<EffectiveOption, 'source' | 'file' | 'line'> {
  if (!origins.has(name)) return { source: 'default' };
  const place = origins.get(name);
  return place === undefined ? derived : { source: 'file', file: place.file, line: place.line };
}
