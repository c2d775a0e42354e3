import type { EffectiveOption } from '../admin/index.ts';
import { type HearthConfiguration, sections } from '../configuration.ts';
import { effectiveDocument, type OptionPlaces } from '../kernel/config/index.ts';
import type { OptionSchema } from '../kernel/config/option.ts';
import { sectionOptions } from '../kernel/config/section.ts';
import type { JsonValue } from '../protocol/index.ts';

/**
 * Returns all options, each with its value as written in a file and with the source of that value. A mapping with
 * fixed names yields an option for each name; other mappings and lists are one option. Secrets are masked.
 */
export function effectiveOptions(values: HearthConfiguration, origins: OptionPlaces): EffectiveOption[] {
  const document = effectiveDocument(values, sections) as Readonly<Record<string, JsonValue>>;
  return Object.values(sections).flatMap((section) =>
    Object.entries(sectionOptions(section)).flatMap(([name, schema]) =>
      optionsIn(name, schema, document[name] ?? null, origins),
    ),
  );
}

function optionsIn(
  name: string,
  schema: OptionSchema,
  value: JsonValue,
  origins: OptionPlaces,
): EffectiveOption[] {
  const members = Object.entries(schema.properties ?? {});
  if (members.length > 0 && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return members.flatMap(([member, inner]) =>
      optionsIn(`${name}.${member}`, inner, (value as Record<string, JsonValue>)[member] ?? null, origins),
    );
  }
  return [{ name, value, ...sourceOf(name, origins) }];
}

function sourceOf(name: string, origins: OptionPlaces): Pick<EffectiveOption, 'source' | 'file' | 'line'> {
  if (!origins.has(name)) return { source: 'default' };
  const place = origins.get(name);
  return place === undefined ? { source: 'derived' } : { source: 'file', file: place.file, line: place.line };
}
