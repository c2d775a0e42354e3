import { isDeepStrictEqual } from 'node:util';
import { type OptionSchema, schemaOf } from './option.ts';
import { childPath } from './problems.ts';
import type { ConfigurationValues, OptionPlaces, Sections } from './reading/load.ts';
import { sectionOptions } from './section.ts';

/** The effect of a reload with a changed configuration. */
export interface Reload<S extends Sections> {
  /** The values to use: the running ones, with the changes that need no restart. */
  readonly values: ConfigurationValues<S>;
  /** Paths of changed options that are applied. */
  readonly applied: readonly string[];
  /** Paths of changed options that keep their running value until a restart. */
  readonly needRestart: readonly string[];
}

/**
 * Compares the running configuration with a newly loaded one. Compares the names of files (certificates, log
 * configuration) and not their contents: the caller must read the files again even if their names are unchanged.
 */
export function diffReload<S extends Sections>(
  running: ConfigurationValues<S>,
  loaded: ConfigurationValues<S>,
  sections: S,
): Reload<S> {
  const applied: string[] = [];
  const needRestart: string[] = [];
  const merge = (schema: OptionSchema, before: unknown, after: unknown, path: string): unknown => {
    if (isDeepStrictEqual(before, after)) return before;
    if (schema['x-reloadable']) {
      applied.push(path);
      return after;
    }
    const members = schema.properties;
    if (members === undefined || !isRecord(before) || !isRecord(after)) {
      needRestart.push(path);
      return before;
    }
    const merged = { ...before };
    for (const [name, member] of Object.entries(members)) {
      merged[name] = merge(member, before[name], after[name], childPath(path, name));
    }
    return merged;
  };
  const values = Object.entries(sections).map(([name, section]) => {
    const before = running[name] as Readonly<Record<string, unknown>>;
    const after = loaded[name] as Readonly<Record<string, unknown>>;
    const options = Object.entries(sectionOptions(section));
    const merged = options.map(([option, schema]) => [
      option,
      merge(schemaOf(schema), before[option], after[option], option),
    ]);
    return [name, Object.fromEntries(merged)];
  });
  return { values: Object.fromEntries(values) as ConfigurationValues<S>, applied, needRestart };
}

/**
 * Returns the places (file and line) of the options after a reload: options that need a restart have the places of
 * their running values.
 * @param needRestart paths of options, as `diffReload` returns them
 */
export function reloadedOrigins(
  running: OptionPlaces,
  loaded: OptionPlaces,
  needRestart: readonly string[],
): OptionPlaces {
  const keepsValue = (name: string) =>
    needRestart.some((path) => name === path || name.startsWith(`${path}.`));
  const applied = [...loaded].filter(([name]) => !keepsValue(name));
  return new Map([...applied, ...[...running].filter(([name]) => keepsValue(name))]);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
